"""The Clusters of a clusters file as Karmada would report them while nothing runs.

Starts nothing: for questions about placement that need no control plane.
"""

from hyperjob.api.meta import Object
from hyperjob.api.names import VCJOB_API_VERSION, VCJOB_KIND
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.clusters import Cluster, SandboxConfig
from hyperjob_sandbox.karmada.clusterstatus import cluster_status
from hyperjob_sandbox.karmada.controlplane import cluster_object
from hyperjob_sandbox.member.cluster import node_object, node_status

_APIS: list[Object] = [
    {"groupVersion": VCJOB_API_VERSION, "resources": [{"name": "jobs", "kind": VCJOB_KIND}]}
]


def idle_clusters(config: SandboxConfig) -> list[Object]:
    """Return all Clusters, Ready, with nothing allocated."""
    return [_idle(cluster, config) for cluster in config.clusters]


def _idle(cluster: Cluster, config: SandboxConfig) -> Object:
    nodes = [
        {**node_object(f"{cluster.name}-{group.name}-{number + 1}", group), "status": status}
        for group in cluster.nodes
        for status in [node_status(group)]
        for number in range(group.count)
    ]
    raw = cluster_object(cluster, endpoint="", models=config.karmada.resource_models)
    status = cluster_status(raw, version="", apis=_APIS, nodes=nodes, pods=[], now=wire_now())
    return {**raw, "status": status}
