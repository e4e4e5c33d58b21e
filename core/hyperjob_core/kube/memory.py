"""The API server in memory: a `Transport` for clients, without HTTP.

The server stores objects, sets resourceVersions, sends watch events, and collects garbage by
ownerReferences. It neither validates nor defaults objects, and it knows no finalizers: the
simulator, the plan and the tests write valid objects only. `hyperjob_sandbox` has the API server
over HTTP.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

import orjson

from hyperjob_core.api.field import make_status
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, decoded, rfc3339, string_map
from hyperjob_core.kube import resources
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.errors import KubeError, from_status
from hyperjob_core.kube.patches import merged, patched
from hyperjob_core.kube.resources import EVENTS, Resource, key_of
from hyperjob_core.kube.transport import Params, Response

Listener = Callable[[str, Object | None, Object | None], None]
"""Gets the resource, the old and the new object: None before creation and after deletion."""

_BY_PLURAL: Final = {
    each.plural: each
    for each in vars(resources).values()
    if isinstance(each, Resource) and (each.plural, each.group) != ("events", "")
}


_KEPT: Final = 1024
"""Changes that a server keeps for watches that begin at an older resourceVersion."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request about one object, or, without `name`, about all objects of a resource."""

    method: str
    resource: Resource
    namespace: str
    name: str
    subresource: str
    params: Params
    content_type: str
    body: bytes | None

    @property
    def key(self) -> str:
        """Return the key of the object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def content(self) -> Any:  # noqa: ANN401 - any JSON value
        """Decode the body; an empty object for none."""
        return decoded(self.body or b"{}")


class MemoryServer:
    """All objects; a `Transport` for clients, and methods for other components of a control plane.

    Stored objects are never changed: a change stores another object, which may share parts.
    """

    host = "simulation"

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._objects: dict[str, dict[str, Object]] = {}  # by plural and key
        self._owned: dict[str, dict[tuple[str, str], None]] = {}  # by UID of the owner
        self._watches: dict[str, list[_Watch]] = {}
        self._listeners: list[Listener] = []
        # The last changes: version, plural, type and object; a watch may begin at any of them.
        self._past: deque[tuple[int, str, str, Object]] = deque(maxlen=_KEPT)
        self._version = 1
        self._number = 0
        self.requests = 0

    def listen(self, listener: Listener) -> None:
        """Call `listener` synchronously at every change."""
        self._listeners.append(listener)

    def get(self, resource: Resource, key: str) -> Object | None:
        """Return an object, None if absent; the caller must not change it."""
        return self._objects.get(resource.plural, {}).get(key)

    def items(self, resource: Resource) -> list[Object]:
        """Return all objects of a resource; the caller must not change them."""
        return list(self._objects.get(resource.plural, {}).values())

    def create(self, resource: Resource, obj: Object) -> Object:
        """Store a new object; return the stored object; raises AlreadyExists."""
        key = key_of(obj)
        store = self._objects.setdefault(resource.plural, {})
        if key in store:
            raise _error(409, f"{resource.plural} {key} already exists", "AlreadyExists")
        return self._add(resource, key, obj, self._identity())

    def put(self, resource: Resource, obj: Object) -> Object:
        """Store an object as it is, in place of one with the same key; return the stored object.

        The server sets the fields of the metadata that are absent.
        """
        key = key_of(obj)
        old = self.get(resource, key)
        if old is None:
            return self._add(resource, key, obj, {**self._identity(), **obj["metadata"]})
        known = old["metadata"]
        kept = {field: known[field] for field in ("uid", "creationTimestamp")}
        metadata = {**kept, **obj["metadata"], "generation": known["generation"]}
        new = {**resource.head, **obj, "metadata": metadata}
        return self._write(resource, key, old, new, status=False)

    def change(self, resource: Resource, key: str, patch: Object, *, status: bool = False) -> None:
        """Apply a merge patch to an existing object; ignored for deleted objects."""
        old = self.get(resource, key)
        if old is not None:
            self._write(resource, key, old, merged(old, patch), status=status)

    def replace(self, resource: Resource, key: str, new: Object) -> None:
        """Store an existing object with a new status; ignored for deleted objects."""
        old = self.get(resource, key)
        if old is not None:
            self._write(resource, key, old, new, status=True)

    def remove(self, resource: Resource, key: str) -> None:
        """Delete an object and its dependents; ignored for deleted objects."""
        old = self._objects.get(resource.plural, {}).pop(key, None)
        if old is None:
            return
        self._version += 1
        metadata = old["metadata"]
        gone = {**old, "metadata": {**metadata, "resourceVersion": str(self._version)}}
        self._notify(resource.plural, gone, "DELETED")
        for listener in self._listeners:
            listener(resource.kind, old, None)
        for owner in metadata.get("ownerReferences") or ():
            self._owned.get(owner["uid"], {}).pop((resource.plural, key), None)
        for plural, owned in self._owned.pop(metadata["uid"], {}):
            self.remove(_BY_PLURAL[plural], owned)

    def _identity(self) -> Object:
        """Return the metadata that the server gives to a new object."""
        self._number += 1
        return {
            "uid": f"{self._number:08d}-0000-4000-8000-000000000000",
            "generation": 1,
            "creationTimestamp": rfc3339(self._now()),
        }

    def _add(self, resource: Resource, key: str, obj: Object, metadata: Object) -> Object:
        """Store a new object with this metadata, and index its owners; return the stored object."""
        made: Object = {**resource.head, **obj, "metadata": {**obj["metadata"], **metadata}}
        for owner in obj["metadata"].get("ownerReferences") or ():
            self._owned.setdefault(owner["uid"], {})[resource.plural, key] = None
        self._objects.setdefault(resource.plural, {})
        return self._put(resource.plural, key, None, made, "ADDED")

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        time_limit: float = 30.0,
    ) -> Response:
        """Answer a request of a client; raises KubeError."""
        self.requests += 1
        plural, namespace, name, subresource = _parts(path)
        resource = _BY_PLURAL.get(plural)
        if resource is None:
            raise _error(404, f"there is no resource {plural}", "NotFound")
        call = Call(
            method, resource, namespace, name, subresource, params or {}, content_type, body
        )
        return Response(200, {}, orjson.dumps(self.answer(call)))

    async def stream(
        self,
        path: str,
        *,
        params: Params,
        idle_limit: float | None,
        time_limit: float | None,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events of a watch, without end; raises Gone for a version that is too old."""
        plural, namespace, _, _ = _parts(path)
        watch = _Watch(_selection(namespace, params))
        version = int(params.get("resourceVersion") or self._version)
        if self._past and version < self._past[0][0] - 1 and len(self._past) == _KEPT:
            raise _error(410, f"too old resource version: {version}", "Expired")
        for changed, kept, kind, obj in self._past:
            if changed > version and kept == plural:
                watch.take(kind, obj)
        self._watches.setdefault(plural, []).append(watch)
        if opened is not None:
            opened()
        try:
            while True:
                while watch.events:
                    yield watch.events.popleft() + b"\n"
                watch.arrived.clear()
                await watch.arrived.wait()
        finally:
            self._watches[plural].remove(watch)

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def answer(self, call: Call) -> Object:
        """Return the object, list or Status for a request; raises KubeError."""
        resource, key = call.resource, call.key
        if call.method == "POST":
            obj: Object = call.content()
            if resource.kind.endswith("Review"):
                return obj  # an answer without a status, since this server knows no users
            if resource is EVENTS:
                for listener in self._listeners:
                    listener(EVENTS.kind, None, obj)
                return obj
            if call.namespace:  # an object gets the namespace of its path
                obj["metadata"].setdefault("namespace", call.namespace)
            return self.create(resource, obj)
        if not call.name:
            selected = _selection(call.namespace, call.params)
            items = [item for item in self.items(resource) if selected(item)]
            return {"metadata": {"resourceVersion": str(self._version)}, "items": items}
        found = self.get(resource, key)
        if found is None:
            said = f'{resource.group_resource} "{call.name}" not found'
            details = {"name": call.name, "group": resource.group, "kind": resource.plural}
            raise _error(404, said, "NotFound", details=details)
        match call.method:
            case "PATCH" | "PUT":
                new, status = _changed(call, found), call.subresource == "status"
                return self._write(resource, key, found, new, status=status)
            case "DELETE":
                uid = (call.content().get("preconditions") or {}).get("uid")
                if uid is not None and uid != found["metadata"]["uid"]:
                    raise _error(409, f"{resource.plural} {key} has another UID", "Conflict")
                self.remove(resource, key)
                return {"kind": "Status", "status": "Success"}
        return found

    def _write(
        self, resource: Resource, key: str, old: Object, new: Object, *, status: bool
    ) -> Object:
        """Store a changed object; another spec raises `generation`, unless `status` is true."""
        if new == old:
            return old
        if not status and new.get("spec") != old.get("spec"):
            generation = old["metadata"]["generation"] + 1
            new = {**new, "metadata": {**new["metadata"], "generation": generation}}
        return self._put(resource.plural, key, old, new, "MODIFIED")

    def _put(self, plural: str, key: str, old: Object | None, new: Object, kind: str) -> Object:
        """Store an object with the next resourceVersion, and notify watches and listeners."""
        self._version += 1
        new["metadata"] = {**new["metadata"], "resourceVersion": str(self._version)}
        self._objects[plural][key] = new
        self._notify(plural, new, kind)
        for listener in self._listeners:
            listener(new["kind"], old, new)
        return new

    def _notify(self, plural: str, obj: Object, kind: str) -> None:
        self._past.append((self._version, plural, kind, obj))
        for watch in self._watches.get(plural, ()):
            watch.take(kind, obj)


