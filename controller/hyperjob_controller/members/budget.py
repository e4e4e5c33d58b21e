"""The memory for what is kept of all members together: beyond it nothing is kept of the largest."""

from collections import Counter
from typing import Final, Protocol

MOST_BYTES: Final = 256 * 1024 * 1024
"""About 170,000 pods and nodes; the most pods of a cluster in Kubernetes, 150,000, have less.

While members are listed again, what was kept of them before takes as much once more.
"""


class Keeper(Protocol):
    """The reader of a member."""

    def exceed(self, why: str) -> None:
        """Keep nothing of the member."""
        ...


class Budget:
    """Counts the bytes that are kept of each member."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._kept: Counter[Keeper] = Counter()

    def charge(self, keeper: Keeper, size: int) -> None:
        """Count more bytes of a member, or fewer; beyond the most, nothing is kept of the largest.

        A member that sends without end thus takes the memory from itself, and from no other.
        """
        self._kept[keeper] += size
        total = self._kept.total()
        if total > self._most:
            largest = max(self._kept, key=self._kept.__getitem__)
            of = f"{self._kept.pop(largest)} of {total} bytes"
            largest.exceed(f"{of} of all members are of this one, and {self._most} are the most")

    def clear(self, keeper: Keeper) -> None:
        """Count nothing of a member any more."""
        self._kept.pop(keeper, None)
