"""Exponential back-off with jitter: the pauses between attempts. The caller sleeps."""

import random
from collections.abc import Callable
from typing import Final

LONGEST: Final = 30.0
"""The longest pause between two attempts in seconds, also where a server asks for a longer one."""


class Backoff:
    """Exponential pauses from `base` to `cap` seconds; each is up to half as long again.

    After a success, `reset()` makes the next pause `base` again.
    """

    def __init__(
        self,
        *,
        base: float = 0.8,
        cap: float = LONGEST,
        factor: float = 2.0,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._base = base
        self._cap = cap
        self._factor = factor
        self._jitter = jitter
        self._pause = base

    def next(self) -> float:
        """Return the pause before the next attempt, in seconds."""
        pause = self._pause
        self._pause = min(self._cap, self._pause * self._factor)
        return min(self._cap, pause * (1 + self._jitter() / 2))

    def reset(self) -> None:
        """Start over."""
        self._pause = self._base
