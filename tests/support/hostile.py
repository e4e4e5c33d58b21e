"""Random and hostile objects of members and of Karmada's API server: valid JSON, wrong in all else.

Each is an ordinary object with random mutations or with one part that grows to `size` items. Names
stay names: an API server gives every object one.
"""

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERNODES,
    NODES,
    PODS,
    QUEUES,
    RESOURCE_BINDINGS,
    Resource,
)
from tests.support.reviewfuzz import DOCUMENT, ODD

Object = dict[str, Any]

MOST_BYTES: Final = 1 << 20
"""About what etcd stores of one object."""
_GPU: Final = "nvidia.com/gpu"
_AMOUNTS: Final = (
    *("0", "1", "8", "100m", "1n", "-1", "1e-400", "1E3", "9.3E", "1e18", "1e299", "1e400"),
    "-1e400",
    *("1e999999999", "9" * 400, "0" * 5000 + "1", "1." + "0" * 5000, "NaN", "", "1Gi1Gi", " 1"),
    *(2**63, -(2**63), 1e308, None, [], {}),
)
_TEXTS: Final = (
    *("", "-", "a" * 63, "a" * 253, "-" * 253, "a-" * 126, "." * 253, "/" * 253, "\x00", "\u202e"),
    *("0" * 5000, "{" * 5000, "[" * 5000, "(" * 200, "%s" * 500, "y" * 50_000),
)
_PATTERNS: Final = (
    *("(a+)+$", "(a|a)*$", "(.*)*!", ".?" * 40 + "!", ".*.*N!", ".*" * 20 + "!", "a{1,999}{1,999}"),
    *("(?=(a+))\\1$", "[" * 100, "(" * 99, "x" * 256, "^(([a-z])+.)+[A-Z]([a-z])+$", "\\d+\\d+!"),
    "|",
)
_TIMES: Final = (
    *("2026-01-02T03:04:05Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "", "x", None),
    *("2026-01-02T03:04:05+99:99", "2026-13-45T99:99:99Z", 0, "2" * 5000),
)


def ordinary(resource: Resource, name: str = "x", namespace: str = "wild") -> Object:
    """Return an object as a real API server has it."""
    metadata: Object = {"name": name, "creationTimestamp": "2026-01-02T03:00:00Z", "labels": {}}
    if resource.namespaced:
        metadata["namespace"] = namespace
    return {"metadata": metadata, **copy.deepcopy(_ORDINARY[resource](name))}


def _node(name: str) -> Object:
    return {
        "spec": {"taints": [{"key": "t", "value": "v", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {_GPU: "8", "cpu": "96", "memory": "1Ti", "pods": "110"},
            "conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z"}
            ],
        },
    }


_TERM: Final = {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["H100"]}]}
_CONTAINER: Final = {"name": "main", "resources": {"requests": {_GPU: "1", "cpu": "2"}}}
_STATUS: Final = {
    "name": "main",
    "state": {
        "terminated": {
            "exitCode": 1,
            "reason": "Error",
            "message": "m",
            "startedAt": "2026-01-02T03:04:05Z",
            "finishedAt": "2026-01-02T03:04:06Z",
        }
    },
}
_APART: Final = {"labelSelector": {"matchLabels": {"a": "b"}}}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _pod(name: str) -> Object:
    return {
        "spec": {
            "nodeName": "n-0" if name.endswith("0") else "",
            "containers": [_CONTAINER],
            "initContainers": [],
            "overhead": {},
            "nodeSelector": {"gpu": "H100"},
            "tolerations": [{"key": "t", "operator": "Exists"}],
            "affinity": {
                "nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [_TERM]}},
                "podAntiAffinity": {
                    _REQUIRED: [{"topologyKey": "kubernetes.io/hostname", **_APART}]
                },
            },
            "topologySpreadConstraints": [],
        },
        "status": {
            "phase": "Failed" if name.endswith("7") else "Running",
            "containerStatuses": [_STATUS],
        },
    }


