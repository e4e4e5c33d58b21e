"""The clock of the workqueue and the leader election, which tests can replace."""

import asyncio
from collections.abc import Callable
from typing import Protocol


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
