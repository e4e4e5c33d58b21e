"""The state of one member cluster, folded from lists and watch events of its objects.

The fold keeps small facts only, and a view shares every value with the view before it that has not
changed. The order of lists and events may be any that a watch can bring.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from hyperjob_core.api.status import ContainerFailure
from hyperjob_engine.members.deviceclasses import Devices
from hyperjob_engine.members.facts import (
    HyperNodeFact,
    MountFact,
    NodeFact,
    PodFact,
    PodGroupFact,
    RefusalFact,
    shared_resources,
)
from hyperjob_engine.members.hypernodes import resolved
from hyperjob_engine.members.patterns import NotKnownError
from hyperjob_engine.members.podfailures import order
from hyperjob_engine.members.troubled import Troubled
from hyperjob_engine.model.members import HyperNode, MemberNode, MemberView, PodHeld
from hyperjob_engine.reasons.pods import PodsRefused, PodsTrouble, Unschedulable
from hyperjob_engine.resources import Resources, accumulate, total

_FAILURES: Final = 1000
"""The failed vcjobs of a member of which the fold knows the first failure."""
_EVENTS: Final = 16
"""The Events about refused pods of a vcjob that the fold keeps: the latest ones."""
_BEGUN: Final = 10_000
"""The vcjobs without pods of which the fold knows when their last pod was created."""


@dataclass(frozen=True, slots=True)
class News:
    """What has happened in a member since the last look.

    `jobs` are the vcjobs, as namespace/name, that have no pod left, a first failure, another
    trouble of a pod or an Event about refused pods, and `grown` those with a further pod, or of
    which a pod that has not ended holds another node or other amounts than before. `freed`: a pod
    has left a node, or the nodes have changed.
    """

    jobs: frozenset[str]
    grown: frozenset[str]
    freed: bool


class MemberFold:
    """The nodes, pods and HyperNodes of a member; `view` shows them."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeFact] = {}
        self._hypernodes: dict[str, HyperNodeFact] = {}
        self._pods: dict[str, PodFact] = {}
        # Both have the pods that have not ended, and no other pods: `put_pod` and `_take` alone
        # change them. "" is the node of the pods that have none.
        self._by_node: dict[str, dict[str, PodHeld]] = {}
        self._jobs: Counter[str] = Counter()
        # By vcjob, in the order of their changes: the bounds drop the first. A failure has the UID
        # of its vcjob.
        self._begun: dict[str, datetime] = {}
        self._latest: datetime | None = None
        self._failures: dict[str, tuple[str, ContainerFailure]] = {}
        self._refusals: dict[str, dict[str, RefusalFact]] = {}
        self._unschedulable: dict[str, dict[str, Unschedulable]] = {}  # by vcjob and PodGroup
        self._troubled = Troubled()
        self.devices = Devices(changed=self._devices_changed, touched=self._touch_pod)
        # What `_view` shows, with the places in it; `_changed` has the nodes that differ from it.
        self._shown: dict[str, MemberNode] = {}
        self._places: dict[str, int] = {}
        self._changed: set[str] = set()
        self._domains: tuple[HyperNode, ...] | None = ()  # None: nodes or HyperNodes have changed
        self._unresolved = ""
        self._version = 0
        self._layout = 0  # the version of the last change of a node or a HyperNode
        self._view: MemberView | None = None
        self._told: set[str] = set()  # what `news` returns next: `jobs`, `grown` and `freed`
        self._grown: set[str] = set()
        self._freed = False

    @property
    def version(self) -> int:
        """Return a number that grows with each change of the content."""
        return self._version

    @property
    def jobs(self) -> Mapping[str, int]:
        """Return the number of pods that have not ended, by vcjob, as namespace/name."""
        return self._jobs

    def held(self) -> Iterator[PodHeld]:
        """Yield the pods of vcjobs that hold a node and have not ended."""
        for node, pods in self._by_node.items():
            if node:
                yield from (pod for pod in pods.values() if pod.job)

    @property
    def latest(self) -> datetime | None:
        """Return the latest time that an object has shown: the state is not older than that."""
        return self._latest

    def begun(self, job: str) -> datetime | None:
        """Return when the last created pod of a vcjob was created, of those that were shown."""
        return self._begun.get(job)

    def failure(self, job: str) -> ContainerFailure | None:
        """Return the first failure of a container of a vcjob, also after the end of its pod."""
        found = self._failures.get(job)
        return None if found is None else found[1]

    def news(self) -> News:
        """Return what has happened since the last call."""
        told = self._told | self._troubled.news()
        found = News(frozenset(told), frozenset(self._grown), self._freed)
        self._told.clear()
        self._grown.clear()
        self._freed = False
        return found

    def list_pods(self, pods: Iterable[PodFact]) -> None:
        """Take over a whole list of pods."""
        listed = {pod.key: pod for pod in pods}
        for key in [key for key in self._pods if key not in listed]:
            self.drop_pod(key)
        for pod in sorted(listed.values(), key=lambda each: each.held is None):
            self.put_pod(pod)  # those that have ended last: a later pod begins a new run

    def put_pod(self, pod: PodFact) -> None:
        """Take over a pod; no effect if it is as before.

        A pod that holds something now, or something else, is what its vcjob has grown by in `news`.
        The first pod of a vcjob, also after all of its pods have ended, and one of another owner
        end the failure that is kept of the vcjob.
        """
        before = self._pods.get(pod.key)
        if before == pod:
            return
        self._pods[pod.key] = pod
        self._troubled.put(pod)
        self._note(pod)
        self._begin(pod)
        if before is not None and before.held != pod.held:
            self._take(before)
        if pod.held is not None and (before is None or before.held != pod.held):
            self._by_node.setdefault(pod.held.node, {})[pod.key] = pod.held
            self._touch(pod.held.node)
            if pod.job:
                if before is None or before.held is None:  # the pod is new
                    self._forget_failure(pod)
                self._jobs[pod.job] += 1
                self._grown.add(pod.job)
                if pod.job not in self._failures and pod.job not in self._refusals:
                    self._told.discard(pod.job)  # `_take` has counted it as without a pod

    def drop_pod(self, key: str) -> None:
        """Drop a pod."""
        before = self._pods.pop(key, None)
        if before is not None:
            self._troubled.drop(before)
            self._take(before)

    def list_nodes(self, nodes: Iterable[NodeFact]) -> None:
        """Take over a whole list of nodes."""
        listed = {node.name: node for node in nodes}
        for name in [name for name in self._nodes if name not in listed]:
            self.drop_node(name)
        for node in listed.values():
            self.put_node(node)

    def put_node(self, node: NodeFact) -> None:
        """Take over a node."""
        self._date(node.heard)
        before = self._nodes.get(node.name)
        if before == node:
            return
        self._nodes[node.name] = node
        self._touch_node(node.name)
        if before is None or before.labels != node.labels:
            self._domains = None

    def drop_node(self, name: str) -> None:
        """Drop a node."""
        if self._nodes.pop(name, None) is not None:
            self._touch_node(name)
            self._domains = None

    def list_hypernodes(self, hypernodes: Iterable[HyperNodeFact]) -> None:
        """Take over all HyperNodes."""
        listed = {each.name: each for each in hypernodes}
        if listed != self._hypernodes:
            self._hypernodes = listed
            self._domains = None
            self._freed = True
            self._version += 1
            self._layout = self._version

    def put_hypernode(self, hypernode: HyperNodeFact) -> None:
        """Take over a HyperNode."""
        self.list_hypernodes((self._hypernodes | {hypernode.name: hypernode}).values())

    def drop_hypernode(self, name: str) -> None:
        """Drop a HyperNode."""
        self.list_hypernodes(each for each in self._hypernodes.values() if each.name != name)

    def refused(self, job: str) -> PodsRefused | None:
        """Return why the member refuses the pods of a vcjob: the latest words of its Events."""
        found = [each.refused for each in self._refusals.get(job, {}).values()]
        return max(found, key=lambda each: each.last, default=None)

    def unschedulable(self, job: str) -> Unschedulable | None:
        """Return why Volcano finds no nodes for the pods of a vcjob, and since when.

        Of two PodGroups of one name the vcjob before has left one: the later words count.
        """
        found = self._unschedulable.get(job, {}).values()
        return max(found, key=lambda each: each.since, default=None)

    def list_podgroups(self, podgroups: Iterable[PodGroupFact | None]) -> None:
        """Take over a whole list of PodGroups."""
        listed = {each.key: each for each in podgroups if each is not None}
        for keys in list(self._unschedulable.values()):
            for key in keys.keys() - listed.keys():
                self.drop_podgroup(key)
        for each in listed.values():
            self.put_podgroup(each)

    def put_podgroup(self, podgroup: PodGroupFact | None) -> None:
        """Take over a PodGroup; None is one of no vcjob.

        Volcano sets the time of its words with each of their changes: they count from the first.
        """
        if podgroup is None:
            return
        said, groups = podgroup.said, self._unschedulable.get(podgroup.job, {})
        before = groups.get(podgroup.key)
        if said is None:
            self.drop_podgroup(podgroup.key)
        elif before is None or before.message != said.message:
            since = said.since if before is None else before.since
            groups = self._unschedulable.setdefault(podgroup.job, {})
            groups[podgroup.key] = Unschedulable(said.message, since)
            self._told.add(podgroup.job)

    def drop_podgroup(self, key: str) -> None:
        """Drop a PodGroup."""
        for job, groups in list(self._unschedulable.items()):
            if groups.pop(key, None) is not None:
                self._told.add(job)
                if not groups:
                    del self._unschedulable[job]

    def trouble(self, job: str, now: datetime) -> PodsTrouble | None:
        """Return the worst trouble of a vcjob's pods; None while they have none."""
        return self._troubled.worst(job, now)

    def list_events(self, events: Iterable[RefusalFact | MountFact | None]) -> None:
        """Take over all Events about refused pods and volumes."""
        self._refusals.clear()
        self._troubled.forget_mounts()
        for each in events:
            self.put_event(each)

    def put_event(self, event: RefusalFact | MountFact | None) -> None:
        """Take over an Event about refused pods or a volume; None is one about anything else."""
        if isinstance(event, MountFact):
            self._troubled.mount(event)
        if not isinstance(event, RefusalFact):
            return
        events = self._refusals.setdefault(event.job, {})
        events[event.key] = event
        if len(events) > _EVENTS:
            del events[next(iter(events))]
        self._told.add(event.job)
        while len(self._refusals) > _FAILURES:
            del self._refusals[next(iter(self._refusals))]

    def drop_event(self, key: str) -> None:
        """Drop an Event, whose time to live is over; the pod of a mount may still wait."""
        for job, events in list(self._refusals.items()):
            if events.pop(key, None) is not None and not events:
                del self._refusals[job]

    def view(self, as_of: datetime) -> MemberView:
        """Return the member as it was at `as_of`; unchanged content is the value of before."""
        if self._view is None or self._view.version != self._version or self._view.as_of != as_of:
            self._resolve()
            self._changed.update(self.devices.publish(self._nodes))
            self._view = MemberView(
                version=self._version,
                as_of=as_of,
                jobs=self._jobs_shown(),
                waiting=self._without_node(),
                nodes=self._shown_nodes(),  # the last: it clears the marks of changed nodes
                hypernodes=self._domains or (),
                unresolved=self._unresolved,
                layout=self._layout,
            )
        return self._view

    def _without_node(self) -> tuple[PodHeld, ...]:
        if self._view is not None and "" not in self._changed:
            return self._view.waiting
        return _by_key(self._by_node.get("", {}))

    def _shown_nodes(self) -> tuple[MemberNode, ...]:
        """Return the nodes by name, and make `_shown`, `_places` and `_changed` agree with them.

        As long as the names are the same, each node stays at its place: that saves the sorting.
        """
        if self._view is not None and not self._changed:
            return self._view.nodes
        are_same = self._view is not None
        for name in self._changed:
            node = self._nodes.get(name)
            are_same = are_same and (name in self._shown) is (node is not None)
            if node is None:
                self._shown.pop(name, None)
            else:
                self._shown[name] = _shown(node, self._pods_on(name), self.devices.of(name))
        if self._view is None or not are_same:
            self._places = {name: place for place, name in enumerate(sorted(self._shown))}
            found = [self._shown[name] for name in self._places]
        else:
            found = list(self._view.nodes)
            for name in self._changed & self._shown.keys():
                found[self._places[name]] = self._shown[name]
        self._changed.clear()
        return tuple(found)

    def _jobs_shown(self) -> Mapping[str, int]:
        if self._view is not None and self._view.version == self._version:
            return self._view.jobs
        return dict(self._jobs)

    def _take(self, pod: PodFact) -> None:
        """Take back what a pod holds."""
        held = pod.held
        if held is None:
            return
        pods = self._by_node[held.node]
        del pods[pod.key]
        if not pods:
            del self._by_node[held.node]
        self._touch(held.node)
        self._freed = self._freed or bool(held.node)
        if pod.job:
            self._jobs[pod.job] -= 1
            if not self._jobs[pod.job]:
                del self._jobs[pod.job]
                self._told.add(pod.job)

    def _begin(self, pod: PodFact) -> None:
        """Note the creation of a pod; forget the vcjobs that have had none for the longest time."""
        self._date(pod.created)
        if pod.created is None:
            return
        known = self._begun.pop(pod.job, None)
        self._begun[pod.job] = pod.created if known is None else max(known, pod.created)
        if len(self._begun) > 2 * _BEGUN + len(self._jobs):
            ended = [job for job in self._begun if job not in self._jobs]
            for job in ended[:-_BEGUN]:
                del self._begun[job]

    def _date(self, when: datetime | None) -> None:
        if when is not None and (self._latest is None or when > self._latest):
            self._latest = when

    def _touch(self, node: str) -> None:
        """Let the next view count a node again."""
        self._version += 1
        self._changed.add(node)

    def _touch_pod(self, key: str) -> None:
        """Count the node of a pod again: its claims hold other devices."""
        pod = self._pods.get(key)
        if pod is not None and pod.held is not None:
            self._touch(pod.held.node)

    def _devices_changed(self) -> None:
        """Note that nodes may have other devices: they are counted once, for the next view."""
        self._version += 1
        self._layout = self._version
        self._freed = True

    def _pods_on(self, node: str) -> Mapping[str, PodHeld]:
        """Return the pods of a node with the devices that their claims hold."""
        pods, held = self._by_node.get(node, {}), self.devices.held
        if not held:
            return pods
        return {
            key: replace(
                pod, request=shared_resources({**pod.request, **total(held[key].values())})
            )
            if key in held
            else pod
            for key, pod in pods.items()
        }

    def _touch_node(self, name: str) -> None:
        """Mark a node that has changed by itself, and not only by its pods."""
        self._touch(name)
        self._layout = self._version
        self._freed = True

    def _forget_failure(self, pod: PodFact) -> None:
        """Drop the failure of a vcjob whose pods are created again, or of which another is new."""
        known = self._failures.get(pod.job)
        if known is not None and (known[0] != pod.owner or not self._jobs[pod.job]):
            del self._failures[pod.job]

    def _note(self, pod: PodFact) -> None:
        """Keep the first failure of a vcjob."""
        if pod.failure is None:
            return
        known = self._failures.get(pod.job)
        if known is not None and known[0] == pod.owner and order(known[1]) <= order(pod.failure):
            return
        self._failures[pod.job] = pod.owner, pod.failure
        self._told.add(pod.job)
        while len(self._failures) > _FAILURES:
            del self._failures[next(iter(self._failures))]

    def _resolve(self) -> None:
        """Find the nodes of the HyperNodes, or why that cannot be done."""
        if self._domains is not None:
            return
        self._domains, self._unresolved = (), ""
        try:
            self._domains = resolved(self._hypernodes, self._nodes)
        except NotKnownError as error:
            self._unresolved = str(error)


