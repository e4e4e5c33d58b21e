"""The verbs of the Kubernetes API on plain dicts: get, list, watch, create, replace, apply, patch.

Objects stay dicts: a field that this release does not know survives a read and a write. Bodies are
JSON by orjson, and every patch has its content type.

    async with Kube.connect(kubeconfig="karmada.kubeconfig") as kube:
        job = await kube.get(HYPERJOBS, "llm", namespace="default")
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    aclosing,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import orjson

import hyperjob_core
from hyperjob_core.api.lines import Splitter
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import decoded
from hyperjob_core.kube import config
from hyperjob_core.kube.errors import (
    LONGEST_STATUS,
    AlreadyExists,
    Conflict,
    Gone,
    Invalid,
    from_status,
    unreachable,
)
from hyperjob_core.kube.paging import (
    LONGEST_VERSION,
    Bounds,
    Decoding,
    ObjectList,
    object_of,
    read_pages,
    short,
)
from hyperjob_core.kube.resources import Resource, key_of, proxied
from hyperjob_core.kube.transport import (
    CONNECTIONS,
    LONGEST_BODY,
    Params,
    Response,
    Transport,
    Warn,
    log_warning,
)

USER_AGENT = f"hyperjob/{hyperjob_core.__version__}"
TIME_LIMIT = 30.0
IDLE_LIMIT = 150.0  # seconds; an API server sends a bookmark about once a minute

T = TypeVar("T")
Objects = list[Object]  # within Kube, `list` is the verb
Propagation = Literal["Background", "Foreground", "Orphan"]


class PatchType(StrEnum):
    """The content types of PATCH."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class EventType(StrEnum):
    """The type of a watch event; a BOOKMARK of an API server has only a resourceVersion."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch."""

    type: EventType
    object: Object


