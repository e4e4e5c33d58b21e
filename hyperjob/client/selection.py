"""Select sub-jobs by full name, by `trainer-0`, or by the name of a replicated job. Pure."""

from collections.abc import Sequence

from hyperjob.client.errors import ClientError
from hyperjob.client.summary import Summary
from hyperjob_core.api.status import JobStatus
from hyperjob_core.text import listed

_SHOWN = 8


def choose(summary: Summary, words: Sequence[str]) -> list[JobStatus]:
    """Return the selected sub-jobs in the HyperJob's order; ClientError for an unknown name."""
    for word in words:
        if not meant(summary, [word]):
            raise ClientError(f"{summary.name} has no sub-job {word!r}; {_there_are(summary)}")
    return meant(summary, words)


def meant(summary: Summary, words: Sequence[str]) -> list[JobStatus]:
    """Return the sub-jobs that match any of the words, in the HyperJob's order."""
    return [job for job in summary.jobs if any(_is_meant(summary, job, word) for word in words)]


def _is_meant(summary: Summary, job: JobStatus, word: str) -> bool:
    return word in (job.name, job.replicated_job) or job.name == f"{summary.name}-{word}"


def _there_are(summary: Summary) -> str:
    names = [job.name for job in summary.jobs]
    if not names:
        return "it has no sub-jobs yet"
    return f"there are {listed(names, shown=_SHOWN)}"
