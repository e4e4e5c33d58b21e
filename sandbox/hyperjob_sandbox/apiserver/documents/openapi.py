"""OpenAPI documents: version 3 by group and version; version 2 only says that there are none.

Custom resources are published with their whole schema; built-in kinds with what every object has,
so that clients find them and send their checks to the server. Of operations a document says what
kubectl asks: which kind a path has, and that writes take `fieldValidation`.
"""

import hashlib
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.schema import objectmeta
from hyperjob_sandbox.apiserver.state.resources import Registry, ResourceInfo
from hyperjob_sandbox.apiserver.transport.call import Reply
from hyperjob_sandbox.apiserver.transport.encode import dump

# kubectl asks for version 2, in protobuf alone, where version 3 lacks the kind that it is to apply:
# it finds no schema to check against, and says that there is no such kind. It asks with
# `v2@v1.0`: `@` may not be in the media type of an answer.
_VERSION2_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_VERSION2: Final = b"\n\x032.0\x12\x15\n\nKubernetes\x12\x07v1.36.2B\0"
_INFO: Final = {"title": "Kubernetes", "version": "v1.36.2"}
_META_NAME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_HEAD: Final[Object] = {
    "apiVersion": {"type": "string", "description": "The group and version of this object."},
    "kind": {"type": "string", "description": "The type of this object."},
    "metadata": {
        "description": "Standard object's metadata.",
        "allOf": [{"$ref": f"#/components/schemas/{_META_NAME}"}],
        "default": {},
    },
}
_FREE: Final[Object] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_PARAMETERS: Final = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]


class OpenApi:
    """Answers below /openapi; a group's document is rebuilt only when its resources change."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._documents: dict[str, tuple[list[ResourceInfo], bytes, str]] = {}

    def answer(self, path: str) -> Reply | None:
        """Answer an OpenAPI path; None when there is no such document."""
        if path == "/openapi/v2":
            return Reply(200, _VERSION2, _VERSION2_TYPE)
        places = {
            f"apis/{group}/{version}" if group else f"api/{version}": (group, version)
            for group in self._registry.groups()
            for version in self._registry.versions(group)
        }
        if path == "/openapi/v3":
            urls = {
                place: f"/openapi/v3/{place}?hash={self._document(place, *where)[1]}"
                for place, where in places.items()
            }
            paths = {place: {"serverRelativeURL": url} for place, url in urls.items()}
            return Reply(200, dump({"paths": paths}))
        place = path.removeprefix("/openapi/v3/")
        if place not in places:
            return None
        body, digest = self._document(place, *places[place])
        return Reply(200, body, headers={"ETag": f'"{digest}"', "Vary": "Accept"})

    def _document(self, place: str, group: str, version: str) -> tuple[bytes, str]:
        resources = self._registry.resources(group, version)
        known = self._documents.get(place)
        if known is None or known[0] != resources:
            schemas = {_META_NAME: objectmeta.SCHEMA}
            schemas |= {_schema_name(resource): _schema(resource) for resource in resources}
            document = {
                "openapi": "3.0.0",
                "info": _INFO,
                "paths": {k: v for r in resources for k, v in _paths(r).items()},
                "components": {"schemas": schemas},
            }
            body = dump(document)
            known = resources, body, hashlib.sha512(body).hexdigest().upper()
            self._documents[place] = known
        return known[1], known[2]


def _gvk(resource: ResourceInfo) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schema_name(resource: ResourceInfo) -> str:
    """Name a schema: the group reversed, the version, the kind."""
    group = resource.group or "core.api.k8s.io"
    return ".".join((*reversed(group.split(".")), resource.version, resource.kind))


def _schema(resource: ResourceInfo) -> Object:
    if resource.schema is not None:
        schema: Object = resource.schema.node.raw
    else:
        schema = {**_FREE, "properties": {"spec": _FREE, "status": _FREE}}
        if not resource.has_status:
            schema["properties"] = {}
    return {
        **schema,
        "properties": {**schema["properties"], **_HEAD},
        "x-kubernetes-group-version-kind": [_gvk(resource)],
    }


def _paths(resource: ResourceInfo) -> dict[str, Object]:
    base = f"/apis/{resource.group}" if resource.group else "/api"
    base += f"/{resource.version}" + ("/namespaces/{namespace}" * resource.namespaced)
    base += f"/{resource.plural}"
    read: Object = {"x-kubernetes-group-version-kind": _gvk(resource), "responses": {}}
    write = {**read, "parameters": _PARAMETERS}
    paths: dict[str, Object] = {base: {"get": read, "post": write}}
    if "get" in resource.verbs:
        below = ("", *(f"/{name}" for name in ("status", "scale") if name in resource.subresources))
        for name in below:
            paths[f"{base}/{{name}}{name}"] = {"get": read, "put": write, "patch": write}
    return paths
