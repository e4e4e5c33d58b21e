"""Random small members and gangs for `judge_volcano`: nodes, other pods, HyperNodes, vcjobs.

A case is pure data, equal for equal seeds. The pods of a case demand the label of its nodes.
"""

import random
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

Object = dict[str, Any]

GPU: Final = "nvidia.com/gpu"
CASE: Final = "judge/case"
HOST: Final = "kubernetes.io/hostname"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_TAINT: Final = {"key": "team", "value": "red", "effect": "NoSchedule"}
_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Objects of one member, and the vcjob that asks for room beside them."""

    name: str
    nodes: list[Object]
    pods: list[Object]
    hypernodes: list[Object]
    job: Object
    marks: frozenset[str] = field(default_factory=frozenset)
    """What the case tries, for the report: selector, hard, partitions, ..."""


def case_of(name: str, seed: str, *, namespace: str, topology: bool, minimum: bool = False) -> Case:
    """Return the case of a seed.

    With `topology` it has HyperNodes of two tiers; with `minimum` its gang starts with fewer pods
    than it has.
    """
    rnd = random.Random(seed)
    nodes = [_node(rnd, name, number) for number in range(rnd.randint(2, 12))]
    marks: set[str] = set()
    pods = _others(rnd, nodes, marks, namespace=namespace)
    racks = _racks(rnd, nodes) if topology else []
    job = _job(rnd, name, nodes, pods, marks, namespace=namespace, tiers=bool(racks))
    if minimum:
        marks.add("minimum")
        _lower(random.Random(f"{seed}/minimum"), job["spec"])
    return Case(
        name=name,
        nodes=nodes,
        pods=pods,
        hypernodes=_hypernodes(name, racks),
        job=job,
        marks=frozenset(marks),
    )


def _node(rnd: random.Random, case: str, number: int) -> Object:
    name = f"{case}-n{number}"
    gpus = rnd.choice([0, 1, 2, 4, 4, 8, 8, 8])
    amounts = {
        GPU: str(gpus),
        "cpu": str(rnd.choice([8, 16, 32, 64])),
        "memory": f"{rnd.choice([64, 128, 256])}Gi",
        "pods": str(rnd.choice([4, 110, 110, 110])),
    }
    labels = {
        CASE: case,
        HOST: name,
        "gpu": rnd.choice(["A100", "H100"]),
        "zone": rnd.choice(["z1", "z2"]),
        "generation": str(rnd.randint(1, 4)),
    }
    spec: Object = {"taints": [_TAINT] if rnd.random() < 0.15 else []}
    if rnd.random() < 0.05:
        spec["unschedulable"] = True
    ready = {"type": "Ready", "status": "True"}
    if rnd.random() < 0.04:  # as the kubelet and the node controller show it
        ready["status"] = "False"
        spec["taints"] = [*spec["taints"], _NOT_READY]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def _others(
    rnd: random.Random, nodes: list[Object], marks: set[str], *, namespace: str
) -> list[Object]:
    """Return pods of other workloads, each on a node with room for it."""
    found = []
    for node, number in ((node, n) for node in nodes for n in range(rnd.choice([0, 0, 1, 2]))):
        gpus = rnd.choice([0, 1, 1, 2, 3])
        held = sum(_gpus(pod) for pod in found if pod["spec"]["nodeName"] == _name(node))
        if held + gpus > int(node["status"]["allocatable"][GPU]):
            continue
        spec: Object = {"nodeName": _name(node), "containers": [_container(gpus, 1)]}
        if rnd.random() < 0.1:
            marks.add("anti-affinity of others")
            spec["affinity"] = {"podAntiAffinity": {_REQUIRED: [_apart({"app": "a"})]}}
        labels = {"app": rnd.choice(["web", "web", "a"])}
        metadata = {"name": f"{_name(node)}-p{number}", "namespace": namespace, "labels": labels}
        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return found


def _racks(rnd: random.Random, nodes: list[Object]) -> list[list[str]]:
    names, racks = [_name(node) for node in nodes], []
    while names:
        size = rnd.randint(1, 4)
        racks.append(names[:size])
        names = names[size:]
    return racks


def _hypernodes(case: str, racks: list[list[str]]) -> list[Object]:
    if not racks:
        return []
    names = [f"{case}-r{number}" for number in range(len(racks))]
    found = [_hypernode(name, 1, "Node", rack) for name, rack in zip(names, racks, strict=True)]
    return [*found, _hypernode(f"{case}-spine", 2, "HyperNode", names)]


def _hypernode(name: str, tier: int, kind: str, members: list[str]) -> Object:
    exact = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for each in members]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": exact},
    }


def _job(
    rnd: random.Random,
    case: str,
    nodes: list[Object],
    pods: list[Object],
    marks: set[str],
    *,
    namespace: str,
    tiers: bool,
) -> Object:
    """Return a vcjob that asks for a share of the free GPUs which is often just too large."""
    ready = [node for node in nodes if not node["spec"].get("unschedulable")]
    free = sum(int(node["status"]["allocatable"][GPU]) for node in ready) - sum(map(_gpus, pods))
    aim, number = max(1, round(free * rnd.uniform(0.2, 1.0))), count()
    tasks: list[Object] = []
    for _ in range(rnd.choice([1, 1, 2, 2, 3])):
        gpus = rnd.choice([1, 1, 2, 2, 4, 8])
        replicas = max(1, min(8, aim // gpus))
        aim = max(0, aim - gpus * replicas)
        if tasks and rnd.random() < 0.3:
            gpus, replicas = 0, 1
        tasks.append(_task(rnd, case, f"t{next(number)}", replicas, gpus, marks, tiers=tiers))
    spec: Object = {
        "schedulerName": "volcano",
        "queue": "default",
        "minAvailable": sum(task["replicas"] for task in tasks),
        "tasks": tasks,
    }
    if tiers and rnd.random() < 0.6:
        mode = rnd.choice(["hard", "hard", "soft"])
        marks.add(mode)
        spec["networkTopology"] = {"mode": mode, "highestTierAllowed": rnd.choice([1, 1, 2])}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": case, "namespace": namespace},
        "spec": spec,
    }


def _task(
    rnd: random.Random,
    case: str,
    name: str,
    replicas: int,
    gpus: int,
    marks: set[str],
    *,
    tiers: bool,
) -> Object:
    spec: Object = {
        "restartPolicy": "Never",
        "nodeSelector": {CASE: case},
        "containers": [_container(gpus, rnd.choice([1, 1, 2, 4]))],
    }
    affinity: Object = {}
    if rnd.random() < 0.25:
        marks.add("selector")
        spec["nodeSelector"]["gpu"] = rnd.choice(["A100", "H100"])
    if rnd.random() < 0.15:
        marks.add("affinity")
        affinity["nodeAffinity"] = {_REQUIRED: {"nodeSelectorTerms": [_term(rnd)]}}
    if rnd.random() < 0.15:
        marks.add("preferred")
        wish = {"weight": rnd.randint(1, 100), "preference": _term(rnd)}
        affinity.setdefault("nodeAffinity", {})[_PREFERRED] = [wish]
    if rnd.random() < 0.1:
        marks.add("anti-affinity")
        affinity["podAntiAffinity"] = {_REQUIRED: [_apart({"app": "a"})]}
    if rnd.random() < 0.25:
        marks.add("toleration")
        spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
    if affinity:
        spec["affinity"] = affinity
    task: Object = {
        "name": name,
        "replicas": replicas,
        "template": {"metadata": {"labels": {"app": rnd.choice(["a", "b"])}}, "spec": spec},
    }
    sizes = [size for size in (2, 3, 4) if replicas % size == 0]
    if tiers and sizes and rnd.random() < 0.4:
        marks.add("partitions")
        size = rnd.choice(sizes)
        task["partitionPolicy"] = {
            "totalPartitions": replicas // size,
            "partitionSize": size,
            "minPartitions": replicas // size,
            "networkTopology": {"mode": "hard", "highestTierAllowed": rnd.choice([1, 1, 2])},
        }
    return task


def _lower(rnd: random.Random, spec: Object) -> None:
    """Let a vcjob, and most of its tasks, start with fewer pods than they have."""
    for task in spec["tasks"]:
        if rnd.random() < 0.7 and "partitionPolicy" not in task:
            task["minAvailable"] = rnd.randint(0, task["replicas"])
        else:
            task["minAvailable"] = task["replicas"]
    least = max(1, sum(task["minAvailable"] for task in spec["tasks"]))
    spec["minAvailable"] = rnd.choice([least, least, rnd.randint(least, spec["minAvailable"])])


def _term(rnd: random.Random) -> Object:
    return {
        "matchExpressions": [
            rnd.choice(
                [
                    {"key": "zone", "operator": "In", "values": [rnd.choice(["z1", "z2"])]},
                    {"key": "gpu", "operator": "NotIn", "values": ["A100"]},
                    {"key": "generation", "operator": "Gt", "values": [str(rnd.randint(0, 3))]},
                    {"key": "generation", "operator": "Lt", "values": [str(rnd.randint(2, 5))]},
                ]
            )
        ]
    }


def _apart(labels: dict[str, str]) -> Object:
    return {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}


def _container(gpus: int, cpu: int) -> Object:
    amounts = {"cpu": str(cpu), "memory": "1Gi"} | ({GPU: str(gpus)} if gpus else {})
    return {"name": "main", "image": "none", "resources": {"limits": amounts, "requests": amounts}}


def _gpus(pod: Object) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["limits"].get(GPU, 0))


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])
