"""The usage of each queue, and the limits on it: capability, guarantees of other queues, share.

The state of the queue engine adds and removes the demands of HyperJobs. A claim of a head of line
lasts for one round.
"""

import heapq
import itertools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from math import inf
from typing import Final, NamedTuple

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.resources import Resources, accumulate, measure_of, total
from hyperjob_queueing.consumed import Consumed, Consumption
from hyperjob_queueing.queues import ROOT, BuiltinQueues, Holds, Queue, Tree
from hyperjob_queueing.workload import QueuedSubJob

_ALONE: Final = 2  # the root and the only queue
LEAD: Final = Fraction(1, 6)
"""A queue has a turn once it has consumed less than another by this part of its share."""


class _Rank(NamedTuple):
    """The sort key of a queue among its siblings, and the leaf below it that would be served."""

    urgency: int  # the negated priority
    share: Fraction | float
    name: str
    leaf: str


@dataclass(frozen=True, slots=True)
class Limit:
    """A queue's capability is too small for a demand; amounts in nano-units.

    `ending` is the part of `used` that pods of stopped sub-jobs may still hold.
    """

    queue: str
    resource: str
    capability: int
    used: int
    missing: int
    ever: bool  # it would fit if the queue used nothing
    asked: int = 0
    ending: int = 0


