"""The types of `metadata`: what the API server drops or cannot read before any rule is asked.

Changes the metadata it is given. Never judges names, labels or owners: that is validation.
"""

from dataclasses import dataclass
from typing import Final

from pydantic_core import SchemaValidator, ValidationError

from hyperjob.api.meta import Object
from hyperjob.api.shape import compile_schema
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.jsonvalue import Json, json_type
from hyperjob_sandbox.apiserver.schema import pruning
from hyperjob_sandbox.apiserver.schema.checks import with_checks
from hyperjob_sandbox.apiserver.schema.schemanode import Node


@dataclass(frozen=True, slots=True)
class _Type:
    """A Go type with the schema that says the same."""

    go: str
    schema: Object


_STRING: Final = _Type("string", {"type": "string"})
_INT64: Final = _Type("int64", {"type": "integer", "format": "int64"})
_BOOL: Final = _Type("bool", {"type": "boolean"})
_TIME: Final = _Type("string", {"type": "string", "format": "date-time"})
_STRINGS: Final = _Type("[]string", {"type": "array", "items": {"type": "string"}})
_STRING_MAP: Final = _Type(
    "map[string]string", {"type": "object", "additionalProperties": {"type": "string"}}
)


def _struct_list(go: str, fields: dict[str, _Type]) -> _Type:
    properties = {name: kind.schema for name, kind in fields.items()}
    return _Type(go, {"type": "array", "items": {"type": "object", "properties": properties}})


_OWNER: Final = {
    "apiVersion": _STRING,
    "kind": _STRING,
    "name": _STRING,
    "uid": _STRING,
    "controller": _BOOL,
    "blockOwnerDeletion": _BOOL,
}
_MANAGED: Final = {
    "manager": _STRING,
    "operation": _STRING,
    "apiVersion": _STRING,
    "time": _TIME,
    "fieldsType": _STRING,
    "fieldsV1": _Type(
        "map[string]interface {}",
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    ),
    "subresource": _STRING,
}
_FIELDS: Final[dict[str, _Type]] = {
    **dict.fromkeys(
        ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), _STRING
    ),
    **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _INT64),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
    **dict.fromkeys(("labels", "annotations"), _STRING_MAP),
    "finalizers": _STRINGS,
    "ownerReferences": _struct_list("[]v1.OwnerReference", _OWNER),
    "managedFields": _struct_list("[]v1.ManagedFieldsEntry", _MANAGED),
}
SCHEMA: Final[Object] = {
    "type": "object",
    "properties": {name: kind.schema for name, kind in _FIELDS.items()},
}
_NODE: Final = Node.build(SCHEMA)
_JSON_NAMES: Final = {"integer": "number", "boolean": "bool"}


def coerce(obj: Object) -> list[str]:
    """Drop unknown fields and nulls of an object's metadata in place; return their paths.

    Raises ApiError 400 for a field of another type, in Go's words.
    """
    metadata = obj.get("metadata")
    if metadata is None:
        return []
    if not isinstance(metadata, dict):
        raise _unreadable(obj, _mismatch("metadata", metadata, "v1.ObjectMeta"))
    unknown = [f"metadata.{path}" for path in pruning.prune(metadata, _NODE)]
    for name, value in metadata.items():
        if problem := _problem(name, value, _FIELDS[name]):
            raise _unreadable(obj, problem)
    return unknown


def _fits(value: Json, schema: Object) -> bool:
    try:
        SchemaValidator(compile_schema(schema, special=with_checks)).validate_python(value)
    except ValidationError:
        return False
    return True


def _problem(name: str, value: Json, kind: _Type) -> str:
    if _fits(value, kind.schema):
        return ""
    if kind is _TIME and isinstance(value, str):
        return f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse'
    wanted = kind.schema["type"]
    if json_type(value) != wanted:
        return _mismatch(f"ObjectMeta.{name}", value, kind.go)
    if kind is _STRING_MAP or kind is _STRINGS:
        items = value.values() if isinstance(value, dict) else value
        wrong = next(item for item in items if not isinstance(item, str))
        return _mismatch(f"ObjectMeta.{name}", wrong, "string")
    fields, struct = (_OWNER, "OwnerReference")
    if name == "managedFields":
        fields, struct = (_MANAGED, "ManagedFieldsEntry")
    for item in value if isinstance(value, list) else ():
        if not isinstance(item, dict):
            return _mismatch(f"ObjectMeta.{name}", item, f"v1.{struct}")
        for key, below in fields.items():
            if key in item and (problem := _problem(key, item[key], below)):
                return problem.replace("ObjectMeta.", f"{struct}.{name}.", 1)
    return _mismatch(f"ObjectMeta.{name}", value, kind.go)


def _mismatch(where: str, value: Json, go: str) -> str:
    found = json_type(value)
    shown = _JSON_NAMES.get(found, found)
    return f"json: cannot unmarshal {shown} into Go struct field {where} of type {go}"


def _unreadable(obj: Object, problem: str) -> errors.ApiError:
    kind = obj.get("kind", "")
    version = str(obj.get("apiVersion", "")).rpartition("/")[2]
    return errors.bad_request(
        f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}'
    )
