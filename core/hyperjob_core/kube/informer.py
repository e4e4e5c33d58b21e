"""The informer: a cache of one resource by list and watch, which calls handlers for each change.

It uses bookmarks, resumes the watch after a broken connection, and lists again if the version is
too old; the handlers then get the difference, deleted objects included. After errors of the server
or the network it retries forever, with a growing pause. An exception of a handler is a bug and ends
`run()`.
"""

import asyncio
import logging
import math
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Protocol

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.backoff import Backoff
from hyperjob_core.kube.client import IDLE_LIMIT, EventType, ObjectList, WatchEvent
from hyperjob_core.kube.errors import Gone, KubeError, NotFound, TooManyRequests, Unavailable
from hyperjob_core.kube.instruments import SILENT, InformerMetrics
from hyperjob_core.kube.resources import Resource, key_of
from hyperjob_core.kube.store import Indexer, Store

log = logging.getLogger(__name__)

Handler = Callable[[EventType, Object | None, Object | None], None]
Transform = Callable[[Object], Object]

_HEALTHY_SECONDS = 10.0
_RESUMES = 3  # after so many failures in a row without a change, list again
_WATCH_SECONDS = (300, 600)


class ListerWatcher(Protocol):
    """The methods of a client that an informer calls; `Kube` has them."""

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = 500,
        transform: Callable[[Object], Object] = ...,
    ) -> ObjectList:
        """List all objects, each transformed as soon as it is read."""
        ...

    def watch(
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
    ) -> AsyncGenerator[WatchEvent, None]:
        """Follow changes."""
        ...


def strip_managed_fields(obj: Object) -> Object:
    """Remove `metadata.managedFields`: often half of an object, and never read."""
    obj["metadata"].pop("managedFields", None)
    return obj


