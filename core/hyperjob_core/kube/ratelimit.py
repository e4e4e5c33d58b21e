"""Rate limits: a token bucket, and pauses with jitter.

The caller sleeps; the time is that of the event loop.
"""

import asyncio
import random
from typing import Final

LONGEST: Final = 30.0
"""The longest pause between two attempts in seconds, also where a server asks for a longer one."""


class Backoff:
    """Exponential pauses from `base` to `cap` seconds; each is up to half as long again.

    After a success, `reset()` makes the next pause `base` again.
    """

    def __init__(self, *, base: float = 0.8, cap: float = LONGEST) -> None:
        self._base = base
        self._cap = cap
        self._pause = base

    def next(self) -> float:
        """Return the pause before the next attempt, in seconds."""
        pause = self._pause
        self._pause = min(self._cap, self._pause * 2)
        return min(self._cap, pause * (1 + random.random() / 2))

    def reset(self) -> None:
        """Start over."""
        self._pause = self._base


class TokenBucket:
    """At most `burst` at once and `qps` a second after that, whatever the items are."""

    def __init__(self, *, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = burst
        self._tokens = float(burst)
        self._filled: float | None = None

    def reserve(self) -> float:
        """Take a token, from the future when there is none, and give the wait until it is due."""
        self._fill()
        self._tokens -= 1
        return max(0.0, -self._tokens / self._qps)

    def take(self) -> bool:
        """Take a token if there is one now."""
        self._fill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _fill(self) -> None:
        """Add the tokens of the time since the last call, up to the burst."""
        now = asyncio.get_running_loop().time()
        if self._filled is not None:
            gained = (now - self._filled) * self._qps
            self._tokens = min(float(self._burst), self._tokens + gained)
        self._filled = now
