"""The last lines of earlier attempts, which the status keeps: their pods and logs are deleted."""

from collections.abc import Iterator
from dataclasses import dataclass

from hyperjob.client.errors import ClientError
from hyperjob.client.logs.choosing import ContainerLog, Wanted
from hyperjob.client.logs.reading import Line
from hyperjob.client.selection import choose
from hyperjob.client.summary import SubJob, Summary
from hyperjob_engine.model.runs import Run


@dataclass(frozen=True, slots=True)
class LastLines:
    """The last lines of a failed container; `label` is its cluster and pod."""

    label: str
    text: str


def last_failure(summary: Summary) -> LastLines | None:
    """Return the last lines of the container that failed last; None if the status has none.

    A failure of a present attempt comes before those of attempts that are over.
    """
    runs = [
        (job.has_failed and run.attempt + 1 == job.attempt, run.end, run)
        for job, run in _runs(summary, Wanted())
        if run.failure is not None and run.failure.message.strip()
    ]
    if not runs:
        return None
    _, _, run = max(runs, key=lambda each: each[:2])
    assert run.failure is not None
    return LastLines(_source(run).label, run.failure.message.strip())


def is_present(summary: Summary, wanted: Wanted, attempt: int) -> bool:
    """Return whether an attempt, from 1, is the present one of every selected sub-job."""
    return all(job.attempt == attempt for job in _chosen(summary, wanted))


def kept_lines(summary: Summary, wanted: Wanted, attempt: int) -> list[Line]:
    """Return the last lines of the containers that failed in an attempt, which counts from 1.

    ClientError where the status has none; the text says which attempts have lines.
    """
    found = [
        (_source(run), line.encode())
        for job, run in _runs(summary, wanted)
        if run.attempt + 1 == attempt and run.failure is not None
        for line in run.failure.message.splitlines()
    ]
    if not found:
        raise ClientError(_nothing(summary, wanted, attempt))
    return found


def _nothing(summary: Summary, wanted: Wanted, attempt: int) -> str:
    known = sorted(
        {
            run.attempt + 1
            for _, run in _runs(summary, wanted)
            if run.failure is not None and run.failure.message
        }
    )
    runs = [run for _, run in _runs(summary, wanted) if run.attempt + 1 == attempt]
    text = f"the status has no last lines of attempt {attempt} of {summary.name}"
    if runs:
        text += f", which ended with reason {runs[-1].reason}"
    if known:
        return f"{text}; it has those of attempt {', '.join(map(str, known))}"
    return f"{text}: kubectl hyperjob describe {summary.name} -n {summary.namespace}"


def _chosen(summary: Summary, wanted: Wanted) -> list[SubJob]:
    return choose(summary, wanted.jobs) if wanted.jobs else list(summary.jobs)


def _runs(summary: Summary, wanted: Wanted) -> Iterator[tuple[SubJob, Run]]:
    """Yield the selected runs that are over, and the present failure of an ended sub-job."""
    for job in _chosen(summary, wanted):
        present = Run(
            attempt=job.attempt - 1,
            cluster=job.cluster,
            start=job.started,
            end=job.since,
            phase=job.phase,
            reason=job.reason,
            failure=job.failure,
        )
        for run in (*job.history, *([present] if job.failure is not None else [])):
            task = run.failure.task if run.failure is not None else ""
            if wanted.cluster in (None, run.cluster) and wanted.task in (None, "", task):
                yield job, run


def _source(run: Run) -> ContainerLog:
    assert run.failure is not None
    return ContainerLog(cluster=run.cluster, pod=run.failure.pod, container=run.failure.container)
