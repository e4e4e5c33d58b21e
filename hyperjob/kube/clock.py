"""Time as the queue and the elector see it, so that tests can hold it in their hands."""

import asyncio
from collections.abc import Callable
from typing import Protocol


class Cancellable(Protocol):
    """A timer that can be called off."""

    def cancel(self) -> None:
        """Call it off."""
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
    """The clock of the running event loop."""

    def now(self) -> float:
        """Return the loop's time."""
        return asyncio.get_running_loop().time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Cancellable:
        """Set a timer on the loop."""
        return asyncio.get_running_loop().call_later(delay, callback)
