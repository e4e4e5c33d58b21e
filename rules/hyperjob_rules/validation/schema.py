"""The compiled schema of the HyperJob CRD, which checks the shape of each field by itself.

It is compiled from the CRD that users install: an offline check equals that of the API server.
"""

from collections.abc import Callable
from functools import cache
from typing import Final

from pydantic_core import SchemaValidator, core_schema
from pydantic_core.core_schema import CoreSchema

from hyperjob_core.api.meta import Object
from hyperjob_core.api.schema import hyperjob_crd
from hyperjob_core.api.shape import compile_schema


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
