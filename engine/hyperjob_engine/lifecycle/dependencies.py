"""The replicatedJobs that wait for others (`dependsOn`), and those that can never start.

Beside Volcano Global all of them wait for the PriorityClasses that any names: Volcano Global passes
over a sub-job whose PriorityClass does not exist, without a word.

Only sub-jobs that do not exist yet wait: a running sub-job goes on if its dependency fails later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hyperjob_core.api.choices import DependencyStatus
from hyperjob_core.api.phases import JobPhase
from hyperjob_engine.lifecycle.decisions import Loss, Member, losses_of
from hyperjob_engine.model.observed import Dependency, Observed, ReplicatedJob

_NO_CLASS: Final = (
    "PriorityClass {name} does not exist in the control plane, and Volcano Global admits no sub-job"
    " that names it: create it, or correct priorityClassName"
)
READY: Final = frozenset({JobPhase.RUNNING, JobPhase.COMPLETING, JobPhase.COMPLETED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Sub-jobs that must not be created yet, with what they wait for; `hopeless`: never."""

    for_what: Mapping[str, str] = field(default_factory=dict)
    hopeless: frozenset[str] = frozenset()


def waiting(observed: Observed, members: Sequence[Member]) -> Waiting:
    """Return the sub-jobs whose replicatedJob waits for another one.

    Without a failure policy a sub-job that depends on a failed one can never start: it is hopeless,
    and its replicatedJob makes those hopeless that depend on it. One pass over the replicatedJobs
    finds all of them, because a dependency precedes its dependents.
    """
    groups = {group.name: group for group in observed.hyperjob.replicated_jobs}
    if observed.missing_classes:
        text = _NO_CLASS.format(name=min(observed.missing_classes))
        missing = [each for _, each in members if not each.exists and not each.is_terminal]
        return Waiting(for_what={each.name: text for each in missing})
    if not any(group.depends_on for group in groups.values()):
        return Waiting()
    losses = losses_of(observed, members)
    by_group: dict[str, list[Member]] = {name: [] for name in groups}
    for member in members:
        by_group[member[0].group.name].append(member)
    final = observed.hyperjob.failure_policy is None
    reasons: dict[str, str] = {}
    lost: set[str] = set()
    for group in groups.values():  # in the order of the spec, which the webhook checks
        lacking = [
            unmet
            for dependency in group.depends_on
            if (unmet := _unmet(dependency, by_group.get(dependency.name, []), losses))
        ]
        if not lacking:
            continue
        reasons[group.name] = "; ".join(lacking)
        if final and _is_hopeless(group, by_group, lost):
            lost.add(group.name)
    for_what: dict[str, str] = {}
    hopeless: set[str] = set()
    for sub_job, child in members:
        name = sub_job.group.name
        if name in reasons and not child.exists and not child.is_terminal:
            for_what[child.name] = reasons[name]
            if name in lost:
                hopeless.add(child.name)
    return Waiting(for_what=for_what, hopeless=frozenset(hopeless))


def _unmet(dependency: Dependency, members: Sequence[Member], losses: Mapping[str, Loss]) -> str:
    """Return how far a dependency is from being met; empty if it is met.

    The loss of a cluster counts only for Ready: a sub-job that completed stays complete.
    """
    if dependency.status is DependencyStatus.COMPLETE:
        met = sum(child.phase is JobPhase.COMPLETED for _, child in members)
    else:
        met = sum(_is_ready(member, losses) for member in members)
    # Without the webhook a HyperJob may name a replicatedJob that it lacks: nothing meets that.
    if members and met == len(members):
        return ""
    verb = "completed" if dependency.status is DependencyStatus.COMPLETE else "run"
    return (
        f"waits for replicatedJob {dependency.name} to be {dependency.status}:"
        f" {met} of {len(members)} sub-jobs {verb}"
    )


def _is_ready(member: Member, losses: Mapping[str, Loss]) -> bool:
    child = member[1]
    loss = losses.get(child.name)
    return child.phase in READY and (loss is None or not loss.is_lost)


def _is_hopeless(
    group: ReplicatedJob, by_group: Mapping[str, Sequence[Member]], lost: set[str]
) -> bool:
    return any(
        dependency.name in lost
        or any(child.phase.is_failed for _, child in by_group.get(dependency.name, ()))
        for dependency in group.depends_on
    )
