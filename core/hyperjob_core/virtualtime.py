"""An event loop in virtual time: when no callback is ready, its clock jumps to the next timer.

Tasks wait, time out and retry as on a real loop, without real waiting. The loop must not do real
input or output, which has no virtual time.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

T = TypeVar("T")

START: Final = datetime(2026, 1, 5, tzinfo=UTC)
"""The date and time at which a simulation starts: a Monday."""

_RESOLUTION: Final = 1e-6


class StandstillError(RuntimeError):
    """No callback is ready and no timer is set: the simulation would wait without end."""


class _Selector(selectors.DefaultSelector):
    """A selector that does not wait, and passes the timeout to `leap`."""

    leap: Callable[[float | None], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.leap(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time starts at 0 and advances only while all tasks wait."""

    def __init__(self) -> None:
        self._virtual = 0.0
        selector = _Selector()
        selector.leap = self._advance
        super().__init__(selector)
        self._clock_resolution = _RESOLUTION

    def time(self) -> float:
        """Return the virtual seconds since the start."""
        return self._virtual

    def _advance(self, timeout: float | None) -> None:
        """Move the clock to the next timer; raises StandstillError without one."""
        if timeout is None:
            raise StandstillError("no callback is ready and no timer is set")
        self._virtual += max(0.0, timeout)


def now() -> datetime:
    """Return the virtual date and time of the running loop."""
    return moment(asyncio.get_running_loop().time())


def moment(seconds: float) -> datetime:
    """Return the virtual date and time `seconds` after the start."""
    return START + timedelta(seconds=seconds)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time; return its result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
