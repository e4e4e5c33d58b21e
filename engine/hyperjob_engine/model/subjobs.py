"""The sub-jobs that a HyperJob wants, by name, size and queue, and what exists of each.

A child is a sub-job's vcjob, PropagationPolicy and ResourceBinding, and its entry in `status.jobs`.
Karmada empties the status of a vcjob when an apply fails. The child then keeps the phase that its
entry in `status.jobs` records, until a cluster reports a newer one.

A choice names an alternative for each replicatedJob that has some, or a size, which is the number
of sub-jobs; with a quorum an alternative for each sub-job. A HyperJob with a choice has ordinary
replicatedJobs: few other steps know that there are alternatives.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations_with_replacement, islice, product
from math import comb, inf
from typing import Final, TypeAlias

from hyperjob_core.api import table
from hyperjob_core.api.limits import MAX_COMBINATIONS
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import binding_name
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.status import JobStatus, MeasuredSpeed
from hyperjob_core.api.wire import string
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.observed import (
    Binding,
    HyperJob,
    Job,
    Observed,
    Ownership,
    Policy,
    ReplicatedJob,
    ReportedStatus,
)
from hyperjob_engine.model.request import ClosedQueue, Items, PlacementRequest
from hyperjob_engine.resources import PODS, Resources

Choice: TypeAlias = tuple[tuple[str, str], ...]
"""(replicatedJob, alternative), in the order of the spec; of a sub-job replicatedJob/index."""
Step: TypeAlias = tuple[Choice, Mapping[str, Resources | None]]
"""A smaller size, and what a change to it frees: by sub-job its pods, all of them if None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One size of a vcjob template.

    `demand` and `items` are the pods without which Volcano starts none; `everything`, `pods`
    and `accelerators` are those of all of them.
    """

    template: Object
    demand: Resources
    everything: Resources
    accelerators: int | None
    pods: int
    items: Items = ()

    @property
    def fewest(self) -> int:
        """Return the number of pods that start together."""
        return self.demand.get(PODS, 0) // NANO


_REQUESTS: Final[Memo[Size, PlacementRequest]] = Memo()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A replicatedJob and the size of each of its sub-jobs, in order."""

    replicated_job: ReplicatedJob
    sizes: Sequence[Size]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubJob:
    """One wanted sub-job."""

    name: str
    group: ReplicatedJob
    index: int
    size: Size
    alternative: str = ""
    """Its own alternative, with a quorum."""

    def request(
        self,
        excluded: frozenset[str] = frozenset(),
        *,
        last: str = "",
        closed: ClosedQueue | None = None,
    ) -> PlacementRequest:
        """Return the placement request of the sub-job; `last` is the cluster of its run before.

        Sub-jobs of one size, group and exclusions share all of it but the name.
        """
        group = self.group
        kind = group.name, group.cluster_names, group.required, last, excluded, closed

        def made(size: Size) -> PlacementRequest:
            return PlacementRequest(
                name=self.name,
                group=group.name,
                demand=size.demand,
                everything={} if size.everything is size.demand else size.everything,
                preferred=group.cluster_names,
                required=group.required,
                last=last,
                excluded=excluded,
                closed=closed,
                pods=size.items,
            )

        found = _REQUESTS.of((id(self.size), *kind), self.size, made)
        return found if found.name == self.name else found.named(self.name)


def closed_queue_of(observed: Observed, template: Object) -> ClosedQueue | None:
    """Return the queue of a template with the clusters that have closed it; None if none has."""
    return observed.closed_queues.get(queue_of(template))


def queue_of(template: Object) -> str:
    """Return the queue that a vcjob template names."""
    return string(template.get("queue")) or "default"


