"""An event loop in virtual time: whenever nothing is ready, its clock jumps to the next timer.

What runs in it waits, times out and retries as ever, and none of it takes longer than its own
computing. It must never be used for real input or output, which would arrive at no defined time.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

T = TypeVar("T")

START: Final = datetime(2026, 1, 5, tzinfo=UTC)
"""The wall clock's time at the start of a simulation: a Monday."""

_RESOLUTION: Final = 1e-6


class StandstillError(RuntimeError):
    """Nothing is ready and no timer is set: the simulation would wait for ever."""


class _Selector(selectors.DefaultSelector):
    """Never waits: the time to wait is handed to `leap`."""

    leap: Callable[[float | None], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.leap(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time starts at 0 and passes only while all tasks wait."""

    def __init__(self) -> None:
        self._virtual = 0.0
        selector = _Selector()
        selector.leap = self._advance
        super().__init__(selector)
        self._clock_resolution = _RESOLUTION

    def time(self) -> float:
        """Return the seconds since the start."""
        return self._virtual

    def _advance(self, timeout: float | None) -> None:
        if timeout is None:
            raise StandstillError("nothing is ready and no timer is set")
        self._virtual += max(0.0, timeout)


def now() -> datetime:
    """Return the wall clock's time in the running loop."""
    return moment(asyncio.get_running_loop().time())


def moment(seconds: float) -> datetime:
    """Return the wall clock's time so many seconds after the start."""
    return START + timedelta(seconds=seconds)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time to its end."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
