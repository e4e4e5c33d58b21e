"""The state of one member cluster, folded from lists and watch events of its objects.

The fold keeps small facts only, and a view shares every value with the view before it that has not
changed. The order of lists and events may be any that a watch can bring.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar

from hyperjob_core.api.status import ContainerFailure
from hyperjob_core.kube.resources import (
    CORE_EVENTS,
    DEVICE_CLASSES,
    HYPERNODES,
    NODES,
    PODGROUPS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from hyperjob_engine.members.deviceclasses import ClaimFact, published
from hyperjob_engine.members.facts import (
    FACTS,
    Fact,
    HyperNodeFact,
    MountFact,
    NodeFact,
    PodFact,
    PodGroupFact,
    RefusalFact,
    shared_resources,
)
from hyperjob_engine.members.hypernodes import NotKnownError, resolved
from hyperjob_engine.members.podfailures import order
from hyperjob_engine.members.troubled import Troubled
from hyperjob_engine.model.members import HyperNode, MemberNode, MemberView, PodHeld
from hyperjob_engine.reasons.pods import PodsRefused, PodsTrouble, Unschedulable
from hyperjob_engine.resources import Resources, total

T = TypeVar("T")
_PUBLISHING: Final = frozenset({RESOURCE_SLICES, DEVICE_CLASSES})
_FAILURES: Final = 1000
"""The failed vcjobs of a member of which the fold knows the first failure."""
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
        self._facts: dict[Resource, dict[str, Any]] = {resource: {} for resource in FACTS}
        self._served: set[Resource] = set()
        # Both have the pods that have not ended, and no other pods: `_change_pod` and `_take` alone
        # change them. "" is the node of the pods that have none.
        self._by_node: dict[str, dict[str, PodHeld]] = {}
        self._jobs: Counter[str] = Counter()
        self._ending: Counter[str] = Counter()  # of these, the pods that are being deleted
        # By vcjob, in the order of their changes: the bounds drop the first. A failure has the UID
        # of its vcjob.
        self._begun: dict[str, datetime] = {}
        self._latest: datetime | None = None
        self._failures: dict[str, tuple[str, ContainerFailure]] = {}
        self._refusals: dict[str, dict[str, PodsRefused]] = {}  # by vcjob and Event
        self._unschedulable: dict[str, dict[str, Unschedulable]] = {}  # by vcjob and PodGroup
        self._troubled = Troubled()
        # The devices of nodes as `published` has counted them, and those that claims hold, by pod.
        self._devices: Mapping[str, Resources] = {}
        self._devices_changed = False
        self._claimed: dict[str, dict[str, Resources]] = {}
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

    def stays(self, job: str) -> bool:
        """Return whether a vcjob has a pod that neither has ended nor is being deleted."""
        return self._jobs[job] > self._ending[job]

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

    def replace(self, resource: Resource, facts: Iterable[Fact | None] | None) -> None:
        """Take over a whole list of a resource; None: the member does not serve it."""
        listed = {fact.key: fact for fact in facts or () if fact is not None}
        known = self._facts[resource]
        for key in [key for key in known if key not in listed]:
            self.drop(resource, key)
        for fact in sorted(listed.values(), key=_has_ended):
            self.put(resource, fact)
        if (resource in self._served) is not (facts is not None):
            self._served ^= {resource}
            if resource in _PUBLISHING:
                self._publishes(resource)

    def put(self, resource: Resource, fact: Fact | None) -> None:
        """Take over an object; an unchanged node may change `latest`. None says nothing."""
        if fact is None:
            return
        if isinstance(fact, NodeFact):
            self._date(fact.heard)
        known = self._facts[resource]
        before = known.get(fact.key)
        if before != fact:
            known[fact.key] = fact
            self._changes[resource](self, before, fact)

    def drop(self, resource: Resource, key: str) -> None:
        """Drop an object."""
        before = self._facts[resource].pop(key, None)
        if before is not None:
            self._changes[resource](self, before, None)

    def _change_pod(self, before: PodFact | None, pod: PodFact | None) -> None:
        """Count what a pod holds.

        A pod that holds something now, or something else, is what its vcjob has grown by in `news`.
        The first pod of a vcjob, also after all of its pods have ended, and one of another owner
        end the failure that is kept of the vcjob.
        """
        was = None if before is None else before.held
        holds = None if pod is None else pod.held
        if pod is not None and pod.job:
            self._troubled.put(pod, before)
            self._note(pod)
            self._begin(pod)
        elif before is not None:
            self._troubled.drop(before)
        if before is not None and was is not None and was != holds:
            self._take(before, was)
        if pod is not None and holds is not None and was != holds:
            self._by_node.setdefault(holds.node, {})[pod.key] = holds
            self._touch(holds.node)
            if pod.job:
                if was is None:  # the pod is new
                    self._forget_failure(pod)
                self._jobs[pod.job] += 1
                self._ending[pod.job] += holds.ending
                self._grown.add(pod.job)
                if pod.job not in self._failures and pod.job not in self._refusals:
                    self._told.discard(pod.job)  # `_take` has counted it as without a pod

    def _change_node(self, before: NodeFact | None, node: NodeFact | None) -> None:
        name = _either(before, node).key
        self._touch(name)
        self._relaid()
        if before is None or node is None or before.labels != node.labels:
            self._domains = None

    def _change_hypernode(self, *_: HyperNodeFact | None) -> None:
        self._domains = None
        self._relaid()

    def _change_podgroup(self, before: PodGroupFact | None, after: PodGroupFact | None) -> None:
        """Keep the words of Volcano: it sets their time with each change, the first one counts."""
        key, job = _either(before, after).key, _either(before, after).job
        groups = self._unschedulable.setdefault(job, {})
        known, said = groups.pop(key, None), None if after is None else after.said
        if said is not None:
            groups[key] = said if known is None else replace(said, since=known.since)
        if not groups:
            del self._unschedulable[job]
        if groups.get(key) != known:
            self._told.add(job)

    def _change_event(
        self, before: RefusalFact | MountFact | None, after: RefusalFact | MountFact | None
    ) -> None:
        """Keep refusals by vcjob; the pod of a mount may still wait without its Event."""
        if isinstance(before, RefusalFact):
            events = self._refusals[before.job]
            del events[before.key]
            if not events:
                del self._refusals[before.job]
        if isinstance(after, RefusalFact):
            self._refusals.setdefault(after.job, {})[after.key] = after.refused
            self._told.add(after.job)
        elif isinstance(after, MountFact):
            self._troubled.mount(after, self._facts[PODS].get(after.pod))

    def _publishes(self, *_: object) -> None:
        """Note that nodes may have other devices: they are counted once, for the next view."""
        self._devices_changed = True
        self._relaid()

    def _change_claim(self, before: ClaimFact | None, after: ClaimFact | None) -> None:
        """Count the devices of a claim, which its pod holds beside its request."""
        if before is not None and before.held:
            claims = self._claimed[before.pod]
            del claims[before.key]
            if not claims:
                del self._claimed[before.pod]
        if after is not None and after.held:
            self._claimed.setdefault(after.pod, {})[after.key] = after.held
        for claim in filter(None, (before, after)):
            pod = self._facts[PODS].get(claim.pod)
            if pod is not None and pod.held is not None:
                self._touch(pod.held.node)

    def refused(self, job: str) -> PodsRefused | None:
        """Return why the member refuses the pods of a vcjob: the latest words of its Events."""
        return max(self._refusals.get(job, {}).values(), key=lambda each: each.last, default=None)

    def unschedulable(self, job: str) -> Unschedulable | None:
        """Return why Volcano finds no nodes for the pods of a vcjob, and since when.

        Of two PodGroups of one name the vcjob before has left one: the later words count.
        """
        found = self._unschedulable.get(job, {}).values()
        return max(found, key=lambda each: each.since, default=None)

    def trouble(self, job: str, now: datetime) -> PodsTrouble | None:
        """Return the worst trouble of a vcjob's pods; None while they have none."""
        return self._troubled.worst(job, now)

    def view(self) -> MemberView:
        """Return the member as it is known; unchanged content is the value of before."""
        if self._view is None or self._view.version != self._version:
            self._resolve()
            self._publish()
            self._view = MemberView(
                version=self._version,
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
            node = self._facts[NODES].get(name)
            are_same = are_same and (name in self._shown) is (node is not None)
            if node is None:
                self._shown.pop(name, None)
            else:
                self._shown[name] = _shown(node, self._pods_on(name), _of(self._devices, name))
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

    def _take(self, pod: PodFact, held: PodHeld) -> None:
        """Take back what a pod has held."""
        pods = self._by_node[held.node]
        del pods[pod.key]
        if not pods:
            del self._by_node[held.node]
        self._touch(held.node)
        self._freed = self._freed or bool(held.node)
        if pod.job:
            self._jobs[pod.job] -= 1
            self._ending[pod.job] -= held.ending
            if not self._jobs[pod.job]:
                del self._jobs[pod.job], self._ending[pod.job]
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

    def _relaid(self) -> None:
        """Note a change of nodes or HyperNodes by themselves, and not only of pods."""
        self._version += 1
        self._layout = self._version
        self._freed = True

    def _publish(self) -> None:
        """Count the devices of the nodes again, if slices or classes have changed."""
        if not self._devices_changed:
            return
        facts, old = self._facts, self._devices
        self._devices_changed, self._devices = False, {}
        if self._served >= _PUBLISHING:
            slices, classes = facts[RESOURCE_SLICES].values(), facts[DEVICE_CLASSES].values()
            self._devices = published(slices, classes)
        self._changed.update(
            name for name in facts[NODES] if _of(self._devices, name) != _of(old, name)
        )

    def _pods_on(self, node: str) -> Mapping[str, PodHeld]:
        """Return the pods of a node with the devices that their claims hold."""
        pods, claimed = self._by_node.get(node, {}), self._claimed
        if not claimed:
            return pods
        return {
            key: replace(
                pod, request=shared_resources({**pod.request, **total(claimed[key].values())})
            )
            if key in claimed
            else pod
            for key, pod in pods.items()
        }

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
            self._domains = resolved(self._facts[HYPERNODES], self._facts[NODES])
        except NotKnownError as error:
            self._unresolved = str(error)

    # What a change means: the methods get what was known of an object, and what is known now.
    _changes: Final[Mapping[Resource, Callable[["MemberFold", Any, Any], None]]] = {
        PODS: _change_pod,
        NODES: _change_node,
        HYPERNODES: _change_hypernode,
        PODGROUPS: _change_podgroup,
        CORE_EVENTS: _change_event,
        RESOURCE_SLICES: _publishes,
        DEVICE_CLASSES: _publishes,
        RESOURCE_CLAIMS: _change_claim,
    }


def view_of(facts: Mapping[Resource, Iterable[Fact | None] | None]) -> MemberView:
    """Return a member as one list of each resource shows it; None: it does not serve that."""
    fold = MemberFold()
    for resource, listed in facts.items():
        fold.replace(resource, listed)
    return fold.view()


def _has_ended(fact: Fact) -> bool:
    """Return whether a pod has ended: of a list they come last, a later pod begins a new run."""
    return isinstance(fact, PodFact) and fact.held is None


def _either(before: T | None, after: T | None) -> T:
    found = before if after is None else after
    assert found is not None
    return found


def _of(devices: Mapping[str, Resources], node: str) -> Resources:
    """Return the devices of a node; nothing is known of them if the result is empty."""
    return devices.get(node, devices.get("", {}))


def _shown(node: NodeFact, pods: Mapping[str, PodHeld], devices: Resources) -> MemberNode:
    """Return a node with its devices and pods, and what these leave free of it."""
    allocatable = node.allocatable
    if devices:
        allocatable = shared_resources({**allocatable, **devices})
    free = dict(allocatable)
    for pod in pods.values():
        for name, amount in pod.request.items():
            if name in free:
                free[name] -= amount
    return MemberNode(
        name=node.key,
        state=node.state,
        allocatable=allocatable,
        free=shared_resources(free),
        labels=node.labels,
        taints=node.taints,
        pods=_by_key(pods),
    )


def _by_key(pods: Mapping[str, PodHeld]) -> tuple[PodHeld, ...]:
    return tuple(pods[key] for key in sorted(pods))
