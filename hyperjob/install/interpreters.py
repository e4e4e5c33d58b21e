"""The ResourceInterpreterCustomizations: what Karmada should know about a vcjob and a Queue.

Operations that are left out fall through to Karmada's own: for a vcjob its reflection of the whole
status and its health (1.16 and later), for a Queue the status as it is. There is no replicaRevision
and there must never be one: with the gate MultiplePodTemplatesScheduling it would be called with
zero replicas, and the member would get a job without pods.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.install.objects import Item, Part, labelled
from hyperjob.kube.resources import QUEUES, RESOURCE_INTERPRETERS, VCJOBS, Resource

VCJOB_NAME: Final = "hyperjob-vcjob"
QUEUE_NAME: Final = "hyperjob-queue"

SCRIPTS: Final[Mapping[str, Mapping[str, str]]] = {
    VCJOB_NAME: {
        "replicaResource": "vcjob_replica_resource.lua",
        "dependencyInterpretation": "vcjob_dependency_interpretation.lua",
        "retention": "vcjob_retention.lua",
    },
    QUEUE_NAME: {
        "retention": "queue_retention.lua",
        "statusAggregation": "queue_status_aggregation.lua",
    },
}
# What Volcano Global's own manifests are called (docs/deploy of Volcano Global 0.3).
VOLCANO_GLOBAL: Final = frozenset({"queue-configuration", "vcjob-configuration"})
_TARGETS: Final[Mapping[str, Resource]] = {VCJOB_NAME: VCJOBS, QUEUE_NAME: QUEUES}

# Karmada asks every customization for dependencies, and for all else just one.
_SHARED: Final = frozenset({"dependencyInterpretation"})


@dataclass(frozen=True, slots=True)
class Clash:
    """A foreign customization that defines operations which ours defines too."""

    name: str
    target: str
    operations: tuple[str, ...]


def script(name: str) -> str:
    """Read a Lua script of this package."""
    return (files("hyperjob.install") / "lua" / name).read_text(encoding="utf-8")


def interpreters() -> list[Item]:
    """Build the customizations."""
    return [
        Item(
            part=Part.INTERPRETERS,
            resource=RESOURCE_INTERPRETERS,
            object=labelled(_customization(name), component="interpreter"),
        )
        for name in SCRIPTS
    ]


def clashes(live: Iterable[Object]) -> list[Clash]:
    """Find what keeps ours out: Karmada's webhook refuses a second script for one operation."""
    found = []
    for each in live:
        if each["metadata"]["name"] in SCRIPTS:
            continue
        defined = operations(each)
        for name, target in _TARGETS.items():
            if not targets(each, target):
                continue
            both = [op for op in SCRIPTS[name] if op in defined and op not in _SHARED]
            if both:
                found.append(Clash(each["metadata"]["name"], target.kind, tuple(both)))
    return found


def targets(customization: Object, resource: Resource) -> bool:
    """Return whether a customization is about a resource's kind."""
    target = (customization.get("spec") or {}).get("target") or {}
    return (target.get("apiVersion"), target.get("kind")) == (resource.api_version, resource.kind)


def operations(customization: Object) -> frozenset[str]:
    """Return the operations that a customization defines."""
    defined = (customization.get("spec") or {}).get("customizations") or {}
    return frozenset(key for key, rule in defined.items() if (rule or {}).get("luaScript"))


def _customization(name: str) -> Object:
    target = _TARGETS[name]
    return {
        "apiVersion": RESOURCE_INTERPRETERS.api_version,
        "kind": RESOURCE_INTERPRETERS.kind,
        "metadata": {"name": name},
        "spec": {
            "target": {"apiVersion": target.api_version, "kind": target.kind},
            "customizations": {
                operation: {"luaScript": script(file)} for operation, file in SCRIPTS[name].items()
            },
        },
    }
