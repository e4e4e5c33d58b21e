"""Custom resource definitions: from a stored definition to served resources.

The real server's controllers accept names and establish a definition a moment after it is created;
here it happens in the same write.
"""

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.core.core import Core
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.printing.cells import custom_column
from hyperjob_sandbox.apiserver.printing.columns import AGE_COLUMN, NAME_COLUMN, Column
from hyperjob_sandbox.apiserver.schema.schemas import CustomSchema
from hyperjob_sandbox.apiserver.state.clock import now
from hyperjob_sandbox.apiserver.state.resources import (
    CUSTOM_VERBS,
    Registry,
    ResourceInfo,
    Subresource,
)
from hyperjob_sandbox.apiserver.state.store import Change, GroupResource

DEFINITIONS: GroupResource = ("apiextensions.k8s.io", "customresourcedefinitions")
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def accept(definition: Object, registry: Registry) -> None:
    """Write the status that the naming and establishing controllers would write."""
    spec = definition["spec"]
    meta = definition["metadata"]
    if not meta.get("deletionTimestamp") and FINALIZER not in (meta.get("finalizers") or ()):
        meta["finalizers"] = [*(meta.get("finalizers") or ()), FINALIZER]
    taken = _taken_name(definition, registry)
    status = definition.setdefault("status", {})
    moment = now()
    if taken:
        conditions = [_condition("NamesAccepted", "False", taken[0], taken[1], moment)]
        conditions.append(
            _condition("Established", "False", "NotAccepted", "not all names are accepted", moment)
        )
    else:
        conditions = [
            _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found", moment),
            _condition(
                "Established",
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
                moment,
            ),
        ]
    known = {c["type"]: c for c in status.get("conditions") or []}
    for condition in conditions:
        before = known.get(condition["type"])
        if before is None or before["status"] != condition["status"]:
            known[condition["type"]] = condition
    status["conditions"] = list(known.values())
    status["acceptedNames"] = dict(spec["names"]) if not taken else {"plural": "", "kind": ""}
    stored = list(status.get("storedVersions") or [])
    stored += [v["name"] for v in spec["versions"] if v.get("storage") and v["name"] not in stored]
    status["storedVersions"] = stored


def follow(core: Core) -> None:
    """Serve what definitions say, from now on."""

    def listener(resource: GroupResource, change: Change) -> None:
        if resource != DEFINITIONS:
            return
        spec = change.now.obj["spec"]
        core.registry.remove(spec["group"], spec["names"]["plural"])
        if change.type != "DELETED" and is_established(change.now.obj):
            for info in served(change.now.obj):
                core.registry.add(info)

    core.store.subscribe(listener)


def is_established(definition: Object) -> bool:
    """Tell whether a definition's resources are served."""
    return any(
        condition["type"] == "Established" and condition["status"] == "True"
        for condition in (definition.get("status") or {}).get("conditions") or []
    )


def served(definition: Object) -> list[ResourceInfo]:
    """Give the resources that a definition declares, one for each served version."""
    spec = definition["spec"]
    storage_version = next(v["name"] for v in spec["versions"] if v.get("storage"))
    verbs: tuple[str, ...] = CUSTOM_VERBS
    if definition["metadata"].get("deletionTimestamp"):
        verbs = tuple(verb for verb in verbs if verb != "create")
    return [
        _resource(spec, version, storage_version, verbs)
        for version in spec["versions"]
        if version.get("served")
    ]


def _resource(
    spec: Object,
    version: Object,
    storage_version: str,
    verbs: tuple[str, ...],
) -> ResourceInfo:
    names = spec["names"]
    subresources: dict[str, Subresource] = {}
    declared = version.get("subresources") or {}
    if "status" in declared:
        subresources["status"] = Subresource(names["kind"])
    if declared.get("scale"):
        subresources["scale"] = Subresource("Scale", "autoscaling", "v1")
    schema = CustomSchema.build(version)
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
        verbs=verbs,
        subresources=subresources,
        storage=(spec["group"], names["plural"]),
        storage_version=storage_version,
        columns=_columns(version),
        generation=True,
        scale=schema.scale,
        schema=schema,
        selectable=tuple(
            found["jsonPath"].lstrip(".") for found in version.get("selectableFields") or ()
        ),
    )


def _columns(version: Object) -> tuple[Column, ...]:
    declared = version.get("additionalPrinterColumns")
    own = map(custom_column, declared) if declared else (AGE_COLUMN,)
    return (NAME_COLUMN, *own)


def _taken_name(definition: Object, registry: Registry) -> tuple[str, str] | None:
    """Give reason and message when another resource of the group has one of the names."""
    spec = definition["spec"]
    names = spec["names"]
    wanted = {names["plural"], names.get("singular"), *(names.get("shortNames") or ())}
    for version in registry.versions(spec["group"]):
        for other in registry.resources(spec["group"], version):
            if other.plural == names["plural"]:
                continue
            used = {other.plural, other.singular, *other.short_names}
            for name in sorted(filter(None, wanted & used)):
                part = "Plural" if name == names["plural"] else "Singular"
                part = "ShortNames" if name in (names.get("shortNames") or ()) else part
                return f"{part}Conflict", f'"{name}" is already in use'
            if other.kind == names["kind"]:
                return "KindConflict", f'"{other.kind}" is already in use'
    return None


def _condition(type_: str, status: str, reason: str, message: str, moment: str) -> dict[str, Json]:
    return {
        "type": type_,
        "status": status,
        "lastTransitionTime": moment,
        "reason": reason,
        "message": message,
    }
