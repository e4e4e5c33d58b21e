"""The compiled schema of the HyperJob CRD, and the remedy of an error where its value shows it."""

import json
import re
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from pydantic_core import SchemaValidator, core_schema
from pydantic_core.core_schema import CoreSchema

from hyperjob_core.api.meta import Object
from hyperjob_core.api.schema import hyperjob_crd
from hyperjob_core.api.shapeerrors import compile_schema
from hyperjob_core.api.wire import mapping


@cache
def hyperjob_shape() -> SchemaValidator:
    """Return the compiled schema of HyperJobs; it is compiled once, in some milliseconds."""
    root = hyperjob_schema()
    properties = {**root["properties"], "metadata": {"x-object-meta": True}}
    return SchemaValidator(compile_schema({**root, "properties": properties}, special=_special))


@cache
def hyperjob_schema() -> Object:
    """Return the structural schema of the only version of the CRD."""
    schema: Object = hyperjob_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _special(name: str, node: Object, make: Callable[[], CoreSchema]) -> CoreSchema:
    if node.get("x-object-meta") or _is_object_meta(name, node):
        return _OBJECT_META
    return make()


def _is_object_meta(name: str, node: Object) -> bool:
    return name == "metadata" and node.get("type") == "object" and not node.get("properties")


def _nullable(schema: CoreSchema) -> core_schema.TypedDictField:
    return core_schema.typed_dict_field(core_schema.nullable_schema(schema), required=False)


_STRING: Final = core_schema.str_schema(strict=True)
_STRING_MAP: Final = core_schema.dict_schema(_STRING, _STRING)

# The fields of metadata that the rules use. The API server checks all of metadata before it calls a
# webhook.
_OBJECT_META: Final = core_schema.typed_dict_schema(
    {
        "name": _nullable(_STRING),
        "generateName": _nullable(_STRING),
        "namespace": _nullable(_STRING),
        "labels": _nullable(_STRING_MAP),
        "annotations": _nullable(_STRING_MAP),
        "finalizers": _nullable(core_schema.list_schema(_STRING)),
        "deletionTimestamp": _nullable(_STRING),
    },
    extra_behavior="allow",
)


_SIZE: Final = re.compile(r"\A([0-9]{1,18})[ ]?([KMGTP])I?B?\Z", re.IGNORECASE)
_TIME: Final = re.compile(r"\A([0-9]{1,9})(s|m|h|d)\Z")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_NUMBER: Final = re.compile(r"\A[0-9]{1,18}\Z")
_FOREIGN: Final = re.compile(r"[^a-z0-9-]")
_LONGEST: Final = 63
_BOOLEAN: Final = {
    True: 'put the text in quotes, as "yes": kubectl reads y, yes and on without quotes as true',
    False: 'put the text in quotes, as "no": kubectl reads n, no and off without quotes as false',
}
_FIELDS: Final = 8


def of_value(value: object, body: str) -> str:
    """Return the remedy for an amount or a name, by the value and the message; empty if unknown."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        return ""
    if "quantities must match" in body and (found := _SIZE.match(value)):
        number, unit = found[1], found[2].upper()
        decimal = unit.lower() if unit == "K" else unit
        return f"write {number}{unit}i, or {number}{decimal} for powers of 1000"
    if "RFC 1" in body or "should match '^[a-z0-9]" in body:
        if "/" in value:
            prefix, _, name = value.partition("/")
            near = f"{prefix.lower()}/{name.lower() if name.isupper() else name}"
            return f"use {near}" if near != value else ""
        name = _FOREIGN.sub("-", value.lower()).strip("-")
        return f"use {name}" if name and name != value else ""
    return ""


def of_type(value: object, expected: str, node: Object) -> str:
    """Return the remedy for a value of another type than the `node` of the schema has, if any."""
    match expected, value:
        case "integer", str() if _NUMBER.match(value):
            return f"write {value} without quotes"
        case "integer", str() if found := _TIME.match(value):
            return f"write the seconds: {int(found[1]) * _SECONDS[found[2]]}"
        case "boolean", "true" | "false":
            return f"write {value} without quotes"
        case "string", bool():
            return _BOOLEAN[value]
        case "string", int() | float() if node.get("format") == "duration":
            return f"write a number and a unit, as {json.dumps(value)}s"
        case "string", int() | float():
            return f'quote the number: "{json.dumps(value)}"'
        case "array", str() if value and len(value) <= _LONGEST:
            return f"write a list: {json.dumps(value.split())}"
        case "array", dict() if value and all(isinstance(each, str) for each in value.values()):
            name, text = next(iter(value.items()))
            more = ", ..." if len(value) > 1 else ""
            return f"write a list: [{{name: {name}, value: {text}}}{more}]"[: 2 * _LONGEST]
        case "object", list() if fields := node.get("properties"):
            return f"write a map with some of the fields {', '.join(list(fields)[:_FIELDS])}"
        case "object", list() if value and isinstance(value[0], str):
            of_lists = mapping(node.get("additionalProperties")).get("type") == "array"
            return f"write a map, such as {{{value[0][:_LONGEST]}: {'[]' if of_lists else 'text'}}}"
    return ""


def of_unknown(name: str) -> str:
    """Return where the API has a field of this name; empty if it has none."""
    place = _places().get(name)
    return f"move it to {place}" if place else ""


@cache
def _places() -> Mapping[str, str]:
    """Return the path of each field of the spec by its name, that of the highest of one name."""
    found: dict[str, str] = {}
    todo: deque[tuple[str, Object]] = deque([("spec", hyperjob_schema()["properties"]["spec"])])
    while todo:
        path, node = todo.popleft()
        for name, child in (node.get("properties") or {}).items():
            found.setdefault(name, f"{path}.{name}")
            todo.append((f"{path}.{name}", child))
        if isinstance(items := node.get("items"), dict):
            todo.append((f"{path}[]", items))
    return found
