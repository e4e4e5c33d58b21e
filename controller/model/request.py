"""What placement needs to know of one sub-job."""

from dataclasses import dataclass

from controller.model.nodes import PodGroup
from controller.model.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One sub-job to place: what it needs, where it wants to be, where it must not be."""

    name: str
    group: str
    demand: Resources
    preferred: tuple[str, ...] = ()
    required: bool = False
    excluded: frozenset[str] = frozenset()
    pods: tuple[PodGroup, ...] = ()

    def tier(self, cluster: str) -> int:
        """Return the rank of a cluster in the order of preference; all others rank last."""
        return self.preferred.index(cluster) if cluster in self.preferred else len(self.preferred)

    def allows(self, cluster: str) -> bool:
        """Tell whether the sub-job may stand on a cluster at all."""
        return cluster not in self.excluded and (not self.required or cluster in self.preferred)

    @property
    def kind(self) -> tuple[object, ...]:
        """Return what makes two requests interchangeable."""
        pods = tuple((_frozen(group.request), group.number) for group in self.pods)
        return self.group, self.preferred, self.required, self.excluded, _frozen(self.demand), pods


def _frozen(demand: Resources) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(demand.items()))
