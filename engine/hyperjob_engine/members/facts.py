"""Pods, nodes and HyperNodes of a member as the small facts that the fold keeps of them.

Equal labels, requests and terms of different objects are one value in memory. A malformed field
reads as absent and never raises.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import Final, TypeVar

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import VCJOB_KIND
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
from hyperjob_engine.members.podfailures import first_failure
from hyperjob_engine.model.members import Labels, NodeState, PodHeld, Taint
from hyperjob_engine.model.wants import parse_apart, parse_wants
from hyperjob_engine.reasons.failure import ContainerFailure
from hyperjob_engine.reasons.podsrefused import PodsRefused, words_of
from hyperjob_engine.resources import PODS, Resources, parse_resources, pod_request, whole

FAILED_CREATE: Final = "FailedCreate"
"""The reason of Volcano's Event about a pod that it could not create."""
JOB_NAME: Final = "volcano.sh/job-name"
_FAILED: Final = "Failed"
_ENDED: Final = frozenset({"Succeeded", _FAILED})
_SHARED: Final = 65_536

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PodFact:
    """A pod: what it holds, None after its end; the failure of its first failed container.

    `job` is the key of its vcjob, and `owner` the UID of that vcjob in the member. `created` is
    known for pods of vcjobs alone.
    """

    key: str
    held: PodHeld | None
    job: str = ""
    owner: str = ""
    created: datetime | None = None
    failure: ContainerFailure | None = None


@dataclass(frozen=True, slots=True)
class NodeFact:
    """A node without its pods; `heard` is when its kubelet last reported its state."""

    name: str
    state: NodeState
    allocatable: Resources
    labels: Labels
    taints: tuple[Taint, ...]
    heard: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class HyperNodeFact:
    """A HyperNode: the names of its members, and patterns of the names of nodes."""

    name: str
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


def refusal_fact(raw: Object) -> RefusalFact | None:
    """Return what the fold keeps of an Event; None if it is not about refused pods of a vcjob."""
    about = mapping(raw.get("involvedObject"))
    if string(raw.get("reason")) != FAILED_CREATE or string(about.get("kind")) != VCJOB_KIND:
        return None
    created = at(raw, "metadata", "creationTimestamp")
    first = timestamp(raw.get("firstTimestamp") or raw.get("eventTime") or created)
    last = timestamp(at(raw, "series", "lastObservedTime") or raw.get("lastTimestamp") or created)
    if first is None:
        return None
    namespace, name = string(about.get("namespace")), string(about.get("name"))
    refused = PodsRefused(words_of(string(raw.get("message"))), first, last or first)
    key = f"{string(at(raw, 'metadata', 'namespace'))}/{string(at(raw, 'metadata', 'name'))}"
    return RefusalFact(key, intern(f"{namespace}/{name}"), refused)


def pod_fact(raw: Object) -> PodFact:
    """Return what the fold keeps of a pod."""
    metadata, spec = mapping(raw.get("metadata")), mapping(raw.get("spec"))
    namespace, name = intern(string(metadata.get("namespace"))), string(metadata.get("name"))
    labels = string_map(metadata.get("labels"))
    job = labels.get(JOB_NAME) or string(at(metadata, "annotations", JOB_NAME))
    phase = string(at(raw, "status", "phase"))
    ended = phase in _ENDED
    held = None if ended else _held(metadata, spec, labels, namespace=namespace, job=intern(job))
    return PodFact(
        key=f"{namespace}/{name}",
        held=held,
        job=intern(f"{namespace}/{job}") if job else "",
        owner=_owner(metadata) if job else "",
        created=timestamp(metadata.get("creationTimestamp")) if job else None,
        failure=first_failure([raw]) if job and phase == _FAILED else None,
    )


def node_fact(raw: Object) -> NodeFact:
    """Return what the fold keeps of a node."""
    spec, status = mapping(raw.get("spec")), mapping(raw.get("status"))
    return NodeFact(
        name=intern(string(at(raw, "metadata", "name"))),
        state=_state(spec, status),
        allocatable=shared_resources(parse_resources(status.get("allocatable"))),
        labels=_labels(string_map(at(raw, "metadata", "labels"))),
        taints=_shared(
            tuple(
                Taint(
                    string(each.get("key")), string(each.get("value")), string(each.get("effect"))
                )
                for each in objects(spec.get("taints"))
            )
        ),
        heard=timestamp(condition(status, "Ready").get("lastHeartbeatTime")),
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
        name=string(at(raw, "metadata", "name")),
        tier=integer(spec.get("tier")) or 0,
        tier_name=string(spec.get("tierName")),
        nodes=frozenset(exact["Node"]),
        hypernodes=frozenset(exact["HyperNode"]),
        node_patterns=tuple(patterns["Node"]),
        hypernode_patterns=tuple(patterns["HyperNode"]),
        node_labels=tuple(labels),
    )


def _held(
    metadata: Object, spec: Object, labels: Mapping[str, str], *, namespace: str, job: str
) -> PodHeld:
    node = intern(string(spec.get("nodeName")))
    wants = (
        {} if node else {"wants": _shared(parse_wants({**spec, "affinity": _of_node(spec)}, {}))}
    )
    return PodHeld(
        namespace=namespace,
        name=string(metadata.get("name")),
        node=node,
        request=shared_resources({**pod_request(spec), PODS: whole(1)}),
        job=job,
        ending=metadata.get("deletionTimestamp") is not None,
        labels=_labels(labels),
        apart=_shared(parse_apart(spec, labels)),
        **wants,
    )


def _of_node(spec: Object) -> Object:
    """Return the part of a pod's affinity that is about nodes."""
    return {"nodeAffinity": at(spec, "affinity", "nodeAffinity")}


def _owner(metadata: Object) -> str:
    for each in objects(metadata.get("ownerReferences")):
        if each.get("controller") is True:
            return intern(string(each.get("uid")))
    return ""


def _state(spec: Object, status: Object) -> NodeState:
    if condition(status, "Ready").get("status") != "True":
        return NodeState.NOT_READY
    return NodeState.CORDONED if spec.get("unschedulable") is True else NodeState.READY


def _labels(labels: Mapping[str, str]) -> Labels:
    return _shared(tuple(sorted(_pair(key, value) for key, value in labels.items())))


def _pair(key: str, value: str) -> tuple[str, str]:
    return _shared((intern(key), intern(value)))


def shared_resources(amounts: Mapping[str, int]) -> Resources:
    """Return the amounts; equal ones are mostly one value in memory."""
    return _same_resources(tuple(sorted(amounts.items())))


@lru_cache(maxsize=_SHARED)
def _same_resources(items: Iterable[tuple[str, int]]) -> Resources:
    return {intern(name): amount for name, amount in items}


@lru_cache(maxsize=_SHARED)
def _known(value: object) -> object:
    return value


def _shared(value: T) -> T:
    """Return the first of all equal values: it alone stays in memory."""
    return _known(value)  # type: ignore[return-value]