def _hypernode(name: str) -> Object:
    members = [
        {"type": "Node", "selector": {"exactMatch": {"name": "n-0"}}},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "^n-[0-9]$"}}},
        {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "r1"}}}},
        {"type": "HyperNode", "selector": {"exactMatch": {"name": "h-0"}}},
    ]
    return {"spec": {"tier": len(name) % 4, "tierName": "rack", "members": members}}


def _queue(name: str) -> Object:
    return {
        "spec": {
            "parent": "root",
            "weight": 1,
            "priority": 0,
            "reclaimable": True,
            "dequeueStrategy": "traverse",
            "capability": {_GPU: "64", "cpu": "1000"},
            "deserved": {_GPU: "32"},
            "guarantee": {"resource": {_GPU: "0"}},
        },
        "status": {"state": "Open"},
    }


def _cluster(name: str) -> Object:
    apis = [{"groupVersion": "batch.volcano.sh/v1alpha1", "resources": [{"kind": "Job"}]}]
    amounts = {_GPU: "64", "cpu": "1000", "memory": "8Ti", "pods": "1000"}
    return {
        "spec": {"taints": [], "region": "r", "zone": "z", "provider": "p"},
        "status": {
            "apiEnablements": apis,
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}
            ],
            "resourceSummary": {"allocatable": amounts, "allocated": {}, "allocating": {}},
        },
    }


def _binding(name: str) -> Object:
    return {
        "spec": {
            "resource": {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "namespace": "wild",
                "name": name.removesuffix("-job"),
                "uid": "u",
            },
            "replicas": 1,
            "replicaRequirements": {"resourceRequest": {_GPU: "1"}},
            "clusters": [{"name": "m", "replicas": 1}],
            "placement": {"clusterAffinities": [{"affinityName": "a", "clusterNames": ["m"]}]},
            "suspension": {"dispatching": True},
        },
        "status": {
            "conditions": [{"type": "Scheduled", "status": "True"}],
            "aggregatedStatus": [
                {"clusterName": "m", "applied": True, "status": {"state": {"phase": "Running"}}}
            ],
        },
    }


_ORDINARY: Final[Mapping[Resource, Callable[[str], Object]]] = {
    NODES: _node,
    PODS: _pod,
    HYPERNODES: _hypernode,
    QUEUES: _queue,
    CLUSTERS: _cluster,
    RESOURCE_BINDINGS: _binding,
}
KINDS: Final = tuple(_ORDINARY)


def _amounts(size: int) -> Object:
    return {f"r{number}.example/x": str(number) for number in range(size)}


def _labels(size: int) -> dict[str, str]:
    return {f"l{number}": "v" * (number % 60) for number in range(size)}


def _conditions(size: int) -> list[Object]:
    return [{"type": f"T{number}", "status": "True"} for number in range(size)]


Grow = Callable[[Object, int], object]


def _put(path: str, make: Callable[[int], object]) -> Grow:
    """Return what gives the place at a path so many items; a number is an index of a list."""
    *steps, last = (_GPU if step == "GPU" else step for step in path.split("."))

    def grow(obj: Object, size: int) -> None:
        place: Any = obj
        for step in steps:
            place = place[int(step) if step.isdigit() else step]
        place[last] = make(size)

    return grow


def _each(make: Callable[[int], object]) -> Callable[[int], object]:
    return lambda size: [make(number) for number in range(size)]


def _members(**selector: Callable[[int], object]) -> Callable[[int], object]:
    ((kind, make),) = selector.items()
    return _each(lambda n: {"type": "Node", "selector": {kind: make(n)}})


_TERMS = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
_TAINTS = _each(lambda n: {"key": f"t{n}", "effect": "x"})
_ENDED = "status.containerStatuses.0.state.terminated"

