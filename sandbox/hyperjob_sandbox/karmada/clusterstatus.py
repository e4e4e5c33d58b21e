"""A Cluster as it joins, and what its status says of its nodes, pods and APIs."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import VCJOB_API_VERSION, VCJOB_KIND
from hyperjob_core.api.quantity import NANO
from hyperjob_core.kube.resources import CLUSTERS
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.clusters import Cluster, SandboxConfig
from hyperjob_sandbox.member import resources
from hyperjob_sandbox.member.caches import holds_node
from hyperjob_sandbox.member.nodes import nodes_of, others_of
from hyperjob_sandbox.objects import is_ready, new_object, with_conditions

READY: Final = ("True", "ClusterReady", "cluster is healthy and ready to accept workloads")
UNREACHABLE: Final = ("False", "ClusterNotReachable", "cluster is not reachable")
COMPLETE_APIS: Final = ("True", "Complete", "collected complete APIEnablements from the cluster")

_VCJOBS: Final[list[Object]] = [
    {"groupVersion": VCJOB_API_VERSION, "resources": [{"name": "jobs", "kind": VCJOB_KIND}]}
]
_UNLIMITED: Final = "9223372036854775807"
_CPU_STEPS: Final = ("0", "1", "2", "4", "8", "16", "32", "64", "128", _UNLIMITED)
_MEMORY_STEPS: Final = (
    "0", "4Gi", "16Gi", "32Gi", "64Gi", "128Gi", "256Gi", "512Gi", "1Ti", _UNLIMITED,
)  # fmt: skip


def default_resource_models() -> list[Object]:
    """Return the resource models that a Cluster gets when it joins: cpu and memory, nine grades."""
    return [
        {
            "grade": grade,
            "ranges": [
                {"name": name, "min": steps[grade], "max": steps[grade + 1]}
                for name, steps in (("cpu", _CPU_STEPS), ("memory", _MEMORY_STEPS))
            ],
        }
        for grade in range(len(_CPU_STEPS) - 1)
    ]


def cluster_object(cluster: Cluster, *, endpoint: str, models: bool) -> Object:
    """Return a Cluster as it joins."""
    spec: Object = {"apiEndpoint": endpoint, "syncMode": "Push"}
    spec |= {name: value for name in ("provider", "region") if (value := getattr(cluster, name))}
    if cluster.zone:
        spec["zones"] = [cluster.zone]
    if models:
        spec["resourceModels"] = default_resource_models()
    return new_object(CLUSTERS, cluster.name, labels=dict(cluster.labels), spec=spec)


def idle_clusters(config: SandboxConfig) -> list[Object]:
    """Return the Clusters of a clusters file as Karmada reports them while nothing runs."""
    idle: list[Object] = []
    for cluster in config.clusters:
        raw = cluster_object(cluster, endpoint="", models=config.karmada.resource_models)
        nodes, pods = [*nodes_of(cluster)], [*others_of(cluster)]
        seen: Object = {"version": "", "apis": _VCJOBS, "nodes": nodes, "pods": pods}
        idle.append({**raw, "status": cluster_status(raw, **seen, now=wire_now())})
    return idle


def cluster_status(
    cluster: Object,
    *,
    version: str,
    apis: list[Object],
    nodes: Sequence[Object],
    pods: Sequence[Object],
    now: str,
) -> Object:
    """Return the status of a cluster that answers, with everything collected from it."""
    summary = resource_summary(nodes, pods)
    models: list[Object] = cluster["spec"].get("resourceModels") or []
    if models:
        summary["allocatableModelings"] = _modelings(models, nodes, pods)
    states = {"CompleteAPIEnablements": COMPLETE_APIS, "Ready": READY}
    return {
        **with_conditions(cluster.get("status"), now=now, **states),
        "kubernetesVersion": version,
        "apiEnablements": apis,
        "nodeSummary": {"totalNum": len(nodes), "readyNum": sum(map(is_ready, nodes))},
        "resourceSummary": summary,
    }


def failing_status(cluster: Object, *, now: str) -> Object:
    """Return the status of a cluster that does not answer: all that was collected stays."""
    return with_conditions(cluster.get("status"), now=now, Ready=UNREACHABLE)


def resource_summary(nodes: Iterable[Object], pods: Iterable[Object]) -> Object:
    """Return allocatable, allocated (on nodes) and allocating (waiting) amounts."""
    pods = list(pods)
    waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
    placed = list(filter(holds_node, pods))
    allocatable = resources.total(map(resources.allocatable, nodes))
    summary: Object = {"allocatable": resources.wire(allocatable)}
    for field, group in (("allocated", placed), ("allocating", waiting)):
        amounts = resources.wire(_requested(group))
        if amounts:
            summary[field] = amounts
    return summary


def api_enablements(lists: Iterable[Object]) -> list[Object]:
    """Return `status.apiEnablements` from APIResourceLists, subresources left out."""
    return sorted(
        (
            {
                "groupVersion": each["groupVersion"],
                "resources": [
                    {"name": name, "kind": kind}
                    for name, kind in sorted(
                        {(served["name"], served["kind"]) for served in each.get("resources") or ()}
                    )
                    if "/" not in name
                ],
            }
            for each in lists
        ),
        key=lambda each: each["groupVersion"],
    )


def _requested(pods: Sequence[Object]) -> resources.Amounts:
    amounts = resources.total(resources.pod_requests(pod["spec"]) for pod in pods)
    return resources.total([amounts, {"pods": NANO * len(pods)}])


def _modelings(
    models: list[Object], nodes: Sequence[Object], pods: Iterable[Object]
) -> list[Object]:
    used: dict[str, list[Object]] = defaultdict(list)
    for pod in filter(holds_node, pods):
        used[pod["spec"]["nodeName"]].append(pod)
    counts = {int(model["grade"]): 0 for model in models}
    for node in nodes:
        free = resources.allocatable(node)
        free.subtract(_requested(used[node["metadata"]["name"]]))
        if free["pods"] <= 0:
            break  # Karmada stops at the first full node
        counts[_grade(models, free)] += 1
    return [{"grade": grade, "count": count} for grade, count in counts.items()]


def _grade(models: list[Object], free: resources.Amounts) -> int:
    """Return the highest grade all of whose minima a node reaches."""
    reached = [
        int(model["grade"])
        for model in models
        if all(
            free[name] >= least
            for name, least in resources.parse(
                {each["name"]: each["min"] for each in model["ranges"]}
            ).items()
        )
    ]
    return (reached or [int(models[0]["grade"])])[-1]
