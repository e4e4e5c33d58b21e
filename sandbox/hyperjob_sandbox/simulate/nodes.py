"""The nodes of a member cluster, and the placement of pods on them. Pure.

The module places all pods of a gang or none, as Volcano's gang plugin does. Among the nodes that
fit a pod it prefers the node with the least free resources, as Volcano's binpack plugin does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hyperjob_engine.model.members import MemberNode, NodeState
from hyperjob_engine.model.request import Kind
from hyperjob_engine.model.wants import matches
from hyperjob_engine.resources import accelerator_of, accumulate, measure_of, parse_resources, whole
from hyperjob_sandbox.simulate.workload import NodeGroup


@dataclass(slots=True)
class Node:
    """A node as it is without pods, and what it has free, in nano-units.

    Sub-jobs on it train at its `speed`. `out` nodes accept no pods.
    """

    idle: MemberNode
    free: dict[str, int]
    speed: float = 1.0
    out: bool = False
    held: dict[str, None] = field(default_factory=dict)  # keys of the vcjobs with pods here

    @property
    def size(self) -> Mapping[str, int]:
        """Return what it has without pods."""
        return self.idle.allocatable

    @property
    def free_devices(self) -> int:
        """Return the number of free accelerators of the kind of which the node has the most."""
        kind = accelerator_of(self.size)
        return self.free.get(kind, 0) // whole(1) if kind is not None else 0

    def room(self, pods: Kind) -> int:
        """Return the number of these pods that fit."""
        if self.out or not matches(self.idle, pods.wants):
            return 0
        return max(0, min(self.free.get(name, 0) // need for name, need in pods.request))


@dataclass(frozen=True, slots=True)
class BoundPods:
    """Pods on a node."""

    node: Node
    request: Mapping[str, int]
    number: int


class Nodes:
    """All nodes of a cluster."""

    def __init__(self, groups: Iterable[NodeGroup]) -> None:
        """Create the nodes of groups."""
        self.all: list[Node] = []
        for group in groups:
            size = parse_resources(group.allocatable)
            size.setdefault("pods", whole(110))
            for i in range(group.number):
                name = f"{group.name}-{i}"
                idle = MemberNode(name, NodeState.READY, size, size, labels=group.labels)
                self.all.append(Node(idle, dict(size), speed=group.speed))
        sizes = [node.size for node in self.all]
        self.accelerators = sum(devices(size) for size in sizes)

    def place(self, key: str, kinds: Mapping[Kind, int]) -> list[BoundPods] | None:
        """Place all pods of a vcjob; None if not all of them fit."""
        taken: list[BoundPods] = []
        for kind in sorted(kinds, key=lambda each: -devices(dict(each.request))):
            left, request = kinds[kind], dict(kind.request)
            measure = measure_of(request)
            for node in sorted(self.all, key=lambda each: each.free.get(measure, 0)):
                number = min(left, node.room(kind))
                if number:
                    taken.append(BoundPods(node, request, number))
                    accumulate(node.free, request, -number)
                    left -= number
                if not left:
                    break
            if left:
                self.give_back(key, taken)
                return None
        for spot in taken:
            spot.node.held[key] = None
        return taken

    def give_back(self, key: str, spots: Iterable[BoundPods]) -> None:
        """Release the resources of a vcjob."""
        for spot in spots:
            accumulate(spot.node.free, spot.request, spot.number)
            spot.node.held.pop(key, None)

    def allocatable(self) -> dict[str, int]:
        """Return the sum of the allocatable resources of nodes that are not out."""
        found: dict[str, int] = {}
        for node in self.all:
            if not node.out:
                accumulate(found, node.size, 1)
        return found

    def free(self) -> int:
        """Return the sum of the free accelerators of all nodes that are not `out`."""
        return sum(node.free_devices for node in self.all if not node.out)

    def splinters(self) -> int:
        """Return how many of the accelerators that `free` counts are on nodes in partial use."""
        return sum(
            free
            for node in self.all
            if not node.out and 0 < (free := node.free_devices) < devices(node.size)
        )


def devices(amounts: Mapping[str, int]) -> int:
    """Return the number of accelerators in a resource vector."""
    name = accelerator_of(amounts)
    return amounts[name] // whole(1) if name is not None else 0
