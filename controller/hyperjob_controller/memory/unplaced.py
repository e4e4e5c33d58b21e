"""HyperJobs with a share of their queue but without room for a sub-job, by the room they need.

Free room of that size puts a HyperJob into the workqueue at once. Other changes of capacity change
only messages, which are written at a bounded rate.
"""

from collections.abc import Callable, Iterable
from typing import Final

from hyperjob_engine.resources import Resources, fits

# The pods of a Job change together: a pass for each change would write a status for each.
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

    def __str__(self) -> str:
        """Return the keys of the waiting HyperJobs."""
        return ", ".join(sorted(self._known)) or "none"

    def put(self, key: str, *, needs: Iterable[Resources]) -> None:
        """Add a waiting HyperJob; without `needs`, any free room requests a pass of it."""
        self._known[key] = tuple(dict.fromkeys(frozenset(need.items()) for need in needs))

    def drop(self, key: str) -> None:
        """Remove a HyperJob that no longer waits."""
        self._known.pop(key, None)

    def wake(self, room: Resources) -> None:
        """Request a pass of the HyperJobs with a sub-job that fits into a cluster's room."""
        useful: dict[Need, bool] = {}
        for key, needs in self._known.items():
            woken = not needs
            for need in needs:
                if need not in useful:
                    useful[need] = fits(dict(need), room)
                woken = woken or useful[need]
            self._add_after(key, SETTLE_SECONDS if woken else self.message_seconds)

    def refresh(self) -> None:
        """Request a later pass of all HyperJobs: only their messages may have changed."""
        for key in self._known:
            self._add_after(key, self.message_seconds)

    @property
    def message_seconds(self) -> float:
        """Return the least seconds between two status writes for a message; more if more wait."""
        return max(MESSAGE_SECONDS, len(self._known) / _MESSAGES_PER_SECOND)
