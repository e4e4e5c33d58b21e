"""The sub-jobs that a HyperJob wants: their names, sizes and queues."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import string
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.nodes import PodGroup
from hyperjob_engine.model.observed import Observed, ReplicatedJob
from hyperjob_engine.model.request import ClosedQueue, PlacementRequest
from hyperjob_engine.resources import PODS, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One size of a vcjob template.

    `demand` and `pod_groups` are the pods without which Volcano starts none; `everything`, `pods`
    and `accelerators` are those of all of them.
    """

    template: Object
    demand: Resources
    everything: Resources
    accelerators: int | None
    pods: int
    pod_groups: tuple[PodGroup, ...] = ()

    @property
    def together(self) -> int:
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
                pods=size.pod_groups,
            )

        found = _REQUESTS.of((id(self.size), *kind), self.size, made)
        return found if found.name == self.name else found.named(self.name)


def closed_queue_of(observed: Observed, template: Object) -> ClosedQueue | None:
    """Return the queue of a template with the clusters that have closed it; None if none has."""
    return observed.closed_queues.get(queue_of(template))


def queue_of(template: Object) -> str:
    """Return the queue that a vcjob template names."""
    return string(template.get("queue")) or "default"
