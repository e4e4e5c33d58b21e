"""The HyperJobs that wait for capacity, oldest first: whom freed room wakes, and how often at most.

Only queues keys. Whoever waits is woken by any room that one of its sub-jobs would fit in; what
changes otherwise only changes its message, which is told at a bounded rate over all that wait.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import Final

from controller.model.resources import Resources, fits

# Pods of a job change together; a pass for each of them would write a status for each.
SETTLE_SECONDS: Final = 0.1
MESSAGE_SECONDS: Final = 5.0
_MESSAGES_PER_SECOND: Final = 20.0

Need = frozenset[tuple[str, int]]


class Waiting:
    """Keys in order of creation, each with the sizes of what it could not place."""

    def __init__(self, add_after: Callable[[str, float], None]) -> None:
        self._add_after = add_after
        self._order: list[tuple[str, str]] = []
        self._known: dict[str, tuple[str, tuple[Need, ...]]] = {}

    def __len__(self) -> int:
        return len(self._order)

    def keys(self) -> list[str]:
        """List who waits, the oldest first."""
        return [key for _, key in self._order]

    def put(self, key: str, *, created: str, needs: Iterable[Resources]) -> None:
        """Remember who waits; without needs any room may be its."""
        sizes = tuple(dict.fromkeys(frozenset(need.items()) for need in needs))
        known = self._known.get(key)
        if known is None or known[0] != created:
            self.drop(key)
            insort(self._order, (created, key))
        self._known[key] = created, sizes

    def drop(self, key: str) -> None:
        """Forget who waits no longer; the next one keeps the time in its place."""
        known = self._known.pop(key, None)
        if known is None:
            return
        position = bisect_left(self._order, (known[0], key))
        del self._order[position]
        if position == 0 and self._order:
            self._add_after(self._order[0][1], SETTLE_SECONDS)

    def is_contended(self, key: str) -> bool:
        """Tell whether another one waits."""
        return len(self._order) > (key in self._known)

    def keeps_time(self, key: str) -> bool:
        """Tell whether a HyperJob looks again when a reservation ends by time: one is enough."""
        return not self._order or self._order[0][1] == key

    def wake(self, room: Resources) -> None:
        """Look again at those of which something fits in the room of a cluster, oldest first."""
        useful: dict[Need, bool] = {}
        for _, key in self._order:
            needs = self._known[key][1]
            for need in needs:
                if need not in useful:
                    useful[need] = fits(dict(need), room)
            woken = not needs or any(useful[need] for need in needs)
            self._add_after(key, SETTLE_SECONDS if woken else self.message_seconds)

    def refresh(self) -> None:
        """Look again at all in a while: what they say may have changed, nothing else."""
        for _, key in self._order:
            self._add_after(key, self.message_seconds)

    @property
    def message_seconds(self) -> float:
        """Give the least time between two writes of a message alone; more as more wait."""
        return max(MESSAGE_SECONDS, len(self._order) / _MESSAGES_PER_SECOND)
