"""The allocatable, allocated and free resources of a Cluster, from its `resourceSummary`."""

from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, mapping
from hyperjob_engine.resources import Resources, parse_resources, subtract, total


@dataclass(frozen=True, slots=True)
class ClusterUsage:
    """The resources of a Cluster: all of them, and `taken`, those that its pods request.

    `unscheduled` is the part of `taken` that is requested by pods without a node.
    """

    allocatable: Resources
    taken: Resources
    unscheduled: Resources

    @property
    def free(self) -> dict[str, int]:
        """The free resources; an amount is negative after a cluster has lost nodes."""
        return subtract(self.allocatable, self.taken)


def room_of(cluster: Object | None) -> ClusterUsage:
    """Parse the resourceSummary of a Cluster; a Cluster without one has no resources."""
    summary = mapping(at(cluster, "status", "resourceSummary"))
    used, unscheduled = (parse_resources(summary.get(part)) for part in ("allocated", "allocating"))
    allocatable = parse_resources(summary.get("allocatable"))
    return ClusterUsage(allocatable, total((used, unscheduled)), unscheduled)