class QueueUsage:
    """Usage by queue, which includes the usage of its children."""

    def __init__(self, tree: Tree, consumption: Consumption | None = None) -> None:
        self.tree = tree
        self.consumption = consumption or Consumption()
        self.in_turn: Container[str] = ()  # the queue that has its turn, and its parents
        self._used: dict[str, dict[str, int]] = {name: {} for name in tree.queues}
        self._ending: dict[str, dict[str, int]] = {}
        self._claimed: dict[str, dict[str, int]] = {}
        # By resource, once asked for: the unused part of the guarantees of each queue and of those
        # below it, and the sum of these parts over its children.
        self._unused: dict[str, dict[str, int]] = {}
        self._below: dict[str, dict[str, int]] = {}

    def __repr__(self) -> str:
        return repr({"used": self._used, "claimed": self._claimed})

    def copy(self) -> "QueueUsage":
        """Return an independent copy, without claims and as if all stopping pods had ended."""
        made = QueueUsage(self.tree, self.consumption)
        made.in_turn = self.in_turn
        for name, used in self._used.items():
            made._used[name] = dict(used)
            accumulate(made._used[name], self._ending.get(name, {}), -1)
        return made

    @property
    def remembers(self) -> bool:
        """Return whether what queues have consumed decides anything: it is compared between two."""
        return self.consumption.half_life is not None and len(self.tree.queues) > _ALONE

    def used(self, queue: str) -> Resources:
        """Return what a queue and its children use."""
        return self._used.get(queue, {})

    def add(self, queue: str, demand: Resources, sign: int = 1) -> None:
        """Add `sign` times a demand to a queue and to all its parents."""
        path = self.tree.path(queue)
        for name in path:
            accumulate(self._used[name], demand, sign)
        for resource in self._unused.keys() & demand.keys() if self._unused else ():
            self._renew_unused(path, resource)

    def add_ending(self, queue: str, demand: Resources, sign: int = 1) -> None:
        """Add `sign` times the demand of pods that are stopping, a part of what queues use."""
        self.add(queue, demand, sign)
        for name in self.tree.path(queue):
            accumulate(self._ending.setdefault(name, {}), demand, sign)

    def charge(self, part: QueuedSubJob) -> Resources:
        """Return what a sub-job counts in its queue: under a capability all of its pods.

        In a member no one holds back the pods beyond `minAvailable`: with them the queue would use
        more than its capability. Of a queue without one they count while they run.
        """
        queue, request = part.queue, part.request
        if not request.everything:
            return request.demand
        path = map(self.tree.queues.__getitem__, self.tree.path(queue))
        capped = any(each.capability.keys() - each.whole for each in path)
        return request.everything if capped else request.demand

    def count(self, part: QueuedSubJob, sign: int = 1) -> None:
        """Add `sign` times what a sub-job counts to its queue and to all parents of that."""
        self.add(part.queue, self.charge(part), sign)

    def claim(self, queue: str, demand: Resources) -> None:
        """Keep quota under the capabilities for a head of line, for the rest of the round."""
        for name in self.tree.path(queue):
            accumulate(self._claimed.setdefault(name, {}), demand, 1)

    def forget_claims(self) -> None:
        """Remove all claims, at the start of a round."""
        self._claimed.clear()

    def limit(self, queue: str, demand: Resources) -> Limit | None:
        """Return the first capability, from the leaf up, that a demand would exceed.

        Pods that are stopping, and claims, count against a limit of the Queue. Against all that
        the clusters have they do not: that is room, and the Clusters' status shows when it is free.
        """
        for name in reversed(self.tree.path(queue)):
            capability = self.tree.queues[name].capability
            if not capability:
                continue
            used, claimed = self._used[name], self._claimed.get(name, {})
            for resource, amount in demand.items():
                most = capability.get(resource)
                if most is None or amount <= 0:
                    continue
                ending = self._ending.get(name, {}).get(resource, 0)
                taken, kept = used.get(resource, 0), claimed.get(resource, 0)
                if resource in self.tree.queues[name].whole:
                    taken, kept, ending = taken - ending, 0, 0
                taken += kept
                if taken + amount > most:
                    return Limit(
                        queue=name,
                        resource=resource,
                        capability=most,
                        used=used.get(resource, 0),
                        missing=taken + amount - most,
                        ever=amount <= most,
                        asked=amount,
                        ending=ending,
                    )
        return None

    def follow(self, *, queue: str, kept: Resources, now: datetime) -> None:
        """Count the time since the last call; what is `kept` for a queue counts as its use."""
        path = self.tree.path(queue) if kept else ()
        used = {name: total((self._used[name], kept)) for name in path}
        self.consumption.follow({**self._used, **used}, now=now)

    def is_news(self, queue: str, consumed: Consumed, recorded: Consumed | None) -> bool:
        """Return whether a record differs from the one before by 1 % of the share of a resource."""
        before = recorded.resources if recorded is not None else {}
        return any(
            100 * abs(consumed.resources.get(each, 0) - before.get(each, 0))
            > self.tree.entitled(each).get(queue, 0)
            for each in {*consumed.resources, *before}
        )

    def is_behind(
        self, queue: str, measure: str, *, lead: Fraction = LEAD, keeping: bool = False
    ) -> bool:
        """Return whether a queue beside this one, or its parents, has consumed more of its share.

        Queues of higher priority, and those that remember nothing, do not count; nor, if `keeping`,
        those that are `reclaimable`: their HyperJobs stop, and nothing needs to be kept.
        """
        queues = self.tree.queues
        for parent, branch in itertools.pairwise(self.tree.path(queue)):
            if not queues[branch].remembers:
                continue
            least = self._level(branch, measure) + lead
            for name in self.tree.children[parent]:
                other = queues[name]
                counts = other.remembers and other.priority <= queues[branch].priority
                counts = counts and not (keeping and other.reclaimable)
                if counts and name != branch and least < self._level(name, measure):
                    return True
        return False

    def has_earned(self, queue: str, demand: Resources, *, keeping: bool = False) -> bool:
        """Return whether a demand above the share of a queue has its turn by what that consumed."""
        exceeds, measure = self.exceeds_share(queue, demand), measure_of(demand)
        return exceeds and self.is_behind(queue, measure, keeping=keeping)

    def exceeds_share(self, queue: str, demand: Resources) -> bool:
        """Return whether a demand alone is larger than the share of a queue that remembers."""
        known, measure = self.tree.queues.get(queue), measure_of(demand)
        remembers = self.consumption.half_life is not None and known is not None and known.remembers
        return remembers and demand.get(measure, 0) > self.tree.entitled(measure).get(queue, 0)

    def _level(self, queue: str, measure: str) -> Fraction | float:
        """Return the part of its share that a queue has consumed."""
        share = self.tree.entitled(measure).get(queue, 0)
        return Fraction(self.consumption.of(queue).get(measure, 0), share) if share > 0 else inf

    def kept_for_others(self, resources: Iterable[str]) -> Mapping[str, int]:
        """Return the amounts that must stay free beside a demand, by resource.

        They are the part of all guarantees that their queues do not use now. Without any guarantee
        there are none.
        """
        if not self.tree.guaranteed:
            return {}
        for resource in resources:
            if resource not in self._unused:
                self._find_unused(resource)
        return {name: self._unused[name][ROOT] for name in resources}

    def has_borrowed_from(
        self, borrower: str, queue: str, demand: Resources, *, held: Resources | None = None
    ) -> bool:
        """Return whether `queue` may reclaim resources from `borrower` for a demand.

        The borrower must be `reclaimable`. Below the first common parent of the two queues, the
        branch of `queue` must stay within its share, and the branch of the borrower must be above
        its share and have no higher priority. A demand that alone is larger than that needs that
        the borrower has consumed more, and what one HyperJob has `held` that is larger stays in the
        turn of its queue, or while that has consumed less.
        """
        branches = self.tree.lent(borrower, queue)
        if branches is None:
            return False
        theirs, ours = branches
        taken = measure_of(held) if held and self.exceeds_share(theirs, held) else ""
        behind = taken and self._level(theirs, taken) < self._level(ours, taken)
        if behind or (taken and theirs in self.in_turn):
            return False
        measure = measure_of(demand)
        if self.exceeds_share(ours, demand):
            ahead = self._level(theirs, measure) >= self._level(ours, measure) + LEAD
            return ahead and self.tree.queues[theirs].remembers
        if not self.is_within_share(ours, demand):
            return False
        return self._used[theirs].get(measure, 0) > self.tree.entitled(measure).get(theirs, 0)

    def is_within_share(self, queue: str, demand: Resources) -> bool:
        """Return whether a queue would use at most its share with a demand."""
        used, entitled = self._used[queue], self.tree.entitled
        return all(
            used.get(r, 0) + more <= entitled(r).get(queue, 0)
            for r, more in demand.items()
            if more > 0
        )

    def turns(self, asking: Mapping[str, Resources]) -> Iterator[str]:
        """Yield the queues in turn; `asking` is the demand of the first of each line.

        Queues that do not exist come first: their HyperJobs get a message and no share. Then the
        siblings of each level are compared, from the leaves up, each with the demand of its own
        next HyperJob: the share of a parent does not decide between its children.

        The order holds until a queue's usage changes: then the rest of it must not be used.
        """
        yield from sorted(queue for queue in asking if len(self.tree.path(queue)) == 1)
        branches: dict[str, dict[str, None]] = {}
        for queue in asking:
            for parent, child in itertools.pairwise(self.tree.path(queue)):
                branches.setdefault(parent, {})[child] = None
        yield from self._turns_below(ROOT, asking, branches)

    def _turns_below(
        self, parent: str, asking: Mapping[str, Resources], branches: Mapping[str, Iterable[str]]
    ) -> Iterator[str]:
        """Yield the queues below a parent in turn.

        Each branch is ranked by the queue of it that is next: the least of these ranks is first,
        whatever rank the branch has after it. Every branch has a queue that asks, and a parent that
        asks itself comes after all queues below it.
        """

        def ranked(child: str) -> Iterator[_Rank]:
            below = self._turns_below(child, asking, branches) if child in branches else ()
            for leaf in itertools.chain(below, (child,) if child in asking else ()):
                yield self._rank(child, leaf, asking[leaf])

        for rank in heapq.merge(*map(ranked, branches.get(parent, ()))):
            yield rank.leaf

    def is_guaranteed(self, queue: str, demand: Resources) -> bool:
        """Return whether the guarantee of a queue, or of one above it, has room for a demand."""
        for name in self.tree.path(queue)[1:]:
            guarantee, used = self.tree.queues[name].guarantee, self._used[name]
            asked = [each for each, more in demand.items() if more > 0 and each in guarantee]
            if asked and all(used.get(r, 0) + demand[r] <= guarantee[r] for r in asked):
                return True
        return False

    def _find_unused(self, resource: str) -> None:
        """Compute the unused guarantees of all queues, those of children before their parent's."""
        self._unused[resource] = unused = dict.fromkeys(self.tree.queues, 0)
        self._below[resource] = dict.fromkeys(self.tree.queues, 0)
        for name in unused:
            self._renew_unused(self.tree.path(name), resource)

    def _renew_unused(self, path: Sequence[str], resource: str) -> None:
        """Update the unused guarantees on the path from root to a queue.

        The guarantee of a parent includes those of its children.
        """
        unused, below, used = self._unused[resource], self._below[resource], self._used
        for name, parent in zip(reversed(path), (*reversed(path[:-1]), ""), strict=True):
            own = self.tree.queues[name].guarantee.get(resource, 0)
            now = max(own - used[name].get(resource, 0), below[name], 0)
            if parent:
                below[parent] += now - unused[name]
            unused[name] = now

    def _rank(self, queue: str, leaf: str, demand: Resources) -> _Rank:
        """Return the sort key of a queue among its siblings: priority, share, name.

        The share includes half of the next demand. Without it queues of small weight would get too
        much on average, with all of it too little.
        """
        known = self.tree.queues.get(queue)
        priority = known.priority if known is not None else 0
        share = -1 if queue in self.in_turn else self._share(queue, demand)
        return _Rank(-priority, share, queue, leaf)

    def _share(self, queue: str, demand: Resources) -> Fraction | float:
        """Return the largest ratio of usage to entitled amount of a queue, over all resources.

        It is exact: an amount may exceed what a float can hold.
        """
        entitled, used = self.tree.entitled, self._used[queue]
        past = self.consumption.of(queue)
        if self.consumption.half_life is not None and not self.tree.queues[queue].remembers:
            past = used
        part, whole = 0, 1
        for name in used if not demand else {*used, *demand}:
            amount = 2 * (used.get(name, 0) + past.get(name, 0)) + demand.get(name, 0)
            if amount > 0:
                most = 2 * max(0, entitled(name).get(queue, 0))
                if amount * whole > part * most:
                    part, whole = amount, most
        return Fraction(part, whole) if whole else inf


