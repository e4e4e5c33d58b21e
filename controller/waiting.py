"""The HyperJobs that wait for capacity, in order: whom freed room wakes, and how often at most.

Only queues keys. Whoever waits is woken by any room that one of its sub-jobs would fit in; what
changes otherwise only changes its message, which is told at a bounded rate over all that wait.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from controller.model.resources import Resources, fits
from controller.placement.claim import Claim
from controller.queueing.units import OrderInQueue

# Pods of a job change together; a pass for each of them would write a status for each.
SETTLE_SECONDS: Final = 0.1
MESSAGE_SECONDS: Final = 5.0
_MESSAGES_PER_SECOND: Final = 20.0

Need = frozenset[tuple[str, int]]
# What clusters have free: for the first in line and whoever goes before it, and for the others.
Rooms: TypeAlias = Sequence[tuple[Resources, Resources]]


@dataclass(frozen=True, slots=True)
class _Known:
    order: OrderInQueue
    needs: tuple[Need, ...]
    claim: Claim | None


class Waiting:
    """Keys by urgency and age, each with the sizes of what it could not place and its claim."""

    def __init__(self, add_after: Callable[[str, float], None]) -> None:
        self._add_after = add_after
        self._order: list[OrderInQueue] = []
        self._known: dict[str, _Known] = {}

    def __len__(self) -> int:
        return len(self._order)

    def keys(self) -> list[str]:
        """List who waits, in order."""
        return [order[2] for order in self._order]

    def claims(self) -> Iterator[tuple[OrderInQueue, Claim | None]]:
        """Give those that wait with their claims, in order."""
        for order in self._order:
            yield order, self._known[order[2]].claim

    def put(
        self, order: OrderInQueue, *, needs: Iterable[Resources], claim: Claim | None = None
    ) -> bool:
        """Remember who waits; without needs any room may be its. Return whether that is new."""
        key = order[2]
        sizes = tuple(dict.fromkeys(frozenset(need.items()) for need in needs))
        before, known = self._known.get(key), _Known(order, sizes, claim)
        if before == known:
            return False
        if before is None or before.order != order:
            self.drop(key)
            insort(self._order, order)
        self._known[key] = known
        return True

    def drop(self, key: str) -> bool:
        """Forget who waits no longer; the next one keeps the time in its place."""
        known = self._known.pop(key, None)
        if known is None:
            return False
        position = bisect_left(self._order, known.order)
        del self._order[position]
        if position == 0 and self._order:
            self._add_after(self._order[0][2], SETTLE_SECONDS)
        return True

    def is_contended(self, key: str) -> bool:
        """Tell whether another one waits."""
        return len(self._order) > (key in self._known)

    def keeps_time(self, key: str) -> bool:
        """Tell whether a HyperJob looks again when a reservation ends by time: one is enough."""
        return not self._order or self._order[0][2] == key

    def wake(self, rooms: Rooms, *, first: OrderInQueue | None = None) -> None:
        """Look again, in order, at those of which something fits in the room of a cluster."""
        useful: dict[tuple[Need, bool], bool] = {}
        for order in self._order:
            known = self._known[order[2]]
            goes_before = first is None or order <= first
            goes_before = goes_before or (known.claim is not None and known.claim.begun)
            woken = not known.needs
            for need in known.needs:
                case = need, goes_before
                if case not in useful:
                    amounts = dict(need)
                    useful[case] = any(
                        fits(amounts, all_ if goes_before else rest) for all_, rest in rooms
                    )
                woken = woken or useful[case]
            self._add_after(order[2], SETTLE_SECONDS if woken else self.message_seconds)

    def refresh(self) -> None:
        """Look again at all in a while: what they say may have changed, nothing else."""
        for order in self._order:
            self._add_after(order[2], self.message_seconds)

    @property
    def message_seconds(self) -> float:
        """Give the least time between two writes of a message alone; more as more wait."""
        return max(MESSAGE_SECONDS, len(self._order) / _MESSAGES_PER_SECOND)
