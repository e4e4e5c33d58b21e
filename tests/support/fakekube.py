"""A client with an API server in memory, for unit tests of code that watches and writes.

The client has objects, versions, watches and injected errors, and no HTTP, schema, admission or
garbage collection.
"""

import asyncio
import copy
import itertools
from collections.abc import AsyncGenerator, Callable
from typing import Any

import jsonpatch

from hyperjob_core.kube.client import EventType, ObjectList, PatchType, WatchEvent
from hyperjob_core.kube.errors import KubeError, from_status
from hyperjob_core.kube.resources import Resource, key_of

Object = dict[str, Any]
Fails = Callable[[str, Resource, str], KubeError | None]


def refusal(code: int, reason: str, message: str = "no") -> KubeError:
    return from_status({"code": code, "reason": reason, "message": message}, "fake")


class FakeKube:
    """Has the verbs of `Kube`; `calls` are the write requests, and `fails` may raise an error."""

    def __init__(self) -> None:
        self.objects: dict[Resource, dict[str, Object]] = {}
        self.calls: list[tuple[str, str, str]] = []
        self.fails: Fails = lambda _verb, _resource, _name: None
        self.prunes: tuple[str, ...] = ()  # fields that are absent in a status
        self._watches: list[tuple[Resource, str | None, asyncio.Queue[WatchEvent]]] = []
        self._versions = itertools.count(1)

    def put(self, resource: Resource, obj: Object) -> Object:
        """Store an object as another client would, and send watch events."""
        store = self.objects.setdefault(resource, {})
        metadata = obj.setdefault("metadata", {})
        known = store.get(key_of(obj))
        obj.setdefault("apiVersion", resource.api_version)
        obj.setdefault("kind", resource.kind)
        number = next(self._versions)
        metadata["resourceVersion"] = str(number)
        metadata.setdefault("uid", f"uid-{number}")
        if known is not None and known.get("spec") != obj.get("spec"):
            metadata["generation"] = known["metadata"].get("generation", 1) + 1
        metadata.setdefault("generation", 1)
        store[key_of(obj)] = obj
        self._tell(resource, EventType.ADDED if known is None else EventType.MODIFIED, obj)
        return copy.deepcopy(obj)

    def remove(self, resource: Resource, key: str) -> None:
        """Delete an object, and send watch events."""
        obj = self.objects[resource].pop(key)
        obj["metadata"]["resourceVersion"] = str(next(self._versions))
        self._tell(resource, EventType.DELETED, obj)

    async def list(
        self,
        resource: Resource,
        *,
        label_selector: str | None = None,
        transform: Callable[[Object], Object] = lambda obj: obj,
        **_: Any,
    ) -> ObjectList:
        await self._call("list", resource, "")
        found = [
            transform(copy.deepcopy(obj))
            for obj in self.objects.get(resource, {}).values()
            if _selected(obj, label_selector)
        ]
        return ObjectList(found, str(next(self._versions)))

    async def watch(
        self,
        resource: Resource,
        *,
        label_selector: str | None = None,
        opened: Callable[[], None] | None = None,
        **_: Any,
    ) -> AsyncGenerator[WatchEvent, None]:
        queue: asyncio.Queue[WatchEvent] = asyncio.Queue()
        entry = resource, label_selector, queue
        self._watches.append(entry)
        if opened is not None:
            opened()
        try:
            while True:
                yield await queue.get()
        finally:
            self._watches.remove(entry)

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        await self._call("get", resource, name)
        return copy.deepcopy(self._find(resource, name, namespace))

    async def create(self, resource: Resource, obj: Object, **_: Any) -> Object:
        await self._call("create", resource, obj["metadata"]["name"])
        if key_of(obj) in self.objects.get(resource, {}):
            raise refusal(409, "AlreadyExists")
        return self.put(resource, copy.deepcopy(obj))

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Any,
        *,
        kind: PatchType,
        namespace: str | None = None,
        subresource: str | None = None,
        **_: Any,
    ) -> Object:
        await self._call("patch", resource, f"{name}/{subresource}" if subresource else name)
        obj = copy.deepcopy(self._find(resource, name, namespace))
        if kind is PatchType.JSON:
            return self.put(resource, jsonpatch.apply_patch(obj, body))
        for field in ("uid", "resourceVersion"):
            wanted = body.get("metadata", {}).get(field)
            if wanted not in (None, obj["metadata"][field]):
                raise refusal(409, "Conflict")
        merged = _merged(obj, body)
        for field in self.prunes:
            merged.get("status", {}).pop(field, None)
        return obj if merged == obj else self.put(resource, merged)

    async def replace(self, resource: Resource, obj: Object) -> Object:
        name, metadata = obj["metadata"]["name"], obj["metadata"]
        await self._call("replace", resource, name)
        stored = self._find(resource, name, metadata.get("namespace"))
        if metadata.get("resourceVersion") not in (None, stored["metadata"]["resourceVersion"]):
            raise refusal(409, "Conflict")
        return self.put(resource, copy.deepcopy(obj))

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        **_: Any,
    ) -> Object:
        await self._call("delete", resource, name)
        obj = self._find(resource, name, namespace)
        if uid not in (None, obj["metadata"]["uid"]):
            raise refusal(409, "Conflict")
        self.remove(resource, key_of(obj))
        return {"kind": "Status"}

    async def _call(self, verb: str, resource: Resource, name: str) -> None:
        await asyncio.sleep(0)
        if verb not in ("get", "list"):
            self.calls.append((verb, resource.plural, name))
        error = self.fails(verb, resource, name)
        if error is not None:
            raise error

    def _find(self, resource: Resource, name: str, namespace: str | None) -> Object:
        found = self.objects.get(resource, {}).get(f"{namespace}/{name}" if namespace else name)
        if found is None:
            raise refusal(404, "NotFound")
        return found

    def _tell(self, resource: Resource, kind: EventType, obj: Object) -> None:
        for watched, selector, queue in self._watches:
            if watched == resource and _selected(obj, selector):
                queue.put_nowait(WatchEvent(kind, copy.deepcopy(obj)))


def _selected(obj: Object, label: str | None) -> bool:
    return label is None or label in obj["metadata"].get("labels", {})


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result
