"""The CustomResourceDefinitions: ours, and stand-ins for Volcano's where it has none.

Volcano's own definitions are never replaced: the stand-ins are for a Karmada API server on which
no installation put them there, and let any Volcano's fields and values pass.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from hyperjob.api.meta import Object
from hyperjob.api.schema import hyperjob_crd
from hyperjob.api.volcanocrds import volcano_crds
from hyperjob.install.objects import Item, Part, labelled
from hyperjob.kube.resources import COMMANDS, CRDS, HYPERJOBS, QUEUES, VCJOBS, Resource

VOLCANO: Final = (VCJOBS, QUEUES, COMMANDS)
_WITHIN_PODS: Final = frozenset({"template", "volumeClaim"})

# What a newer Volcano may widen. Types, required fields and defaults stay.
_BOUNDS: Final = frozenset(
    {
        "enum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "pattern",
        "x-kubernetes-validations",
    }
)


def definitions() -> list[Item]:
    """Build the CRD of the HyperJob and the stand-ins for Volcano's."""
    ours = Item(part=Part.CRDS, resource=CRDS, object=labelled(hyperjob_crd(), component="api"))
    return [ours, *(_stand_in(resource) for resource in VOLCANO)]


def name_of(resource: Resource) -> str:
    """Name the definition of a resource."""
    return resource.group_resource


def schema_of(definition: Object, version: str) -> Object:
    """Return the schema of a version, empty when the definition has none."""
    for each in definition["spec"].get("versions") or []:
        if each.get("name") == version:
            return dict((each.get("schema") or {}).get("openAPIV3Schema") or {})
    return {}


def lost_fields(live: Object) -> list[str]:
    """List the fields that the installed HyperJob definition knows and ours does not.

    HyperJobs that use them would lose them at their next write.
    """
    ours = _known_fields(HYPERJOBS)
    theirs = dict.fromkeys(_fields(schema_of(live, HYPERJOBS.version)))
    lost = [path for path in theirs if path not in ours]
    # A lost parent says it all.
    return [path for path in lost if path.rpartition(".")[0] not in lost]


def missing_fields(live: Object, resource: Resource) -> list[str]:
    """List the fields that our definition of a resource knows and the installed one drops.

    Pod templates are left out: each Kubernetes release adds to them.
    """
    known = schema_of(live, resource.version)
    missing = [
        path
        for path in _known_fields(resource)
        if not _keeps(known, path.split(".")) and not _WITHIN_PODS.intersection(path.split("."))
    ]
    return [path for path in missing if path.rpartition(".")[0] not in missing]


def permissive(definition: Object) -> Object:
    """Return a definition that keeps fields which it does not know and bounds no value."""
    versions = [
        {**each, "schema": {"openAPIV3Schema": _permit(each["schema"]["openAPIV3Schema"])}}
        for each in definition["spec"]["versions"]
    ]
    return {**definition, "spec": {**definition["spec"], "versions": versions}}


def _stand_in(resource: Resource) -> Item:
    definition = permissive(volcano_crds()[name_of(resource)])
    return Item(
        part=Part.VOLCANO_CRDS,
        resource=CRDS,
        object=labelled(definition, component="api"),
        only_where_missing=True,
    )


@cache
def _known_fields(resource: Resource) -> Mapping[str, None]:
    """Return the paths of all fields that our definition of a resource knows, in order."""
    ours = hyperjob_crd() if resource is HYPERJOBS else volcano_crds()[name_of(resource)]
    return dict.fromkeys(_fields(schema_of(ours, resource.version)))


def _permit(schema: Object, *, root: bool = True) -> Object:
    kept = {key: value for key, value in schema.items() if key not in _BOUNDS}
    if "properties" in kept:
        kept["properties"] = {
            name: each if root and name == "metadata" else _permit(each, root=False)
            for name, each in kept["properties"].items()
        }
        if not root:
            kept["x-kubernetes-preserve-unknown-fields"] = True
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), Mapping):
            kept[key] = _permit(kept[key], root=False)
    return kept


def _fields(schema: Mapping[str, Any], at: str = "") -> Iterator[str]:
    for name, child in (schema.get("properties") or {}).items():
        path = f"{at}.{name}" if at else name
        yield path
        yield from _fields(child, path)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            yield from _fields(schema[key], at)


def _keeps(schema: Mapping[str, Any], path: list[str]) -> bool:
    """Return whether a field survives, be it known or not."""
    for name in path:
        while True:
            if schema.get("x-kubernetes-preserve-unknown-fields"):
                return True
            inner = schema.get("items") or schema.get("additionalProperties")
            if "properties" in schema or not isinstance(inner, Mapping):
                break
            schema = inner
        child = (schema.get("properties") or {}).get(name)
        if child is None:
            return False
        schema = child
    return True
