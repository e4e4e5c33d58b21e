"""A memo of parsed objects by HyperJob: a pass parses only objects that have changed.

The memo holds the objects of the latest passes, up to a number of objects, and never returns a
deleted one.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from hyperjob_core.api.meta import Object

T = TypeVar("T")

_MOST: Final = 4096


class Parsed(Generic[T]):
    """The objects of one kind, by HyperJob.

    An object is recognised by its identity, because the caches replace changed objects.
    """

    def __init__(self, most: int = _MOST) -> None:
        """`most` is the greatest number of objects; a HyperJob with more is the only entry."""
        self._most = most
        self._held = 0
        # Each entry refers to its object: no other object can have the same id.
        self._known: dict[str, tuple[object, dict[int, tuple[Object, T]]]] = {}

    def of(
        self, key: str, items: Iterable[Object], parse: Callable[[Object], T], *, view: object
    ) -> list[T]:
        """Return a HyperJob's parsed objects; `view` is the other input of `parse`."""
        seen_from, known = self._known.get(key, (view, {}))
        if seen_from != view:
            known = {}
        entries = {id(raw): known.get(id(raw)) or (raw, parse(raw)) for raw in items}
        self.forget(key)
        if entries:
            self._known[key] = view, entries  # at the end, as the latest
            self._held += len(entries)
        while self._held > self._most and len(self._known) > 1:
            self.forget(next(iter(self._known)))
        return [item for _, item in entries.values()]

    def keep(self, key: str, items: Iterable[Object | None]) -> None:
        """Drop the objects of a HyperJob unless they are these: replaced ones take memory."""
        _, entries = self._known.get(key, (None, {}))
        if entries.keys() != {id(item) for item in items}:
            self.forget(key)

    def forget(self, key: str) -> None:
        """Drop the objects of a HyperJob."""
        _, entries = self._known.pop(key, (None, {}))
        self._held -= len(entries)
