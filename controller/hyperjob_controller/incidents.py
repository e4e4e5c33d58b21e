"""The HyperJobs that the controller has set aside after an exception, each with a back-off.

An incident is a bug of the controller or a turn of the event loop that took too long, never an
answer of the API server. Its number is a digest
of the HyperJob and of the place in the code: the same bug has the same number at each try, also in
a new controller, and its status is written once. It may be lost: a new controller tries at once.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePath
from traceback import walk_tb
from typing import Final

from hyperjob_controller.watchdog import SlowTurnError
from hyperjob_core.api.duration import doubled
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, rfc3339
from hyperjob_engine.queueing.state import HyperJobFault

_FIRST: Final = timedelta(seconds=5)
_LONGEST: Final = timedelta(minutes=5)
_DIGITS: Final = 10
_FRAMES: Final = 3
_OF_NODES: Final = frozenset(
    f"{name}.py" for name in ("ground", "items", "nodeshortage", "packing", "slots")
)


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
