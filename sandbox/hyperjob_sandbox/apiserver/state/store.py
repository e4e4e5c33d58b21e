"""Objects in memory, one revision counter, and the history that watches read.

What is stored is never changed in place: readers and watchers share it without copies. No call that
changes something awaits, which makes it atomic.
"""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import orjson

from hyperjob_core.api.meta import Object

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
GroupResource = tuple[str, str]
Key = tuple[str, str]


class Expired(Exception):  # noqa: N818  the history is a fact, not a fault
    """The history before `oldest` is gone."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"history before {oldest} is compacted")
        self.oldest = oldest


class Exists(Exception):  # noqa: N818  an answer, not a fault
    """An object with this key is stored already."""


class Stale(Exception):  # noqa: N818  an answer, not a fault
    """The stored object is not the one the caller read."""


class Stored:
    """One revision of one object; `encoded` caches its wire forms by representation."""

    __slots__ = ("_folded", "_obj", "encoded", "key", "metadata", "revision")

    def __init__(self, key: Key, obj: Object, revision: int) -> None:
        self.key = key
        self.revision = revision
        self.metadata: Object = obj["metadata"]
        self.encoded: dict[str, bytes] = {}
        self._obj: Object | None = obj
        self._folded = b""

    @property
    def obj(self) -> Object:
        """Give the object, which callers must not change."""
        return orjson.loads(self._folded) if self._obj is None else self._obj

    @property
    def uid(self) -> str:
        """Give the object's identity."""
        return str(self.metadata["uid"])

    def fold(self) -> None:
        """Keep the object as bytes only: the history holds many, and few look at them again."""
        if self._obj is not None:
            self._folded = orjson.dumps(self._obj)
            self._obj = None


@dataclass(slots=True, eq=False)
class Change:
    """One entry of the history: what an object became, and what it was."""

    type: ChangeType
    now: Stored
    before: Stored | None

    @property
    def revision(self) -> int:
        """Give the revision that this change made."""
        return self.now.revision


Listener = Callable[[GroupResource, Change], None]


class Collection:
    """All objects of one stored resource, in key order, with their recent history."""

    def __init__(self, resource: GroupResource, *, history_limit: int) -> None:
        self.resource = resource
        self._items: dict[Key, Stored] = {}
        self._keys: list[Key] = []
        self._limit = history_limit
        self._history: list[Change] = []
        self._first = 0
        self._oldest = 0
        self._waiting: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def get(self, key: Key) -> Stored | None:
        """Find one object."""
        return self._items.get(key)

    def select(self, namespace: str | None = None) -> Iterator[Stored]:
        """Yield objects in key order, of one namespace or of all."""
        if namespace is None:
            keys = self._keys
        else:
            low = bisect_left(self._keys, (namespace, ""))
            high = bisect_left(self._keys, (namespace + "\0", ""))
            keys = self._keys[low:high]
        items = self._items
        return (items[key] for key in list(keys))

    def after(self, revision: int) -> int:
        """Give the cursor of the first change after a revision; raise Expired when it is gone."""
        if revision < self._oldest:
            raise Expired(self._oldest)
        later = bisect_right(self._history, revision, key=lambda change: change.revision)
        return self._first + later

    def end(self) -> int:
        """Give the cursor behind the newest change."""
        return self._first + len(self._history)

    def read(self, cursor: int) -> list[Change]:
        """Give all changes from a cursor on; raise Expired for a reader that fell behind."""
        start = cursor - self._first
        if start < 0:
            raise Expired(self._oldest)
        return self._history[start:]

    async def wait(self, cursor: int, seconds: float) -> bool:
        """Wait until something is behind the cursor; False when the time ran out first."""
        if cursor < self.end():
            return True
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(future)
        return True

    def compact(self, revision: int) -> None:
        """Forget the history up to a revision, that included."""
        cut = bisect_right(self._history, revision, key=lambda change: change.revision)
        del self._history[:cut]
        self._first += cut
        self._oldest = max(self._oldest, revision)

    def record(self, change: Change) -> None:
        """Apply a change and wake those who wait for it."""
        key = change.now.key
        if change.type == "DELETED":
            del self._items[key]
            del self._keys[bisect_left(self._keys, key)]
        else:
            if key not in self._items:
                insort(self._keys, key)
            self._items[key] = change.now
        self._history.append(change)
        if len(self._history) >= 2 * self._limit:
            self.compact(self._history[-self._limit - 1].revision)
        self.wake()

    def wake(self) -> None:
        """Wake all readers that wait."""
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)


class Store:
    """Every collection, under one revision counter."""

    def __init__(self, *, history_limit: int = 4096) -> None:
        self.revision = 1
        self._history_limit = history_limit
        self._collections: dict[GroupResource, Collection] = {}
        self._listeners: list[Listener] = []

    def collection(self, resource: GroupResource) -> Collection:
        """Give the collection of a resource, made empty on first use."""
        found = self._collections.get(resource)
        if found is None:
            found = Collection(resource, history_limit=self._history_limit)
            # Nothing was ever forgotten, so a watch may start from any earlier revision.
            self._collections[resource] = found
        return found

    def resources(self) -> list[GroupResource]:
        """List the resources that objects were stored of."""
        return list(self._collections)

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` after every change, in order; it must neither block nor raise."""
        self._listeners.append(listener)

    def create(self, resource: GroupResource, key: Key, obj: Object) -> Stored:
        """Store a new object (taken over by the store) and give it its resourceVersion."""
        collection = self.collection(resource)
        if collection.get(key) is not None:
            raise Exists
        return self._commit(collection, "ADDED", key, obj, None)

    def update(self, resource: GroupResource, obj: Object, *, expected: Stored) -> Stored:
        """Replace the object that the caller read; raise Stale when it is another by now."""
        collection = self.collection(resource)
        self._check(collection, expected)
        return self._commit(collection, "MODIFIED", expected.key, obj, expected)

    def delete(self, resource: GroupResource, obj: Object, *, expected: Stored) -> Stored:
        """Remove the object that the caller read, `obj` being its last state."""
        collection = self.collection(resource)
        self._check(collection, expected)
        return self._commit(collection, "DELETED", expected.key, obj, expected)

    def wake(self) -> None:
        """Let every watcher look again, to find that the server stops."""
        for collection in self._collections.values():
            collection.wake()

    def _check(self, collection: Collection, expected: Stored) -> None:
        if collection.get(expected.key) is not expected:
            raise Stale

    def _commit(
        self,
        collection: Collection,
        type_: ChangeType,
        key: Key,
        obj: Object,
        before: Stored | None,
    ) -> Stored:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        change = Change(type_, Stored(key, obj, self.revision), before)
        collection.record(change)
        for listener in self._listeners:
            listener(collection.resource, change)
        if before is not None:
            before.fold()
        if type_ == "DELETED":
            change.now.fold()
        return change.now