class Kube:
    """A client of one API server; use as `async with Kube.connect(…) as kube`."""

    def __init__(
        self,
        transport: Transport,
        *,
        time_limit: float = TIME_LIMIT,
        namespace: str = config.DEFAULT_NAMESPACE,
        bounds: Bounds = Bounds(),
        decoding: Decoding | None = None,
        root: str = "",
    ) -> None:
        """With a `root`, the path before all others, the transport stays open: it has an owner."""
        self.namespace = namespace
        self._decoding = decoding or Decoding()
        self._bounds = bounds
        self._transport = transport
        self._time_limit = time_limit
        self._root = root

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        *,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        user_agent: str = USER_AGENT,
        time_limit: float = TIME_LIMIT,
        connections: int = CONNECTIONS,
        warn: Warn = log_warning,
        bounds: Bounds = Bounds(),
    ) -> AsyncIterator[Self]:
        """Find the API server as kubectl does and close all connections at the end.

        `warn` gets each warning of the API server once. `connections` are open concurrently.
        `bounds` are those of each list.
        `user_agent` up to its slash is also the field manager of creates, updates and patches.
        Raises ConfigError with the file and the next step.
        """
        connection = await config.load(kubeconfig, context=context)
        from hyperjob_core.kube.http import HttpTransport  # a slow import: not for --help

        transport = HttpTransport(
            connection,
            user_agent=user_agent,
            connections=connections,
            warn=warn,
        )
        async with cls(
            transport, time_limit=time_limit, namespace=connection.namespace, bounds=bounds
        ) as kube:
            yield kube

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        if not self._root:
            await self._transport.close()

    @property
    def host(self) -> str:
        """Return the server's host and port."""
        return self._transport.host

    def member(self, cluster: str, *, time_limit: float = TIME_LIMIT) -> "Kube":
        """Return a client of a member through Karmada's proxy, over this client's connections."""
        return Kube(
            self._transport,
            time_limit=time_limit,
            bounds=self._bounds,
            decoding=self._decoding,
            root=proxied(cluster, ""),
        )

    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Object:
        """Read one object."""
        return await self._call("GET", resource.path(namespace, name, subresource))

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = 500,
        transform: Callable[[Object], Object] = lambda obj: obj,
        pages: AbstractAsyncContextManager[object] = nullcontext(),
    ) -> ObjectList:
        """Read all objects, `limit` at a time; see `read_pages`.

        After an expired token it begins once more. Raises KubeError, TooLarge beyond the bounds.
        """
        path, seconds = resource.path(namespace), self._bounds.seconds
        given = _selectors(label_selector, field_selector)
        read = partial(
            read_pages,
            lambda params: self.raw("GET", path, params={**given, **params}),
            resource,
            f"GET {path}",
            limit=limit,
            transform=transform,
            bounds=self._bounds,
            decoding=self._decoding,
            pages=pages,
        )
        try:
            async with asyncio.timeout(seconds):
                with suppress(Gone):
                    return await read()
                return await read()
        except TimeoutError as error:
            why = f"the list took longer than {seconds:g}s"
            raise unreachable(f"GET {path}", why, timeout=True) from error

    async def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        resource_version: str,
        label_selector: str | None = None,
        field_selector: str | None = None,
        timeout_seconds: int = 300,
        idle_limit: float = IDLE_LIMIT,
        opened: Callable[[], None] | None = None,
        holds: Callable[[int], None] = lambda _: None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield changes after `resource_version`, bookmarks included, until the server ends.

        Raises Gone if the version is too old; Unavailable if the connection breaks, is silent for
        `idle_limit` seconds, sends garbage, or does not end within the time limit of a request
        after `timeout_seconds`. Calls `opened` after the server's response header, and `holds` with
        the bytes of the line that has not ended yet.
        The caller must close it: `async with aclosing(kube.watch(…)) as events`.
        """
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
            **_selectors(label_selector, field_selector),
        }
        path = resource.path(namespace)
        stream = self._transport.stream(
            self._root + path,
            params=params,
            idle_limit=idle_limit,
            time_limit=timeout_seconds + self._time_limit,
            opened=opened,
        )
        splitter, request = Splitter(LONGEST_BODY), f"WATCH {path}"
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                lines = [line for line in splitter.feed(chunk) if line][::-1]
                if splitter.cut:
                    raise unreachable(request, f"a line is longer than {LONGEST_BODY} bytes")
                holds(splitter.size)
                while lines:
                    yield _watch_event(lines.pop(), request)
        if last := splitter.rest():
            yield _watch_event(last, request)

    async def create(
        self,
        resource: Resource,
        obj: Object,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Create an object, which may lack its kind, in its own namespace (or the given one)."""
        where = namespace or obj.get("metadata", {}).get("namespace")
        path = resource.path(where)
        if resource.namespaced and not where:
            raise ValueError(f"{resource.kind} to create needs a namespace")
        body = resource.head | obj
        return await self._call("POST", path, params=_write(dry_run=dry_run), body=body)

    async def replace(
        self,
        resource: Resource,
        obj: Object,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Replace an object that was read before; raises Conflict if it has changed since."""
        metadata = obj["metadata"]
        path = resource.path(metadata.get("namespace"), metadata["name"], subresource)
        return await self._call("PUT", path, params=_write(dry_run=dry_run), body=obj)

    async def apply(
        self,
        resource: Resource,
        obj: Object,
        *,
        field_manager: str,
        force: bool = True,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Apply server-side: own exactly the fields of `obj`; raises Conflict unless `force`."""
        metadata = obj["metadata"]
        return await self._call(
            "PATCH",
            resource.path(metadata.get("namespace"), metadata["name"], subresource),
            params={
                "fieldManager": field_manager,
                "force": "true" if force else "false",
                **_write(dry_run=dry_run),
            },
            body=resource.head | obj,
            content_type=PatchType.APPLY,
        )

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Object | Objects,
        *,
        kind: PatchType,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Change an object by a patch of the named kind.

        Raises Conflict if the patch has another resourceVersion or UID than the object. For the
        status of a custom resource the API server ignores the UID.
        """
        params = _write(dry_run=dry_run)
        if field_manager:
            params["fieldManager"] = field_manager
        path = resource.path(namespace, name, subresource)
        try:
            return await self._call("PATCH", path, params=params, body=body, content_type=kind)
        except Invalid as error:
            # The API server refuses the change of an immutable field: another object has the name.
            if any(cause.get("field") == "metadata.uid" for cause in error.causes):
                raise Conflict(error.status, error.request) from error
            raise

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        propagation: Propagation | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Delete an object; with `uid` only the object with this UID, else Conflict is raised.

        Return the Status, or the object if finalizers delay its removal.
        """
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if propagation is not None:
            options["propagationPolicy"] = propagation
        if dry_run:  # in the body: with one there the API server ignores the query parameter
            options["dryRun"] = ["All"]
        return await self._call("DELETE", resource.path(namespace, name), body=options)

    async def raw(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Object | Objects | bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Response:
        """Send any other request, for example discovery; raises KubeError unless 2xx."""
        return await self._transport.request(
            method,
            self._root + path,
            params=params,
            body=body if body is None or isinstance(body, bytes) else orjson.dumps(body),
            content_type=content_type,
            accept=accept,
            time_limit=self._time_limit,
        )

    def stream(
        self,
        path: str,
        *,
        params: Params,
        idle_limit: float | None = None,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a GET as they arrive, such as a log's; see `Transport.stream`.

        Without `idle_limit` the stream has no time limit. Raises KubeError as `watch` does. The
        caller must close it: `async with aclosing(kube.stream(…)) as chunks`.
        """
        return self._transport.stream(
            self._root + path,
            params=params,
            idle_limit=idle_limit,
            time_limit=None,
            opened=opened,
        )

    async def _call(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Object | Objects | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """Return the object of a response; raises KubeError, also for another body."""
        response = await self.raw(method, path, params=params, body=body, content_type=content_type)
        return object_of(response, f"{method} {path}")


async def again_on_conflict(write: Callable[[], Awaitable[T]], *, tries: int) -> T:
    """Make a change that begins with a read; make it again where another client was faster."""
    for _ in range(1, tries):
        with suppress(Conflict, AlreadyExists):
            return await write()
    return await write()


def _selectors(label_selector: str | None, field_selector: str | None) -> dict[str, str]:
    """Return the query parameters of selectors that are not empty."""
    params = {}
    if label_selector:
        params["labelSelector"] = label_selector
    if field_selector:
        params["fieldSelector"] = field_selector
    return params


def _write(*, dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _watch_event(line: bytes, request: str) -> WatchEvent:
    """Decode a line of a watch; raises the error of an ERROR event, or Unavailable on garbage."""
    try:
        event: Any = decoded(line)
        kind, obj = event["type"], event["object"]
        if kind != "ERROR":
            found = WatchEvent(EventType(kind), obj)
            if found.type is not EventType.BOOKMARK:
                key_of(obj)
            short(obj["metadata"]["resourceVersion"], LONGEST_VERSION)
            return found
        if len(line) > LONGEST_STATUS:
            obj = None  # no Status
        failure = from_status(obj, request)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreachable(request, f"the watch carries garbage: {line[:80]!r}") from error
    raise failure
