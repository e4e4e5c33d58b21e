"""The indices of a replicatedJob's sub-jobs, and the choice of those that scaling down removes.

A sub-job keeps its index, and its name, for life. Scaling down removes sub-jobs that do not run
first, then those with the highest index; scaling up uses the lowest free indices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hyperjob_core.api.names import child_name
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.wire import natural
from hyperjob_engine.model.child import Child, child_of
from hyperjob_engine.model.observed import Observed, Ownership
from hyperjob_engine.model.subjobs import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """The indices that a group keeps, ascending, and the sub-jobs that leave it."""

    kept: Sequence[int]
    leaving: Sequence[str]


def members_of(observed: Observed, group: Group) -> Members:
    """Return the indices of a group, from its existing vcjobs and the records in the status.

    An index never changes. A group that grows gets the lowest unused indices. Of a group that
    shrinks, the sub-jobs leave first that lose the least, and of equal ones the highest index.
    """
    hyperjob, name = observed.hyperjob.name, group.replicated_job.name
    wanted = len(group.sizes)
    present = sorted(present_indices(observed, name))
    if len(present) <= wanted:
        taken = set(present)
        fresh = (index for index in range(wanted + len(present)) if index not in taken)
        filled = [*present, *(next(fresh) for _ in range(wanted - len(present)))]
        return Members(kept=sorted(filled), leaving=())
    order = sorted(
        present,
        key=lambda index: (
            _worth(child_of(observed, child_name(hyperjob, name, index))),
            -index,
        ),
    )
    gone = len(present) - wanted
    return Members(
        kept=sorted(order[gone:]),
        leaving=[child_name(hyperjob, name, index) for index in sorted(order[:gone])],
    )


def unwanted(observed: Observed, wanted: frozenset[str]) -> list[str]:
    """Return the names of the HyperJob's vcjobs and policies that no replicatedJob has any more."""
    jobs = {
        name
        for name, job in observed.jobs.items()
        if job.ownership is Ownership.OURS and job.labelled
    }
    policies = {
        name for name, policy in observed.policies.items() if policy.ownership is Ownership.OURS
    }
    return sorted((jobs | policies) - wanted)


def present_indices(observed: Observed, group: str) -> set[int]:
    """Return the indices of a group that the status or a vcjob has."""
    prefix = child_name(observed.hyperjob.name, group, 0)[:-1]
    found = {
        record.index
        for record in observed.hyperjob.records.values()
        if record.replicated_job == group
        and record.name == child_name(observed.hyperjob.name, group, record.index)
    }
    for name, job in observed.jobs.items():
        if job.ownership is Ownership.FOREIGN or not name.startswith(prefix):
            continue
        digits = name.removeprefix(prefix)
        index = natural(digits)
        if index is not None and str(index) == digits:
            found.add(index)
    return found


def _worth(child: Child) -> int:
    """Return the rank of a sub-job by the work that its deletion loses; the lowest goes first."""
    if not child.exists and not child.is_terminal:
        return 0
    if not child.is_terminal and child.phase is not JobPhase.RUNNING:
        return 1
    if child.phase.is_failed:
        return 2
    return 3 if child.phase is JobPhase.COMPLETED else 4
