"""Volcano's Queues as a tree, the resources to which each queue is entitled, and PriorityClasses.

A Queue that takes no jobs stays in the tree: its present usage counts. The engine does order, room,
gang and reservation in every mode of queue admission; a confirmer supplies the queues of the mode
and their usage by other workloads.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, NamedTuple, TypeAlias

from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, count, integer, mapping, objects, string, string_map
from hyperjob_core.kube.resources import QUEUES
from hyperjob_core.text import listed, nearest
from hyperjob_engine.model.observed import Cluster, HyperJob
from hyperjob_engine.model.request import ClosedQueue
from hyperjob_engine.resources import PODS, Resources, parse_resources, total
from hyperjob_queueing.workload import QueuedHyperJob, QueuedSubJob

ROOT: Final = "root"
MOST_LEVELS: Final = 16
PREEMPTION: Final = "training.volcano.sh/preemption"
"""Annotation of a Queue: `disabled` keeps its HyperJobs from stopping each other."""

ESTIMATE: Final = "training.volcano.sh/running-estimate"
"""Annotation of a Queue: how long its HyperJobs run that have no estimate of their own."""

PATIENCE: Final = "training.volcano.sh/patience"
"""Annotation of a Queue: how long its head waits before it has a turn; `disabled`: it has none."""

ADMISSION_MODE: Final = "training.volcano.sh/admission-mode"
"""Annotation of a Queue: `NoAdmissionFairSharing` exempts it from what queues have consumed."""

EXEMPT: Final = "NoAdmissionFairSharing"
DISABLED: Final = "disabled"
_USUAL_PATIENCE: Final = timedelta(hours=12)
_OPEN: Final = frozenset({"", "Open"})  # a queue without a state is open


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One Queue object; resources that `capability` does not name are not limited.

    Of `whole` the capability is no limit of the Queue but all that the clusters have. With
    `patience` None its head never has a turn. Without `remembers` only its present use counts.
    """

    name: str
    parent: str = ROOT
    weight: int = 1
    priority: int = 0
    fifo: bool = False
    reclaimable: bool = False
    preemption: bool = True
    estimate: timedelta | None = None
    patience: timedelta | None = _USUAL_PATIENCE
    remembers: bool = True
    state: str = ""
    capability: Resources = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    guarantee: Resources = field(default_factory=dict)
    deserved: Resources = field(default_factory=dict)


def parse_queue(raw: Object) -> Queue:
    """Parse a Queue; a field that the CRD's schema would refuse reads as absent."""
    name = string(at(raw, "metadata", "name"))
    annotations = string_map(at(raw, "metadata", "annotations"))
    patience = annotations.get(PATIENCE)
    return Queue(
        name=name,
        parent="" if name == ROOT else string(at(raw, "spec", "parent")) or ROOT,
        weight=count(at(raw, "spec", "weight")) or 1,
        priority=count(at(raw, "spec", "priority")),
        fifo=at(raw, "spec", "dequeueStrategy") == "fifo",
        reclaimable=at(raw, "spec", "reclaimable") is True,
        preemption=annotations.get(PREEMPTION) != DISABLED,
        estimate=estimate(annotations.get(ESTIMATE)),
        patience=None if patience == DISABLED else estimate(patience) or _USUAL_PATIENCE,
        remembers=annotations.get(ADMISSION_MODE) != EXEMPT,
        state=string(at(raw, "status", "state")),
        capability=parse_resources(at(raw, "spec", "capability")),
        guarantee=parse_resources(at(raw, "spec", "guarantee", "resource")),
        deserved=parse_resources(at(raw, "spec", "deserved")),
    )


def closed_queue(binding: Object) -> ClosedQueue | None:
    """Return the Queue of a ClusterResourceBinding with the clusters in which it is not Open.

    The result is None if no cluster reports such a state. The Queue in the Karmada API server is
    Open as long as one cluster has it Open.
    """
    resource = mapping(at(binding, "spec", "resource"))
    if (resource.get("apiVersion"), resource.get("kind")) != (QUEUES.api_version, QUEUES.kind):
        return None
    clusters = frozenset(
        string(item.get("clusterName"))
        for item in objects(at(binding, "status", "aggregatedStatus"))
        if string(at(item, "status", "state")) not in _OPEN
    )
    return ClosedQueue(string(resource.get("name")), clusters) if clusters else None


