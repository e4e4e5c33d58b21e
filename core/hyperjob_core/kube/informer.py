"""The informer: a cache of one resource by a Reflector, which calls handlers for each change.

After another list the handlers get the difference, deleted objects included. After errors of the
server or the network the informer tries on without end. An exception of a handler or of the
transformation is a bug: `faulty` gets it with the object, and the other handlers get the change.
The handler that failed gets no further change of that object before its back-off is over, and then
the same event with the present object.

Its store has the objects by key and by index. Readers get the store's own objects and must not
change them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import IDLE_LIMIT, EventType, Kube, WatchEvent
from hyperjob_core.kube.errors import Gone, KubeError, NotFound, Unauthorized
from hyperjob_core.kube.paging import ObjectList
from hyperjob_core.kube.ratelimit import Backoff
from hyperjob_core.kube.reflector import Reflector, Transform, unchanged
from hyperjob_core.kube.resources import Resource, key_of

Indexer = Callable[[Object], Iterable[str]]
"""Returns the values of an object in an index.

It must return the same values for the same object: a Store asks again to remove them.
"""


class Store:
    """Objects by key, with any number of secondary indexes."""

    def __init__(self, indexers: Mapping[str, Indexer] | None = None) -> None:
        self._objects: dict[str, Object] = {}
        self._indexers = dict(indexers or {})
        self._indexes: dict[str, dict[str, dict[str, None]]] = {name: {} for name in self._indexers}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[str]:
        return iter(self._objects)

    def get(self, key: str) -> Object | None:
        """Return the object under `namespace/name` (or `name`)."""
        return self._objects.get(key)

    def items(self) -> list[Object]:
        """Return all objects."""
        return list(self._objects.values())

    def by_index(self, name: str, value: str) -> list[Object]:
        """Return the objects with `value` in the index `name`; KeyError for an unknown index."""
        return [self._objects[key] for key in self._indexes[name].get(value, ())]

    def put(self, obj: Object) -> Object | None:
        """Store an object; return the replaced one, or None."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None:
            self._unindex(key, old)
        self._objects[key] = obj
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(obj):
                index.setdefault(value, {})[key] = None
        return old

    def pop(self, key: str) -> Object | None:
        """Remove an object and return it; None if there was none."""
        old = self._objects.pop(key, None)
        if old is not None:
            self._unindex(key, old)
        return old

    def _unindex(self, key: str, old: Object) -> None:
        """Remove a replaced or deleted object from all indexes, and empty values with it."""
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(old):
                if keys := index.get(value):
                    keys.pop(key, None)
                    if not keys:
                        del index[value]


log = logging.getLogger(__name__)

Handler = Callable[[EventType, Object | None, Object | None], None]
Faulty = Callable[[Resource, Object, Exception], None]
InTurn = Callable[[Resource, Object], AbstractContextManager[object]]
"""Returns the context in which a handler or the transformation works on an object."""

_FIRST_SECONDS = 5.0
_LONGEST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class _Failed:
    """The event at which a handler failed, and when it gets the event again."""

    kind: EventType
    old: Object | None
    pause: float
    again: asyncio.TimerHandle


_UNTIMED = nullcontext()


def untimed(_resource: Resource, _obj: Object) -> AbstractContextManager[object]:
    """Let work on an object take any time."""
    return _UNTIMED


class RestoredError(Exception):
    """The API server was put back from a backup: what this process knows is of another history."""


def end_when_restored(resource: Resource, obj: Object) -> None:
    """Raise RestoredError with the first object that the API server shows in an older version."""
    raise RestoredError(f"{resource.group_resource} {key_of(obj)} is older than before")


def strip_managed_fields(obj: Object) -> Object:
    """Remove `metadata.managedFields`: often half of an object, and never read."""
    obj["metadata"].pop("managedFields", None)
    return obj


