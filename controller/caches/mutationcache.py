"""An informer's store with our own writes on top, until the informer has seen them too.

Without it the next pass would not know what the last one wrote, and write it again. It never
shadows anything newer: the informer wins as soon as it has caught up. Every entry lapses after a
while, and handlers are called then: a lost event hides the truth for that time at most.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from controller.model.wire import mapping, natural, string
from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType
from hyperjob.kube.informer import Handler, Informer
from hyperjob.kube.resources import key_of

LIFETIME: Final = 30.0

Indexer = Callable[[Object], Iterable[str]]


@dataclass(frozen=True, slots=True)
class _Written:
    """What we wrote last under a key; `obj` None: we deleted the object with this UID."""

    obj: Object | None
    uid: str
    version: int
    number: int


class MutationCache:
    """Read an informer's objects as they are after our own writes."""

    def __init__(
        self,
        informer: Informer,
        *,
        index: str | None = None,
        indexer: Indexer | None = None,
        selected: Callable[[Object], bool] = lambda _: True,
    ) -> None:
        """`index` names the informer's index that `by_index` reads; `indexer` is its function.

        `selected` says whether the informer is to see an object at all.
        """
        self._informer = informer
        self._index = index
        self._indexer = indexer
        self._selected = selected
        self._written: dict[str, _Written] = {}
        self._writes = 0
        self._handlers: list[Handler] = []
        informer.add_handler(self._seen)

    def add_handler(self, handler: Handler) -> None:
        """Call the handler for every change of the informer, and for entries that lapse."""
        self._informer.add_handler(handler)
        self._handlers.append(handler)

    def get(self, key: str) -> Object | None:
        """Give the object under a key."""
        written = self._written.get(key)
        return written.obj if written is not None else self._informer.get(key)

    def by_index(self, value: str) -> list[Object]:
        """List the objects that the index gives for a value."""
        assert self._index is not None
        assert self._indexer is not None
        found = {key_of(obj): obj for obj in self._informer.by_index(self._index, value)}
        for key, written in self._written.items():
            if written.obj is not None and value in self._indexer(written.obj):
                found[key] = written.obj
            else:
                found.pop(key, None)
        return list(found.values())

    def written(self, prefix: str) -> list[Object]:
        """List what only we know of under keys with a prefix: the informer may not select it."""
        return [
            written.obj
            for key, written in self._written.items()
            if written.obj is not None and key.startswith(prefix)
        ]

    def note(self, obj: Object) -> None:
        """Remember an object as the server answered it."""
        key = key_of(obj)
        known = self._informer.get(key)
        if known is not None and _uid(known) == _uid(obj):
            if _version(known) >= _version(obj):
                return
        elif self._selected(obj) and self._informer.seen_version >= _version(obj):
            return  # it came and went, or was replaced, before the answer was read
        obj = self._informer.transformed(obj)
        self._put(key, obj, _uid(obj), _version(obj))

    def note_deleted(self, key: str, uid: str) -> None:
        """Remember that an object is gone."""
        known = self._informer.get(key)
        if known is None or _uid(known) != uid:
            self._written.pop(key, None)
            return
        self._put(key, None, uid, 0)

    def _put(self, key: str, obj: Object | None, uid: str, version: int) -> None:
        self._writes += 1
        self._written[key] = _Written(obj, uid, version, self._writes)
        # By its number: the timer of what was overtaken long ago must not keep the object.
        asyncio.get_running_loop().call_later(LIFETIME, self._lapse, key, self._writes)

    def _lapse(self, key: str, number: int) -> None:
        written = self._written.get(key)
        if written is None or written.number != number:
            return
        del self._written[key]
        known = self._informer.get(key)
        if known is not written.obj:
            kind = EventType.DELETED if known is None else EventType.MODIFIED
            kind = EventType.ADDED if written.obj is None else kind
            for handler in self._handlers:
                handler(kind, written.obj, known)

    def _seen(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        if not self._written or obj is None:
            return
        key = key_of(obj)
        written = self._written.get(key)
        if written is None:
            return
        other = _uid(obj) != written.uid
        if kind is EventType.DELETED:
            overtaken = not other
        else:
            overtaken = other or (written.obj is not None and _version(obj) >= written.version)
        if overtaken:
            del self._written[key]


def _uid(obj: Object) -> str:
    return string(mapping(obj.get("metadata")).get("uid"))


def _version(obj: Object) -> int:
    text = string(mapping(obj.get("metadata")).get("resourceVersion"))
    return natural(text) or 0