class Informer:
    """An informer of one resource; the caller runs `run()` in its TaskGroup.

    `get`, `items` and `by_index` return the cache's own objects, which callers must not change.
    """

    def __init__(
        self,
        kube: ListerWatcher,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        indexers: Mapping[str, Indexer] | None = None,
        transform: Transform | None = strip_managed_fields,
        page_size: int = 500,
        idle_limit: float = IDLE_LIMIT,
        backoff: Backoff | None = None,
        metrics: InformerMetrics = SILENT,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.last_error: KubeError | None = None
        self._kube = kube
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._transform = transform
        self._page_size = page_size
        self._idle_limit = idle_limit
        self._backoff = backoff or Backoff()
        self._metrics = metrics
        self._sleep = sleep
        self._store = Store(indexers)
        self._handlers: list[Handler] = []
        self._version = ""
        self._opened = math.inf
        self._changes = 0
        self._failures = 0
        self._said: type[KubeError] | None = None

    def get(self, key: str) -> Object | None:
        """Return the object under `namespace/name` (or `name`)."""
        return self._store.get(key)

    @property
    def seen_version(self) -> int:
        """Return the resourceVersion up to which the store is complete; 0 if it is unknown."""
        return int(self._version) if self._version.isdecimal() else 0

    def transformed(self, obj: Object) -> Object:
        """Return an object in the form of the store; the argument itself may be changed."""
        return self._transform(obj) if self._transform else obj

    def items(self) -> list[Object]:
        """Return all objects."""
        return self._store.items()

    def by_index(self, name: str, value: str) -> list[Object]:
        """Return the objects for which the indexer `name` returned `value`."""
        return self._store.by_index(name, value)

    def __len__(self) -> int:
        return len(self._store)

    def add_handler(self, handler: Handler) -> None:
        """Call `handler(type, old, new)` at each change, in the informer's own task.

        ADDED has no old object, DELETED no new one (old is the last known state). The handler gets
        the present objects of the store at once as ADDED.
        """
        self._handlers.append(handler)
        for obj in self._store.items():
            handler(EventType.ADDED, None, obj)

    async def run(self) -> None:
        """List and watch until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            self._opened = math.inf
            before = self._changes
            try:
                if not self._version:
                    await self._list()
                await self._follow()
            except KubeError as error:
                self._failed(error)
            healthy = clock() - self._opened >= _HEALTHY_SECONDS
            brought = self._changes > before
            if healthy or brought:
                self._recovered()
            if self._opened < math.inf:
                self._metrics.informer_watch(
                    self.resource.group_resource, short=not healthy and not brought
                )
            if not healthy:
                await self._sleep(self._backoff.next())

    async def _follow(self) -> None:
        watch = self._kube.watch(
            self.resource,
            resource_version=self._version,
            # Random end times: many watches must not reconnect at the same moment.
            timeout_seconds=random.randint(*_WATCH_SECONDS),
            idle_limit=self._idle_limit,
            opened=self._flowing,
            namespace=self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        )
        async with aclosing(watch) as events:
            async for event in events:
                self._take(event)

    async def _list(self) -> None:
        listed = await self._kube.list(
            self.resource,
            limit=self._page_size,
            namespace=self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            transform=self.transformed,
        )
        self._metrics.informer_list(self.resource.group_resource)
        self._swap(listed)
        self._version = listed.resource_version
        self.synced.set()

    def _swap(self, listed: ObjectList) -> None:
        """Replace the store, then call the handlers: a handler never sees a part of a list."""
        present = {key_of(obj) for obj in listed.items}
        gone = [self._store.pop(key) for key in [k for k in self._store if k not in present]]
        changed: list[tuple[Object | None, Object]] = []
        for new in listed.items:
            changed.append((self._store.put(new), new))  # noqa: PERF401 - it changes the store
        for vanished in gone:
            self._notify(EventType.DELETED, vanished, None)
        for old, new in changed:
            self._notify_put(old, new)

    def _take(self, event: WatchEvent) -> None:
        obj = event.object
        if event.type is not EventType.BOOKMARK:
            self._changes += 1
            if self._said is not None:
                self._recovered()
            obj = self.transformed(obj)
            if event.type is EventType.DELETED:
                if self._store.pop(key_of(obj)) is not None:
                    self._notify(EventType.DELETED, obj, None)
            else:
                self._notify_put(self._store.put(obj), obj)
        self._version = str(obj["metadata"]["resourceVersion"])

    def _notify_put(self, old: Object | None, new: Object) -> None:
        if old is None:
            self._notify(EventType.ADDED, None, new)
            return
        was, now = old["metadata"], new["metadata"]
        if was.get("uid") != now.get("uid"):
            self._notify(EventType.DELETED, old, None)
            self._notify(EventType.ADDED, None, new)
        elif was.get("resourceVersion") != now.get("resourceVersion"):
            self._notify(EventType.MODIFIED, old, new)

    def _notify(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            handler(kind, old, new)

    def _flowing(self) -> None:
        """Record that the server has accepted the watch."""
        self._opened = asyncio.get_running_loop().time()
        self.last_error = None

    def _recovered(self) -> None:
        """Reset the failures, after a watch has lasted or has brought a change."""
        self._backoff.reset()
        self._failures = 0
        if self._said is not None:
            self._said = None
            log.info("Watching again", extra=self._about())

    def _failed(self, error: KubeError) -> None:
        """Choose between watch and list, and log a new kind of failure once."""
        self._failures += 1
        unanswered = isinstance(error, Unavailable | TooManyRequests)
        if not unanswered or self._failures >= _RESUMES:
            self._version = ""
        if isinstance(error, Gone):
            log.info("Listing again", extra=self._about(error=error.message))
            return
        self.last_error = error
        if self._said is type(error):
            return
        self._said = type(error)
        if isinstance(error, NotFound):
            log.warning(
                "Resource is not served, waiting for it: is its CRD installed?",
                extra=self._about(error=error.message),
            )
        else:
            log.warning("Cannot list or watch, trying on", extra=self._about(error=str(error)))

    def _about(self, **more: str) -> dict[str, str]:
        return {"resource": self.resource.group_resource, **more}
