"""The nodes of one member cluster: which pods fit, packed as tightly as possible. Pure.

A gang is placed whole or not at all, as Volcano's gang plugin does; among the nodes that hold a
pod, the one with the least left is taken first, as its binpack plugin does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from controller.model.nodes import PodGroup
from controller.model.resources import (
    accelerator_of,
    accumulate,
    measure_of,
    parse_resources,
    whole,
)


@dataclass(slots=True)
class Node:
    """One node; amounts in nano-units. `out` nodes take no pods."""

    group: str
    size: Mapping[str, int]
    free: dict[str, int]
    out: bool = False
    held: dict[str, None] = field(default_factory=dict)  # keys of the vcjobs with pods here

    def room(self, request: Mapping[str, int]) -> int:
        """Count the pods of a size that fit."""
        if self.out:
            return 0
        return max(
            0,
            min(self.free.get(name, 0) // need for name, need in request.items() if need > 0),
        )


@dataclass(frozen=True, slots=True)
class BoundPods:
    """Pods on a node."""

    node: Node
    request: Mapping[str, int]
    number: int


class Nodes:
    """All nodes of a cluster."""

    def __init__(self, groups: Iterable[tuple[str, Mapping[str, object], int]]) -> None:
        """Take groups of nodes that are alike: name, allocatable and number."""
        self.all: list[Node] = []
        for name, allocatable, number in groups:
            size = parse_resources(allocatable)
            size.setdefault("pods", whole(110))
            self.all += [Node(name, size, dict(size)) for _ in range(number)]
        sizes = [node.size for node in self.all]
        self.accelerators = sum(devices(size) for size in sizes)

    def place(self, key: str, groups: Sequence[PodGroup]) -> list[BoundPods] | None:
        """Take room for all pods of a vcjob, or for none of them."""
        taken: list[BoundPods] = []
        for group in sorted(groups, key=lambda each: -devices(each.request)):
            left = group.number
            measure = measure_of(group.request)
            for node in sorted(self.all, key=lambda each: each.free.get(measure, 0)):
                number = min(left, node.room(group.request))
                if number:
                    taken.append(BoundPods(node, group.request, number))
                    accumulate(node.free, group.request, -number)
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
        """Free what a vcjob took."""
        for spot in spots:
            accumulate(spot.node.free, spot.request, spot.number)
            spot.node.held.pop(key, None)

    def allocatable(self) -> dict[str, int]:
        """Sum what nodes offer that are not out."""
        found: dict[str, int] = {}
        for node in self.all:
            if not node.out:
                accumulate(found, node.size, 1)
        return found

    def free(self) -> int:
        """Count the free accelerators."""
        return sum(devices(node.free) for node in self.all if not node.out)

    def splinters(self) -> int:
        """Count the free accelerators on nodes that are in use in part."""
        return sum(
            free
            for node in self.all
            if not node.out and 0 < (free := devices(node.free)) < devices(node.size)
        )


def devices(amounts: Mapping[str, int]) -> int:
    """Count the accelerators in a resource vector."""
    name = accelerator_of(amounts)
    return amounts[name] // whole(1) if name is not None else 0
