"""The types of `metadata`: its schema, and what the API server says of what it cannot read."""

from typing import Any, Final

from pydantic_core import ErrorDetails

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.jsonvalue import json_type

_STRING: Final = {"type": "string"}
_BOOL: Final = {"type": "boolean"}
_TIME: Final = {"type": "string", "format": "date-time"}
_INT: Final = {"type": "integer"}
_TEXTS: Final = {"type": "object", "additionalProperties": _STRING}
_FREE: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _structs(**fields: Object) -> Object:
    return {"type": "array", "items": {"type": "object", "properties": fields}}


SCHEMA: Final[Object] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(
            ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), _STRING
        ),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _INT),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        "finalizers": {"type": "array", "items": _STRING, "x-kubernetes-list-type": "set"},
        "ownerReferences": {
            **_structs(
                **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _STRING),
                **dict.fromkeys(("controller", "blockOwnerDeletion"), _BOOL),
            ),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
        },
        "managedFields": _structs(
            **dict.fromkeys(("manager", "operation", "apiVersion"), _STRING),
            **dict.fromkeys(("fieldsType", "subresource"), _STRING),
            time=_TIME,
            fieldsV1=_FREE,
        ),
    },
}
_GO_TYPES: Final = {
    "string_type": "string",
    "bool_type": "bool",
    "int_type": "int64",
    "dict_type": "map[string]string",
    "list_type": "[]string",
}
_JSON_NAMES: Final = {"integer": "number", "boolean": "bool"}


def is_unreadable(finding: ErrorDetails) -> bool:
    """Tell whether a finding says that metadata cannot be read; a null is dropped instead."""
    at: tuple[Any, ...] = finding["loc"]
    read = finding["type"] in ("extra_forbidden", "duplicate")
    return (
        not read and at[0] == "metadata" and (finding["input"] is not None or type(at[-1]) is int)
    )


def unreadable(obj: Object, finding: ErrorDetails) -> errors.ApiError:
    """Say in Go's words that metadata cannot be read (400)."""
    found = json_type(finding["input"])
    whole = len(finding["loc"]) == 1
    go = "v1.ObjectMeta" if whole else _GO_TYPES.get(finding["type"], "Time")
    where = "metadata" if whole else f"ObjectMeta.{finding['loc'][1]}"
    kind, version = obj.get("kind", ""), str(obj.get("apiVersion", "")).rpartition("/")[2]
    return errors.bad_request(
        f'{kind} in version "{version}" cannot be handled as a {kind}: json: cannot unmarshal'
        f" {_JSON_NAMES.get(found, found)} into Go struct field {where} of type {go}"
    )
