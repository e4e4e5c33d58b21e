"""Schemas inside the OpenAPI documents: names, metadata, kinds and lists."""

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo

META_NAME = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_API_VERSION = {
    "type": "string",
    "description": (
        "APIVersion defines the versioned schema of this representation of an object. Servers"
        " should convert recognized schemas to the latest internal value, and may reject"
        " unrecognized values. More info:"
        " https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
        "#resources"
    ),
}
_KIND = {
    "type": "string",
    "description": (
        "Kind is a string value representing the REST resource this object represents. Servers may"
        " infer this from the endpoint the client submits requests to. Cannot be updated. In"
        " CamelCase. More info:"
        " https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
        "#types-kinds"
    ),
}
_TEXT_MAP = {"type": "object", "additionalProperties": {"type": "string", "default": ""}}
OBJECT_META: Object = {
    "type": "object",
    "description": (
        "ObjectMeta is metadata that all persisted resources must have, which includes all objects"
        " users must create."
    ),
    "properties": {
        "annotations": {**_TEXT_MAP, "description": "Values that tools keep with the object."},
        "creationTimestamp": {
            "type": "string",
            "format": "date-time",
            "description": "When the object was created; set by the server.",
        },
        "deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
        "deletionTimestamp": {"type": "string", "format": "date-time"},
        "finalizers": {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
            "description": "What must be done before the object may go.",
        },
        "generateName": {"type": "string", "description": "A prefix to make the name from."},
        "generation": {"type": "integer", "format": "int64"},
        "labels": {**_TEXT_MAP, "description": "Values that objects are selected by."},
        "managedFields": {"type": "array", "items": {"type": "object"}},
        "name": {"type": "string", "description": "Unique within a namespace; never changes."},
        "namespace": {"type": "string", "description": "The space within which names are unique."},
        "ownerReferences": {
            "type": "array",
            "items": {"type": "object"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "description": "The objects that this one depends on and is deleted with.",
        },
        "resourceVersion": {"type": "string"},
        "selfLink": {"type": "string"},
        "uid": {"type": "string"},
    },
}
_META_REFERENCE = {
    "description": (
        "Standard object's metadata. More info:"
        " https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
        "#metadata"
    ),
    "allOf": [{"$ref": f"#/components/schemas/{META_NAME}"}],
    "default": {},
}


def schema_name(resource: ResourceInfo, kind: str = "") -> str:
    """Name a schema: the group reversed, the version, the kind."""
    group = resource.group or "core.api.k8s.io"
    return ".".join((*reversed(group.split(".")), resource.version, kind or resource.kind))


def kind_schema(resource: ResourceInfo) -> Object:
    """Give the schema of a kind."""
    if resource.schema is not None:
        declared = resource.schema.node.raw
        schema = {**declared, "properties": dict(declared.get("properties") or {})}
    else:
        free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        schema = {"type": "object", "properties": {}, **free}
        if resource.has_status:
            schema["properties"] = {"spec": free, "status": free}
    head = {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": _META_REFERENCE}
    schema["properties"] = {**schema["properties"], **head}
    schema["x-kubernetes-group-version-kind"] = [_gvk(resource, resource.kind)]
    return schema


def list_schema(resource: ResourceInfo) -> Object:
    """Give the schema of a list of a kind."""
    reference = {"$ref": f"#/components/schemas/{schema_name(resource)}"}
    return {
        "type": "object",
        "description": f"{resource.lists} is a list of {resource.kind}",
        "required": ["items"],
        "properties": {
            "apiVersion": _API_VERSION,
            "kind": _KIND,
            "metadata": {"type": "object"},
            "items": {"type": "array", "items": reference},
        },
        "x-kubernetes-group-version-kind": [_gvk(resource, resource.lists)],
    }


def _gvk(resource: ResourceInfo, kind: str) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": kind}
