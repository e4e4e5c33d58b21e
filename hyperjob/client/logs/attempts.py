"""The last lines of earlier attempts, whose pods and logs are deleted: the status keeps them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hyperjob.client.errors import ClientError
from hyperjob.client.logs.choosing import ContainerLog, Wanted
from hyperjob.client.logs.reading import Line
from hyperjob.client.selection import choose
from hyperjob.client.summary import Summary
from hyperjob_core.api.status import ContainerFailure, JobStatus, Run
from hyperjob_core.api.wire import timestamp
from hyperjob_engine.members.podfailures import order

_TOGETHER: Final = 60.0
"""Seconds between the ends of sub-jobs that count as one failure."""


@dataclass(frozen=True, slots=True)
class LastLines:
    """The last lines of a failed container; `label` is its cluster, pod and rank."""

    label: str
    text: str


def last_failure(summary: Summary) -> LastLines | None:
    """Return the last lines of the cause of the last failure; None if the status has none.

    A failure of a present attempt comes before those of attempts that are over. Of the sub-jobs
    that failed together with the last one, the first failure that follows from no other counts.
    """
    newest: dict[str, tuple[bool, str, Run, ContainerFailure]] = {}
    for job, run in _selected_runs(summary, Wanted()):
        if run.failure is not None and run.failure.message.strip():
            present = job.failure is not None and run.attempt + 1 == job.number
            newest[job.name] = present, run.end, run, run.failure
    if not newest:
        return None
    present, last, *_ = max(newest.values(), key=lambda each: each[:2])
    together = [
        (run, failure)
        for is_present, end, run, failure in newest.values()
        if (is_present or not present) and _seconds_between(end, last) <= _TOGETHER
    ]
    run, failure = min(together, key=lambda each: order(each[1]))
    rank = "" if failure.rank is None else f" (rank {failure.rank})"
    return LastLines(f"{_log_of(run).label}{rank}", failure.message.strip())


def _seconds_between(end: str, last: str) -> float:
    """Return the seconds between two times; none between unknown ones."""
    first, second = timestamp(end), timestamp(last)
    return abs((second - first).total_seconds()) if first and second else 0.0


def is_present(summary: Summary, wanted: Wanted, attempt: int) -> bool:
    """Return whether an attempt, from 1, is the present one of every selected sub-job."""
    return all(job.number == attempt for job in _selected_jobs(summary, wanted))


def kept_lines(summary: Summary, wanted: Wanted, attempt: int) -> list[Line]:
    """Return the last lines of the containers that failed in an attempt, which counts from 1.

    ClientError where there are none; the text names the attempts that have lines.
    """
    found = [
        (_log_of(run), line.encode())
        for job, run in _selected_runs(summary, wanted)
        if run.attempt + 1 == attempt and run.failure is not None
        for line in run.failure.message.splitlines()
    ]
    if not found:
        raise ClientError(_no_lines(summary, wanted, attempt))
    return found


def _no_lines(summary: Summary, wanted: Wanted, attempt: int) -> str:
    """Return a text that an attempt has no lines, and which attempts have some."""
    every = [run for _, run in _selected_runs(summary, wanted)]
    known = sorted({run.attempt + 1 for run in every if run.failure and run.failure.message})
    runs = [run for run in every if run.attempt + 1 == attempt]
    text = f"there are no last lines of attempt {attempt} of {summary.name}"
    if runs:
        text += f", which ended with reason {runs[-1].reason}"
    if known:
        return f"{text}; there are those of attempt {', '.join(map(str, known))}"
    return f"{text}: kubectl describe hj {summary.name} -n {summary.namespace}"


def _selected_jobs(summary: Summary, wanted: Wanted) -> list[JobStatus]:
    return choose(summary, wanted.jobs) if wanted.jobs else list(summary.jobs)


def _selected_runs(summary: Summary, wanted: Wanted) -> Iterator[tuple[JobStatus, Run]]:
    """Yield the selected runs that are over, and the present failure of an ended sub-job."""
    for job in _selected_jobs(summary, wanted):
        present = job.failed_run
        for run in (*job.history, *([present] if present is not None else [])):
            if wanted.cluster in (None, run.cluster) and _is_wanted(run.failure, wanted):
                yield job, run


def _is_wanted(failure: ContainerFailure | None, wanted: Wanted) -> bool:
    """Return whether a failed container is among those selected.

    A run without one belongs to no task, rank or container: it is wanted where none is named.
    """
    if failure is None:
        return not wanted.task and wanted.ranks is None and not wanted.container
    return (
        wanted.task in (None, "", failure.task)
        and wanted.container in (None, "", failure.container)
        and (wanted.ranks is None or failure.rank in wanted.ranks)
    )


def _log_of(run: Run) -> ContainerLog:
    assert run.failure is not None
    return ContainerLog(cluster=run.cluster, pod=run.failure.pod, container=run.failure.container)