class _Watch:
    """The pending events of a watch."""

    def __init__(self, selects: Callable[[Object], bool]) -> None:
        self._selects = selects
        self.events: deque[bytes] = deque()
        self.arrived = asyncio.Event()

    def take(self, kind: str, obj: Object) -> None:
        """Add an event, if the watch selects the object."""
        if self._selects(obj):
            self.events.append(orjson.dumps({"type": kind, "object": obj}))
            self.arrived.set()


def _selection(namespace: str, params: Params) -> Callable[[Object], bool]:
    """Return whether a list or watch selects an object."""
    labels, fields = params.get("labelSelector", ""), params.get("fieldSelector", "")

    def selects(obj: Object) -> bool:
        metadata = obj["metadata"]
        if namespace and metadata.get("namespace") != namespace:
            return False
        return _matches(labels, string_map(metadata.get("labels")).get) and _matches(
            fields, lambda path: str(at(obj, *path.split(".")) or "")
        )

    return selects


def _matches(selector: str, value: Callable[[str], str | None]) -> bool:
    """Return whether all terms hold: `a=b`, `a!=b`, `a`, `!a`; ValueError for a set of values."""
    if "(" in selector:
        raise ValueError(f"the API server in memory knows no sets of values: {selector}")
    for term in filter(None, selector.split(",")):
        name, equals, wanted = term.partition("=")
        found = value(name.strip("!"))
        same = found == wanted.removeprefix("=") if equals else found is not None
        if same is (name.startswith("!") or name.endswith("!")):
            return False
    return True


