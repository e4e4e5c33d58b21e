"""The watchdog: it finds out which object keeps the event loop, and for how many seconds of CPU.

A block for one object is a turn: the decision of a pass, an event handler, a HyperJob in a queue
round, an object of a member. A timer of the process charges the CPU time to the present turn, tick
by tick: a turn without a tick reads no clock. A turn above LONGEST is counted, and what caused it
is set aside; the timer ends a turn that would not end by itself. CPU counts, not time: no object is
to blame where the machine is slow. A stop of the event loop outside of all turns is counted too.
"""

import asyncio
import logging
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import Final, Self

from prometheus_client import Counter

from hyperjob_core.api.duration import utc_now
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import rfc3339
from hyperjob_core.kube.resources import Resource, key_of
from hyperjob_core.registry import REGISTRY


class Place(StrEnum):
    """A part of the controller, as metrics and logs name it."""

    RECONCILE = "pass"
    ROUND = "round"
    EVENT = "event"
    FORECAST = "forecast"
    MESSAGES = "messages"
    PROGRESS = "progress"
    CAUSES = "causes"
    MEMBERS = "members"
    SPLITTER = "splitter"
    INFORMER = "informer"
    EVENTS = "events"
    TRAINJOBS = "trainjobs"
    RECORD = "record"
    LEASE = "lease"
    USAGE = "usage"
    LOOP = "loop"


log = logging.getLogger(__name__)

LONGEST: Final = 1.0
"""Seconds of CPU of the longest turn."""
CUT: Final = 3.0
"""Seconds after which the timer ends a turn whose result counts: the Lease is renewed in time."""
_TICK: Final = 0.25
"""Seconds of CPU between two ticks: by so much a turn may seem longer than it is."""
_LOOK_SECONDS: Final = 0.5
_KEPT: Final = 20

_SLOW_TURNS: Final = Counter(
    "hyperjob_slow_turns_total",
    "Times that the event loop stood still for more than a second, by the part of the controller"
    " that worked for one object meanwhile; `loop`: no single object",
    ("place",),
    registry=REGISTRY,
)
for _place in Place:
    _SLOW_TURNS.labels(_place)

Of = str | tuple[str | Resource, Object]
"""What a turn is about: a text, or an object behind its resource or words for it."""
InTurn = Callable[[Of], AbstractContextManager[object]]
"""Returns the context in which a part of the controller works on something."""


class SlowTurnError(Exception):
    """A turn about `of` took too long; `finished`: its result is complete, the timer was late."""

    def __init__(self, of: str, seconds: float, *, finished: bool) -> None:
        took = "took" if finished else "was stopped after"
        super().__init__(
            f"{of} {took} {seconds:.1f} s of CPU in one turn of the event loop: {LONGEST:.0f} s is"
            " the most"
        )
        self.of = of
        self.finished = finished


@dataclass(frozen=True, slots=True)
class SlowTurn:
    """A turn above LONGEST; `place` LOOP: outside of all turns, of which `of` was the longest."""

    at: datetime
    place: Place
    of: str
    seconds: float


def _raised(error: SlowTurnError) -> None:
    raise error


class Turn:
    """A block without an await.

    The time of a turn within it is not its own, except for a `part` that is not slow by itself.
    """

    __slots__ = (
        *("_most", "_of", "_outer", "_part", "_place", "_slow", "_stopped", "_watchdog"),
        "charged",
    )

    def __init__(
        self,
        watchdog: "Watchdog",
        place: Place,
        of: Of,
        most: float,
        slow: Callable[[SlowTurnError], None],
        *,
        part: bool,
    ) -> None:
        self._watchdog = watchdog
        self._place = place
        self._of = of
        self._most = most
        self._slow = slow
        self._part = part
        self._outer: Turn | None = None
        self._stopped = False
        self.charged = 0.0

    def __enter__(self) -> Self:
        self._outer = self._watchdog.current
        self._watchdog.current = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> None:
        watchdog, seconds = self._watchdog, self.charged
        watchdog.current = self._outer
        if seconds > watchdog.longest[0]:
            watchdog.longest = seconds, self
        if seconds > LONGEST:
            if self._part and self._outer is not None:
                self._outer.charged -= seconds
            watchdog.count(self._place, self.of, seconds)
            if kind is None:
                self._slow(SlowTurnError(self.of, seconds, finished=True))

    @property
    def of(self) -> str:
        """Return what the turn is about."""
        if isinstance(self._of, str):
            return self._of
        kind, obj = self._of
        return f"{kind if isinstance(kind, str) else kind.group_resource} {key_of(obj)}"

    def charge(self, seconds: float) -> None:
        """Count CPU time; end the turn by an exception if it has taken too long."""
        self.charged += seconds
        if self._part and self._outer is not None:
            self._outer.charge(seconds)
        if self.charged > self._most and not self._stopped:
            self._stopped = True  # the code around the block must not be stopped once more
            raise SlowTurnError(self.of, self.charged, finished=False)


