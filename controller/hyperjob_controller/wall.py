"""The wall around each HyperJob and each feature: an exception in one of them ends no other.

An exception about a HyperJob, wherever the controller meets it, sets that HyperJob aside: it gets
no pass before its back-off is over, its status names the incident, and the log has the stack. A
turn of the event loop that takes too long counts as an exception. An exception in a background task
stops that task for some time. The process ends only when it cannot lead.

The HyperJobs that the controller has set aside after an exception, each with a back-off.

An incident is a bug of the controller or a turn of the event loop that took too long, never an
answer of the API server. Its number is a digest
of the HyperJob and of the place in the code: the same bug has the same number at each try, also in
a new controller, and its status is written once. It may be lost: a new controller tries at once.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePath
from traceback import walk_tb
from typing import Final

from prometheus_client import Counter, Gauge

from hyperjob_controller.watchdog import Place, SlowTurnError, Turn, Watchdog
from hyperjob_core.api.duration import doubled
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, rfc3339
from hyperjob_core.kube.informer import RestoredError
from hyperjob_core.kube.resources import Resource, key_of, split_key
from hyperjob_core.registry import REGISTRY
from hyperjob_core.tasks import apart
from hyperjob_queueing.state import HyperJobFault

_FIRST: Final = timedelta(seconds=5)
_LONGEST: Final = timedelta(minutes=5)
_DIGITS: Final = 10
_FRAMES: Final = 3
_OF_NODES: Final = frozenset(f"{name}.py" for name in ("ground", "nodeshortage", "packing"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """The last of `times` exceptions in a row about a HyperJob, which is set aside until `until`.

    `edition` is the UID and the generation of the HyperJob at that time: a changed spec gets its
    pass at once. `slow`: a turn took too long, but its result counts: the HyperJob keeps its place
    in its queue and what it was granted.
    """

    number: str
    times: int
    until: datetime
    edition: tuple[object, object]
    slow: bool = False


class Incidents:
    """The incidents by key of the HyperJob; `hyperjob` returns its present object."""

    def __init__(
        self, hyperjob: Callable[[str], Object | None], *, now: Callable[[], datetime]
    ) -> None:
        self._hyperjob = hyperjob
        self._now = now
        self._known: dict[str, Incident] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __str__(self) -> str:
        """Return each HyperJob with its last incident."""
        return "; ".join(
            f"{key} incident {each.number}, {each.times} in a row, until {rfc3339(each.until)}"
            for key, each in sorted(self._known.items())
        )

    def note(self, key: str, error: BaseException, *, same_try: bool = False) -> Incident:
        """Set a HyperJob aside: twice as long for each try that fails soon after another.

        `same_try`: the last exception was about the same try, which counts once.
        """
        self._drop_old()
        known, now = self._known.get(key), self._now()
        edition = _edition(self._hyperjob(key))
        times = 1
        if known is not None and known.edition == edition:
            times = known.times + (not same_try)
        wait = doubled(_FIRST, times - 1, _LONGEST)
        incident = Incident(
            number=number_of(key, error),
            times=times,
            until=now + wait,
            edition=edition,
            slow=isinstance(error, SlowTurnError) and error.finished,
        )
        self._known[key] = incident
        return incident

    def of(self, key: str) -> Incident | None:
        """Return the incident for which a HyperJob is set aside now; None if it gets its passes.

        A HyperJob that is being deleted gets them: nothing but its pass forgets it.
        """
        known = self._known.get(key)
        if known is None or known.until <= self._now():
            return None
        raw = self._hyperjob(key)
        if raw is None or at(raw, "metadata", "deletionTimestamp") is not None:
            return None
        return known if _edition(raw) == known.edition else None

    def forget(self, key: str) -> None:
        """Drop a deleted HyperJob."""
        self._known.pop(key, None)

    def _drop_old(self) -> None:
        """Drop the incidents after which a HyperJob had no other for the longest back-off."""
        latest = self._now() - _LONGEST
        for key in [key for key, each in self._known.items() if each.until < latest]:
            del self._known[key]


def number_of(subject: str, error: BaseException) -> str:
    """Return the number of an incident: equal for the same subject and the same place of a bug.

    The innermost frames are that place: a pass and a round may come to it on different ways. A slow
    turn has none: the timer ends it anywhere.
    """
    leaf = first_error(error)
    stack = None if isinstance(leaf, SlowTurnError) else leaf.__traceback__
    codes = [frame.f_code for frame, _ in walk_tb(stack)][-_FRAMES:]
    frames = (f"{PurePath(code.co_filename).name}:{code.co_name}" for code in codes)
    text = "\n".join((subject, type(leaf).__qualname__, *frames))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def is_of_nodes(error: BaseException) -> bool:
    """Return whether an exception was raised in placement by nodes."""
    frames = walk_tb(first_error(error).__traceback__)
    paths = (PurePath(frame.f_code.co_filename) for frame, _ in frames)
    return any(path.parent.name == "placement" and path.name in _OF_NODES for path in paths)


def first_error(error: BaseException) -> BaseException:
    """Return the exception itself: the first one of a group, or that of a step of a queue round."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        elif isinstance(error, HyperJobFault) and error.__cause__ is not None:
            error = error.__cause__
        else:
            return error


