"""A member cluster: vcjobs wait for room, run, fail and end there.

It decides only what Volcano decides in a member: when a gang of pods gets its nodes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from controller.model.nodes import PodGroup
from controller.model.resources import accumulate, scale
from hyperjob.simulate.nodes import BoundPods, Node, Nodes, devices


@dataclass(slots=True)
class Pods:
    """The pods of one vcjob in a member; without `spots` they wait."""

    key: str
    uid: str
    groups: tuple[PodGroup, ...]
    spots: list[BoundPods] = field(default_factory=list)

    @property
    def number(self) -> int:
        """Count them."""
        return sum(group.number for group in self.groups)

    @property
    def devices(self) -> int:
        """Count their accelerators."""
        return sum(devices(group.request) * group.number for group in self.groups)


class Member:
    """One member cluster; `placed` is called with the vcjobs whose pods get nodes."""

    def __init__(
        self,
        name: str,
        nodes: Nodes,
        *,
        placed: Callable[[Pods], None],
        reorder: Callable[[list[Pods]], None] = lambda _: None,
    ) -> None:
        """`reorder` changes the order of arrival in which those that wait are tried."""
        self._reorder = reorder
        self.name = name
        self.nodes = nodes
        self.down = False
        self.jobs: dict[str, Pods] = {}
        self._waiting: dict[str, Pods] = {}
        self._placed = placed
        self.used = 0

    def take(self, pods: Pods) -> None:
        """Create a vcjob."""
        self.jobs[pods.key] = self._waiting[pods.key] = pods
        self.schedule()

    def drop(self, key: str) -> Pods | None:
        """Remove a vcjob, or the pods of an ended vcjob; return it if it was there."""
        pods = self.jobs.pop(key, None)
        if pods is None:
            return None
        self._waiting.pop(key, None)
        if pods.spots:
            self.used -= pods.devices
            self.nodes.give_back(key, pods.spots)
            pods.spots = []
            self.schedule()
        return pods

    def schedule(self) -> None:
        """Give nodes to the vcjobs that wait, each whole or not at all."""
        if self.down:
            return
        failed: set[tuple[tuple[tuple[tuple[str, int], ...], int], ...]] = set()
        waiting = list(self._waiting.values())
        self._reorder(waiting)
        for pods in waiting:
            key = pods.key
            shape = tuple((tuple(group.request.items()), group.number) for group in pods.groups)
            if shape in failed:
                continue
            spots = self.nodes.place(key, pods.groups)
            if spots is None:
                failed.add(shape)
                continue
            pods.spots = spots
            self.used += pods.devices
            del self._waiting[key]
            self._placed(pods)

    def on(self, node: Node) -> Iterable[str]:
        """Name the vcjobs with pods on a node."""
        return list(node.held)

    def summary(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """Sum allocatable, allocated and allocating as Karmada does."""
        allocated: dict[str, int] = {}
        allocating: dict[str, int] = {}
        for pods in self.jobs.values():
            sums = allocated if pods.spots else allocating
            for group in pods.groups:
                accumulate(sums, scale(group.request, group.number), 1)
        return self.nodes.allocatable(), allocated, allocating
