"""What was worked out of objects that never change, such as those of the caches."""

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

_MOST: Final = 1024

S = TypeVar("S")
T = TypeVar("T")


class Memo(Generic[S, T]):
    """Values by key, each for one source, which is known again by its identity.

    The 1,024 values of a memo keep their sources alive, so no other source has the id of one.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[S, T]] = {}

    def of(self, key: Hashable, source: S, make: Callable[[S], T]) -> T:
        """Return what was made of a source; make it where the key has none, or of another one."""
        known = self._known.get(key)
        if known is None or known[0] is not source:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[key] = source, make(source)
        return known[1]
