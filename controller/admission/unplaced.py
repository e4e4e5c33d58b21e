"""HyperJobs with a share and without room for a sub-job: which free room wakes them.

Only queues keys. Other changes of capacity change messages only, which are written at a bounded
rate.
"""

from collections.abc import Callable, Iterable
from typing import Final

from controller.model.resources import Resources, fits

# Pods of a job change together; a pass for each of them would write a status for each.
SETTLE_SECONDS: Final = 0.1
MESSAGE_SECONDS: Final = 5.0
_MESSAGES_PER_SECOND: Final = 20.0

Need = frozenset[tuple[str, int]]


class Unplaced:
    """Keys with the sizes of the sub-jobs that have no place."""

    def __init__(self, add_after: Callable[[str, float], None]) -> None:
        self._add_after = add_after
        self._known: dict[str, tuple[Need, ...]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def put(self, key: str, *, needs: Iterable[Resources]) -> None:
        """Remember a HyperJob that waits; without `needs`, any free room wakes it."""
        self._known[key] = tuple(dict.fromkeys(frozenset(need.items()) for need in needs))

    def drop(self, key: str) -> None:
        """Forget a HyperJob that waits no longer."""
        self._known.pop(key, None)

    def wake(self, room: Resources) -> None:
        """Make a pass of the HyperJobs of which a sub-job fits into the room of a cluster."""
        useful: dict[Need, bool] = {}
        for key, needs in self._known.items():
            woken = not needs
            for need in needs:
                if need not in useful:
                    useful[need] = fits(dict(need), room)
                woken = woken or useful[need]
            self._add_after(key, SETTLE_SECONDS if woken else self.message_seconds)

    def refresh(self) -> None:
        """Make a pass of all in a while: only their messages may have changed."""
        for key in self._known:
            self._add_after(key, self.message_seconds)

    @property
    def message_seconds(self) -> float:
        """Give the least time between two writes of a message alone; more as more wait."""
        return max(MESSAGE_SECONDS, len(self._known) / _MESSAGES_PER_SECOND)