def _edition(raw: Object | None) -> tuple[object, object]:
    return at(raw, "metadata", "uid"), at(raw, "metadata", "generation")


log = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0

_INTERNAL_ERRORS: Final = Counter(
    "hyperjob_internal_errors_total",
    "Unexpected exceptions, by the part of the controller in which it caught them; the HyperJob or"
    " the feature is set aside and tried again later",
    ("place",),
    registry=REGISTRY,
)
_DEGRADED: Final = Gauge(
    "hyperjob_feature_degraded",
    "1 while a part of the controller has stopped after an unexpected exception, else 0",
    ("place",),
    registry=REGISTRY,
)
for _place in Place:
    _INTERNAL_ERRORS.labels(_place)
    _DEGRADED.labels(_place)


def void(_: object) -> None:
    """Do nothing."""


class Wall:
    """Catches the exceptions about HyperJobs and in background tasks."""

    def __init__(
        self,
        hyperjob: Callable[[str], Object | None],
        *,
        now: Callable[[], datetime],
        wake: Callable[[str], None],
        set_aside: Callable[[str], None] = lambda _: None,
        distrust: Callable[[], None] = lambda: None,
        watchdog: Watchdog | None = None,
    ) -> None:
        """`hyperjob` returns the object of a key; `wake` requests its pass, for its status.

        `set_aside` gets the key of a HyperJob whose pass or event failed: the queue takes its room.
        `distrust` is called when placement by nodes has failed for two HyperJobs, or for none: all
        further HyperJobs are placed by sums for some time.
        """
        self._hyperjob = hyperjob
        self._now = now
        self._wake = wake
        self._incidents = Incidents(hyperjob, now=now)
        self._logged: dict[tuple[Place, str], int] = {}
        self._set_aside = set_aside
        self._distrust = distrust
        self.watchdog = watchdog or Watchdog()
        self._failed_by_nodes: set[str] = set()

    def __str__(self) -> str:
        """Return the HyperJobs that are set aside, and the last slow turns."""
        return f"{self._incidents}; slow turns: {self.watchdog}"

    def holds(self, key: str) -> bool:
        """Return whether a HyperJob is set aside now and waits for no room meanwhile."""
        incident = self.incident(key)
        return incident is not None and not incident.slow

    def incident(self, key: str) -> Incident | None:
        """Return the incident for which a HyperJob is set aside now."""
        return self._incidents.of(key)

    def forget(self, key: str) -> None:
        """Drop a deleted HyperJob."""
        self._incidents.forget(key)

    def turn(self, key: str, place: Place) -> Turn:
        """Return the turn of a decision about a HyperJob, which counts even if it is slow.

        The HyperJob is then set aside until its back-off is over.
        """

        def slow(error: SlowTurnError) -> None:
            self.caught(key, error, place)

        return self.watchdog.turn(place, key, slow=slow, part=place is Place.ROUND)

    def caught(self, key: str, error: BaseException, place: Place) -> Incident:
        """Set a HyperJob aside; log the stack with the incident number.

        If that fails too, return the incident of the second exception; its stack has both.
        """
        incident = self._note(key, error, place)
        if place is not Place.ROUND and not incident.slow:
            # After an exception in a round the queue engine reads all HyperJobs again by itself.
            try:
                with self.watchdog.turn(place, key, slow=void):  # it is set aside already
                    self._set_aside(key)
            except Exception as another:  # noqa: BLE001 - the wall
                incident = self._note(key, another, Place.ROUND, same_try=True)
        if place is not Place.RECONCILE:
            self._wake(key)
        return incident

    def _note(
        self, key: str, error: BaseException, place: Place, *, same_try: bool = False
    ) -> Incident:
        """Record an incident about a HyperJob, count it, and log its stack."""
        incident = self._incidents.note(key, error, same_try=same_try)
        _INTERNAL_ERRORS.labels(place).inc()
        namespace, name = split_key(key)
        log.error(
            "The controller failed at a HyperJob, and has set it aside",
            extra={
                "hyperjob": {"namespace": namespace, "name": name},
                "incident": incident.number,
                "place": str(place),
                "times": incident.times,
            },
            exc_info=error,
        )
        self._doubt(key, error)
        return incident

    def _doubt(self, key: str, error: BaseException) -> None:
        """Distrust placement by nodes if it has failed for another HyperJob too, or for none."""
        if not is_of_nodes(error):
            return
        self._failed_by_nodes.add(key)
        if not key or len(self._failed_by_nodes) > 1:
            self._failed_by_nodes.clear()
            self._distrust()

    @contextmanager
    def around(self, keys: Iterable[str], place: Place) -> Iterator[None]:
        """Set the HyperJobs aside if the block raises an exception, or takes too long."""
        keys = tuple(keys)
        try:
            with self.watchdog.turn(place, " ".join(keys) or str(place)):
                yield
        except Exception as error:  # noqa: BLE001 - the wall
            if not self.blame(keys, error, place):
                self.failed(place, error)

    def blame(self, keys: Iterable[str], error: Exception, place: Place) -> bool:
        """Set those of the HyperJobs aside that exist; return whether there are any."""
        found = [key for key in keys if self._hyperjob(key) is not None]
        for key in found:
            self.caught(key, error, place)
        return bool(found)

    def failed(self, place: Place, error: BaseException, of: str = "") -> None:
        """Count an exception that concerns no HyperJob; log the first and each hundredth stack.

        `of` is the object that it concerns.
        """
        _INTERNAL_ERRORS.labels(place).inc()
        self._doubt("", error)
        mark = place, number_of(f"{place} {of}", error)
        if mark not in self._logged and len(self._logged) >= 1000:
            self._logged.clear()
        times = self._logged[mark] = self._logged.get(mark, 0) + 1
        if times == 1 or times % 100 == 0:
            log.error(
                "A part of the controller failed",
                extra={"incident": mark[1], "place": str(place), "object": of, "times": times},
                exc_info=error,
            )

    def failed_at(self, place: Place, resource: Resource, obj: Object, error: Exception) -> None:
        """Count an exception that concerns one object and no HyperJob."""
        self.failed(place, error, f"{resource.group_resource} {key_of(obj)}")

    async def keep(self, place: Place, run: Callable[[], Awaitable[None]]) -> None:
        """Run a background task until it returns; after an exception run it again, after a pause.

        The pause begins at a second, and doubles while the task fails within its longest pause.
        Raises RestoredError.
        """
        clock, pause = asyncio.get_running_loop().time, _FIRST_PAUSE
        while True:
            began = clock()
            try:
                await apart(run())
            except RestoredError:
                raise  # no bug: only a new process forgets the other history
            except Exception as error:  # noqa: BLE001 - the wall
                self.failed(place, error)
            else:
                return
            if clock() - began > _LONGEST_PAUSE:
                pause = _FIRST_PAUSE
            _DEGRADED.labels(place).set(1)
            await asyncio.sleep(pause)
            _DEGRADED.labels(place).set(0)
            pause = min(_LONGEST_PAUSE, pause * 2)
