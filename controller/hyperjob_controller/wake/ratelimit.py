"""The rate limit of passes: a HyperJob whose pass takes long rests before the next one.

The status of a HyperJob with a thousand sub-jobs has some hundred kilobytes. While many of its
sub-jobs change, the HyperJob rests for a multiple of the time that its last pass took, and one
status write has all changes of that time. A change after a rest gets a pass without delay.
"""

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from hyperjob_controller.memory.memory import SETTLE_SECONDS

REST: Final = 3.0
"""A HyperJob rests for so many times the duration of its last pass."""
LONGEST_REST: Final = 0.5
"""Seconds of the longest rest: a status must be up to date within a second."""

Reconcile = Callable[[str], Awaitable[timedelta | None]]


class PassRateLimit:
    """The rate limiter of passes, by HyperJob."""

    def __init__(
        self, reconcile: Reconcile, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reconcile = reconcile
        self._clock = clock
        self._took: dict[str, float] = {}  # seconds, only of HyperJobs that must rest
        self._rested: dict[str, float] = {}

    def settle_seconds(self, key: str) -> float:
        """Return the seconds for which changes of a HyperJob's sub-jobs are collected."""
        return max(SETTLE_SECONDS, self._rested.get(key, 0.0) - self._clock())

    async def reconcile(self, key: str) -> timedelta | None:
        """Make a pass and record its duration."""
        began = self._clock()
        if key in self._took:  # changes during a pass wait like changes after it
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
