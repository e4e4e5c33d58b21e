"""Pods, nodes and HyperNodes of a member as the small facts that the fold keeps of them.

Equal labels, requests and terms of different objects are one value in memory. A malformed field
reads as absent and never raises. What one object can make the fold keep is bounded.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from sys import intern
from typing import Final, TypeAlias, TypeVar

import orjson

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import VCJOB_KIND
from hyperjob_core.api.status import ContainerFailure
from hyperjob_core.api.wire import (
    at,
    condition,
    integer,
    mapping,
    objects,
    string,
    string_map,
    timestamp,
)
from hyperjob_core.kube.resources import (
    CORE_EVENTS,
    DEVICE_CLASSES,
    HYPERNODES,
    NODES,
    PODGROUPS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from hyperjob_core.kube.resources import PODS as PODS_RESOURCE
from hyperjob_core.text import shortened
from hyperjob_engine.members.deviceclasses import (
    ClaimFact,
    ClassFact,
    SliceFact,
    claim_fact,
    class_fact,
    slice_fact,
)
from hyperjob_engine.members.podfailures import first_failure
from hyperjob_engine.members.podtroubles import SeenTrouble, mount_trouble, trouble_of
from hyperjob_engine.members.weights import KnownValues
from hyperjob_engine.model.members import (
    ANY_NODE,
    HostPorts,
    Labels,
    NodeState,
    PodHeld,
    Taint,
)
from hyperjob_engine.model.wants import parse_apart, parse_ports, parse_wants
from hyperjob_engine.reasons.pods import PodsRefused, PodTrouble, Unschedulable, origin_of, words_of
from hyperjob_engine.resources import (
    PODS,
    Resources,
    devices_of,
    parse_resources,
    pod_request,
    whole,
)

_NOT_MADE: Final = frozenset({"FailedCreate", "PVCError", "PluginError", "PodGroupError"})
"""The reasons of Volcano's Events about a vcjob whose pods it could not create, or began not to."""
TOLD: Final = (
    "type=Warning,reason!=BackOff,reason!=Failed,reason!=FailedScheduling,reason!=Unhealthy"
)
"""The Events that `event_fact` may keep, without the frequent ones that it does not."""
_FAILED_MOUNT: Final = "FailedMount"
NO_NODES: Final = "NotEnoughResources"
"""The reason of a PodGroup's condition Unschedulable where the gang has all of its pods."""
JOB_NAME: Final = "volcano.sh/job-name"
_PLACED: Final = frozenset({"Running", "Completed"})
"""The phases of a PodGroup whose gang has its nodes."""
_OUTSIDE: Final = "Pending"
"""The phase of a PodGroup that Volcano has not let in: its vcjob gets no pod."""
_FAILED: Final = "Failed"
_ENDED: Final = frozenset({"Succeeded", _FAILED})
_SHARED: Final = 16 * 1024 * 1024
"""The bytes of the values of which an equal one is known: those that came last."""
_SPECS: Final = 2 * 1024 * 1024
"""The bytes of the specs of pods of which an equal one is known: a fleet has few."""
_NAME: Final = 253
"""The longest name of an object, as in Kubernetes."""
_RESOURCE_NAME: Final = 317
_RESOURCES: Final = 64
_POD_BYTES: Final = 8 * 1024
"""The labels, terms and amounts of a pod as JSON; of a larger one only the amounts are kept."""
_NODE_BYTES: Final = 64 * 1024
"""The labels, taints and amounts of a node as JSON; a larger one counts as not ready."""
_VALUES: Final = 1_000
"""The values of either of them."""
_WORDS: Final = 1024

_TERMS: Final = ("nodeSelector", "affinity", "tolerations")
_PARTS: Final = ("overhead", "resources", "hostNetwork")
_CONTAINERS: Final = ("containers", "initContainers")
_CONTAINER_PARTS: Final = ("resources", "ports", "restartPolicy")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PodFact:
    """A pod: what it holds, None after its end; the failure of its first failed container.

    `job` is the key of its vcjob, and `owner` the UID of that vcjob in the member. `created`,
    `failure` and `seen`, its trouble, are known for pods of vcjobs alone.
    """

    key: str
    held: PodHeld | None
    job: str = ""
    owner: str = ""
    created: datetime | None = None
    failure: ContainerFailure | None = None
    seen: SeenTrouble | None = None


