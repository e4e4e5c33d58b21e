"""The watch of one sub-job's log: which pod reports, its progress, and when to read next. No I/O.

A watch has a bounded size for any log. Its reads become rarer while the log has no progress line.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from hyperjob_controller.training.schedule import Lane
from hyperjob_controller.training.sources import Source
from hyperjob_core.api.microtime import micro_time
from hyperjob_engine.model.training import JobTraining
from hyperjob_engine.training.lines import progress_lines, time_of
from hyperjob_engine.training.track import Track, advance, training_of

LIMIT_BYTES: Final = 256 * 1024
"""The bytes of a log in one read."""
_TAIL: Final = 100
_TAILS: Final = (10, 10_000)
_LONGEST: Final = 300.0
_SEARCH_SECONDS: Final = 2.0
_CYCLE_SECONDS: Final = 15.0
_LONGEST_CYCLE: Final = 900.0
_MISSES: Final = 3


@dataclass(slots=True, kw_only=True)
class Watch:
    """The watch of one sub-job; `number` is the pod to read next: the reporting one if `found`.

    `others`: another sub-job of the HyperJob reports, and the search covers only the first pod of
    each task. `silent` counts reads without progress since the last line, `cycles` the searches,
    `missed` the reads of a reporting pod that did not exist.
    """

    source: Source
    track: Track | None = None
    number: int = 0
    found: bool = False
    others: bool = False
    cursor: bytes = b""
    tail: int = _TAIL
    silent: int = 0
    cycles: int = 0
    missed: int = 0
    ended: bool = False
    following: bool = False

    @property
    def training(self) -> JobTraining | None:
        """Return the progress of the program; None before any progress line or end."""
        if self.track is not None:
            training = training_of(self.track, attempt=self.source.attempt, uid=self.source.uid)
            return replace(training, ended=self.ended)
        if not self.ended:
            return None
        moment = datetime.min.replace(tzinfo=UTC)
        return JobTraining(
            step=0, updated=moment, start_step=0, started=moment,
            attempt=self.source.attempt, ended=True, reported=False,
        )  # fmt: skip

    @property
    def lane(self) -> Lane:
        """Return the purpose of the next read."""
        known = self.found or self.source.leaving or self.source.ended
        return Lane.REPORT if known else Lane.SEARCH

    def params(self, *, follow: bool = False) -> dict[str, str]:
        """Return the query parameters of the next read."""
        query = {"container": self.source.pod(self.number)[1], "timestamps": "true"}
        if self.cursor:
            query["sinceTime"] = self.cursor.decode()
        if follow:
            return query | {"follow": "true"}
        return query | {"tailLines": str(self.tail), "limitBytes": str(LIMIT_BYTES)}

    def read_log(self, log: bytes, *, now: datetime) -> bool:
        """Process the lines of a read; return whether they have progress."""
        whole = log.count(b"\n") >= self.tail
        progressed = self._take_in(log, began_before=whole and self.track is None, now=now)
        self.missed = 0
        self.found = self.found or progressed
        self.silent = 0 if progressed else self.silent + 1
        least, most = _TAILS
        if len(log) >= LIMIT_BYTES:  # its end, the newest lines, was cut off
            self.tail = max(least, self.tail // 4)
        elif whole and not progressed:
            self.tail = min(most, self.tail * 4)
        if not self.found:
            self._go_on()
        return progressed

    def miss(self) -> None:
        """Process a read of a pod that does not exist or has not started."""
        self.missed += 1
        if not self.found or self.missed >= _MISSES:
            self.missed, self.found = 0, False
            self._go_on()

    def pause(self, interval: float) -> float:
        """Return the seconds until the next read; `interval` is the least time between two."""
        if self.found and self.track is not None:
            samples = self.track.samples
            if len(samples) < 2:
                return min(interval, 5.0) * 2.0 ** min(self.silent, 6)
            gap = (samples[-1][1] - samples[0][1]).total_seconds() / (len(samples) - 1)
            longest = max(interval, _LONGEST)
            return min(longest, max(interval, gap) * 2.0 ** min(self.silent, 10))
        if self.number:
            return min(interval, _SEARCH_SECONDS)
        least = min(interval, _CYCLE_SECONDS) * (4.0 if self.others else 1.0)
        return min(_LONGEST_CYCLE, least * 2.0 ** min(self.cycles, 10))

    def _go_on(self) -> None:
        """Go on to the next pod, whose log is read from its last lines."""
        self.number += 1
        if self.number >= (self.source.first if self.others else self.source.size):
            self.number, self.cycles = 0, self.cycles + 1
        self.tail = _TAIL

    def _take_in(self, log: bytes, *, began_before: bool, now: datetime) -> bool:
        progressed = False
        for line in progress_lines(log, since=self.cursor):
            if self.track is None and began_before and self.source.since is not None:
                self.track = advance(None, line, now=now)
                started = min(self.track.started, self.source.since)
                self.track = replace(self.track, started=started)
            else:
                self.track = advance(self.track, line, now=now)
            progressed = True
        last = time_of(log[log.rfind(b"\n", 0, max(0, len(log) - 1)) + 1 :])
        self.cursor = max(self.cursor, last) if self.track is not None else b""
        return progressed


def watch(source: Source) -> Watch:
    """Return a watch of a sub-job, which starts from the progress in the status."""
    made = Watch(source=source)
    recorded = source.recorded
    if recorded is not None:
        made.track = Track(
            start_step=recorded.start_step,
            started=recorded.started,
            samples=((recorded.step, recorded.updated),),
            saved_step=recorded.saved_step,
            saved=recorded.saved,
        )
        made.cursor = micro_time(recorded.updated).encode().replace(b"Z", b"000Z")
    return made