# Without slots: `cached_property` computes each answer once for all steps of a plan.
@dataclass(frozen=True, kw_only=True)
class Child:
    """The objects that bear the name of one sub-job, and its record in the status."""

    name: str
    job: Job | None
    policy: Policy | None
    binding: Binding | None
    record: JobStatus | None
    left_behind: str = ""
    """Name of a ResourceBinding of this name that belongs to another object.

    Karmada would attach it, with its old status, to a new vcjob of this name.
    """
    stranger: str = ""
    """Kind and name of the object of that ResourceBinding, if it is not a vcjob."""

    @cached_property
    def exists(self) -> bool:
        """Return whether this HyperJob's vcjob of the present attempt exists and is not deleted."""
        return (
            self.job is not None
            and not self.job.deleting
            and self.job.ownership is not Ownership.FOREIGN
            and not self.is_outdated
        )

    @cached_property
    def attempt(self) -> int:
        """Return the present attempt: the later of the record's and the vcjob's.

        The vcjob has it as a label, which counts if the status was lost.
        """
        recorded = self.record.attempt if self.record is not None else 0
        if self.job is None or self.job.ownership is Ownership.FOREIGN:
            return recorded
        return max(recorded, self.job.attempt)

    @cached_property
    def is_outdated(self) -> bool:
        """Return whether the vcjob, or the policy if no vcjob exists, is of an earlier attempt."""
        recorded = self.record.attempt if self.record is not None else 0
        found = self.job or self.policy
        if found is None or found.ownership is Ownership.FOREIGN:
            return False
        return found.attempt < recorded

    @cached_property
    def is_leaving(self) -> bool:
        """Return whether the vcjob is being deleted or belongs to an earlier attempt."""
        return self.is_outdated or (self.job is not None and self.job.deleting)

    @cached_property
    def report(self) -> ReportedStatus | None:
        """Return the newest report of the vcjob's status; None if no cluster has reported.

        Karmada writes it to the ResourceBinding before it writes it to the vcjob.
        """
        if not self.exists or self.job is None:
            return None
        if self.binding is None:
            return self.job.report
        pins = self.policy.clusters if self.policy is not None else ()
        if pins and self.binding.cluster and self.binding.cluster not in pins:
            return None  # the report of the cluster that the sub-job leaves
        return self.binding.report or self.job.report

    @cached_property
    def phase(self) -> JobPhase:
        """Return the last known phase of the vcjob; UNKNOWN if no cluster ever reported one."""
        report = self.report
        if report is not None:
            return report.phase
        if self.record is None:
            return JobPhase.UNKNOWN
        recorded = JobPhase(self.record.phase)
        # Without its vcjob a sub-job cannot run any more, but an ended one stays ended.
        return recorded if self.exists or recorded.is_terminal else JobPhase.UNKNOWN

    @cached_property
    def is_terminal(self) -> bool:
        """Return whether the sub-job has ended."""
        return self.phase.is_terminal

    @cached_property
    def cluster(self) -> str:
        """Return the cluster that the sub-job is on or is pinned to; empty if it has none."""
        if self.is_outdated:
            return ""
        if self.exists and self.binding is not None and self.binding.cluster:
            return self.binding.cluster
        if self.policy is not None and len(self.policy.clusters) == 1:
            return self.policy.clusters[0]
        # Without a policy Karmada may move a sub-job: the record counts for an ended one only.
        return self.record.cluster if self.record is not None and self.is_terminal else ""

    @cached_property
    def running_pods(self) -> int:
        """Return the last known number of running pods."""
        report = self.report
        if report is not None:
            return report.pods.running
        if self.record is not None and self.exists:
            return self.record.running
        return 0


def child_of(observed: Observed, name: str) -> Child:
    """Return the sub-job of a name, with the observed objects that belong to it."""
    job = observed.jobs.get(name)
    binding = observed.bindings.get(binding_name(name))
    left_behind = stranger = ""
    if binding is not None and (job is None or binding.job_uid != job.uid):
        left_behind, stranger, binding = binding.name, binding.stranger, None
    if job is not None and job.ownership is Ownership.FOREIGN:
        binding = None  # the controller neither reads nor changes another owner's objects
    return Child(
        name=name,
        job=job,
        policy=observed.policies.get(name),
        binding=binding,
        record=observed.hyperjob.records.get(name),
        left_behind=left_behind,
        stranger=stranger,
    )


def choice_of(hyperjob: HyperJob) -> Choice:
    """Return the alternatives that replicatedJobs or their sub-jobs have; empty without any."""
    return tuple(chain.from_iterable(map(_choice_of, hyperjob.replicated_jobs)))


def _choice_of(group: ReplicatedJob) -> Choice:
    if not group.options:
        return ()
    if group.own is None:
        return ((group.name, group.alternative),)
    own = tuple((f"{group.name}/{index}", name) for index, name in sorted(group.own.items()))
    return own if group.wish is None else ((group.name, group.alternative), *own)


def sizes(group: ReplicatedJob) -> Sequence[ReplicatedJob]:
    """Return a replicatedJob with each of the sizes of its alternative, the largest first."""
    return [each for each in group.options if each.shape == group.shape]


