"""The quorum: how many sub-jobs must train together, and when the training has ended.

`minAvailable` sub-jobs start together. After that the others join one by one, and the training goes
on while at least `quorum` sub-jobs train.
"""

from collections.abc import Mapping, Sequence

from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.plugins import lighthouse_of
from hyperjob_core.api.wire import objects, string
from hyperjob_engine.lifecycle.decisions import Member
from hyperjob_engine.lifecycle.loss import Loss
from hyperjob_engine.model.child import Child
from hyperjob_engine.model.observed import HyperJob


def trainers(hyperjob: HyperJob) -> frozenset[str]:
    """Return the names of the replicatedJobs that train: all but those with only a lighthouse."""
    task = lighthouse_of(hyperjob.plugins)
    return frozenset(
        group.name
        for group in hyperjob.replicated_jobs
        if not task
        or any(string(each.get("name")) != task for each in objects(group.template.get("tasks")))
    )


def together(hyperjob: HyperJob, children: Sequence[Child], *, able: int) -> int:
    """Return how many of the `able` sub-jobs with met dependencies need a place together."""
    wanted = hyperjob.min_available
    least = len(children) if wanted is None else wanted
    if hyperjob.quorum is not None and any(_trains(child) for child in children):
        least = min(least, hyperjob.quorum)
    return max(1, min(least, able))


def has_trained(hyperjob: HyperJob, members: Sequence[Member], losses: Mapping[str, Loss]) -> str:
    """Return why a training with a quorum has ended; empty while it goes on.

    The sub-jobs of a training complete together: a sub-job that is recreated after that would have
    no work left.
    """
    if hyperjob.quorum is None:
        return ""
    groups = trainers(hyperjob)
    members = [member for member in members if member[0].group.name in groups]
    completed = [child for _, child in members if child.phase is JobPhase.COMPLETED]
    if len(completed) < max(1, hyperjob.quorum):
        return ""
    if any(_trains(child) and not child.is_terminal for child in _within_reach(members, losses)):
        return ""
    return f"{len(completed)} of {len(members)} sub-jobs completed, and no other runs"


def _within_reach(members: Sequence[Member], losses: Mapping[str, Loss]) -> list[Child]:
    return [
        child
        for _, child in members
        if (loss := losses.get(child.name)) is None or not loss.is_lost
    ]


def _trains(child: Child) -> bool:
    runs = child.phase in (JobPhase.RUNNING, JobPhase.COMPLETING)
    return (runs and child.exists) or child.phase is JobPhase.COMPLETED
