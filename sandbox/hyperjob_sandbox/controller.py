"""The loop every simulated controller runs in, and the caches and writes that controllers share.

A reconcile that raises RetryError or a KubeError is tried again later. A malformed object is logged
and left alone until it changes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType, Kube, PatchType
from hyperjob_core.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from hyperjob_core.kube.informer import Indexer, Informer
from hyperjob_core.kube.resources import Resource, key_of
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_sandbox.objects import is_going

log = logging.getLogger(__name__)

Reconcile = Callable[[str], Awaitable[None]]
Change = Callable[[Object | None, Object | None], bool]
"""Whether an object that an informer reports, before and after, is of interest."""
_SLOWEST_RETRY: Final = 5.0
_AT_ONCE: Final = 16
_CACHE_SECONDS: Final = 5.0
"""How long a write waits for the cache, which is behind while its watch is broken."""
UNREADABLE: Final = (AttributeError, KeyError, TypeError, ValueError)
"""What reading a malformed object raises."""
_BOOKKEEPING: Final = frozenset({"resourceVersion", "managedFields"})


class RetryError(Exception):
    """What a key waits for has not come yet; the text says what that is."""


def change_of(part: Callable[[Object], object]) -> Change:
    """Take a change of a part of an object, and objects that come or go."""
    return lambda old, new: old is None or new is None or part(old) != part(new)


def _besides_status(obj: Object) -> Object:
    meta = {key: value for key, value in obj["metadata"].items() if key not in _BOOKKEEPING}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}


changed_besides_status: Final = change_of(_besides_status)
generation_changed: Final = change_of(lambda obj: obj["metadata"].get("generation"))


class Controller:
    """A queue of keys and the workers that reconcile them; `run()` belongs in a TaskGroup."""

    def __init__(self, name: str, reconcile: Reconcile, *, workers: int = 4) -> None:
        self.name = name
        self._reconcile = reconcile
        self._workers = workers
        self.queue: WorkQueue[str] = WorkQueue(name, longest_wait=_SLOWEST_RETRY)

    def add(self, key: str, *, after: float = 0.0) -> None:
        """Queue a key, now or after some seconds."""
        self.queue.add_after(key, after)

    def watch(
        self,
        *informers: Informer,
        when: Change = lambda *_: True,
        keys: Callable[[Object], Iterable[str]] = lambda obj: (key_of(obj),),
        after: float = 0.0,
    ) -> None:
        """Queue the `keys` of objects that change so, by default their own, after some seconds."""

        def handle(_: EventType, old: Object | None, new: Object | None) -> None:
            obj = new or old
            if obj is not None and when(old, new):
                for key in keys(obj):
                    self.add(key, after=after)

        for informer in informers:
            informer.add_handler(handle)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                await self._reconcile(key)
            except (RetryError, KubeError) as error:
                expected = isinstance(error, RetryError | Conflict | AlreadyExists)
                level = logging.DEBUG if expected else logging.INFO
                log.log(level, "%s: %s is tried again: %s", self.name, key, error)
                self.queue.add_rate_limited(key)
            except UNREADABLE:
                log.exception("%s: %s cannot be handled", self.name, key)
                self.queue.forget(key)
            else:
                self.queue.forget(key)
            finally:
                self.queue.done(key)


async def together(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for the end of all calls, a few at a time; raises the first failure."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(call: Coroutine[Any, Any, None]) -> None:
        async with slots:
            await call

    for result in await asyncio.gather(*map(one, calls), return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


class Informers:
    """What the controllers of one cluster watch in it, and the writes they make there.

    A write waits until the cache holds what it made, and leaves an object alone that is gone.
    """

    def __init__(self, kube: Kube) -> None:
        self.kube = kube
        self._informers: dict[tuple[str, str], Informer] = {}
        self._changed = asyncio.Event()

    def add(self, resource: Resource, *, indexers: Mapping[str, Indexer] | None = None) -> Informer:
        """Make the informer of a resource; before `run` only, and once."""
        informer = Informer(self.kube, resource, indexers=indexers)
        informer.add_handler(self._on_any)
        self._informers[resource.api_version, resource.kind] = informer
        return informer

    def _on_any(self, _: EventType, _old: Object | None, _new: Object | None) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def __getitem__(self, resource: Resource) -> Informer:
        return self._informers[resource.api_version, resource.kind]

    def named(self, resource: Resource, namespace: str) -> dict[str, Object]:
        """Return the cached objects of a resource in a namespace by name."""
        return {
            each["metadata"]["name"]: each
            for each in self[resource].items()
            if each["metadata"].get("namespace") == namespace
        }

    async def run(self) -> None:
        """Keep all of them up to date until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers.values():
                group.create_task(informer.run())

    async def synced(self) -> None:
        """Wait until every informer holds its first list."""
        for informer in self._informers.values():
            await informer.synced.wait()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds for the cached objects."""
        while not holds():
            await self._changed.wait()

    def of_kind(self, obj: Object) -> Informer | None:
        """Return the informer for an object, or for what a reference names; None if not watched."""
        return self._informers.get((obj.get("apiVersion", ""), obj.get("kind", "")))

    def live(self, obj: Object) -> Object | None:
        """Return the cached object of the same kind, namespace and name."""
        informer = self.of_kind(obj)
        return None if informer is None else informer.get(key_of(obj))

    async def ensure(
        self, desired: Object, sync: Callable[[Object, Object], Object], *, even_going: bool = False
    ) -> None:
        """Create an object, or replace the live one where `sync(live, desired)` is another.

        Raises RetryError while the live one is being deleted, unless `even_going`.
        """
        live = self.live(desired)
        if live is None:
            await self.create(desired)
            return
        if is_going(live) and not even_going:
            raise RetryError(f"{desired['kind']} {key_of(desired)} is being deleted")
        synced = sync(live, desired)
        if synced != live:
            await self.replace(synced)

    async def create(self, obj: Object) -> None:
        """Create an object; raises AlreadyExists."""
        informer = self._informer(obj)
        await self._seen(informer, await self.kube.create(informer.resource, obj))

    async def replace(self, obj: Object, *, subresource: str | None = None) -> None:
        """Replace an object."""
        informer = self._informer(obj)
        with suppress(NotFound):
            replaced = await self.kube.replace(informer.resource, obj, subresource=subresource)
            await self._seen(informer, replaced)

    async def patch(self, obj: Object, body: Object, *, subresource: str | None = None) -> None:
        """Merge fields into this very object; raises Conflict where another one has its name."""
        informer, meta = self._informer(obj), obj["metadata"]
        body = {**body, "metadata": {**body.get("metadata", {}), "uid": meta["uid"]}}
        with suppress(NotFound):
            patched = await self.kube.patch(
                informer.resource,
                meta["name"],
                body,
                kind=PatchType.MERGE,
                namespace=meta.get("namespace"),
                subresource=subresource,
            )
            await self._seen(informer, patched)

    async def set_status(self, obj: Object, status: Object | None) -> None:
        """Replace the status of an object where it is another one; None takes it away."""
        if (status or {}) == (obj.get("status") or {}):
            return
        updated = {key: value for key, value in obj.items() if key != "status"}
        if status is not None:
            updated["status"] = status
        await self.replace(updated, subresource="status")

    async def delete(self, obj: Object) -> None:
        """Delete this very object, unless it is being deleted."""
        meta: Object = obj["metadata"]
        if is_going(obj):
            return
        resource, namespace = self._informer(obj).resource, meta.get("namespace")
        with suppress(NotFound):
            await self.kube.delete(resource, meta["name"], namespace=namespace, uid=meta["uid"])

    async def remove(self, obj: Object) -> None:
        """Delete an object without a grace period, which ends its deletion."""
        resource, meta = self._informer(obj).resource, obj["metadata"]
        path = resource.path(meta["namespace"], meta["name"])
        with suppress(NotFound):
            await self.kube.raw("DELETE", path, params={"gracePeriodSeconds": "0"})

    async def let_go(self, obj: Object, *finalizers: str) -> None:
        """Take finalizers off an object that has them."""
        present = obj["metadata"].get("finalizers") or []
        left = [each for each in present if each not in finalizers]
        if left != present:
            await self.replace({**obj, "metadata": {**obj["metadata"], "finalizers": left}})

    def _informer(self, obj: Object) -> Informer:
        informer = self.of_kind(obj)
        if informer is None:
            raise RetryError(f"nothing watches {obj.get('apiVersion')} {obj.get('kind')}")
        return informer

    async def _seen(self, informer: Informer, written: Object) -> None:
        version = int(written["metadata"]["resourceVersion"])
        with suppress(TimeoutError):
            async with asyncio.timeout(_CACHE_SECONDS):
                await self.until(lambda: informer.seen_version >= version)
