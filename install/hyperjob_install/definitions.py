"""The CustomResourceDefinitions of the HyperJob, and stand-ins for Volcano's.

The stand-ins never replace Volcano's own CRDs: `install` creates them in a Karmada API server
without Volcano's CRDs, and they accept the fields and values of every Volcano release.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.schema import hyperjob_crd, volcano_crds
from hyperjob_core.kube.resources import COMMANDS, CRDS, HYPERJOBS, QUEUES, VCJOBS, Resource
from hyperjob_install.objects import Component, Item, labelled

VOLCANO: Final = (VCJOBS, QUEUES, COMMANDS)
_WITHIN_PODS: Final = frozenset({"template", "volumeClaim"})

# A newer Volcano may widen these bounds. Types, required fields and defaults stay.
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
    """Return the CRD of the HyperJob and the stand-ins for Volcano's CRDs."""
    ours = Item(
        part=Component.CRDS, resource=CRDS, object=labelled(hyperjob_crd(), component="api")
    )
    return [ours, *(_stand_in(resource) for resource in VOLCANO)]


def schema_of(definition: Object, version: str) -> Object:
    """Return the schema of a version; empty when the CRD has no such version or schema."""
    for each in definition["spec"].get("versions") or []:
        if each.get("name") == version:
            return dict((each.get("schema") or {}).get("openAPIV3Schema") or {})
    return {}


def lost_fields(live: Object) -> list[str]:
    """Return the fields of the installed HyperJob CRD that this release's CRD does not have.

    With this release's CRD, HyperJobs would lose these fields at their next write.
    """
    ours = _known_fields(HYPERJOBS)
    theirs = dict.fromkeys(_fields(schema_of(live, HYPERJOBS.version)))
    lost = [path for path in theirs if path not in ours]
    # A lost parent includes its children.
    return [path for path in lost if path.rpartition(".")[0] not in lost]


def missing_fields(live: Object, resource: Resource) -> list[str]:
    """Return the fields of this release's CRD of a resource that the installed CRD prunes.

    The result has no fields of pod templates: each Kubernetes release adds fields to them.
    """
    known = schema_of(live, resource.version)
    missing = [
        path
        for path in _known_fields(resource)
        if not _keeps(known, path.split(".")) and not _WITHIN_PODS.intersection(path.split("."))
    ]
    return [path for path in missing if path.rpartition(".")[0] not in missing]


def permissive(definition: Object) -> Object:
    """Return a CRD that preserves unknown fields and sets no bounds for values."""
    versions = [
        {**each, "schema": {"openAPIV3Schema": _permit(each["schema"]["openAPIV3Schema"])}}
        for each in definition["spec"]["versions"]
    ]
    return {**definition, "spec": {**definition["spec"], "versions": versions}}


def _stand_in(resource: Resource) -> Item:
    definition = permissive(volcano_crds()[resource.group_resource])
    return Item(
        part=Component.VOLCANO_CRDS,
        resource=CRDS,
        object=labelled(definition, component="api"),
        only_where_missing=True,
    )


@cache
def _known_fields(resource: Resource) -> Mapping[str, None]:
    """Return the paths of all fields of this release's CRD of a resource, in order."""
    ours = hyperjob_crd() if resource is HYPERJOBS else volcano_crds()[resource.group_resource]
    return dict.fromkeys(_fields(schema_of(ours, resource.version)))


def _permit(schema: Object, *, root: bool = True) -> Object:
    """Return a schema without bounds that keeps unknown fields below its root."""
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
    """Yield the paths of all fields of a schema; items of lists and maps have no step."""
    for name, child in (schema.get("properties") or {}).items():
        path = f"{at}.{name}" if at else name
        yield path
        yield from _fields(child, path)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            yield from _fields(schema[key], at)


def _keeps(schema: Mapping[str, Any], path: list[str]) -> bool:
    """Return whether a schema keeps the field at `path`, also as an unknown field."""
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