def estimate(text: object) -> timedelta | None:
    """Parse an estimated running time; None for anything but a duration above 0."""
    try:
        found = nanoseconds(string(text))
    except ValueError:
        return None
    return timedelta(microseconds=found // 1000) if found >= 1000 else None


class QueueTrouble(NamedTuple):
    """Why a Queue takes no jobs; `is_closed`: it, or a parent of it, is not Open."""

    text: str
    is_closed: bool = False


class Tree:
    """All queues below `root`, which need not exist as an object.

    A queue whose parents are wrong takes no jobs, and has a place for its usage: below the last
    queue above it that takes jobs if it is too deep, else below root.
    """

    def __init__(self, queues: Iterable[Queue], total: Resources) -> None:
        """Divide `total`, the resources of all usable clusters, among the queues when asked."""
        self.queues: dict[str, Queue] = {queue.name: queue for queue in queues}
        self.queues.setdefault(ROOT, Queue(name=ROOT, parent=""))
        self._paths: dict[str, tuple[str, ...]] = {ROOT: (ROOT,)}
        self._troubles: dict[str, str] = {}
        self._absent: dict[str, QueueTrouble] = {}
        self.children: dict[str, list[str]] = {name: [] for name in self.queues}
        for name in sorted(self.queues):
            self._find_path(name)
            if name != ROOT:
                self.children[self._paths[name][-2]].append(name)
        guaranteed = (name for name, queue in self.queues.items() if queue.guarantee)
        self.guaranteed = frozenset(each for name in guaranteed for each in self._paths[name])
        self.lends = any(queue.reclaimable for queue in self.queues.values())
        self.estimates = any(queue.estimate is not None for queue in self.queues.values())
        self._total = total
        self._entitled: dict[str, Mapping[str, int]] = {}

    def entitled(self, resource: str) -> Mapping[str, int]:
        """Return what each queue is entitled to of a resource; nothing if no cluster has it.

        Clusters may name thousands of resources; it is known of those that are asked for.
        """
        if resource not in self._total:
            return {}
        if resource not in self._entitled:
            self._entitled[resource] = self._shared_out(resource)
        return self._entitled[resource]

    def path(self, name: str) -> tuple[str, ...]:
        """Return the queues from root to `name`; only root if the queue does not exist."""
        return self._paths.get(name, (ROOT,))

    def lent(self, borrower: str, queue: str) -> tuple[str, str] | None:
        """Return the branches, below their common parent, of a borrower and of a reclaiming queue.

        None if `queue` may never reclaim from the borrower: one is a parent of the other, the
        borrower is not `reclaimable`, or the borrower's branch has the higher priority.
        """
        known = self.queues.get(borrower)
        if known is None or not known.reclaimable:
            return None
        pairs = zip(self.path(borrower), self.path(queue), strict=False)
        theirs, ours = next((pair for pair in pairs if pair[0] != pair[1]), (ROOT, ROOT))
        if theirs == ours or self.queues[theirs].priority > self.queues[ours].priority:
            return None
        return theirs, ours

    def trouble(self, name: str) -> QueueTrouble | None:
        """Return why a Queue takes no jobs; None if it takes jobs."""
        if name not in self.queues:
            if name not in self._absent:  # each round asks again, for each HyperJob
                near = nearest(name, (each for each in self.queues if each != ROOT))
                hint = (
                    f"did you mean {near}?"
                    if near
                    else "create it or name another in templateSpec.queue"
                )
                self._absent[name] = QueueTrouble(f"queue {name} does not exist; {hint}")
            return self._absent[name]
        if name == ROOT:
            return QueueTrouble(f"queue {name} takes no jobs itself; name one of its children")
        if name in self._troubles:
            return QueueTrouble(self._troubles[name].format(name))
        for each in reversed(self._paths[name]):
            state = self.queues[each].state
            if state not in _OPEN:
                parent = "" if each == name else f", a parent of queue {name},"
                return QueueTrouble(f"queue {each}{parent} is {state}", is_closed=True)
        if children := self.children[name]:
            text = f"queue {name} has child queues; jobs go to one of {listed(children)}"
            return QueueTrouble(text)
        return None

    def _find_path(self, name: str) -> None:
        """Find the path from root to a queue, and to those above it that have none yet."""
        below: dict[str, None] = {}
        while name in self.queues and name not in self._paths and name not in below:
            below[name] = None
            name = self.queues[name].parent
        above, wrong = self._paths.get(name, (ROOT,)), self._troubles.get(name)
        if wrong is not None:
            above = above[:-1]
        elif name in below:
            wrong = "the parents of queue {} form a cycle"
        elif name not in self.queues:
            wrong = f"queue {name}, a parent of queue {{}}, does not exist"
        for each in reversed(below):
            if wrong is None and len(above) > MOST_LEVELS:
                wrong = f"queue {{}} is more than {MOST_LEVELS} levels below queue {ROOT}"
            self._paths[each] = (*above, each)
            if wrong is None:
                above = self._paths[each]
            else:
                self._troubles[each] = wrong

    def _shared_out(self, resource: str) -> Mapping[str, int]:
        """Divide a resource from the root down: what a queue is entitled to among its children."""
        found, parents = {ROOT: self._total[resource]}, [ROOT]
        for parent in parents:
            children = [self.queues[name] for name in self.children[parent]]
            found |= _divided(children, resource, found[parent])
            parents += self.children[parent]
        return found


def _divided(queues: Sequence[Queue], name: str, amount: int) -> Mapping[str, int]:
    """Divide an amount of one resource among queues: first `deserved`, then the rest by weight.

    Each queue gets at least its guarantee and at most its capability; a capability below the
    guarantee wins. `deserved` and guarantees are not cut to fit: the parts may exceed the amount.
    They are less where capabilities leave a rest. A round fixes the queues that are out of their
    bounds, on the side that changes the sum more: what a full queue leaves goes to all others.
    """
    fixed = {
        queue.name: _bounded(queue, name, queue.deserved[name])
        for queue in queues
        if name in queue.deserved
    }
    left = max(0, amount - sum(fixed.values()))
    open_ = [queue for queue in queues if queue.name not in fixed]
    while open_:
        weights = sum(queue.weight for queue in open_)
        parts = {queue.name: left * queue.weight // weights for queue in open_}
        change = {
            queue.name: _bounded(queue, name, parts[queue.name]) - parts[queue.name]
            for queue in open_
        }
        if not any(change.values()):
            return fixed | parts
        balance = sum(change.values())
        bound = {each: parts[each] + by for each, by in change.items() if by and by * balance >= 0}
        fixed |= bound
        left = max(0, left - sum(bound.values()))
        open_ = [queue for queue in open_ if queue.name not in bound]
    return fixed


def _bounded(queue: Queue, name: str, amount: int) -> int:
    least = max(amount, queue.guarantee.get(name, 0))
    return min(least, queue.capability.get(name, least))


def priority_of(hyperjob: HyperJob, classes: Mapping[str, Object]) -> int:
    """Return the highest priority of a HyperJob's templates; `classes` are by name."""
    return max((value_of(name, classes) for name in _names(hyperjob)), default=0)


def preempts(hyperjob: HyperJob, classes: Mapping[str, Object]) -> bool:
    """Return whether every PriorityClass of a HyperJob has preemptionPolicy PreemptLowerPriority.

    That is the API's default, for a class without the field and for a template without a class.
    """
    return all(
        at(_class_of(name, classes), "preemptionPolicy") != "Never" for name in _names(hyperjob)
    )


def missing_from(hyperjob: HyperJob, classes: Mapping[str, Object]) -> frozenset[str]:
    """Return the PriorityClasses that a HyperJob's templates name and that do not exist."""
    return frozenset(_names(hyperjob) - classes.keys() - {""})


def value_of(name: str, classes: Mapping[str, Object]) -> int:
    """Return the value of a PriorityClass; for an empty name the global default's.

    A class that does not exist counts as 0.
    """
    return integer(at(_class_of(name, classes), "value")) or 0


def _names(hyperjob: HyperJob) -> set[str]:
    """Return the names of the PriorityClasses of a HyperJob; empty for a template without one."""
    return {string(group.template.get("priorityClassName")) for group in hyperjob.replicated_jobs}


def _class_of(name: str, classes: Mapping[str, Object]) -> Object | None:
    """Return a PriorityClass; for an empty name the global default, the least one of several."""
    if name:
        return classes.get(name)
    defaults = [each for each in classes.values() if each.get("globalDefault") is True]
    return min(defaults, key=lambda each: integer(each.get("value")) or 0, default=None)


IMPLICIT: Final = ""
"""The name of the one queue, without limits, of the mode without queues."""


Holds: TypeAlias = Callable[[str], bool]
"""Whether a sub-job, `namespace/name`, holds a share in the state of the queue engine."""

Others: TypeAlias = Callable[[Holds], Mapping[str, Resources]]
"""The usage of each queue by workloads that the queue engine does not count."""


def _none(_holds: Holds) -> Mapping[str, Resources]:
    return {}


def _moved(parts: Iterable[QueuedSubJob]) -> tuple[QueuedSubJob, ...]:
    """Return sub-jobs in the implicit queue."""
    return tuple(replace(part, queue=IMPLICIT) for part in parts)


class BuiltinQueues:
    """The mode with Volcano's Queues and the engine's account; others are vcjobs of no HyperJob.

    With `needs_queues` the engine admits no HyperJob before it knows the Queue objects.
    """

    needs_queues = True

    def __init__(self, others: Others = _none) -> None:
        self.others = others

    def queues(self, found: Iterable[Queue], clusters: Sequence[Cluster]) -> Iterable[Queue]:
        """Return the queues by which HyperJobs are admitted."""
        return found

    def unit(self, unit: QueuedHyperJob) -> QueuedHyperJob:
        """Return a HyperJob with the queues that it waits in."""
        return unit


class NoConfirmation(BuiltinQueues):
    """The mode without queues: all HyperJobs are in one line for the room on the clusters.

    The Clusters' status shows what other workloads use.
    """

    needs_queues = False

    def queues(self, found: Iterable[Queue], clusters: Sequence[Cluster]) -> Iterable[Queue]:
        """Return the implicit queue."""
        return (Queue(name=IMPLICIT),)

    def unit(self, unit: QueuedHyperJob) -> QueuedHyperJob:
        """Move every sub-job to the implicit queue."""
        more = (each._replace(parts=_moved(each.parts)) for each in unit.more)
        return replace(unit, parts=_moved(unit.parts), more=tuple(more))


class VolcanoGlobal(BuiltinQueues):
    """The mode in which Volcano Global releases each ResourceBinding by its own quota.

    A queue may use min(capability, total of the Ready clusters) of each resource. The usage of
    others is the sum over ResourceBindings that are not suspended and whose sub-jobs hold no share
    in the state of the queue engine.
    """

    def queues(self, found: Iterable[Queue], clusters: Sequence[Cluster]) -> Iterable[Queue]:
        """Return the queues with the capabilities with which Volcano Global computes."""
        ready = [cluster for cluster in clusters if cluster.not_ready_since is None]
        everything = total(cluster.allocatable for cluster in ready)
        return [bounded(queue, everything) for queue in found]


def bounded(queue: Queue, everything: Resources) -> Queue:
    """Return the queue, its capability bounded by the clusters' total; `pods` has no bound."""
    most = {name: amount for name, amount in everything.items() if name != PODS}
    own = {name: amount for name, amount in queue.capability.items() if name != PODS}
    limits = {name: min(amount, own.get(name, amount)) for name, amount in most.items()}
    whole = frozenset(name for name, amount in most.items() if own.get(name, amount) >= amount)
    return replace(queue, capability={**own, **limits}, whole=whole)