class Watchdog:
    """The turns of one event loop; while `ticking` or `tick` is not called, none takes time."""

    def __init__(
        self,
        *,
        cpu: Callable[[], float] = time.thread_time,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """`cpu` returns the CPU seconds of the event loop's thread."""
        self._cpu = cpu
        self._ticked = 0.0
        self._ticks = False
        self.current: Turn | None = None
        self.longest: tuple[float, Turn | None] = 0.0, None
        self.slowest: deque[SlowTurn] = deque(maxlen=_KEPT)
        self._now = now
        self._counted = False

    def __str__(self) -> str:
        """Return the last slow turns, each with its time, place, object and seconds."""
        return ", ".join(
            f"{rfc3339(each.at)} {each.place} {each.of} {each.seconds:.1f} s"
            for each in self.slowest
        )

    def turn(
        self,
        place: Place,
        of: Of,
        *,
        most: float = CUT,
        slow: Callable[[SlowTurnError], None] = _raised,
        part: bool = False,
    ) -> Turn:
        """Return the turn of a block; `slow` gets the error of a turn that took too long.

        The timer ends the block after `most` seconds.
        """
        return Turn(self, place, of, most, slow, part=part)

    def event(self, resource: Resource, obj: Object) -> Turn:
        """Return the turn of an event handler about an object."""
        return Turn(self, Place.EVENT, (resource, obj), CUT, _raised, part=False)

    def count(self, place: Place, of: str, seconds: float) -> None:
        """Count and keep a slow turn."""
        self._counted = True
        _SLOW_TURNS.labels(place).inc()
        self.slowest.append(SlowTurn(self._now(), place, of, round(seconds, 2)))

    @contextmanager
    def ticking(self) -> Iterator[None]:
        """Let a timer of the process end endless turns within the block; in its main thread only.

        The timer counts CPU time: a process at rest is not woken. Regular expressions end by it
        too; another long call of C code ends by itself first.
        """
        self._ticked, self._ticks = self._cpu(), True
        before = signal.signal(signal.SIGVTALRM, lambda *_: self.tick())
        signal.setitimer(signal.ITIMER_VIRTUAL, _TICK, _TICK)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
            signal.signal(signal.SIGVTALRM, before)

    def tick(self) -> None:
        """Charge the CPU time since the last tick to the present turn.

        Python delivers a tick late while C code runs: its whole time is charged then.
        """
        seconds, self._ticked = self._cpu() - self._ticked, self._cpu()
        if self.current is not None:
            self.current.charge(seconds)

    async def run(self) -> None:
        """Count what stops the event loop outside of all turns, until cancelled."""
        clock = asyncio.get_running_loop().time
        while self._ticks:
            due = clock() + _LOOK_SECONDS
            self._counted, self.longest = False, (0.0, None)
            await asyncio.sleep(_LOOK_SECONDS)
            late, (own, turn) = clock() - due, self.longest
            if late > LONGEST and not self._counted:
                of = "" if turn is None else turn.of
                self.count(Place.LOOP, of, late)
                log.warning(
                    "The event loop stood still, but in no single turn: it had many, or no CPU",
                    extra={"seconds": round(late, 2), "longest": of, "its": round(own, 2)},
                )
