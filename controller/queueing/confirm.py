"""Who has to confirm that a gang may start, and by which queues and limits it is admitted before.

The engine is the same in every mode: order, room, gang and reservation. A confirmer only says which
queues there are and what of them others use.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol, TypeAlias

from controller.model.observed import Cluster
from controller.model.resources import PODS, Resources, total
from controller.queueing.queues import Queue
from controller.queueing.units import QueuedHyperJob

IMPLICIT: Final = ""
"""The one queue, without limits, of the mode without confirmation."""


Holds: TypeAlias = Callable[[str], bool]
"""Whether a sub-job, `namespace/name`, holds a share in the queue cache."""

Others: TypeAlias = Callable[[Holds], Mapping[str, Resources]]


def _none(_holds: Holds) -> Mapping[str, Resources]:
    return {}


class Confirmer(Protocol):
    """What differs between the modes."""

    needs_queues: bool
    """Whether Queue objects have to be known before anything is admitted."""

    def queues(self, found: Iterable[Queue], clusters: Sequence[Cluster]) -> Iterable[Queue]:
        """Return the queues by which HyperJobs are admitted."""
        ...

    def unit(self, unit: QueuedHyperJob) -> QueuedHyperJob:
        """Return a HyperJob with the queues that it waits in."""
        ...

    def others(self, holds: Holds) -> Mapping[str, Resources]:
        """Return what is used of each queue beside the HyperJobs in the queue cache."""
        ...


class NoConfirmation:
    """No component confirms: all HyperJobs are in one line for the clusters' room."""

    needs_queues = False

    def queues(self, found: Iterable[Queue], clusters: Sequence[Cluster]) -> Iterable[Queue]:
        """Return the implicit queue."""
        return (Queue(name=IMPLICIT),)

    def unit(self, unit: QueuedHyperJob) -> QueuedHyperJob:
        """Move every sub-job to the implicit queue."""
        return replace(unit, parts=tuple(replace(part, queue=IMPLICIT) for part in unit.parts))

    def others(self, holds: Holds) -> Mapping[str, Resources]:
        """Return nothing: the clusters' status shows what others use."""
        return {}


class BuiltinQueues:
    """Volcano's Queues, by our own account; `others` is what vcjobs without a HyperJob use."""

    needs_queues = True

    def __init__(self, others: Others = _none) -> None:
        self._others = others

    def queues(self, found: Iterable[Queue], clusters: Sequence[Cluster]) -> Iterable[Queue]:
        """Return the queues as they are."""
        return found

    def unit(self, unit: QueuedHyperJob) -> QueuedHyperJob:
        """Return the HyperJob as it is."""
        return unit

    def others(self, holds: Holds) -> Mapping[str, Resources]:
        """Return what is used that no HyperJob in the queue cache accounts for."""
        return self._others(holds)


class VolcanoGlobal(BuiltinQueues):
    """Volcano Global confirms each binding by its own arithmetic.

    A queue may use min(capability, all that the Ready clusters have) of each resource; `others`
    sums up the bindings that are not suspended and whose sub-jobs hold no share in the queue cache.
    """

    def queues(self, found: Iterable[Queue], clusters: Sequence[Cluster]) -> Iterable[Queue]:
        """Return the queues with the capabilities that Volcano Global gives them."""
        ready = [cluster for cluster in clusters if cluster.not_ready_since is None]
        everything = total(cluster.allocatable for cluster in ready)
        return [bounded(queue, everything) for queue in found]


def bounded(queue: Queue, everything: Resources) -> Queue:
    """Bound a queue's capability by all that there is; pods are not counted there."""
    most = {name: amount for name, amount in everything.items() if name != PODS}
    own = {name: amount for name, amount in queue.capability.items() if name != PODS}
    limits = {name: min(amount, own.get(name, amount)) for name, amount in most.items()}
    return replace(queue, capability={**own, **limits})
