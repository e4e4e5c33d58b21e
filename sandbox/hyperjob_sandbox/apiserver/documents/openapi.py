"""OpenAPI documents: version 3 by group and version; version 2 only says that there are none.

Custom resources are published with their whole schema; built-in kinds with what every object has,
so that clients find them and send their checks to the server.
"""

import hashlib
from collections.abc import Iterator

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.documents.openapischemas import (
    META_NAME,
    OBJECT_META,
    kind_schema,
    list_schema,
    schema_name,
)
from hyperjob_sandbox.apiserver.state.resources import Registry, ResourceInfo
from hyperjob_sandbox.apiserver.transport.call import Reply
from hyperjob_sandbox.apiserver.transport.encode import dump
from hyperjob_sandbox.apiserver.transport.negotiate import negotiate

_ACTIONS = {
    "get": ("get", "list"),
    "put": ("put", ""),
    "patch": ("patch", ""),
    "post": ("", "post"),
    "delete": ("delete", "deletecollection"),
}
_WRITES = ("put", "patch", "post")
_VERBS = {
    "get": "get",
    "list": "list",
    "put": "update",
    "patch": "patch",
    "post": "create",
    "delete": "delete",
    "deletecollection": "deletecollection",
}
_PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
_ASKED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
# With another sign than clients ask with: `@` may not be in a media type.
_ANSWERED = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_INFO = {"title": "Kubernetes", "version": "v1.36.2"}


class OpenApi:
    """Answers below /openapi; a group's document is rebuilt only when its resources change."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._documents: dict[str, tuple[list[ResourceInfo], bytes, str]] = {}
        self._index: tuple[int, bytes] | None = None

    def answer(self, path: str, accept: str) -> Reply | None:
        """Answer an OpenAPI path; None when there is no such document."""
        parts = path.strip("/").split("/")
        if parts == ["openapi", "v2"]:
            return _version2(accept)
        if parts == ["openapi", "v3"]:
            return Reply(200, self._version3(), "text/plain; charset=utf-8")
        if parts[:2] == ["openapi", "v3"]:
            where = "/".join(parts[2:])
            for place, group, version in self._places():
                if place == where:
                    body, digest = self._document(place, group, version)
                    return Reply(200, body, headers={"ETag": f'"{digest}"', "Vary": "Accept"})
        return None

    def _places(self) -> Iterator[tuple[str, str, str]]:
        for group in sorted(self._registry.groups()):
            for version in self._registry.versions(group):
                yield (f"apis/{group}/{version}" if group else f"api/{version}"), group, version

    def _version3(self) -> bytes:
        if self._index is None or self._index[0] != self._registry.changes:
            paths = {
                place: {"serverRelativeURL": f"/openapi/v3/{place}?hash={digest}"}
                for place, group, version in self._places()
                for digest in [self._document(place, group, version)[1]]
            }
            self._index = self._registry.changes, dump({"paths": paths})
        return self._index[1]

    def _document(self, place: str, group: str, version: str) -> tuple[bytes, str]:
        resources = self._registry.resources(group, version)
        known = self._documents.get(place)
        if known is not None and known[0] == resources:
            return known[1], known[2]
        body = dump(
            {
                "openapi": "3.0.0",
                "info": _INFO,
                "paths": {k: v for r in resources for k, v in _paths(r).items()},
                "components": {"schemas": {META_NAME: OBJECT_META, **_schemas(resources)}},
            }
        )
        digest = hashlib.sha512(body).hexdigest().upper()
        self._documents[place] = resources, body, digest
        return body, digest


def _version2(accept: str) -> Reply:
    """Answer with a document that describes no kind.

    kubectl asks for it, in protobuf alone, where the version 3 documents lack the kind that it is
    to apply: then it finds no schema to check against, and says that there is no such kind.
    """
    if _ASKED in accept or _ANSWERED in accept:
        info = _text(1, _INFO["title"]) + _text(2, _INFO["version"])
        body = _text(1, "2.0") + _field(2, info) + _field(8, b"")
        return Reply(200, body, _ANSWERED)
    negotiate(accept)
    return Reply(200, dump({"swagger": "2.0", "info": _INFO, "paths": {}}), "application/json")


def _field(number: int, value: bytes) -> bytes:
    """Encode a length-delimited protobuf field of less than 128 bytes."""
    return bytes((number << 3 | 2, len(value))) + value


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def _schemas(resources: list[ResourceInfo]) -> dict[str, Object]:
    found: dict[str, Object] = {}
    for resource in resources:
        found[schema_name(resource)] = kind_schema(resource)
        if "list" in resource.verbs:
            found[schema_name(resource, resource.lists)] = list_schema(resource)
    return found


def _paths(resource: ResourceInfo) -> dict[str, Object]:
    root = f"/apis/{resource.group}" if resource.group else "/api"
    base = f"{root}/{resource.version}"
    if resource.namespaced:
        base += "/namespaces/{namespace}"
    base += f"/{resource.plural}"
    paths = {base: _operations(resource, single=False)}
    if "get" in resource.verbs:
        paths[f"{base}/{{name}}"] = _operations(resource, single=True)
    for name in resource.subresources:
        if name in ("status", "scale"):
            paths[f"{base}/{{name}}/{name}"] = _operations(resource, single=True)
    if resource.namespaced and "list" in resource.verbs:
        listing = _operation(resource, "get", "list")
        paths[f"{root}/{resource.version}/{resource.plural}"] = {"get": listing}
    return paths


def _operations(resource: ResourceInfo, *, single: bool) -> Object:
    operations: Object = {}
    for method, (one, many) in _ACTIONS.items():
        action = one if single else many
        if action and _VERBS[action] in resource.verbs:
            operations[method] = _operation(resource, method, action)
    return operations


def _operation(resource: ResourceInfo, method: str, action: str) -> Object:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    reference = {"$ref": f"#/components/schemas/{schema_name(resource)}"}
    answer = reference
    if action == "list":
        answer = {"$ref": f"#/components/schemas/{schema_name(resource, resource.lists)}"}
    operation: Object = {
        "responses": {
            "200": {"description": "OK", "content": {"application/json": {"schema": answer}}}
        },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind,
    }
    if method in _WRITES:
        operation["parameters"] = [
            _parameter("dryRun"),
            _parameter("fieldManager"),
            _parameter("fieldValidation"),
        ]
        media = _PATCH_TYPES if method == "patch" else ("application/json",)
        schema = {"type": "object"} if method == "patch" else reference
        operation["requestBody"] = {"content": {name: {"schema": schema} for name in media}}
    return operation


def _parameter(name: str) -> Object:
    return {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
