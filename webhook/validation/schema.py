"""The CRD's schema as a compiled checker of shapes.

Made from the CRD that users install, so that what is checked offline is what the API server
checks. Only shapes: no field is looked at together with another.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from pydantic_core import SchemaValidator, core_schema
from pydantic_core.core_schema import CoreSchema, ValidationInfo, ValidatorFunctionWrapHandler

from hyperjob.api.meta import Object
from hyperjob.api.schema import hyperjob_crd
from webhook.validation.podtemplate.plain import is_plain

INT_OR_STRING: Final = "int_or_string"
INT32: Final = (-(2**31), 2**31 - 1)
INT64: Final = (-(2**63), 2**63 - 1)
_POD: Final = (
    *("spec", "replicatedJobs", "items", "templateSpec", "tasks", "items", "template", "spec"),
)


@cache
def hyperjob_shape() -> SchemaValidator:
    """Return the checker of HyperJobs; made once, as it takes some milliseconds."""
    root = hyperjob_schema()
    shape = _changed(root, ("metadata",), lambda _: {"x-object-meta": True})
    shape = _changed(shape, _POD, lambda node: {**node, "x-plain": True})
    return SchemaValidator(compile_schema(shape))


def _changed(node: Object, place: Sequence[str], change: Callable[[Object], Object]) -> Object:
    """Return a schema with another node at a place, below properties and items of lists."""
    if not place:
        return change(node)
    name, *rest = place
    if name == "items":
        return {**node, "items": _changed(node["items"], rest, change)}
    properties = node["properties"]
    return {**node, "properties": {**properties, name: _changed(properties[name], rest, change)}}


@cache
def hyperjob_schema() -> Object:
    """Return the structural schema of the one version that there is."""
    schema: Object = hyperjob_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def schema_at(location: Sequence[int | str]) -> Object:
    """Return the schema of the value at a location, empty where the schema says nothing."""
    node = hyperjob_schema()
    for step in location:
        if isinstance(step, int):
            node = node.get("items") or {}
        else:
            below = node.get("properties", {}).get(step)
            node = node.get("additionalProperties") or {} if below is None else below
        if not isinstance(node, dict):
            return {}
    return node


def compile_schema(node: Object) -> CoreSchema:
    """Translate one node of a structural schema."""
    if node.get("x-object-meta"):
        return _OBJECT_META
    if node.get("x-plain"):
        return core_schema.with_info_wrap_validator_function(_unless_plain, _typed(node))
    if node.get("x-kubernetes-int-or-string"):
        return _int_or_string()
    made = _typed(node)
    # A null where there is a default means the default, as it does for the API server.
    nullable = node.get("nullable") or "default" in node
    return core_schema.nullable_schema(made) if nullable else made


def _unless_plain(
    value: object, check: ValidatorFunctionWrapHandler, info: ValidationInfo[Any]
) -> object:
    """Check the shape of a pod that is not plain; note the others by their identity."""
    if is_plain(value):
        info.context.add(id(value))
        return value
    return check(value)


def _typed(node: Object) -> CoreSchema:
    match node.get("type"):
        case "object":
            return _object(node)
        case "array":
            return core_schema.list_schema(
                compile_schema(node.get("items") or {}),
                min_length=node.get("minItems"),
                max_length=node.get("maxItems"),
            )
        case "string":
            return _string(node)
        case "integer":
            return _integer(node)
        case "number":
            return core_schema.float_schema(
                strict=True, ge=node.get("minimum"), le=node.get("maximum")
            )
        case "boolean":
            return core_schema.bool_schema(strict=True)
        case _:
            return core_schema.any_schema()


def _object(node: Object) -> CoreSchema:
    properties = node.get("properties")
    if properties is None:
        values = node.get("additionalProperties")
        if isinstance(values, dict):
            return core_schema.dict_schema(
                core_schema.str_schema(strict=True), compile_schema(values)
            )
        return core_schema.dict_schema(
            core_schema.str_schema(strict=True), core_schema.any_schema()
        )
    required = set(node.get("required") or ())
    fields = {
        name: core_schema.typed_dict_field(
            compile_schema({"x-object-meta": True} if _is_object_meta(name, child) else child),
            required=name in required and "default" not in child,
        )
        for name, child in properties.items()
    }
    open_ended = node.get("x-kubernetes-preserve-unknown-fields")
    return core_schema.typed_dict_schema(fields, extra_behavior="allow" if open_ended else "forbid")


def _is_object_meta(name: str, node: Object) -> bool:
    return name == "metadata" and node.get("type") == "object" and not node.get("properties")


def _string(node: Object) -> CoreSchema:
    if "enum" in node:
        # A type error is told apart from a value outside the set.
        known = core_schema.literal_schema(node["enum"])
        return core_schema.chain_schema([core_schema.str_schema(strict=True), known])
    return core_schema.str_schema(
        strict=True,
        min_length=node.get("minLength"),
        max_length=node.get("maxLength"),
        pattern=node.get("pattern"),
    )


def _integer(node: Object) -> CoreSchema:
    low, high = INT32 if node.get("format") == "int32" else INT64
    return core_schema.int_schema(
        strict=True,
        ge=max(low, node.get("minimum", low)),
        le=min(high, node.get("maximum", high)),
    )


def _int_or_string() -> CoreSchema:
    return core_schema.custom_error_schema(
        core_schema.union_schema(
            [core_schema.str_schema(strict=True), core_schema.int_schema(strict=True)]
        ),
        custom_error_type=INT_OR_STRING,
        custom_error_message=INT_OR_STRING,
    )


def _nullable(schema: CoreSchema) -> core_schema.TypedDictField:
    return core_schema.typed_dict_field(core_schema.nullable_schema(schema), required=False)


_STRING: Final = core_schema.str_schema(strict=True)
_STRING_MAP: Final = core_schema.dict_schema(_STRING, _STRING)

# The parts of metadata that are looked at. The API server checks all of them, and would not let
# a webhook see one that is wrong, so the rest is none of our concern.
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
