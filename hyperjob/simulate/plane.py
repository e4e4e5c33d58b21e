"""The Karmada API server of a simulation: objects in memory, behind a client transport.

The module stores objects, sets resourceVersions, sends watch events, and collects garbage by
ownerReferences. It does not validate objects: a simulation writes valid objects only.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

import orjson

from hyperjob.simulate.patches import merged, patched
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import rfc3339
from hyperjob_core.kube import resources
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.errors import KubeError, from_status, make_status
from hyperjob_core.kube.resources import EVENTS, Resource, key_of
from hyperjob_core.kube.transport import Params, Response

Listener = Callable[[str, Object | None, Object | None], None]
"""Gets the resource, the old and the new object: None before creation and after deletion."""

_BY_PLURAL: Final = {
    each.plural: each
    for each in vars(resources).values()
    if isinstance(each, Resource) and (each.plural, each.group) != ("events", "")
}


class Plane:
    """All objects; a `Transport` for clients, and methods for the other simulated components."""

    host = "simulation"

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._objects: dict[str, dict[str, Object]] = {}
        self._owned: dict[str, dict[tuple[str, str], None]] = {}
        self._watches: dict[str, list[_Watch]] = {}
        self._listeners: list[Listener] = []
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
        self._number += 1
        made: Object = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            **obj,
            "metadata": {
                **obj["metadata"],
                "uid": f"{self._number:08d}-0000-4000-8000-000000000000",
                "generation": 1,
                "creationTimestamp": rfc3339(self._now()),
            },
        }
        for owner in obj["metadata"].get("ownerReferences") or ():
            self._owned.setdefault(owner["uid"], {})[resource.plural, key] = None
        self._put(resource.plural, key, None, made, "ADDED")
        return made

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
        """Answer a request of a client."""
        self.requests += 1
        answer = self._answer(method, path, body, content_type, params or {})
        return Response(200, {}, orjson.dumps(answer))

    async def lines(
        self,
        path: str,
        *,
        params: Params,
        idle_limit: float | None,
        time_limit: float | None,
        opened: Callable[[], None] | None = None,
        empty: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events of a watch, without end."""
        plural, _, _, _ = _parts(path)
        watch = _Watch(params.get("labelSelector", ""))
        self._watches.setdefault(plural, []).append(watch)
        if opened is not None:
            opened()
        try:
            while True:
                while watch.events:
                    yield watch.events.popleft()
                watch.arrived.clear()
                await watch.arrived.wait()
        finally:
            self._watches[plural].remove(watch)

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _answer(
        self, method: str, path: str, body: bytes | None, content_type: str, params: Params
    ) -> Object:
        plural, namespace, name, subresource = _parts(path)
        resource = _BY_PLURAL.get(plural)
        if resource is None:
            raise _error(404, f"there is no resource {plural}", "NotFound")
        if method == "POST":
            obj: Object = orjson.loads(body or b"{}")
            if resource is EVENTS:
                for listener in self._listeners:
                    listener(EVENTS.kind, None, obj)
                return obj
            return self.create(resource, obj)
        if not name:
            selected = _selects(params.get("labelSelector", ""))
            items = [item for item in self.items(resource) if selected(item)]
            return {"metadata": {"resourceVersion": str(self._version)}, "items": items}
        key = f"{namespace}/{name}" if namespace else name
        found = self.get(resource, key)
        if found is None:
            raise _error(404, f"{plural} {key} not found", "NotFound")
        if method == "PATCH":
            patch: Any = orjson.loads(body or b"{}")
            merge = content_type == PatchType.MERGE
            _check(found, patch if merge else {})
            new = merged(found, patch) if merge else patched(found, patch)
            return self._write(resource, key, found, new, status=subresource == "status")
        if method == "DELETE":
            uid = (orjson.loads(body or b"{}").get("preconditions") or {}).get("uid")
            if uid is not None and uid != found["metadata"]["uid"]:
                raise _error(409, f"{plural} {key} has another UID", "Conflict")
            self.remove(resource, key)
            return {"kind": "Status", "status": "Success"}
        return found

    def _write(
        self, resource: Resource, key: str, old: Object, new: Object, *, status: bool
    ) -> Object:
        if new == old:
            return old
        if not status and new.get("spec") != old.get("spec"):
            generation = old["metadata"]["generation"] + 1
            new = {**new, "metadata": {**new["metadata"], "generation": generation}}
        return self._put(resource.plural, key, old, new, "MODIFIED")

    def _put(self, plural: str, key: str, old: Object | None, new: Object, kind: str) -> Object:
        self._version += 1
        new["metadata"] = {**new["metadata"], "resourceVersion": str(self._version)}
        self._objects[plural][key] = new
        self._notify(plural, new, kind)
        for listener in self._listeners:
            listener(new["kind"], old, new)
        return new

    def _notify(self, plural: str, obj: Object, kind: str) -> None:
        watches = self._watches.get(plural)
        if not watches:
            return
        line = orjson.dumps({"type": kind, "object": obj})
        for watch in watches:
            if watch.selects(obj):
                watch.events.append(line)
                watch.arrived.set()


class _Watch:
    """The pending events of a watch."""

    def __init__(self, label_selector: str) -> None:
        self.selects = _selects(label_selector)
        self.events: deque[bytes] = deque()
        self.arrived = asyncio.Event()


def _selects(label_selector: str) -> Callable[[Object], bool]:
    """Parse a label selector of the controller: a label exists, or does not exist."""
    if not label_selector:
        return lambda _: True
    label, wanted = label_selector.removeprefix("!"), not label_selector.startswith("!")
    return lambda obj: (label in (obj["metadata"].get("labels") or {})) is wanted


def _check(found: Object, patch: Mapping[str, Any]) -> None:
    """Raise Conflict for a patch with another resourceVersion or UID."""
    wanted = patch.get("metadata") or {}
    for field in ("uid", "resourceVersion"):
        if wanted.get(field, found["metadata"][field]) != found["metadata"][field]:
            raise _error(409, f"{key_of(found)} has another {field}", "Conflict")


def _error(code: int, message: str, reason: str) -> KubeError:
    return from_status(make_status(code, message, reason=reason), "simulation")


@lru_cache(maxsize=4096)
def _parts(path: str) -> tuple[str, str, str, str]:
    """Return plural, namespace, name and subresource of a URL path, empty where absent."""
    steps = path.split("/")[1:]
    rest = steps[3:] if steps[0] == "apis" else steps[2:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = unquote(rest[1]), rest[2:]
    rest += [""] * (3 - len(rest))
    return rest[0], namespace, unquote(rest[1]), rest[2]
