"""About how many bytes of memory values of members take, whatever their objects say.

A value in several facts counts once: `facts` lets equal values be one as long as it remembers them.
"""

from collections.abc import Iterable
from datetime import datetime
from itertools import chain
from sys import getsizeof
from typing import Final

from hyperjob_engine.model.members import PodHeld

_FOLDED: Final = 500
"""What the fold, its view and the ground of placement take for a fact."""
_ENTRY: Final = 100
"""What a table takes for an entry."""
_PLAIN: Final = (str, int, float, datetime)


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
            for part in _parts(each):
                if isinstance(part, _PLAIN):
                    total += getsizeof(part)
                elif part is None or part == ():
                    continue
                elif isinstance(part, PodHeld):
                    todo.append(part)
                elif id(part) not in seen:
                    seen[id(part)] = part
                    total += _ENTRY
                    todo.append(part)
        return total


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, tuple | frozenset):
        return value
    if isinstance(value, dict):
        return chain(value, value.values())
    return [getattr(value, name) for name in getattr(value, "__slots__", ())]
