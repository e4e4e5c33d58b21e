"""A member cluster: vcjobs wait for nodes, run, fail and end.

The member makes only Volcano's decision: when a gang of pods gets its nodes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hyperjob_engine.model.request import PodGroup
from hyperjob_engine.resources import accumulate, scale
from hyperjob_sandbox.simulate.nodes import BoundPods, Node, Nodes, devices


@dataclass(slots=True)
class Pods:
    """The pods of a vcjob in a member; pods without `spots` wait."""

    key: str
    uid: str
    groups: tuple[PodGroup, ...]
    spots: list[BoundPods] = field(default_factory=list)

    @property
    def number(self) -> int:
        """Return the number of pods."""
        return sum(group.number for group in self.groups)

    @property
    def devices(self) -> int:
        """Return the number of their accelerators."""
        return sum(devices(group.request) * group.number for group in self.groups)


class Member:
    """A member cluster; it calls `placed` with the vcjobs whose pods get nodes."""

    def __init__(
        self,
        name: str,
        nodes: Nodes,
        *,
        placed: Callable[[Pods], None],
    ) -> None:
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
        """Remove a vcjob, or the pods of an ended vcjob; return the pods, or None without any."""
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
        """Place the waiting vcjobs on nodes, each with all its pods or none."""
        if self.down:
            return
        failed: set[tuple[tuple[tuple[tuple[str, int], ...], int], ...]] = set()
        waiting = list(self._waiting.values())
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
        """Return the keys of the vcjobs with pods on a node."""
        return list(node.held)

    def summary(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """Return allocatable, allocated and allocating as in Karmada's Cluster, in nano-units.

        They are the sums of the nodes that are not out, of the requests of pods that have nodes,
        and of the requests of pods that wait.
        """
        allocated: dict[str, int] = {}
        allocating: dict[str, int] = {}
        for pods in self.jobs.values():
            sums = allocated if pods.spots else allocating
            for group in pods.groups:
                accumulate(sums, scale(group.request, group.number), 1)
        return self.nodes.allocatable(), allocated, allocating
