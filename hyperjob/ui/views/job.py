"""The tree of a HyperJob: its replicated jobs and sub-jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from hyperjob.client.summary import SubJob, Summary, pods_text
from hyperjob.ui.rows import Row
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.text import shortened

_SHOWN = 200
_MESSAGE = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNode:
    """A sub-job in the tree."""

    name: str
    phase: str
    cluster: str
    accelerator: str
    accelerators: int
    running: int
    pods: int
    attempt: int
    reason: str
    message: str
    since: str
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNode:
    """A replicated job with its sub-jobs; `hidden` of them are not shown."""

    name: str
    queue: str
    pods: str
    jobs: Sequence[JobNode]
    hidden: int


def tree(row: Row) -> list[GroupNode]:
    """Return the replicated jobs in the order of the spec, then those that only the status has."""
    summary = row.summary
    names = [group.name for group in summary.groups] + [job.group for job in summary.jobs]
    shown = _SHOWN
    found = []
    for name in dict.fromkeys(names):
        group = summary.group(name)
        jobs = [job for job in summary.jobs if job.group == name]
        # The limit is for the whole page: sub-jobs with problems come first.
        jobs.sort(key=lambda job: not job.has_failed)
        visible, shown = jobs[:shown], max(0, shown - len(jobs))
        order = {job.name: place for place, job in enumerate(summary.jobs)}
        visible.sort(key=lambda job: order[job.name])
        found.append(
            GroupNode(
                name=name,
                queue=group.queue if group is not None else "",
                pods=pods_text(group.pods) if group is not None else "",
                jobs=[_node(summary, job) for job in visible],
                hidden=len(jobs) - len(visible),
            )
        )
    return found


def _node(summary: Summary, job: SubJob) -> JobNode:
    accelerator, number = summary.accelerators(job)
    return JobNode(
        name=job.name,
        phase=job.phase or "Unplaced",
        cluster=job.cluster,
        accelerator=accelerator,
        accelerators=number,
        running=job.running,
        pods=job.pods,
        attempt=job.attempt,
        reason=job.reason,
        message=shortened(job.message, _MESSAGE),
        since=job.since,
        failed=JobPhase(job.phase).is_failed,
    )