GROWING: Final[Mapping[str, tuple[Resource, Grow]]] = {
    "labels of a node": (NODES, _put("metadata.labels", _labels)),
    "resources of a node": (NODES, _put("status.allocatable", _amounts)),
    "taints of a node": (NODES, _put("spec.taints", _TAINTS)),
    "conditions of a node": (NODES, _put("status.conditions", _conditions)),
    "digits of an amount": (NODES, _put("status.allocatable.GPU", lambda n: "9" * (50 * n))),
    "zeros of an amount": (
        NODES,
        _put("status.allocatable.GPU", lambda n: "0." + "0" * (50 * n) + "1"),
    ),
    "labels of a pod": (PODS, _put("metadata.labels", _labels)),
    "annotations of a pod": (PODS, _put("metadata.annotations", _labels)),
    "owners of a pod": (PODS, _put("metadata.ownerReferences", _each(lambda n: {"uid": f"{n}"}))),
    "containers of a pod": (PODS, _put("spec.containers", _each(lambda _: _CONTAINER))),
    "init containers of a pod": (PODS, _put("spec.initContainers", _each(lambda _: _CONTAINER))),
    "sidecars of a pod": (
        PODS,
        _put("spec.initContainers", _each(lambda _: {**_CONTAINER, "restartPolicy": "Always"})),
    ),
    "resources of a pod": (PODS, _put("spec.containers.0.resources.requests", _amounts)),
    "tolerations of a pod": (PODS, _put("spec.tolerations", _each(lambda n: {"key": f"k{n}"}))),
    "node selector of a pod": (PODS, _put("spec.nodeSelector", _labels)),
    "terms of a pod": (PODS, _put(_TERMS, _each(lambda _: _TERM))),
    "expressions of a pod": (
        PODS,
        _put(
            f"{_TERMS}.0.matchExpressions", _each(lambda n: {"key": f"k{n}", "operator": "Exists"})
        ),
    ),
    "values of a pod's expression": (
        PODS,
        _put(f"{_TERMS}.0.matchExpressions.0.values", _each(lambda n: f"v{n}")),
    ),
    "statuses of a pod": (
        PODS,
        _put("status", lambda n: {"phase": "Failed", "containerStatuses": [_STATUS] * n}),
    ),
    "message of a pod": (PODS, _put(f"{_ENDED}.message", lambda n: "\n  File x: " * n)),
    "apart terms of a pod": (
        PODS,
        _put(
            f"spec.affinity.podAntiAffinity.{_REQUIRED}",
            _each(lambda n: {"topologyKey": f"k{n}", **_APART}),
        ),
    ),
    "members of a HyperNode": (
        HYPERNODES,
        _put("spec.members", _members(exactMatch=lambda n: {"name": f"n-{n}"})),
    ),
    "patterns of a HyperNode": (
        HYPERNODES,
        _put("spec.members", _members(regexMatch=lambda n: {"pattern": f"^n-{n}$"})),
    ),
    "label members of a HyperNode": (
        HYPERNODES,
        _put("spec.members", _members(labelMatch=lambda n: {"matchLabels": {"r": f"{n}"}})),
    ),
    "resources of a Queue": (QUEUES, _put("spec.capability", _amounts)),
    "labels of a Queue": (QUEUES, _put("metadata.labels", _labels)),
    "resources of a Cluster": (CLUSTERS, _put("status.resourceSummary.allocatable", _amounts)),
    "use of a Cluster": (
        CLUSTERS,
        _put(
            "status.resourceSummary",
            lambda n: {each: _amounts(n) for each in ("allocatable", "allocated", "allocating")},
        ),
    ),
    "kinds of a Cluster": (
        CLUSTERS,
        _put(
            "status.apiEnablements",
            _each(lambda n: {"groupVersion": f"g{n}/v1", "resources": [{"kind": "Job"}]}),
        ),
    ),
    "conditions of a Cluster": (CLUSTERS, _put("status.conditions", _conditions)),
    "taints of a Cluster": (CLUSTERS, _put("spec.taints", _TAINTS)),
    "clusters of a binding": (
        RESOURCE_BINDINGS,
        _put("spec.clusters", _each(lambda n: {"name": f"c{n}", "replicas": 1})),
    ),
    "statuses of a binding": (
        RESOURCE_BINDINGS,
        _put("status.aggregatedStatus", _each(lambda n: {"clusterName": f"c{n}", "status": {}})),
    ),
    "request of a binding": (
        RESOURCE_BINDINGS,
        _put("spec.replicaRequirements.resourceRequest", _amounts),
    ),
    "conditions of a binding": (RESOURCE_BINDINGS, _put("status.conditions", _conditions)),
}
"""How a part of an ordinary object grows to a number of items."""


