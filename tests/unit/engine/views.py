"""Views of members for tests: nodes with GPUs, the pods on them, and HyperNodes."""

from collections.abc import Iterable, Mapping

from hyperjob_engine.expansion.expand import demand_of, items_of
from hyperjob_engine.model.members import (
    Apart,
    HyperNode,
    MemberNode,
    MemberView,
    NodeState,
    PodHeld,
    Taint,
)
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.capacity import less
from hyperjob_engine.placement.ground import ground_of
from hyperjob_engine.resources import Resources, parse_resources, subtract, total
from tests.unit.engine.builders import GPU, Object


def held(
    name: str,
    gpus: int = 1,
    *,
    cpu: int = 0,
    job: str = "",
    ending: bool = False,
    labels: Mapping[str, str] | None = None,
    apart: tuple[Apart, ...] = (),
) -> PodHeld:
    return PodHeld(
        namespace="ns",
        name=name,
        node="",
        request=parse_resources({GPU: gpus, "cpu": cpu, "pods": 1}),
        job=job,
        ending=ending,
        labels=tuple(sorted((labels or {}).items())),
        apart=apart,
    )


def node(
    name: str,
    gpus: int = 8,
    *pods: PodHeld,
    cpu: int = 64,
    room: int = 110,
    state: NodeState = NodeState.READY,
    labels: Mapping[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
) -> MemberNode:
    allocatable = parse_resources({GPU: gpus, "cpu": cpu, "pods": room})
    return MemberNode(
        name=name,
        state=state,
        allocatable=allocatable,
        free=subtract(allocatable, total(pod.request for pod in pods)),
        labels=tuple(sorted((labels or {}).items())),
        taints=taints,
        pods=pods,
    )


def view(
    nodes: Iterable[MemberNode],
    *waiting: PodHeld,
    tiers: Mapping[str, tuple[int, Iterable[str]]] | None = None,
) -> MemberView:
    domains = (
        HyperNode(name, tier, frozenset(names)) for name, (tier, names) in (tiers or {}).items()
    )
    return MemberView(1, tuple(nodes), waiting, tuple(domains))


def seen(shown: MemberView, *reserved: PlacementRequest, name: str = "a") -> Cluster:
    """The cluster of a view, as the controller would see it."""
    whole: Resources = total(each.allocatable for each in shown.nodes)
    found = Cluster(
        name=name,
        usable=True,
        trouble=None,
        free=ground_of(name, shown).free,
        allocatable=whole,
        view=shown,
    )
    return less(found, reserved) if reserved else found


def task(pods: int, gpus: int, *, cpu: int = 0, name: str = "worker", **spec: object) -> Object:
    requests = {GPU: str(gpus)} if gpus else {}
    requests |= {"cpu": str(cpu)} if cpu else {}
    labels = spec.pop("labels", None)
    partitions = spec.pop("partitions", None)
    container = {"name": "c", "resources": {"limits": requests}, "ports": spec.pop("ports", [])}
    found: Object = {
        "name": name,
        "replicas": pods,
        "template": {
            "metadata": {"labels": labels} if labels else {},
            "spec": {"containers": [container], **spec},
        },
    }
    return found | ({"partitionPolicy": partitions} if partitions else {})


def job(*tasks: Object, name: str = "j", **fields: object) -> PlacementRequest:
    """The request of a sub-job with these tasks."""
    template: Object = {"tasks": list(tasks), **fields}
    return PlacementRequest(
        name=name, group="g", demand=demand_of(template), pods=items_of(template)
    )
