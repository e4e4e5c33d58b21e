"""What was parsed of each HyperJob's objects, so that only what has changed is parsed again.

Holds what the last looks at HyperJobs had, up to a number of objects; never gives an object that is
no more.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from hyperjob.api.meta import Object

T = TypeVar("T")

_MOST: Final = 4096


class Parsed(Generic[T]):
    """The objects of one kind, by HyperJob.

    An object is known again by its identity: those of the caches are replaced, never changed.
    """

    def __init__(self, most: int = _MOST) -> None:
        """`most` is how many objects are held; a HyperJob that has more is held alone."""
        self._most = most
        self._held = 0
        # Each entry keeps its object alive, so no other one can have its id meanwhile.
        self._known: dict[str, tuple[object, dict[int, tuple[Object, T]]]] = {}

    def of(
        self, key: str, items: Iterable[Object], parse: Callable[[Object], T], *, view: object
    ) -> list[T]:
        """Give a HyperJob's objects parsed; `view` is what `parse` depends on besides them."""
        seen_from, known = self._known.get(key, (view, {}))
        if seen_from != view:
            known = {}
        entries = {id(raw): known.get(id(raw)) or (raw, parse(raw)) for raw in items}
        self.forget(key)
        if entries:
            self._known[key] = view, entries  # at the end: it was looked at last
            self._held += len(entries)
        while self._held > self._most and len(self._known) > 1:
            self.forget(next(iter(self._known)))
        return [item for _, item in entries.values()]

    def forget(self, key: str) -> None:
        """Forget a HyperJob."""
        _, entries = self._known.pop(key, (None, {}))
        self._held -= len(entries)
