"""The rate limit of passes: a HyperJob whose pass takes long rests before the next one.

The status of a HyperJob with a thousand sub-jobs has some hundred kilobytes. While many of its
sub-jobs change, the HyperJob rests for a multiple of the time that its last pass took, and one
status write shows all changes of that time. A change after a rest is looked at without delay.
"""

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from controller.admission.unplaced import SETTLE_SECONDS

REST: Final = 3.0
"""How many times as long as its last pass a HyperJob rests."""
LONGEST_REST: Final = 0.5
"""In seconds; a status is to be right within a second."""

Reconcile = Callable[[str], Awaitable[timedelta | None]]


class PassRateLimit:
    """Times the passes of each HyperJob."""

    def __init__(
        self, reconcile: Reconcile, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reconcile = reconcile
        self._clock = clock
        self._took: dict[str, float] = {}  # of those alone that have to rest
        self._rested: dict[str, float] = {}

    def settle_seconds(self, key: str) -> float:
        """Give the seconds until changes of a HyperJob's sub-jobs are looked at together."""
        return max(SETTLE_SECONDS, self._rested.get(key, 0.0) - self._clock())

    async def reconcile(self, key: str) -> timedelta | None:
        """Make a pass and remember what it took."""
        began = self._clock()
        if key in self._took:  # what changes during a pass rests as what changes after it
            self._rested[key] = began + self._took[key] + _rest(self._took[key])
        try:
            return await self._reconcile(key)
        finally:
            ended = self._clock()
            rest = _rest(ended - began)
            if rest > SETTLE_SECONDS:
                self._took[key] = ended - began
                self._rested[key] = ended + rest
            else:
                self._took.pop(key, None)
                self._rested.pop(key, None)


def _rest(seconds: float) -> float:
    return min(LONGEST_REST, REST * seconds)
