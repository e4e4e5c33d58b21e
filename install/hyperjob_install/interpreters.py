"""The ResourceInterpreterCustomizations of HyperJob for vcjobs and Queues.

For operations without a script Karmada uses its own interpreter: for a vcjob the reflection of the
whole status and the health (1.16 and later), for a Queue the unchanged status. The customizations
must not have replicaRevision: with the feature gate MultiplePodTemplatesScheduling Karmada calls
it with zero replicas, and the member would get a job without pods.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import QUEUES, RESOURCE_INTERPRETERS, VCJOBS, Resource
from hyperjob_install.objects import Component, Item, new_item

VCJOB_NAME: Final = "hyperjob-vcjob"
QUEUE_NAME: Final = "hyperjob-queue"

SCRIPTS: Final[Mapping[str, Mapping[str, str]]] = {
    VCJOB_NAME: {
        "replicaResource": "vcjob_requests.lua",
        "componentResource": "vcjob_requests.lua",
        "dependencyInterpretation": "vcjob_dependency_interpretation.lua",
        "retention": "vcjob_retention.lua",
    },
    QUEUE_NAME: {
        "retention": "queue_retention.lua",
        "statusAggregation": "queue_status_aggregation.lua",
    },
}
# The names in Volcano Global's own manifests (docs/deploy of Volcano Global 0.3).
VOLCANO_GLOBAL: Final = frozenset({"queue-configuration", "vcjob-configuration"})
_TARGETS: Final[Mapping[str, Resource]] = {VCJOB_NAME: VCJOBS, QUEUE_NAME: QUEUES}

# Karmada runs the dependency scripts of all customizations, and one script for other operations.
_SHARED: Final = frozenset({"dependencyInterpretation"})


@dataclass(frozen=True, slots=True)
class Clash:
    """A customization of another owner with operations that HyperJob's defines too."""

    name: str
    target: str
    operations: tuple[str, ...]


def script(name: str) -> str:
    """Read a Lua script of this package."""
    return (files("hyperjob_install") / "lua" / name).read_text(encoding="utf-8")


def interpreters() -> list[Item]:
    """Return the customizations."""
    return [
        new_item(
            RESOURCE_INTERPRETERS,
            name,
            {"spec": _spec(name)},
            part=Component.INTERPRETERS,
            component="interpreter",
        )
        for name in SCRIPTS
    ]


def clashes(live: Iterable[Object]) -> list[Clash]:
    """Return the customizations for which Karmada's webhook refuses HyperJob's.

    The webhook refuses a second script for one operation of a kind.
    """
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
    """Return whether the target of a customization is a resource's kind."""
    target = (customization.get("spec") or {}).get("target") or {}
    return (target.get("apiVersion"), target.get("kind")) == (resource.api_version, resource.kind)


def operations(customization: Object) -> frozenset[str]:
    """Return the operations that a customization defines."""
    defined = (customization.get("spec") or {}).get("customizations") or {}
    return frozenset(key for key, rule in defined.items() if (rule or {}).get("luaScript"))


def _spec(name: str) -> Object:
    target = _TARGETS[name]
    return {
        "target": target.head,
        "customizations": {
            operation: {"luaScript": script(file)} for operation, file in SCRIPTS[name].items()
        },
    }
