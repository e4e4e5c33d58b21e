"""A member cluster as its own API server shows it: nodes, the pods on them, and HyperNodes.

The controller's reader of members folds lists and watches into these values; placement, the stops
of sub-jobs and `why` read them. Without the reader a `Cluster` has no view, and only the sums of
its resourceSummary count. The values are immutable: a change replaces them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from hyperjob_engine.resources import Resources

Labels = tuple[tuple[str, str], ...]
"""Pairs of key and value, sorted."""


class NodeState(StrEnum):
    """Whether the scheduler of the member may use a node."""

    READY = "Ready"
    CORDONED = "Cordoned"
    NOT_READY = "NotReady"


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node, as Kubernetes defines it."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod, as Kubernetes defines it; empty fields match everything."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Expression:
    """A requirement of a label selector or of node affinity; `field`: of a field of the node."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    field: bool = False


@dataclass(frozen=True, slots=True)
class Apart:
    """A required anti-affinity term of a pod: no matching pod in the same topology domain.

    Empty `expressions` match every pod. Empty `namespaces`: that of the pod; None: all.
    """

    topology_key: str
    expressions: tuple[Expression, ...]
    namespaces: tuple[str, ...] | None = ()


HostPorts = tuple[tuple[str, int, str], ...]
"""Ports of the node that a pod takes: protocol, number, and IP; an empty IP is every one."""


@dataclass(frozen=True, slots=True)
class NodeWants:
    """What a pod demands of its node beside resources.

    `terms` is the required node affinity, of which one term must match as a whole; empty: none is
    required. `labels` are those of the pod itself. No two pods of a node have one of `ports`.
    """

    selector: Labels = ()
    terms: tuple[tuple[Expression, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    apart: tuple[Apart, ...] = ()
    labels: Labels = ()
    ports: HostPorts = ()


ANY_NODE: Final = NodeWants()


@dataclass(frozen=True, slots=True)
class PodHeld:
    """A pod that holds resources of a node, or waits for one (`node` is empty).

    `job` is the name of the vcjob in the member, empty for pods of other workloads. `ending`: the
    pod has a deletionTimestamp. `wants` counts for a pod that waits for a node, without its labels
    and anti-affinity.
    """

    namespace: str
    name: str
    node: str
    request: Resources
    job: str = ""
    ending: bool = False
    labels: Labels = ()
    apart: tuple[Apart, ...] = ()
    ports: HostPorts = ()
    wants: NodeWants = ANY_NODE


@dataclass(frozen=True, slots=True)
class MemberNode:
    """A node with the pods on it; `free` is allocatable minus the requests of these pods.

    It has all names of allocatable, and no other: of a part of a shared device that no node lists
    nothing is known.
    """

    name: str
    state: NodeState
    allocatable: Resources
    free: Resources
    labels: Labels = ()
    taints: tuple[Taint, ...] = ()
    pods: tuple[PodHeld, ...] = ()


@dataclass(frozen=True, slots=True)
class HyperNode:
    """A network domain of a member, as Volcano's HyperNode describes it: its tier and its nodes."""

    name: str
    tier: int
    nodes: frozenset[str]
    tier_name: str = ""


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member at one instant; equal `version`s of one member mean equal content.

    `waiting` are pods without a node. Equal `layout`s mean equal nodes, but for their pods, and
    equal HyperNodes.
    """

    version: int
    nodes: tuple[MemberNode, ...]
    waiting: tuple[PodHeld, ...] = ()
    hypernodes: tuple[HyperNode, ...] = ()
    unresolved: str = ""
    """Why the HyperNodes are not known, and `hypernodes` is empty."""
    jobs: Mapping[str, int] = field(default_factory=dict)
    """The pods that have not ended by vcjob, as namespace/name; a vcjob without pods is absent."""
    layout: int = 0
