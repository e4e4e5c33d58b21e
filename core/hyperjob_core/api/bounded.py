"""Maxima for every list and map of a schema, and descriptions of the fields of pods.

The maxima bound the cost of a validation. A maximum of the type itself stays. The others are far
beyond any real job; Kubernetes has none. The CRD has no room for Kubernetes' own descriptions: each
field of a pod names the command that prints its own.
"""

from collections.abc import Mapping
from typing import Final

from hyperjob_core.api.limits import MAX_PODS, MAX_TASKS
from hyperjob_core.api.meta import Object

MAX_ITEMS: Final = 1024
"""The default maximum of items of a list and of entries of a map."""
_MAX_ITEMS: Final[Mapping[str, int]] = {
    "args": 16384,
    "command": 16384,
    "containers": 64,
    "ephemeralContainers": 64,
    "events": 64,
    "initContainers": 64,
    "policies": 64,
    "tasks": MAX_TASKS,
    "tolerations": 256,
    "topologySpreadConstraints": 64,
    "volumeMounts": 512,
    "volumes": 512,
}
"""Maxima of lists by the name of the field."""
_MAX_PROPERTIES: Final[Mapping[str, int]] = {
    "limits": 64,
    "overhead": 64,
    "plugins": 64,
    "requests": 64,
}
"""Maxima of maps by the name of the field."""
_EXPLAINED: Final[Mapping[tuple[str, ...], str]] = {
    ("replicatedJobs", "templateSpec", "tasks", "template"): "pod",
    ("replicatedJobs", "templateSpec", "volumes", "volumeClaim"): "pvc.spec",
}
"""The fields of Kubernetes' own types, and what `kubectl explain` calls them."""
_PODS_OF_TASK: Final = ("tasks", "replicas")


def bounded(node: Object, *path: str) -> Object:
    """Return the schema at `path` with a maximum for each list and map at or below it."""
    made = dict(node)
    name = path[-1] if path else ""
    if "properties" in node:
        made["properties"] = {
            key: _explained(*path, key) | bounded(child, *path, key)
            for key, child in node["properties"].items()
        }
    if isinstance(node.get("additionalProperties"), dict):
        made["additionalProperties"] = bounded(node["additionalProperties"], *path)
        made.setdefault("maxProperties", _MAX_PROPERTIES.get(name, MAX_ITEMS))
    if node.get("type") == "array":
        made["items"] = bounded(node["items"], *path)
        made.setdefault("maxItems", _MAX_ITEMS.get(name, MAX_ITEMS))
    if path[-2:] == _PODS_OF_TASK:
        made["maximum"] = MAX_PODS
    return made


def _explained(*path: str) -> Object:
    """Return the description of a field that Kubernetes explains; empty for another field."""
    kind = _EXPLAINED.get(path[:4])
    return {"description": f"See: kubectl explain {'.'.join((kind, *path[4:]))}"} if kind else {}
