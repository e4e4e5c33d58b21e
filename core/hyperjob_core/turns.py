"""Turns: waiting items of several namespaces, which share something scarce.

The workers of a workqueue and the slots of API requests are divided by the same rule: the next item
is of the namespace that holds the fewest; of equal ones, of the namespace served longest ago.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from itertools import chain
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Turns(Generic[T]):
    """Distinct items in order of arrival by namespace, and how many each namespace holds.

    Choosing is quick for any number of namespaces: those that hold nothing come first, in order,
    and the others are at most as many as there is of what is shared.
    """

    def __init__(self, *, most: int | None = None) -> None:
        """`most` bounds what one namespace holds."""
        self._most = most
        self._held: Counter[str] = Counter()
        self._idle: dict[str, dict[T, None]] = {}  # the items of namespaces that hold nothing
        self._busy: dict[str, dict[T, None]] = {}
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def put(self, namespace: str, item: T) -> None:
        """Add an item that does not wait yet."""
        groups = self._busy if namespace in self._held else self._idle
        groups.setdefault(namespace, {})[item] = None
        self._waiting += 1

    def take(self, fits: Callable[[T], bool] = lambda _: True) -> T | None:
        """Remove the next item that fits, and hold something for its namespace; None if none."""
        for namespace in chain(self._idle, sorted(self._busy, key=self._held.__getitem__)):
            if self._most is not None and self._held[namespace] >= self._most:
                continue
            items = self._idle.get(namespace) or self._busy[namespace]
            for item in items:
                if fits(item):
                    self.discard(namespace, item)
                    self.hold(namespace)
                    return item
        return None

    def discard(self, namespace: str, item: T) -> None:
        """Remove an item if it waits."""
        for groups in (self._idle, self._busy):
            items = groups.get(namespace, {})
            if item in items:
                del items[item]
                self._waiting -= 1
                if not items:
                    del groups[namespace]

    def hold(self, namespace: str) -> None:
        """Count one more for a namespace, which then comes after others that hold as many."""
        self._held[namespace] += 1
        items = self._idle.pop(namespace, None) or self._busy.pop(namespace, None)
        if items is not None:
            self._busy[namespace] = items

    def release(self, namespace: str) -> None:
        """Count one less for a namespace."""
        self._held[namespace] -= 1
        if self._held[namespace] <= 0:
            del self._held[namespace]
            items = self._busy.pop(namespace, None)
            if items is not None:
                self._idle[namespace] = items