def view_of(
    pods: Iterable[PodFact],
    nodes: Iterable[NodeFact],
    hypernodes: Iterable[HyperNodeFact] = (),
    devices: Sequence[Iterable[Any] | None] = (None, None, ()),
    *,
    as_of: datetime,
) -> MemberView:
    """Return a member as one list of its objects shows it; `devices` in the order of DEVICE_FACTS.

    None: the member does not serve this resource.
    """
    fold = MemberFold()
    slices, classes, claims = devices
    fold.devices.list_slices(slices)
    fold.devices.list_classes(classes)
    fold.devices.list_claims(claims or ())
    fold.list_nodes(nodes)
    fold.list_pods(pods)
    fold.list_hypernodes(hypernodes)
    return fold.view(as_of)


def _shown(node: NodeFact, pods: Mapping[str, PodHeld], devices: Resources) -> MemberNode:
    """Return a node with its devices and pods, and what these leave free of it."""
    allocatable = node.allocatable
    if devices:
        allocatable = shared_resources({**allocatable, **devices})
    free = dict(allocatable)
    for pod in pods.values():
        accumulate(free, pod.request, -1)
    return MemberNode(
        name=node.name,
        state=node.state,
        allocatable=allocatable,
        free=shared_resources(free),
        labels=node.labels,
        taints=node.taints,
        pods=_by_key(pods),
    )


def _by_key(pods: Mapping[str, PodHeld]) -> tuple[PodHeld, ...]:
    return tuple(pods[key] for key in sorted(pods))
