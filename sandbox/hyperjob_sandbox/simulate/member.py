"""A member cluster: vcjobs wait for nodes, run, fail and end.

The member makes only Volcano's decision: when a gang of pods gets its nodes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hyperjob_engine.members.facts import shared_resources
from hyperjob_engine.model.members import MemberNode, MemberView, NodeState, PodHeld
from hyperjob_engine.model.request import Kind, request_of_all
from hyperjob_engine.resources import accumulate
from hyperjob_sandbox.simulate.nodes import BoundPods, Node, Nodes, devices


@dataclass(slots=True)
class Pods:
    """The pods of a vcjob in a member; pods without `spots` wait."""

    key: str
    uid: str
    kinds: Mapping[Kind, int]
    spots: list[BoundPods] = field(default_factory=list)

    @property
    def shape(self) -> object:
        """Return a key that all have who need equal nodes."""
        return tuple(self.kinds.items())

    @property
    def number(self) -> int:
        """Return the number of pods."""
        return sum(self.kinds.values())

    @property
    def speed(self) -> float:
        """Return the speed of the slowest of their nodes."""
        return min(spot.node.speed for spot in self.spots)

    @property
    def devices(self) -> int:
        """Return the number of their accelerators."""
        return sum(devices(dict(each.request)) * n for each, n in self.kinds.items())


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
        self._versions = 0
        self._shown: tuple[MemberNode, ...] = ()

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
        failed: set[object] = set()
        waiting = list(self._waiting.values())
        for pods in waiting:
            key = pods.key
            if pods.shape in failed:
                continue
            spots = self.nodes.place(key, pods.kinds)
            if spots is None:
                failed.add(pods.shape)
                continue
            pods.spots = spots
            self.used += pods.devices
            del self._waiting[key]
            self._placed(pods)

    def view(self) -> MemberView:
        """Return the nodes and pods as a controller sees them that reads them."""
        held: dict[int, list[PodHeld]] = {}
        waiting: list[PodHeld] = []
        for pods in self.jobs.values():
            for spot in pods.spots:
                known = held.setdefault(id(spot.node), [])
                known += _held(pods.key, spot.node.idle.name, spot.request, spot.number)
            for kind, number in () if pods.spots else pods.kinds.items():
                waiting += _held(pods.key, "", dict(kind.request), number)
        before = {node.name: node for node in self._shown}
        self._shown = tuple(
            _shown(node, tuple(held.get(id(node), ())), before.get(node.idle.name))
            for node in self.nodes.all
        )
        self._versions += 1
        return MemberView(
            version=self._versions,
            nodes=self._shown,
            waiting=tuple(waiting),
            jobs={pods.key: pods.number for pods in self.jobs.values()},
            layout=sum(node.out << place for place, node in enumerate(self.nodes.all)),
        )

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
            accumulate(sums, request_of_all(pods.kinds.items()), 1)
        return self.nodes.allocatable(), allocated, allocating


def _held(key: str, node: str, request: Mapping[str, int], number: int) -> Iterator[PodHeld]:
    """Yield equal pods of a vcjob."""
    namespace, _, job = key.partition("/")
    for place in range(number):
        yield PodHeld(namespace, f"{job}-{place}", node, request, job=job)


def _shown(node: Node, pods: tuple[PodHeld, ...], before: MemberNode | None) -> MemberNode:
    """Return what a view has of a node; that of the view before if nothing has changed."""
    state = NodeState.NOT_READY if node.out else NodeState.READY
    if before is not None and (before.state, before.pods) == (state, pods):
        return before
    return replace(node.idle, state=state, free=shared_resources(node.free), pods=pods)