def _changed(call: Call, found: Object) -> Object:
    """Return an object after a PATCH or PUT of the object or of its status.

    Raises Conflict for another resourceVersion than the body has, and Invalid for a patch of the
    UID and for a test of a JSON patch that fails. As in Kubernetes, a patch of the status may have
    any UID.
    """
    body, before = call.content(), found["metadata"]
    if call.content_type == PatchType.JSON:
        try:
            new: Object = patched(found, body)
        except ValueError as error:
            raise _error(422, str(error), "Invalid") from error
    elif call.method == "PATCH":
        new = merged(found, body)
    else:
        metadata = {**before, **(body.get("metadata") or {})}
        new = {**call.resource.head, **body, "metadata": metadata}
    after = new["metadata"]
    of_other = after["uid"] != before["uid"]
    if after["resourceVersion"] != before["resourceVersion"] or (of_other and call.method == "PUT"):
        raise _error(409, f"{key_of(found)} has another version or UID", "Conflict")
    if call.subresource == "status":
        return {**found, "status": new.get("status")}
    if of_other:
        causes = [{"field": "metadata.uid", "message": "field is immutable"}]
        raise _error(422, "metadata.uid: field is immutable", "Invalid", details={"causes": causes})
    return new


def _error(code: int, message: str, reason: str, **more: Object) -> KubeError:
    return from_status(make_status(code, message, reason=reason) | more, "simulation")


@lru_cache(maxsize=4096)
def _parts(path: str) -> tuple[str, str, str, str]:
    """Return plural, namespace, name and subresource of a URL path, empty where absent."""
    steps = path.split("/")[1:]
    rest = steps[3:] if steps[0] == "apis" else steps[2:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = unquote(rest[1]), rest[2:]
    rest += [""] * (3 - len(rest))
    return rest[0], namespace, unquote(rest[1]), rest[2]
