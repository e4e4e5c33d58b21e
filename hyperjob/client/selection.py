"""Choose sub-jobs by words: a full name, `trainer-0`, or the name of a replicated job. Pure."""

from collections.abc import Sequence

from hyperjob.client.errors import ClientError
from hyperjob.client.summary import SubJob, Summary
from hyperjob.text import listed

_SHOWN = 8


def choose(summary: Summary, words: Sequence[str]) -> list[SubJob]:
    """Choose sub-jobs in their own order; ClientError lists the sub-jobs that exist."""
    for word in words:
        if not meant(summary, [word]):
            raise ClientError(f"{summary.name} has no sub-job {word!r}; {_there_are(summary)}")
    return meant(summary, words)


def meant(summary: Summary, words: Sequence[str]) -> list[SubJob]:
    """List the sub-jobs that any of the words means, in their own order."""
    return [job for job in summary.jobs if any(_is_meant(summary, job, word) for word in words)]


def _is_meant(summary: Summary, job: SubJob, word: str) -> bool:
    return word in (job.name, job.group) or job.name == f"{summary.name}-{word}"


def _there_are(summary: Summary) -> str:
    names = [job.name for job in summary.jobs]
    if not names:
        return "it has none yet"
    return f"there are {listed(names, shown=_SHOWN)}"
