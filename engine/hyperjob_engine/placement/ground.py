"""The nodes of one cluster as placement counts them: how many pods of a kind each of them holds.

A ground belongs to one view of a member. The ground of the next view takes over the counts of all
nodes that have not changed.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import chain, compress
from operator import is_not
from typing import Any, Final, Self

from hyperjob_engine.model.members import (
    Apart,
    HyperNode,
    MemberNode,
    MemberView,
    NodeState,
    PodHeld,
)
from hyperjob_engine.model.request import HOSTNAME, Frozen, Items, Kind, kinds_of
from hyperjob_engine.model.wants import clash, keys_of, matches, repels, selects
from hyperjob_engine.resources import (
    Resources,
    accelerator_of,
    accumulate,
    is_asked,
    subtract,
    total,
)

_MOST_KINDS: Final = 64  # whose counts a ground hands on to the next
_UNBOUNDED: Final = 1 << 40


@lru_cache(maxsize=4096)
def labelled(kind: Kind, keys: frozenset[str]) -> Kind:
    """Return a kind with those labels of its pods alone that have one of these keys."""
    labels = tuple(pair for pair in kind.wants.labels if pair[0] in keys)
    return (
        kind
        if labels == kind.wants.labels
        else Kind(kind.request, replace(kind.wants, labels=labels))
    )


@dataclass(frozen=True, slots=True)
class NetworkDomain:
    """A HyperNode with the positions of its nodes."""

    tier: int
    tier_name: str
    positions: frozenset[int]


class Vacating(StrEnum):
    """Which pods leave their nodes in a trial."""

    ENDING = "Ending"
    OF_JOBS = "OfJobs"
    ALL = "All"


_LEAVES: Final[Mapping[Vacating, Callable[[PodHeld], bool]]] = {
    Vacating.ENDING: lambda pod: pod.ending,
    Vacating.OF_JOBS: lambda pod: bool(pod.job),
    Vacating.ALL: lambda _: True,
}


class Ground:
    """The nodes of a view, what is free on each, and the counts of the kinds asked for so far.

    The view never changes: all other fields are answers that are computed once. The next ground
    reads `counted`, `sums` and `parting`, and takes over what `_changed`, the positions of nodes
    that differ from `_before`, leaves valid.
    """

    def __init__(self, view: MemberView, before: Self | None = None) -> None:
        self.view = view
        self.nodes = view.nodes
        self.answers: dict[object, Any] = {}
        """Whether items fit, by `packing`, which bounds it; why a kind never does, by
        `nodeshortage`."""
        self.counted: dict[Kind, tuple[Sequence[int], int]] = {}
        self._waiting: dict[frozenset[str], Counter[Kind]] = {}
        self._vacated: dict[Vacating, Ground] = {}
        self._before: Ground | None = None
        self._changed: Sequence[int] = ()
        if before is not None and len(before.nodes) == len(view.nodes):
            self._before = before
            is_other = map(is_not, view.nodes, before.nodes)
            self._changed = list(compress(range(len(view.nodes)), is_other))

    def counts(self, kind: Kind) -> Sequence[int]:
        """Return how many pods of a kind each node holds beside the pods that it has."""
        return self._counted(kind)[0]

    def most(self, kind: Kind) -> int:
        """Return how many pods of a kind all nodes hold together, if they hold no other kind."""
        return self._counted(kind)[1]

    def _counted(self, kind: Kind) -> tuple[Sequence[int], int]:
        known = self.counted.get(kind)
        if known is None:
            if len(self.counted) >= _MOST_KINDS:
                self.counted.clear()
            counts = self._count(kind)
            known = self.counted[kind] = counts, sum(counts)
        return known

    @cached_property
    def domains(self) -> Sequence[NetworkDomain]:
        """Return all HyperNodes, the lowest tiers first, and last the whole cluster.

        Volcano counts the whole cluster as a HyperNode above all others. `packing` takes the names
        of tiers from here: a HyperNode whose nodes are all unknown counts for them.
        """
        positions = {node.name: i for i, node in enumerate(self.nodes)}
        known = sorted(self.view.hypernodes, key=lambda each: each.tier)
        top = HyperNode("", max((each.tier for each in known), default=0) + 1, frozenset(positions))
        return [
            NetworkDomain(
                each.tier,
                each.tier_name,
                frozenset(positions[name] for name in each.nodes if name in positions),
            )
            for each in (*known, top)
        ]

    @cached_property
    def selected(self) -> frozenset[str]:
        """Return the keys of the labels by which pods here select those that they keep away."""
        terms = chain((pod.apart for pod, _ in self.parting), (p.apart for p in self.view.waiting))
        return keys_of(chain.from_iterable(terms))

    def waiting(self, keys: frozenset[str]) -> Counter[Kind]:
        """Return the pods without a node that would find one, those with the largest first.

        Of their labels those of these keys count: others make each pod a kind of its own.
        """
        if keys not in self._waiting:
            self._waiting[keys] = self._wait(keys)
        return self._waiting[keys]

    def _wait(self, keys: frozenset[str]) -> Counter[Kind]:
        found: Counter[Kind] = Counter()
        if not self.view.waiting:
            return found
        left = [node.free for node in self.nodes]
        numbers = Counter(labelled(waiting_kind(pod), keys) for pod in self.view.waiting)
        for kind in sorted(numbers, key=lambda each: each.request, reverse=True):
            for i, most in enumerate(self.counts(kind)):
                taken = min(most, room(left[i], kind.request), numbers[kind] - found[kind])
                if taken > 0:
                    left[i] = subtract(left[i], {n: a * taken for n, a in kind.request})
                    found[kind] += taken
        return found

    @cached_property
    def free(self) -> Resources:
        """Return what the ready nodes have free, without what waiting pods will take of it."""
        held = (
            {name: amount * number for name, amount in kind.request}
            for kind, number in self.waiting(self.selected).items()
        )
        return subtract(self.sums[0], total(held))

    @property
    def allocatable(self) -> Resources:
        """Return what all nodes have together, those that take no pods now included."""
        return self.sums[1]

    @cached_property
    def sums(self) -> tuple[Resources, Resources]:
        """Return what is free on all ready nodes, and what all nodes have; do not change them."""
        before, free, whole = self._before, dict[str, int](), dict[str, int]()
        if before is None:
            changed = [(node, 1) for node in self.nodes]
        else:
            free, whole = dict(before.sums[0]), dict(before.sums[1])
            changed = [(self.nodes[i], 1) for i in self._changed]
            changed += [(before.nodes[i], -1) for i in self._changed]
        for node, sign in changed:
            accumulate(whole, node.allocatable, sign)
            accumulate(free, _usable(node), sign)
        return free, whole

    def pods_of(self, job: str) -> Mapping[Frozen, int]:
        """Return the pods of a vcjob, by namespace/name, that do not end: numbers by request."""
        return self._jobs.get(job, {})

    @cached_property
    def _jobs(self) -> Mapping[str, Counter[Frozen]]:
        found: dict[str, Counter[Frozen]] = {}
        for pod in self._pods():
            if pod.job and not pod.ending:
                found.setdefault(_of_job(pod), Counter())[tuple(sorted(pod.request.items()))] += 1
        return found

    def leaving(self, jobs: Collection[str]) -> Mapping[str, Resources]:
        """Return what the pods of these vcjobs hold, and under "" what other ending pods hold."""
        found: dict[str, dict[str, int]] = {}
        for pod in self._pods():
            job = _of_job(pod)
            if job in jobs or pod.ending:
                accumulate(found.setdefault(job if job in jobs else "", {}), pod.request, 1)
        return found

    def left_by(self, jobs: Collection[str]) -> Mapping[str, int]:
        """Return what the nodes of these vcjobs have of their accelerator once all have ended.

        Of the nodes of a vcjob that with the most counts.
        """
        found: dict[str, int] = {}
        for node in self.nodes:
            own = [pod for pod in node.pods if _of_job(pod) in jobs]
            kind = accelerator_of(node.allocatable) if own else None
            if kind is not None:
                left = sum((pod.request.get(kind, 0) for pod in own), node.free.get(kind, 0))
                found |= {job: max(left, found.get(job, 0)) for job in map(_of_job, own)}
        return found

    def _pods(self) -> Iterable[PodHeld]:
        return chain(self.view.waiting, *(node.pods for node in self.nodes))

    def domain(self, position: int, key: str) -> str | None:
        """Return the domain of a node by a topology key; None if the node has no such label."""
        if key == HOSTNAME:
            return self.nodes[position].name
        return self._labels[position].get(key)

    @cached_property
    def _labels(self) -> Sequence[Mapping[str, str]]:
        return [dict(node.labels) for node in self.nodes]

    def without(self, jobs: Collection[str]) -> "Ground":
        """Return the ground after the pods of these vcjobs, by namespace/name, have ended."""
        return self._after(lambda pod: _of_job(pod) in jobs)

    def only(self, jobs: Collection[str]) -> "Ground":
        """Return the ground with no other pods than those of these vcjobs, by namespace/name."""
        return self._after(lambda pod: _of_job(pod) not in jobs)

    def vacated(self, pods: Vacating) -> "Ground":
        """Return the ground after these pods have ended; it is computed once."""
        known = self._vacated.get(pods)
        if known is None:
            known = self._vacated[pods] = self._after(_LEAVES[pods])
        return known

    def _after(self, leaves: Callable[[PodHeld], bool]) -> "Ground":
        view = replace(
            self.view,
            nodes=tuple(_left(node, leaves) for node in self.nodes),
            waiting=tuple(pod for pod in self.view.waiting if not leaves(pod)),
        )
        return Ground(view, self)

    def forget(self) -> None:
        """Let go of the ground before, after taking over what it may."""
        _ = self.sums, self.parting
        self._before = None

    @cached_property
    def _sorts(self) -> tuple[Sequence[int], Sequence[MemberNode]]:
        """Return the sort of each node by number, and a node of each sort.

        Nodes of a sort are equal for all kinds of pods, their labels and pods aside: many nodes
        share one value of each of the other facts.
        """
        numbers: dict[tuple[object, ...], int] = {}
        examples: list[MemberNode] = []
        found = []
        for node in self.nodes:
            key = id(node.free), id(node.allocatable), id(node.taints), node.state
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(examples)
                examples.append(node)
            found.append(number)
        return found, examples

    def _count(self, kind: Kind) -> Sequence[int]:
        """Return how many pods of a kind each node holds, from the ground before if it can.

        With anti-affinity a pod on one node changes the counts of others: all are counted again.
        """
        before = self._before
        parts = kind.wants.apart or kind.wants.ports or self.parting
        if before is not None and kind in before.counted and not parts and not before.parting:
            found = list(before.counted[kind][0])
            for i in self._changed:
                found[i] = (
                    _room_on(self.nodes[i], kind) if matches(self.nodes[i], kind.wants) else 0
                )
            return found
        barred = self._barred(kind)
        numbers, examples = self._sorts
        rooms = [_room_on(node, kind) for node in examples]
        found = [rooms[number] for number in numbers]
        if kind.wants.selector or kind.wants.terms:
            pairs = zip(found, self.nodes, strict=True)
            found = [most if most and matches(node, kind.wants) else 0 for most, node in pairs]
        return [0 if i in barred else each for i, each in enumerate(found)] if barred else found

    @cached_property
    def parting(self) -> Sequence[tuple[PodHeld, int]]:
        """Return the pods with anti-affinity, and the positions of their nodes."""
        before, found = self._before, list[tuple[PodHeld, int]]()
        looked: Sequence[int] = range(len(self.nodes))
        if before is not None:
            looked, changed = self._changed, frozenset(self._changed)
            found = [each for each in before.parting if each[1] not in changed]
        return [*found, *((pod, i) for i in looked for pod in self.nodes[i].pods if pod.apart)]

    def _barred(self, kind: Kind) -> Collection[int]:
        """Return the nodes that a kind must not use by anti-affinity or ports of pods on them."""
        found: set[tuple[str, str]] = set()
        for pod, i in self.parting:
            for term in pod.apart:
                if selects(term.expressions, kind.wants.labels):
                    found.update(self._domain(i, term))
        for term in kind.wants.apart:
            for i, node in enumerate(self.nodes):
                if any(_selected(term, pod) for pod in node.pods):
                    found.update(self._domain(i, term))
        if kind.wants.ports:
            taken = (
                node.name
                for node in self.nodes
                if any(clash(kind.wants.ports, pod.ports) for pod in node.pods)
            )
            found.update((HOSTNAME, name) for name in taken)
        if not found:
            return ()
        keys = {key for key, _ in found}
        return {
            i
            for i in range(len(self.nodes))
            if any((key, self.domain(i, key)) in found for key in keys)
        }

    def _domain(self, position: int, term: Apart) -> Iterable[tuple[str, str]]:
        where = self.domain(position, term.topology_key)
        return () if where is None else ((term.topology_key, where),)


def _room_on(node: MemberNode, kind: Kind) -> int:
    """Return how many pods of a kind a node holds, labels and anti-affinity with others aside."""
    if node.state is not NodeState.READY or repels(node, kind.wants) is not None:
        return 0
    most = room(node.free, kind.request)
    return min(most, 1) if kind.alone else most


def _left(node: MemberNode, leaves: Callable[[PodHeld], bool]) -> MemberNode:
    """Return a node after the pods that leave have ended; a node without such a pod is the same."""
    leaving = [pod for pod in node.pods if leaves(pod)]
    if not leaving:
        return node
    free = total((node.free, *(pod.request for pod in leaving)))
    return replace(
        node,
        free={name: free.get(name, 0) for name in node.allocatable},
        pods=tuple(pod for pod in node.pods if not leaves(pod)),
    )


def room(free: Resources, request: Frozen) -> int:
    """Return how many pods with a request fit into free resources."""
    most = _UNBOUNDED
    for name, amount in request:
        if amount > 0:
            held = free.get(name, 0) // amount
            if held < most:
                if held <= 0 and is_asked(name, free):
                    return 0
                most = max(held, 0) or most
    return most


def unshown(items: Items, shown: Mapping[Frozen, int]) -> Items:
    """Return the part of these pods that is not among those shown, by request.

    A shown pod of another request, which a member has changed, counts as any of the others.
    """
    if not shown:
        return items
    left, seen = kinds_of(items), Counter(shown)
    for kind, number in left.items():
        known = min(number, seen[kind.request])
        left[kind] -= known
        seen[kind.request] -= known
    others = seen.total()
    for kind, number in left.items():
        more = min(number, others)
        left[kind] -= more
        others -= more
    return tuple((+left).items())


def waiting_kind(pod: PodHeld) -> Kind:
    """Return the kind of a pod that waits for a node."""
    wants = replace(pod.wants, apart=pod.apart, labels=pod.labels)
    return Kind(tuple(sorted(pod.request.items())), wants)


def ground_of(cluster: str, view: MemberView) -> Ground:
    """Return the ground of a cluster's view, computed once for each view."""
    known = _GROUNDS.get(cluster)
    if known is not None and known.view is view:
        return known
    if len(_GROUNDS) >= _MOST_GROUNDS:
        _GROUNDS.clear()
    if known is not None:
        known.forget()
    made = _GROUNDS[cluster] = Ground(view, known)
    return made


_MOST_GROUNDS: Final = 1024
_GROUNDS: Final[dict[str, Ground]] = {}


def _of_job(pod: PodHeld) -> str:
    return f"{pod.namespace}/{pod.job}" if pod.job else ""


def _usable(node: MemberNode) -> Resources:
    """Return what pods can use of a node."""
    if node.state is not NodeState.READY:
        return {}
    return {name: amount for name, amount in node.free.items() if amount > 0}


def _selected(term: Apart, pod: PodHeld) -> bool:
    if term.namespaces and pod.namespace not in term.namespaces:
        return False
    return selects(term.expressions, pod.labels)
