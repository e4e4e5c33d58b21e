"""The mutation cache: an informer's store with the controller's own writes on top.

Without it the next pass would repeat the writes of the last one. An entry ends as soon as the
informer has the same or a newer object, or after LIFETIME, with a call of the handlers: a lost
event hides a change for that time at most.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import mapping, natural, string
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Handler, Informer
from hyperjob_core.kube.resources import key_of

LIFETIME: Final = 30.0

Indexer = Callable[[Object], Iterable[str]]


@dataclass(frozen=True, slots=True)
class _Written:
    """The controller's last write under a key; `obj` None: the deletion of this UID."""

    obj: Object | None
    uid: str
    version: int
    end: asyncio.TimerHandle


class MutationCache:
    """An informer's objects with the controller's own writes."""

    def __init__(
        self,
        informer: Informer,
        *,
        index: str | None = None,
        indexer: Indexer | None = None,
        selected: Callable[[Object], bool] = lambda _: True,
    ) -> None:
        """`index` names the informer's index that `by_index` reads; `indexer` is its function.

        `selected` returns whether the informer selects an object.
        """
        self._informer = informer
        self._index = index
        self._indexer = indexer
        self._selected = selected
        self._written: dict[str, _Written] = {}
        self._handlers: list[Handler] = []
        informer.add_handler(self._seen)
        informer.known = self._known

    def add_handler(self, handler: Handler) -> None:
        """Call the handler for every change of the informer, and for entries that expire."""
        self._informer.add_handler(handler)
        self._handlers.append(handler)

    def get(self, key: str) -> Object | None:
        """Return the object under a key; None if there is none."""
        written = self._written.get(key)
        return written.obj if written is not None else self._informer.get(key)

    def by_index(self, value: str) -> list[Object]:
        """Return the objects that have this value in the index."""
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
        """Return written objects under keys with a prefix that the informer does not have."""
        return [
            written.obj
            for key, written in self._written.items()
            if written.obj is not None and key.startswith(prefix)
        ]

    def note(self, obj: Object) -> None:
        """Add an object as the API server returned it."""
        key = key_of(obj)
        known = self._informer.get(key)
        if known is not None and _uid(known) == _uid(obj):
            if _version(known) >= _version(obj):
                return
        elif self._selected(obj) and self._informer.seen_version >= _version(obj):
            return  # it was deleted or replaced before the controller read the response
        obj = self._informer.transformed(obj)
        self._put(key, obj, _uid(obj), _version(obj))

    def note_deleted(self, key: str, uid: str) -> None:
        """Record that an object was deleted."""
        known = self._informer.get(key)
        if known is None or _uid(known) != uid:
            self._drop(key)
            return
        self._put(key, None, uid, 0)

    def _put(self, key: str, obj: Object | None, uid: str, version: int) -> None:
        if key in self._written:
            self._written[key].end.cancel()
        end = asyncio.get_running_loop().call_later(LIFETIME, self._lapse, key)
        self._written[key] = _Written(obj, uid, version, end)

    def _drop(self, key: str) -> None:
        """End an own write, if there is one."""
        written = self._written.pop(key, None)
        if written is not None:
            written.end.cancel()

    def _lapse(self, key: str) -> None:
        """Drop an own write that the informer has not shown in time, and report what it shows."""
        written = self._written.pop(key)
        known = self._informer.get(key)
        if known is not written.obj:
            kind = EventType.DELETED if known is None else EventType.MODIFIED
            kind = EventType.ADDED if written.obj is None else kind
            for handler in self._handlers:
                self._informer.call(handler, kind, written.obj, known)

    def _known(self, obj: Object) -> Object | None:
        """Return the written object if an event of the informer has that version of it."""
        if not self._written:
            return None
        written = self._written.get(key_of(obj))
        if written is None or written.obj is None or _uid(obj) != written.uid:
            return None
        return written.obj if _version(obj) == written.version else None

    def _seen(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Drop an own write that the informer has overtaken.

        Another UID under the key, the deletion of the written object, or its version or a newer one
        overtakes it. A written deletion stays until the informer shows it.
        """
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
            self._drop(key)


def _uid(obj: Object) -> str:
    return string(mapping(obj.get("metadata")).get("uid"))


def _version(obj: Object) -> int:
    text = string(mapping(obj.get("metadata")).get("resourceVersion"))
    return natural(text) or 0