@dataclass(frozen=True, slots=True)
class NodeFact:
    """A node, by name, without its pods; `heard` is when its kubelet last reported its state."""

    key: str
    state: NodeState
    allocatable: Resources
    labels: Labels
    taints: tuple[Taint, ...]
    heard: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class HyperNodeFact:
    """A HyperNode, by name: the names of its members, and patterns of the names of nodes."""

    key: str
    tier: int
    tier_name: str = ""
    nodes: frozenset[str] = frozenset()
    hypernodes: frozenset[str] = frozenset()
    node_patterns: tuple[str, ...] = ()
    hypernode_patterns: tuple[str, ...] = ()
    node_labels: tuple[Labels, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusalFact:
    """An Event of a vcjob whose pods the API server of the member refuses."""

    key: str
    job: str
    refused: PodsRefused


@dataclass(frozen=True, slots=True)
class MountFact:
    """An Event of a pod one of whose volumes cannot be mounted."""

    key: str
    pod: str
    trouble: PodTrouble
    last: datetime


@dataclass(frozen=True, slots=True)
class PodGroupFact:
    """The PodGroup of a vcjob, and Volcano's words while the gang has no nodes or is not let in."""

    key: str
    job: str
    said: Unschedulable | None


def event_fact(raw: Object) -> RefusalFact | MountFact | None:
    """Return what the fold keeps of an Event; None if it says nothing of a sub-job."""
    return refusal_fact(raw) or _mount_fact(raw)


def _mount_fact(raw: Object) -> MountFact | None:
    about = mapping(raw.get("involvedObject"))
    if string(raw.get("reason")) != _FAILED_MOUNT or string(about.get("kind")) != "Pod":
        return None
    trouble, (_, last) = mount_trouble(string(raw.get("message"))), _times(raw)
    if trouble is None or last is None:
        return None
    pod = f"{_name(about.get('namespace'))}/{_name(about.get('name'))}"
    return MountFact(_key(raw), pod, _shared(trouble), last)


def _times(raw: Object) -> tuple[datetime | None, datetime | None]:
    """Return when an Event was first and last seen."""
    created = at(raw, "metadata", "creationTimestamp")
    first = timestamp(raw.get("firstTimestamp") or raw.get("eventTime") or created)
    last = timestamp(at(raw, "series", "lastObservedTime") or raw.get("lastTimestamp") or created)
    return first, last or first


def _key(raw: Object) -> str:
    return f"{_name(at(raw, 'metadata', 'namespace'))}/{_name(at(raw, 'metadata', 'name'))}"


def refusal_fact(raw: Object) -> RefusalFact | None:
    """Return what the fold keeps of an Event; None if it is not about refused pods of a vcjob."""
    about = mapping(raw.get("involvedObject"))
    if string(raw.get("reason")) not in _NOT_MADE or string(about.get("kind")) != VCJOB_KIND:
        return None
    first, last = _times(raw)
    if first is None:
        return None
    namespace, name = _name(about.get("namespace")), _name(about.get("name"))
    words = shortened(words_of(string(raw.get("message"))), _WORDS)
    refused = PodsRefused(words, first, last or first)
    return RefusalFact(_key(raw), intern(f"{namespace}/{name}"), refused)


def podgroup_fact(raw: Object) -> PodGroupFact | None:
    """Return what the fold keeps of a PodGroup; None if it is of no vcjob.

    Volcano keeps the conditions Unschedulable and Scheduled beside each other: the later one holds.
    A gang that lacks pods is no gang that lacks nodes. Of a gang that it does not let in, Volcano
    writes no condition.
    """
    metadata, status = mapping(raw.get("metadata")), mapping(raw.get("status"))
    owners = objects(metadata.get("ownerReferences"))
    job = next((_name(each.get("name")) for each in owners if each.get("kind") == VCJOB_KIND), "")
    if not job:
        return None
    told, placed = condition(status, "Unschedulable"), condition(status, "Scheduled")
    since, later = (timestamp(each.get("lastTransitionTime")) for each in (told, placed))
    phase, said = string(status.get("phase")), None
    if (
        told.get("status") == "True"
        and string(told.get("reason")) == NO_NODES
        and since is not None
        and (later is None or later <= since)
        and phase not in _PLACED
    ):
        said = Unschedulable(shortened(origin_of(string(told.get("message"))), _WORDS), since)
    created = timestamp(metadata.get("creationTimestamp"))
    if phase == _OUTSIDE and created is not None and told.get("status") != "True":
        said = Unschedulable("", later or created)
    namespace = intern(_name(metadata.get("namespace")))
    return PodGroupFact(_key(raw), intern(f"{namespace}/{job}"), said)


def pod_fact(raw: Object) -> PodFact:
    """Return what the fold keeps of a pod."""
    metadata, spec = mapping(raw.get("metadata")), mapping(raw.get("spec"))
    namespace, name = intern(_name(metadata.get("namespace"))), _name(metadata.get("name"))
    labels = string_map(metadata.get("labels"))
    job = _name(labels.get(JOB_NAME)) or _name(at(metadata, "annotations", JOB_NAME))
    parts, terms = _parts_of(spec), [spec.get(each) for each in _TERMS]
    text = _text(_POD_BYTES, parts, [labels, terms])
    if text is None:
        labels, spec = {}, {**spec, **dict.fromkeys(_TERMS)}
    phase = string(at(raw, "status", "phase"))
    held = None
    if phase not in _ENDED:
        taken = _taken(parts) if text is None else _taken_by(text, parts)
        held = _held(metadata, spec, labels, taken, namespace=namespace, name=name, job=intern(job))
    return PodFact(
        key=f"{namespace}/{name}",
        held=held,
        job=intern(f"{namespace}/{job}") if job else "",
        owner=_owner(metadata) if job else "",
        created=timestamp(metadata.get("creationTimestamp")) if job else None,
        failure=first_failure([raw]) if job and phase == _FAILED else None,
        seen=_seen(raw) if job else None,
    )


def node_fact(raw: Object) -> NodeFact:
    """Return what the fold keeps of a node."""
    spec, status = mapping(raw.get("spec")), mapping(raw.get("status"))
    labels, parts = at(raw, "metadata", "labels"), (spec.get("taints"), status.get("allocatable"))
    if _text(_NODE_BYTES, parts, labels) is None:
        labels, spec, status = {}, {}, {}
    ready, name = condition(status, "Ready"), intern(_name(at(raw, "metadata", "name")))
    return NodeFact(
        key=name,
        state=_state(spec, ready),
        allocatable=shared_resources(_amounts(parse_resources(status.get("allocatable")))),
        labels=_pairs(sorted(string_map(labels).items()), own=name),
        taints=_shared(_taints(spec)) if spec.get("taints") else (),
        heard=timestamp(ready.get("lastHeartbeatTime")),
    )


def _taints(spec: Object) -> tuple[Taint, ...]:
    return tuple(
        Taint(string(each.get("key")), string(each.get("value")), string(each.get("effect")))
        for each in objects(spec.get("taints"))
    )


def hypernode_fact(raw: Object) -> HyperNodeFact:
    """Return what the fold keeps of a HyperNode of Volcano."""
    spec = mapping(raw.get("spec"))
    exact: dict[str, set[str]] = {"Node": set(), "HyperNode": set()}
    patterns: dict[str, list[str]] = {"Node": [], "HyperNode": []}
    labels: list[Labels] = []
    for member in objects(spec.get("members")):
        kind, selector = string(member.get("type")), mapping(member.get("selector"))
        name = string(at(selector, "exactMatch", "name"))
        pattern = string(at(selector, "regexMatch", "pattern"))
        wanted = string_map(at(selector, "labelMatch", "matchLabels"))
        if kind in exact and name:
            exact[kind].add(name)
        if kind in patterns and pattern:
            patterns[kind].append(pattern)
        if kind == "Node" and wanted:
            labels.append(_labels(wanted))
    return HyperNodeFact(
        key=_name(at(raw, "metadata", "name")),
        tier=integer(spec.get("tier")) or 0,
        tier_name=string(spec.get("tierName")),
        nodes=frozenset(exact["Node"]),
        hypernodes=frozenset(exact["HyperNode"]),
        node_patterns=tuple(patterns["Node"]),
        hypernode_patterns=tuple(patterns["HyperNode"]),
        node_labels=tuple(labels),
    )


Fact: TypeAlias = (
    PodFact
    | NodeFact
    | HyperNodeFact
    | PodGroupFact
    | RefusalFact
    | MountFact
    | SliceFact
    | ClassFact
    | ClaimFact
)
FACTS: Final[Mapping[Resource, Callable[[Object], Fact | None]]] = {
    PODS_RESOURCE: pod_fact,
    NODES: node_fact,
    HYPERNODES: hypernode_fact,
    PODGROUPS: podgroup_fact,
    CORE_EVENTS: event_fact,
    RESOURCE_SLICES: slice_fact,
    DEVICE_CLASSES: class_fact,
    RESOURCE_CLAIMS: claim_fact,
}
"""What the fold keeps of an object of each resource; None: it says nothing of a sub-job."""


def _parts_of(spec: Object) -> Object:
    """Return the parts of a pod's spec that say what it takes of its node."""
    parts: Object = {name: spec[name] for name in _PARTS if name in spec}
    for name in _CONTAINERS:
        if name in spec:
            parts[name] = [
                {part: each[part] for part in _CONTAINER_PARTS if part in each}
                for each in objects(spec[name])
            ]
    return parts


def _taken_by(text: str, parts: Object) -> tuple[Resources, HostPorts]:
    """Return what parts with this JSON take: they are read once as long as that is known."""
    return _TAKEN.of(text, lambda _: _taken(parts))  # type: ignore[return-value]


def _taken(parts: Object) -> tuple[Resources, HostPorts]:
    amounts = {**_amounts(pod_request(parts)), PODS: whole(1)}
    return shared_resources(amounts), _shared(parse_ports(parts))


def _held(
    metadata: Object,
    spec: Object,
    labels: Mapping[str, str],
    taken: tuple[Resources, HostPorts],
    *,
    namespace: str,
    name: str,
    job: str,
) -> PodHeld:
    """Return what a pod holds; only of a pod of a vcjob the annotation about its devices counts."""
    node, (request, ports) = intern(_name(spec.get("nodeName"))), taken
    if job and (devices := devices_of(metadata)):
        request = shared_resources({**request, **devices})
    return PodHeld(
        namespace=namespace,
        name=name,
        node=node,
        request=request,
        job=job,
        ending=metadata.get("deletionTimestamp") is not None,
        labels=_labels(labels),
        apart=_shared(parse_apart(spec, labels)) if spec.get("affinity") else (),
        ports=ports,
        wants=ANY_NODE if node else _shared(parse_wants({**spec, "affinity": _of_node(spec)}, {})),
    )


def _seen(raw: Object) -> SeenTrouble | None:
    found = trouble_of(raw)
    return found and SeenTrouble(_shared(found.trouble), found.since, found.until)


def _of_node(spec: Object) -> Object:
    """Return the part of a pod's affinity that is about nodes."""
    return {"nodeAffinity": at(spec, "affinity", "nodeAffinity")}


def _owner(metadata: Object) -> str:
    for each in objects(metadata.get("ownerReferences")):
        if each.get("controller") is True:
            return intern(_name(each.get("uid")))
    return ""


def _name(value: object) -> str:
    """Return a name; an empty one for what no API server takes as a name."""
    found = string(value)
    return found if len(found) <= _NAME else ""


def _amounts(found: Mapping[str, int]) -> Mapping[str, int]:
    """Return amounts of resources without those of which Kubernetes has none."""
    if len(found) <= _RESOURCES and all(len(name) <= _RESOURCE_NAME for name in found):
        return found
    short = sorted(name for name in found if len(name) <= _RESOURCE_NAME)
    return {name: found[name] for name in short[:_RESOURCES]}


def _text(most: int, parts: object, others: object) -> str | None:
    """Return parts as JSON; None if they and others are too long, too many or nested too deep.

    Each one costs time.
    """
    try:
        text, beside = orjson.dumps(parts), orjson.dumps(others)
    except TypeError:
        return None
    values = text.count(b",") + beside.count(b",")
    if len(text) + len(beside) > most or values > _VALUES:
        return None
    return text.decode()  # the bytes would keep the whole buffer of the encoder


def _state(spec: Object, ready: Object) -> NodeState:
    if ready.get("status") != "True":
        return NodeState.NOT_READY
    return NodeState.CORDONED if spec.get("unschedulable") is True else NodeState.READY


def _labels(labels: Mapping[str, str]) -> Labels:
    return _shared(tuple(sorted(labels.items())), _pairs)


def _pairs(labels: Iterable[tuple[str, str]], *, own: str = "") -> Labels:
    """Return labels, of which equal pairs are one value; a pair with the value `own` has no equal.

    Each node has its own name as a label.
    """
    known = _OTHERS.known
    return tuple(
        known.get(pair)
        or ((intern(pair[0]), own) if own and pair[1] == own else _shared(_interned(pair)))
        for pair in labels
    )


def _interned(pair: tuple[str, str]) -> tuple[str, str]:
    return intern(pair[0]), intern(pair[1])


_AMOUNTS: Final = KnownValues(_SHARED)
_OTHERS: Final = KnownValues(_SHARED)
_TAKEN: Final = KnownValues(_SPECS)


def shared_resources(amounts: Mapping[str, int]) -> Resources:
    """Return the amounts; equal ones are mostly one value in memory."""
    return _AMOUNTS.of(tuple(sorted(amounts.items())), _resources)  # type: ignore[return-value]


def _resources(items: Iterable[tuple[str, int]]) -> Resources:
    return {intern(name): amount for name, amount in items}


def _shared(value: T, make: Callable[[T], T] = lambda value: value) -> T:
    """Return the first of all equal values, which `make` made: it alone stays in memory."""
    return _OTHERS.of(value, make)  # type: ignore[return-value]
