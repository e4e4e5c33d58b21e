"""The nodes of a member, the pods of other workloads on them, and the HyperNodes. Pure."""

import re
from collections.abc import Iterator

from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import Quantity
from hyperjob_core.kube.resources import HYPERNODES, NODES, PODS
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.clusters import Cluster, NodeGroup
from hyperjob_sandbox.objects import new_object


def nodes_of(cluster: Cluster) -> Iterator[Object]:
    """Return the nodes of a member, all of them well."""
    for group in cluster.nodes:
        taints = [taint.model_dump(exclude_defaults=True) for taint in group.taints]
        status = _status(group)
        for number in range(group.count):
            name = f"{cluster.name}-{group.name}-{number + 1}"
            labels = {**node_labels(cluster), "kubernetes.io/hostname": name, **group.labels}
            spec = {"spec": {"taints": taints}} if taints else {}
            yield new_object(NODES, name, labels=labels, **spec, status=status)


def node_labels(cluster: Cluster) -> dict[str, str]:
    """Return the labels that kubelets and the clouds give to nodes."""
    region = cluster.region or cluster.name
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": region,
        "topology.kubernetes.io/zone": cluster.zone or region,
    }


def others_of(cluster: Cluster) -> Iterator[Object]:
    """Return the pods of other workloads, which run from the start and do not end."""
    for group in cluster.nodes:
        requests = {name: str(Quantity.parse(each)) for name, each in sorted(group.others.items())}
        for number in range(group.count if requests else 0):
            node = f"{cluster.name}-{group.name}-{number + 1}"
            container = {"name": "main", "image": "busybox", "resources": {"limits": requests}}
            spec = {"nodeName": node, "containers": [container]}
            status = {"phase": "Running", "startTime": wire_now()}
            made = new_object(PODS, f"{node}-other", labels={"app": "other"}, spec=spec)
            made["metadata"]["namespace"] = "default"
            yield {**made, "status": status}


def hypernodes_of(cluster: Cluster) -> Iterator[Object]:
    """Return the HyperNodes of a member."""
    for each in cluster.hyper_nodes:
        members = [
            {"type": kind, "selector": _selector(name)}
            for kind, names in (("Node", each.nodes), ("HyperNode", each.hyper_nodes))
            for name in names
        ]
        yield new_object(HYPERNODES, each.name, spec={"tier": each.tier, "members": members})


def _selector(name: str) -> Object:
    if "*" not in name:
        return {"exactMatch": {"name": name}}
    parts = (re.escape(part) for part in name.split("*"))
    return {"regexMatch": {"pattern": f"^{'.*'.join(parts)}$"}}


def _status(group: NodeGroup) -> Object:
    amounts = {
        name: str(Quantity.parse(amount)) for name, amount in sorted(group.allocatable.items())
    }
    ready: Object = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": wire_now(),
        "lastTransitionTime": wire_now(),
    }
    return {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