def grown(name: str, size: int) -> Object:
    """Return an ordinary object of which one part has `size` items."""
    resource, grow = GROWING[name]
    made = ordinary(resource)
    grow(made, size)
    return made


def hostile(rng: random.Random, resource: Resource, name: str, namespace: str = "wild") -> Object:
    """Return a random object: mutated, with odd values, or with a part that is large."""
    made = ordinary(resource, name, namespace)
    names = [each for each, (of, _) in GROWING.items() if of == resource]
    if rng.random() < 0.3:
        GROWING[rng.choice(names)][1](made, rng.choice((10, 10, 100, 100, 100, 1000, 1000, 5000)))
    _special(rng, resource, made)
    kept = {key: made["metadata"][key] for key in ("name", "namespace") if key in made["metadata"]}
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        rng.choice(DOCUMENT)(rng, made)
    leaves = _leaves(made)
    for holder, key in rng.sample(leaves, k=min(len(leaves), rng.choice((0, 1, 2)))):
        holder[key] = copy.deepcopy(rng.choice((*_AMOUNTS, *_TEXTS, *_TIMES, *ODD)))
    if not isinstance(made.get("metadata"), dict):
        made["metadata"] = {}
    made["metadata"] |= kept
    for field in ("uid", "resourceVersion", "generation", "ownerReferences", "deletionTimestamp"):
        made["metadata"].pop(field, None)
    try:
        written = orjson.dumps([[[[made]]]])
    except TypeError:  # numbers beyond 64 bits, or nested too deep
        return ordinary(resource, name, namespace)
    return made if len(written) <= MOST_BYTES else ordinary(resource, name, namespace)


def _special(rng: random.Random, resource: Resource, made: Object) -> None:
    """Set what is dangerous in the objects of one resource."""
    if resource == HYPERNODES:
        for member in made["spec"]["members"]:
            if "regexMatch" in member["selector"]:
                member["selector"]["regexMatch"]["pattern"] = rng.choice(_PATTERNS)
        made["spec"]["members"] *= rng.choice((1, 1, 10, 300))
        made["spec"]["members"].append(
            {
                "type": "HyperNode",
                "selector": {"exactMatch": {"name": f"h-{rng.randrange(50)}"}},
            }
        )
    elif resource == QUEUES:
        made["spec"]["parent"] = rng.choice(("root", "", "x", f"q{rng.randrange(2000)}"))
        for field in ("capability", "deserved"):
            made["spec"][field][rng.choice((_GPU, "cpu", "x"))] = rng.choice(_AMOUNTS)
    elif resource == CLUSTERS:
        summary = made["status"]["resourceSummary"]
        summary[rng.choice(("allocated", "allocating", "allocatable"))] = {
            rng.choice((_GPU, "cpu", "pods", "x")): rng.choice(_AMOUNTS) for _ in range(3)
        }
    elif resource == PODS and rng.random() < 0.5:
        made["metadata"]["labels"]["volcano.sh/job-name"] = rng.choice(("a", "-" * 63, "h0-t-0"))


def _leaves(node: Any) -> list[tuple[Any, Any]]:
    """Return the holder and the key of up to some hundred scalars."""
    found: list[tuple[Any, Any]] = []
    todo = [node]
    while todo and len(found) < 300:
        each = todo.pop()
        pairs = each.items() if isinstance(each, dict) else enumerate(each)
        for key, value in pairs:
            if isinstance(value, dict | list):
                todo.append(value)
            else:
                found.append((each, key))
    return found
