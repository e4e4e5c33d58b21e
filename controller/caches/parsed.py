"""What was parsed of each HyperJob's objects, so that only what has changed is parsed again.

Holds no more than the last look at each HyperJob had; never gives an object that is no more.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from hyperjob.api.meta import Object

T = TypeVar("T")


class Parsed(Generic[T]):
    """The objects of one kind, by HyperJob.

    An object is known again by its identity: those of the caches are replaced, never changed.
    """

    def __init__(self) -> None:
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
        self._known[key] = view, entries
        return [item for _, item in entries.values()]

    def forget(self, key: str) -> None:
        """Forget a HyperJob."""
        self._known.pop(key, None)
