"""What a Cluster has and what of it is free: its resourceSummary is read here alone."""

from dataclasses import dataclass

from controller.model.resources import Resources, parse_resources, subtract, total
from controller.model.wire import at, mapping
from hyperjob.api.meta import Object


@dataclass(frozen=True, slots=True)
class ClusterUsage:
    """The resources of a Cluster: all, and those that pods use or are about to use.

    `unscheduled` is the part of `taken` that pods without a node request.
    """

    allocatable: Resources
    taken: Resources
    unscheduled: Resources

    @property
    def free(self) -> dict[str, int]:
        """What is left; less than zero where a cluster has lost nodes."""
        return subtract(self.allocatable, self.taken)


def room_of(cluster: Object | None) -> ClusterUsage:
    """Read the resourceSummary of a Cluster; a Cluster that reports none has nothing."""
    summary = mapping(at(cluster, "status", "resourceSummary"))
    used, unscheduled = (parse_resources(summary.get(part)) for part in ("allocated", "allocating"))
    allocatable = parse_resources(summary.get("allocatable"))
    return ClusterUsage(allocatable, total((used, unscheduled)), unscheduled)
