"""Keep a bounded number of items of any number, evenly chosen. Pure."""

from typing import Generic, TypeVar

_T = TypeVar("_T")


class Thinned(Generic[_T]):
    """At most `most` items, evenly chosen, and the last one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[_T] = []
        self._last: list[_T] = []
        self._every = 1
        self._seen = 0

    def add(self, item: _T) -> None:
        """Add the next item."""
        if self._seen % self._every == 0:
            self._kept.append(item)
            if len(self._kept) >= self._most:
                self._kept = self._kept[::2]
                self._every *= 2
        self._last = [item]
        self._seen += 1

    @property
    def kept(self) -> list[_T]:
        """Return the items in their order."""
        late = bool(self._last) and self._kept[-1] is not self._last[0]
        return [*self._kept, *self._last] if late else [*self._kept]
