"""Custom resource definitions: from a stored definition to served resources.

The real server's controllers accept names and establish a definition a moment after it is created;
here it happens in the same write. A definition is refused where what the server compiles of it does
not compile; names, scope and the soundness of schemas are not judged.
"""

from collections.abc import Iterator

from pydantic_core import SchemaError

from hyperjob_core.api import field
from hyperjob_core.api.field import SPEC, FieldError
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.cel import CelError
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.printing import (
    AGE_COLUMN,
    NAME_COLUMN,
    Column,
    JSONPath,
    JSONPathError,
    custom_column,
)
from hyperjob_sandbox.apiserver.schema.scale import Scale
from hyperjob_sandbox.apiserver.schema.structural import StructuralSchema
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.apiserver.state.resources import (
    CUSTOM_VERBS,
    ResourceInfo,
    Subresource,
)
from hyperjob_sandbox.apiserver.state.store import Change, GroupResource

DEFINITIONS: GroupResource = ("apiextensions.k8s.io", "customresourcedefinitions")
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_CONDITIONS = {
    "NamesAccepted": {"reason": "NoConflicts", "message": "no conflicts found"},
    "Established": {
        "reason": "InitialNamesAccepted",
        "message": "the initial names have been accepted",
    },
}


def accept(definition: Object) -> None:
    """Write the status that the naming and establishing controllers would write."""
    spec, meta = definition["spec"], definition["metadata"]
    if not meta.get("deletionTimestamp") and FINALIZER not in (meta.get("finalizers") or ()):
        meta["finalizers"] = [*(meta.get("finalizers") or ()), FINALIZER]
    status = definition.setdefault("status", {})
    status["conditions"] = status.get("conditions") or [
        {"type": kind, "status": "True", "lastTransitionTime": wire_now(), **said}
        for kind, said in _CONDITIONS.items()
    ]
    status["acceptedNames"] = dict(spec["names"])
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    status["storedVersions"] = list(dict.fromkeys([*status.get("storedVersions", ()), stored]))


def follow(core: Core) -> None:
    """Serve what definitions say, from now on."""

    def listener(resource: GroupResource, change: Change) -> None:
        if resource != DEFINITIONS:
            return
        spec = change.now.obj["spec"]
        if change.type != "DELETED":
            core.registry.add(served(change.now.obj))
        else:
            core.registry.remove(spec["group"], spec["names"]["plural"])

    core.store.subscribe(listener)


def served(definition: Object) -> ResourceInfo:
    """Give the resource that a definition declares, in the version that is stored."""
    spec, names = definition["spec"], definition["spec"]["names"]
    version = next(version for version in spec["versions"] if version.get("storage"))
    declared = version.get("subresources") or {}
    subresources: dict[str, Subresource] = {}
    if "status" in declared:
        subresources["status"] = Subresource(names["kind"])
    if scale := declared.get("scale"):
        subresources["scale"] = Subresource("Scale", "autoscaling", "v1")
    going = definition["metadata"].get("deletionTimestamp")
    return ResourceInfo(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        list_kind=names.get("listKind") or "",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=tuple(verb for verb in CUSTOM_VERBS if not (going and verb == "create")),
        subresources=subresources,
        columns=_columns(version),
        generation=True,
        scale=Scale.from_object(scale) if scale else None,
        schema=StructuralSchema.build(version["schema"]["openAPIV3Schema"]),
    )


def _columns(version: Object) -> tuple[Column, ...]:
    declared = version.get("additionalPrinterColumns")
    own = map(custom_column, declared) if declared else (AGE_COLUMN,)
    return (NAME_COLUMN, *own)


def validate_definition(definition: Object) -> Iterator[FieldError]:
    """Yield what is wrong with the versions of a definition."""
    at = SPEC.child("versions")
    versions = (definition.get("spec") or {}).get("versions") or ()
    if sum(1 for version in versions if version.get("storage")) != 1:
        detail = "must have exactly one version marked as storage version"
        yield field.invalid(at, field.OMIT, detail)
    for i, version in enumerate(versions):
        below = at.index(i).child("schema", "openAPIV3Schema")
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not schema:
            yield field.required(below)
            continue
        try:
            StructuralSchema.build(schema)
        except (CelError, SchemaError) as error:
            yield field.invalid(below, field.OMIT, str(error))
        for j, column in enumerate(version.get("additionalPrinterColumns") or ()):
            path = column.get("jsonPath") or ""
            try:
                JSONPath.compile(path)
            except JSONPathError as error:
                columns = at.index(i).child("additionalPrinterColumns")
                yield field.invalid(columns.index(j).child("JSONPath"), path, str(error))


def validate(obj: Object, resource: ResourceInfo, subresource: str) -> list[FieldError]:
    """Return what is wrong with an object by its kind's own rules."""
    if resource.storage == DEFINITIONS and not subresource:
        return list(validate_definition(obj))
    return []


def complete(obj: Object, resource: ResourceInfo) -> None:
    """Complete a new or changed object that is found valid."""
    if resource.storage == DEFINITIONS:
        accept(obj)