def shapes(group: ReplicatedJob) -> Sequence[str]:
    """Return the names of the alternatives of a replicatedJob, in order."""
    return list(dict.fromkeys(each.shape for each in group.options))


def choices(
    hyperjob: HyperJob,
    open_: Callable[[ReplicatedJob], Sequence[int]],
    *,
    whole: bool = True,
) -> Sequence[Choice]:
    """Return all choices in order of preference; those of the first replicatedJob change last.

    `open_` returns the indices of sub-jobs that each may have any alternative. If not `whole`, all
    others keep theirs, and the HyperJob its size.
    """
    found: list[list[Choice]] = []
    for group in hyperjob.replicated_jobs:
        if group.own is not None:
            some = sizes(group) if whole else [group]
            each = (replace(size, options=group.options, own=group.own) for size in some)
            found.append([mix for size in each for mix in _mixed(size, open_(size), len(some))])
        elif group.options and whole:
            found.append([((group.name, each.alternative),) for each in group.options])
        else:
            found.append([_choice_of(group)])
    return [tuple(chain(*each)) for each in islice(product(*found), 4 * MAX_COMBINATIONS)]


def _mixed(group: ReplicatedJob, indices: Sequence[int], number: int) -> Iterator[Choice]:
    """Yield which alternatives sub-jobs may have, in order: first all of them the first one.

    Of too many mixes they are those in equal steps: some sub-jobs have the same alternative. There
    are fewer of one of a `number` of sizes.
    """
    names, steps, own = shapes(group), len(indices), group.own or {}
    most = MAX_COMBINATIONS if number == 1 else max(len(names), 2 * MAX_COMBINATIONS // number)
    while steps > 1 and comb(steps + len(names) - 1, steps) > most:
        steps -= 1
    for each in combinations_with_replacement(names, steps):
        mix = {index: each[at * steps // len(indices)] for at, index in enumerate(indices)}
        yield _choice_of(replace(group, own={**own, **mix}))


def option_of(group: ReplicatedJob, index: int) -> ReplicatedJob:
    """Return a replicatedJob as one of its sub-jobs has it: with its own alternative, if any."""
    wanted = (group.own or {}).get(index, group.shape)
    same = (each for each in group.options if (each.shape, each.size) == (wanted, group.size))
    return group if group.own is None else next(same, group)


def choosing(hyperjob: HyperJob, choice: Choice) -> HyperJob:
    """Return a HyperJob with these alternatives; an unknown one changes nothing."""
    if not choice or choice == choice_of(hyperjob):
        return hyperjob
    wanted: Mapping[str, str] = dict(choice)
    groups = []
    for group in hyperjob.replicated_jobs:
        named = (each for each in group.options if each.alternative == wanted.get(group.name))
        own, begin = group.own, f"{group.name}/"
        if own is not None:
            mix = {int(k.removeprefix(begin)): each for k, each in choice if k.startswith(begin)}
            own = {**own, **mix}
        groups.append(replace(next(named, group), options=group.options, own=own))
    return replace(hyperjob, replicated_jobs=tuple(groups))


def choice_text(choice: Choice) -> str:
    """Return a choice as the status has it; of sub-jobs it has the number of each alternative."""
    if not choice:
        return ""
    texts: dict[str, str] = {}
    mixes: dict[str, list[str]] = defaultdict(list)
    for key, name in choice:
        group, _, index = key.partition("/")
        mixes[group] += [name] if index else []
        texts[group] = mix_text(mixes[group]) or name
    return ",".join(f"{group}={name}" for group, name in texts.items())


def mix_text(names: Iterable[str]) -> str:
    """Return how many sub-jobs have each alternative, most first: `2 h100 + 1 a100`."""
    most = sorted(Counter(names).items(), key=lambda each: (-each[1], each[0]))
    return " + ".join(f"{number} {name}" for name, number in most)


def speeds_of(status: Object) -> dict[str, float]:
    """Return the steps per second that the program had, by the text of the choice."""
    found = table.read_all(MeasuredSpeed, status.get("speeds"))
    return {each.alternatives: speed for each in found if (speed := _positive(each)) is not None}


def _positive(measured: MeasuredSpeed) -> float | None:
    try:
        speed = float(measured.steps_per_second)
    except ValueError:
        return None
    return speed if 0 < speed < inf else None