class Informer(Store):
    """The store of one resource, which `run()` alone changes, in the caller's TaskGroup.

    `get`, `items` and `by_index` return the cache's own objects, which callers must not change.
    """

    def __init__(
        self,
        kube: Kube,
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
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        faulty: Faulty | None = None,
        in_turn: InTurn = untimed,
        restored: Callable[[Resource, Object], None] = lambda _resource, _obj: None,
    ) -> None:
        """`restored` is called for a list with an object that is older than the store's.

        Lists are consistent reads: only an API server that was put back from a backup answers thus.
        An exception of `restored` ends `run`, and the store stays as it was.
        """
        super().__init__(indexers)
        self.resource = resource
        self.synced = asyncio.Event()
        self.known: Callable[[Object], Object | None] = lambda _obj: None
        self._transform = transform or unchanged
        self._faulty = faulty or _logged
        self._in_turn = in_turn
        self._restored = restored
        self._reflector = Reflector(
            kube,
            resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            transform=self.transformed,
            page_size=page_size,
            idle_limit=idle_limit,
            backoff=backoff or Backoff(),
            report=self._report,
            sleep=sleep,
        )
        self._handlers: list[Handler] = []
        self._failed: dict[tuple[Handler, str], _Failed] = {}
        self._said: type[KubeError] | None = None

    @property
    def last_error(self) -> KubeError | None:
        """Return the failure since the last watch that opened."""
        return self._reflector.last_error

    @property
    def seen_version(self) -> int:
        """Return the resourceVersion up to which the store is complete; 0 if it is unknown."""
        version = self._reflector.version
        return int(version) if version.isdecimal() else 0

    def transformed(self, obj: Object) -> Object:
        """Return an object in the form of the store; the argument itself may be changed.

        `known` may return an object that has this form already: the caller's own write.
        """
        try:
            with self._in_turn(self.resource, obj):
                known = self.known(obj)
                return self._transform(obj) if known is None else known
        except Exception as error:  # noqa: BLE001 - `faulty` gets it
            self._faulty(self.resource, obj, error)
            return obj

    def add_handler(self, handler: Handler) -> None:
        """Call `handler(type, old, new)` at each change, in the informer's own task.

        ADDED has no old object, DELETED no new one (old is the last known state). The handler gets
        the present objects of the store at once as ADDED.
        """
        self._handlers.append(handler)
        for obj in self.items():
            self.call(handler, EventType.ADDED, None, obj)

    def call(
        self, handler: Handler, kind: EventType, old: Object | None, new: Object | None
    ) -> None:
        """Call one handler; its exception goes to `faulty`."""
        if self._failed and self._is_held(handler, kind, (new or old) or {}):
            return
        self._call(handler, kind, old, new, _FIRST_SECONDS)

    def _call(
        self,
        handler: Handler,
        kind: EventType,
        old: Object | None,
        new: Object | None,
        pause: float,
    ) -> None:
        """Call one handler; after an exception again, `pause` seconds later.

        A handler that ends, but takes too long, gets the changes since then.
        """
        obj, has_ended = (new or old) or {}, False
        try:
            with self._in_turn(self.resource, obj):
                handler(kind, old, new)
                has_ended = True
        except Exception as error:  # noqa: BLE001 - `faulty` gets it
            self._faulty(self.resource, obj, error)
            if new is not None:
                key, loop = key_of(new), asyncio.get_running_loop()
                again = loop.call_later(pause, self._call_again, handler, key)
                seen = (EventType.MODIFIED, new) if has_ended else (kind, old)
                self._failed[handler, key] = _Failed(*seen, pause, again)

    def _is_held(self, handler: Handler, kind: EventType, obj: Object) -> bool:
        """Return whether a handler that failed at an object gets this change later.

        It gets the deletion of the object at once, which ends the wait.
        """
        failed = self._failed.get((handler, key_of(obj)))
        if failed is None:
            return False
        if kind is EventType.MODIFIED:
            return True
        failed.again.cancel()
        del self._failed[handler, key_of(obj)]
        return False

    def _call_again(self, handler: Handler, key: str) -> None:
        failed, new = self._failed.pop((handler, key)), self.get(key)
        if new is not None and new is not failed.old:
            pause = min(_LONGEST_SECONDS, failed.pause * 2)
            self._call(handler, failed.kind, failed.old, new, pause)

    async def run(self) -> None:
        """List and watch until cancelled."""
        try:
            async with aclosing(self._reflector.steps()) as steps:
                async for step in steps:
                    if isinstance(step, ObjectList):
                        self._swap(step)
                        self.synced.set()
                    elif step.type is not EventType.BOOKMARK:
                        self._take(step)
        except asyncio.CancelledError:
            for failed in self._failed.values():
                failed.again.cancel()
            self._failed.clear()
            raise

    def _swap(self, listed: ObjectList) -> None:
        """Replace the store, then call the handlers: a handler never sees a part of a list."""
        self._compare(listed)
        present = {key_of(obj) for obj in listed.items}
        gone = [self.pop(key) for key in [k for k in self if k not in present]]
        changed: list[tuple[Object | None, Object]] = []
        for new in listed.items:
            changed.append((self.put(new), new))  # noqa: PERF401 - it changes the store
        for vanished in gone:
            self._notify(EventType.DELETED, vanished, None)
        for old, new in changed:
            self._notify_put(old, new)

    def _compare(self, listed: ObjectList) -> None:
        """Call `restored` for the first object that is older than the one in the store."""
        for new in listed.items:
            old = self.get(key_of(new))
            if old is not None and _is_older(new, old):
                self._restored(self.resource, new)
                return

    def _take(self, event: WatchEvent) -> None:
        """Take the event of a watch over; a deletion of an absent object calls no handler."""
        obj = self.transformed(event.object)
        if event.type is not EventType.DELETED:
            self._notify_put(self.put(obj), obj)
        elif self.pop(key_of(obj)) is not None:
            self._notify(EventType.DELETED, obj, None)

    def _notify_put(self, old: Object | None, new: Object) -> None:
        """Call the handlers; an object of another UID is a deletion and an addition."""
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
            self.call(handler, kind, old, new)

    def _report(self, failure: KubeError | None) -> None:
        """Log a new kind of failure once, and the end of failures."""
        about = {"resource": self.resource.group_resource}
        if failure is None:
            self._said = None
            log.info("Watching again", extra=about)
        elif isinstance(failure, Gone):
            log.info("Listing again", extra={**about, "error": failure.message})
        elif self._said is not type(failure):
            self._said = type(failure)
            if isinstance(failure, NotFound):
                log.warning(
                    "Resource is not served, waiting for it: is its CRD installed?",
                    extra={**about, "error": failure.message},
                )
            else:
                log.warning(
                    "Cannot list or watch, trying on", extra={**about, "error": str(failure)}
                )


def refused(informers: Iterable[Informer]) -> str | None:
    """Return that the API server refuses the credentials of a process, with the next step.

    None if no informer met that since its last watch.
    """
    for informer in informers:
        if isinstance(informer.last_error, Unauthorized):
            return (
                f"the API server answers 401 ({informer.last_error.message}): the token has expired"
                " or its account was deleted; run hyperjob credentials renew, or the renewal's Job"
            )
    return None


def _is_older(new: Object, old: Object) -> bool:
    """Return whether the same object has a lower resourceVersion than before.

    The API server documents resourceVersions of one resource as numbers that grow (Kubernetes
    1.35); versions in another form are not compared.
    """
    if new["metadata"].get("uid") != old["metadata"].get("uid"):
        return False
    versions = [str(each["metadata"].get("resourceVersion", "")) for each in (new, old)]
    return all(each.isdecimal() for each in versions) and int(versions[0]) < int(versions[1])


def _logged(resource: Resource, obj: Object, error: Exception) -> None:
    """Log the exception of a handler."""
    log.error(
        "A handler failed",
        extra={"resource": resource.group_resource, "object": key_of(obj)},
        exc_info=error,
    )
