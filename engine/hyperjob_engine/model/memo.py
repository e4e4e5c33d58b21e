"""A memo of values computed from immutable objects, such as those of the informer caches."""

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")
_MOST: Final = 1024


class Memo(Generic[S, T]):
    """One value per key, computed from one source object and valid for this very object only.

    A memo holds a reference to the source of each value: no other object can have the id of a
    source while its value is kept.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[S, T]] = {}

    def of(self, key: Hashable, source: S, make: Callable[[S], T]) -> T:
        """Return the value of the key; call `make` if it has none, or if its source is another."""
        known = self._known.get(key)
        if known is None or known[0] is not source:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[key] = source, make(source)
        return known[1]
