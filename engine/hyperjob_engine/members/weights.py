"""About how many bytes of memory values of members take, whatever their objects say.

A value in several facts counts once: `KnownValues` lets equal values be one while it knows them.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from datetime import datetime
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from sys import getsizeof
from typing import Any, Final

from hyperjob_engine.model.members import PodHeld

_FOLDED: Final = 500
"""What the fold, its view and the ground of placement take for a fact."""
_ENTRY: Final = 100
"""What a table takes for an entry."""
_PLAIN: Final = frozenset({str, int, bool, float, datetime})


class Weights:
    """Weighs the facts of a list and of the changes after it; holds the values that they share."""

    def __init__(self) -> None:
        self._seen: dict[int, object] = {}

    def of_fact(self, fact: object) -> int:
        """Return the bytes that a fact adds, with what the fold takes for it."""
        return _FOLDED + self.of(fact)

    def of(self, value: object) -> int:
        """Return the bytes that a value adds to all that was weighed before."""
        total, todo, seen = 0, [value], self._seen
        while todo:
            each = todo.pop()
            total += getsizeof(each)
            for part in _parts_by(type(each))(each):  # type: ignore[arg-type]
                if type(part) in _PLAIN:
                    total += getsizeof(part)
                elif type(part) is PodHeld:
                    todo.append(part)
                elif part and id(part) not in seen:
                    seen[id(part)] = part
                    total += _ENTRY
                    todo.append(part)
        return total


@lru_cache
def _parts_by(kind: type) -> Callable[[Any], Iterable[Any]]:
    """Return what gives the items of a collection, or the values of the fields of a class."""
    if issubclass(kind, tuple | frozenset):
        return iter
    if issubclass(kind, dict):
        return lambda value: chain(value, value.values())
    names = tuple(getattr(kind, "__slots__", ()))
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: [getattr(value, name) for name in names]


class KnownValues:
    """The values that came last, by their keys, up to `most` bytes, one up to a 1,024th of that."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.known: dict[Hashable, Any] = {}
        self._sizes: deque[int] = deque()  # in the order of `known`
        self._size = 0

    def of(self, key: Hashable, make: Callable[[Any], object]) -> object:
        """Return the value of a key, one for equal keys as long as that is known."""
        found = self.known.get(key)
        if found is None:
            found = make(key)
            key = found if found == key else key  # of equal ones one stays in memory
            size = Weights().of((key, found))
            if size <= self._most // 1024:
                self.known[key] = found
                self._sizes.append(size)
                self._size += size
            while self._size > self._most:
                del self.known[next(iter(self.known))]
                self._size -= self._sizes.popleft()
        return found
