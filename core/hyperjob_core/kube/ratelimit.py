"""Rate limits: a back-off per item, an overall token bucket, and pauses with jitter.

The caller sleeps; tests can replace the clock.
"""

import asyncio
import random
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

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
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._base = base
        self._cap = cap
        self._jitter = jitter
        self._pause = base

    def next(self) -> float:
        """Return the pause before the next attempt, in seconds."""
        pause = self._pause
        self._pause = min(self._cap, self._pause * 2)
        return min(self._cap, pause * (1 + self._jitter() / 2))

    def reset(self) -> None:
        """Start over."""
        self._pause = self._base


class Cancellable(Protocol):
    """A timer that can be cancelled."""

    def cancel(self) -> None:
        """Cancel the timer."""
        ...


class Clock(Protocol):
    """A monotonic clock with timers."""

    def now(self) -> float:
        """Return the monotonic time in seconds."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Cancellable:
        """Call back once, `delay` seconds from now."""
        ...


class LoopClock:
    """The clock of the event loop in which it is first read; a scrape may read it elsewhere."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> float:
        """Return the loop's time."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop.time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Cancellable:
        """Set a timer on the loop."""
        return asyncio.get_running_loop().call_later(delay, callback)


K = TypeVar("K", bound=Hashable)

_BASE = 0.005
_CAP = 1000.0
_QPS = 10.0
_BURST = 100


class ItemBackoff(Generic[K]):
    """Doubles an item's wait with each failure, from `base` to `cap` seconds."""

    def __init__(self, *, base: float = _BASE, cap: float = _CAP) -> None:
        self._base = base
        self._cap = cap
        self._failures: dict[K, int] = {}

    def when(self, item: K) -> float:
        """Count one more failure and give the wait in seconds."""
        count = self._failures.get(item, 0)
        self._failures[item] = count + 1
        # A float knows no power beyond this one, and the cap is reached long before.
        return min(self._cap, self._base * 2.0 ** min(count, 512))

    def forget(self, item: K) -> None:
        """Reset the failures of an item."""
        self._failures.pop(item, None)


class TokenBucket:
    """At most `burst` at once and `qps` a second after that, whatever the items are."""

    def __init__(
        self, *, qps: float = _QPS, burst: int = _BURST, clock: Clock | None = None
    ) -> None:
        self._qps = qps
        self._burst = burst
        self._clock = clock or LoopClock()
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
        now = self._clock.now()
        if self._filled is not None:
            gained = (now - self._filled) * self._qps
            self._tokens = min(float(self._burst), self._tokens + gained)
        self._filled = now
