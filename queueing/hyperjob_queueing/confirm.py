"""The three modes of queue admission: none, the queue engine alone, Volcano Global.

The engine does order, room, gang and reservation in every mode. A confirmer supplies the queues
and their usage by other workloads.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.resources import PODS, Resources, total
from hyperjob_queueing.queues import Queue
from hyperjob_queueing.workload import QueuedHyperJob, QueuedSubJob

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
