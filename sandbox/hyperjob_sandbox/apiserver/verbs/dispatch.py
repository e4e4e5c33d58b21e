"""From a parsed request to the handler of its verb; the only place that knows all handlers."""

from collections.abc import Callable, Mapping
from typing import Any

from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core
from hyperjob_sandbox.apiserver.documents.discovery import discover
from hyperjob_sandbox.apiserver.documents.openapi import OpenApi
from hyperjob_sandbox.apiserver.patches import patching
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.transport.authn import identify
from hyperjob_sandbox.apiserver.transport.authorization import action_of
from hyperjob_sandbox.apiserver.transport.call import Call, Connector, Reply, Stream
from hyperjob_sandbox.apiserver.transport.encode import dump
from hyperjob_sandbox.apiserver.transport.requestinfo import RequestInfo
from hyperjob_sandbox.apiserver.verbs import (
    deleting,
    podlogs,
    reading,
    reviews,
    scaling,
    watching,
    writing,
)

VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitTreeState": "clean"}
_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})


class Dispatcher:
    """Routes requests; `closing` lets watches know that the server goes away.

    `connectors` answer subresources, by (group, resource, subresource), in the server's place.
    """

    def __init__(
        self,
        core: Core,
        *,
        closing: Callable[[], bool],
        connectors: Mapping[tuple[str, str, str], Connector],
    ) -> None:
        self._core = core
        self._connectors = connectors
        self._closing = closing
        self._openapi = OpenApi(core.registry)

    async def handle(
        self,
        info: RequestInfo,
        *,
        certificate: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        body: bytes,
        address: str,
        warnings: list[str],
    ) -> Reply | Stream:
        """Answer a request; what the client should be told beside goes into `warnings`."""
        user = identify(certificate, headers.get("Authorization", ""), self._core.tokens)
        if user is None:
            raise errors.failed(401, "Unauthorized", "Unauthorized")
        if "Impersonate-User" in headers:
            raise errors.bad_request("impersonation (--as) is left out of the embedded API server")
        self._core.require(user, action_of(info))
        if not info.resource:
            return self._outside(info, headers, address)
        resource = self._core.registry.find(info.group, info.version, info.resource)
        if resource is None:
            raise errors.NoSuchPathError
        _check_scope(info, resource)
        media, accept = headers.get("Content-Type", ""), headers.get("Accept", "")
        agent = headers.get("User-Agent", "")
        call = Call(info, resource, user, body, media, accept, agent, warnings)
        code = 200
        try:
            reply = await self._verb(call)
            code = reply.code if isinstance(reply, Reply) else 200
        except errors.ApiError as error:
            code = error.code
            raise
        finally:
            self._core.metrics.count(info, code, applied=patching.applies(call))
        return reply

    async def _verb(self, call: Call) -> Reply | Stream:
        info, core, resource = call.info, self._core, call.resource
        connector = self._connectors.get((info.group, info.resource, info.subresource))
        if connector is not None:
            return await connector(call)
        served = resource.subresources.get(info.subresource) if info.subresource else resource
        if served is None or info.rest:
            raise errors.NoSuchPathError
        if info.verb not in served.verbs:
            raise errors.method_not_allowed()
        match info.subresource, info.verb:
            case "scale", _:
                return await scaling.scale(core, call)
            case "log", _:
                return podlogs.log(core, call, closing=self._closing)
            case "token", _:
                return reviews.token(core, call)
            case _, "get":
                return reading.get(core, call)
            case _, "list":
                return reading.list_objects(core, call)
            case _, "watch":
                return watching.watch(core, call, closing=self._closing)
            case _, "create" if served.verbs == ("create",):
                return reviews.review(core, call)
            case _, "create":
                return await writing.create(core, call)
            case _, "update" if info.name:
                return await writing.update(core, call)
            case _, "patch" if info.name:
                return await writing.patch(core, call)
            case _, "delete":
                return await deleting.delete(core, call)
            case _, "deletecollection":
                return await deleting.delete_collection(core, call)
        raise errors.method_not_allowed()

    def _outside(self, info: RequestInfo, headers: Mapping[str, str], address: str) -> Reply:
        path = info.path
        root = "/" + path.strip("/").split("/")[0]
        if info.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        if root in _HEALTH:
            return Reply(200, b"ok", "text/plain; charset=utf-8")
        if root == "/metrics":
            text = self._core.metrics.text().encode()
            return Reply(200, text, "text/plain; version=0.0.4; charset=utf-8")
        if path.rstrip("/") == "/version":
            return Reply(200, dump(VERSION))
        found = discover(self._core.registry, path, address)
        if found is None and root == "/openapi":
            found = self._openapi.answer(path)
        if found is None:
            raise errors.NoSuchPathError
        etag = found.headers.get("ETag", "")
        if etag and etag == headers.get("If-None-Match"):
            return Reply(304, b"", found.content_type, found.headers)
        return found


def _check_scope(info: RequestInfo, resource: ResourceInfo) -> None:
    """Refuse a path that puts a resource where its scope does not allow it."""
    if resource.namespaced:
        if not info.namespace and (info.name or info.verb not in ("list", "watch")):
            if info.verb in ("create", "deletecollection"):
                raise errors.method_not_allowed()
            raise errors.NoSuchPathError
    elif info.namespace and info.resource != "namespaces":
        raise errors.NoSuchPathError