@dataclass(slots=True)
class Shares:
    """The queues of the present mode and their usage, by HyperJobs and by other workloads.

    A queue or the clusters' total that changes needs a new usage: the caller then adds what the
    HyperJobs hold. `listed` are the Queue objects, `queues` what the mode makes of them.
    """

    confirmer: BuiltinQueues
    usage: QueueUsage = field(default_factory=lambda: QueueUsage(Tree((), {})))
    queues: tuple[Queue, ...] = ()
    listed: tuple[Queue, ...] = ()
    others: Mapping[str, Resources] = field(default_factory=dict)
    total: Resources = field(default_factory=dict)
    consumption: Consumption = field(default_factory=Consumption)

    def set_queues(self, queues: Iterable[Queue]) -> None:
        """Replace all Queue objects; the new usage lacks the HyperJobs."""
        self.listed = tuple(queues)
        self.queues = tuple(self.confirmer.queues(self.listed, ()))
        self._open()

    def renew(self, clusters: Sequence[Cluster], holds: Holds) -> bool:
        """Update the clusters' total and the usage of others; return whether the usage is new."""
        capacity = total(cluster.allocatable for cluster in clusters if cluster.usable)
        queues = tuple(self.confirmer.queues(self.listed, clusters))
        others = self.confirmer.others(holds)
        if capacity != self.total or queues != self.queues:
            self.total, self.queues, self.others = capacity, queues, others
            self._open()
            return True
        if others != self.others:
            self._count_others(self.usage, -1)
            self.others = others
            self._count_others(self.usage, 1)
        return False

    def of_others(self) -> QueueUsage:
        """Return a usage of the present queues by other workloads alone."""
        usage = QueueUsage(self.usage.tree, self.consumption)
        self._count_others(usage, 1)
        return usage

    def _open(self) -> None:
        self.usage = QueueUsage(Tree(self.queues, self.total), self.consumption)
        self._count_others(self.usage, 1)

    def _count_others(self, usage: QueueUsage, sign: int) -> None:
        for queue, used in self.others.items():
            usage.add(queue, used, sign)
