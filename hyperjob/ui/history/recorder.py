"""Record the history outside the event loop, and answer queries about it.

One thread writes and reads in order: an answer includes all earlier records. When the file cannot
be written, the page continues: the recorder keeps new records in memory, up to a bound, and
`problem` has the error.
"""

import asyncio
import contextlib
import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self, TypeAlias, TypeVar

from hyperjob.client.summary import Summary
from hyperjob.client.usage import ClusterUse, QueueUse
from hyperjob.ui.history.backfill import Change, filled, missing, past, resumed
from hyperjob.ui.history.gone import DeletedHyperJob, gone_of
from hyperjob.ui.history.points import NewPoint, ProgressPoint, merged, point_of
from hyperjob.ui.history.spans import Sample, Span, follow, states, tidy
from hyperjob.ui.history.store import HistoryError, HistoryFile, Kind, Known, Retention, Use
from hyperjob.ui.history.use import HELD, UNCHANGED, Series, series

BATCH_SECONDS: Final = 0.5
TRIM_SECONDS: Final = 600.0
UNWRITTEN: Final = 50_000
"""Maximum number of spans and samples in memory while the file cannot be written."""
_REVISIONS: Final = 2_000
"""Maximum number of HyperJobs with a number of their own for changes of their logs."""
_LOOKED_THROUGH: Final = 50_000
"""Maximum number of HyperJobs among which deleted ones are searched."""
_WAITING: Final = 200_000
"""Maximum number of changes that wait for the thread."""
_BEAT: Final = timedelta(seconds=30)
"""Interval of writing the time of the last record."""
_IN_MEMORY: Final = Retention(days=2.0, size=32 * 1024 * 1024)

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


_Noted: TypeAlias = tuple[datetime, "Callable[[_Recorder], None]"]
"""The time of a record, and how the recorder takes it over."""


class History:
    """The history in a file, or (`path` None) in memory; use with `async with`."""

    def __init__(self, path: Path | None, *, limits: Retention | None = None) -> None:
        self.problem = ""
        self.log_reads = 0
        """Counts the calls of `progressed`."""
        self._path = path
        self._limits = limits or Retention()
        # The event loop appends, and the thread takes: it alone uses the recorder and its file.
        self._seen: deque[_Noted] = deque(maxlen=_WAITING)
        self._revisions: dict[str, int] = {}  # changes by UID, the latest change last
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="history")
        self._writer: asyncio.Task[None] | None = None
        self._recorder: _Recorder | None = None

    async def __aenter__(self) -> Self:
        self._recorder = await self._in_thread(self._open)
        self._writer = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writer
        if self._recorder is not None:
            await self._in_thread(self._flush)
            await self._in_thread(self._recorder.close)
        self._thread.shutdown()

    @property
    def namespaces(self) -> frozenset[str]:
        """Return the namespaces of all HyperJobs of the history."""
        return frozenset(self._recorder.namespaces if self._recorder is not None else ())

    def record(self, now: datetime, summary: Summary) -> None:
        """Record the present state of a HyperJob; cheap, also without a change."""
        self._note(now, lambda recorder: recorder.look(now, summary))

    def removed(self, now: datetime, uid: str) -> None:
        """Record the deletion of a HyperJob."""
        self._note(now, lambda recorder: recorder.end(uid, now))

    def present(self, now: datetime, uids: Collection[str]) -> None:
        """Record the existing HyperJobs; all others were deleted while no recorder ran."""
        there = frozenset(uids)
        self._note(now, lambda recorder: recorder.present(there, now))

    def phases_changed(self, now: datetime, changes: Mapping[str, Sequence[Change]]) -> None:
        """Record changes of phase from Events, by uid and in order."""
        self._note(now, lambda recorder: recorder.phases_changed(changes))

    def progressed(self, now: datetime, uid: str, points: Sequence[ProgressPoint]) -> None:
        """Record the progress lines of a HyperJob's log; known ones change nothing."""
        self.log_reads += 1
        self._revisions[uid] = self._revisions.pop(uid, 0) + 1
        while len(self._revisions) > _REVISIONS:
            self._revisions.pop(next(iter(self._revisions)))
        self._note(now, lambda recorder: recorder.progressed(uid, points))

    def revision(self, uid: str) -> int:
        """Return a number that changes with progress lines of a HyperJob's log."""
        return self._revisions.get(uid, 0)

    def sample(
        self, now: datetime, clusters: Sequence[ClusterUse], queues: Sequence[QueueUse]
    ) -> None:
        """Record the present use; call this after changes, and about once a minute."""
        uses = (*_of_clusters(now, clusters), *_of_queues(now, queues))
        self._note(now, lambda recorder: recorder.sample(uses))

    async def spans(self, uid: str) -> Sequence[Span]:
        """Return all spans of a HyperJob and its sub-jobs, by track and time."""
        return await self._ask(lambda recorder: recorder.spans(uid))

    async def hyperjobs(self, *, limit: int = 10_000) -> Sequence[Known]:
        """Return the HyperJobs that changed last, including deleted ones, the latest first.

        The result has HyperJobs of all namespaces: the caller must filter for the visitor.
        """
        return await self._ask(lambda recorder: recorder.hyperjobs(limit))

    async def known(self, uid: str) -> Known | None:
        """Return namespace and name for a uid; None for an unknown uid."""
        found = await self._ask(lambda recorder: recorder.known(uid))
        return found[0] if found else None

    async def gone(
        self, present: Collection[str], namespaces: Collection[str] | None, words: str, limit: int
    ) -> Sequence[DeletedHyperJob]:
        """Return the deleted HyperJobs, whose uid is not in `present`, the latest first.

        `namespaces` None is all namespaces; each of `words` is part of namespace, name or queue.
        """
        return await self._ask(lambda r: r.gone(present, namespaces, words.lower().split(), limit))

    async def points(self, uid: str) -> Sequence[ProgressPoint]:
        """Return the progress of a HyperJob over time, in as many points as a curve shows."""
        return await self._ask(lambda recorder: recorder.points(uid))

    async def use(self, kind: Kind, since: datetime, until: datetime) -> Sequence[Series]:
        """Return the use of each accelerator of each cluster or queue between two times."""
        return await self._ask(lambda recorder: recorder.use(kind, since, until))

    def _note(self, now: datetime, take: "Callable[[_Recorder], None]") -> None:
        self._seen.append((now, take))
        self._wake.set()

    async def _ask(self, question: "Callable[[_Recorder], Sequence[_T]]") -> Sequence[_T]:
        """Answer in the thread, after all earlier records; empty where the file cannot be read."""

        def answer() -> Sequence[_T]:
            self._flush()
            assert self._recorder is not None
            try:
                return question(self._recorder)
            except sqlite3.Error as error:
                self.problem = f"{self._path}: {error}"
                return ()

        return await self._in_thread(answer)

    async def _in_thread(self, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        trimmed = loop.time()
        while True:
            await self._wake.wait()
            await asyncio.sleep(BATCH_SECONDS)  # one transaction writes many changes
            self._wake.clear()
            await self._in_thread(self._flush)
            if loop.time() - trimmed >= TRIM_SECONDS:
                trimmed = loop.time()
                await self._in_thread(self._trim)

    def _open(self) -> "_Recorder":
        """Open the file, or else a history in memory with `problem` as the reason."""
        try:
            store = HistoryFile(self._path, limits=self._limits if self._path else _IN_MEMORY)
        except HistoryError as error:
            self.problem = f"{error}; the history stays in memory until hyperjob ui ends"
            store = HistoryFile(None, limits=_IN_MEMORY)
        if not store.writes:
            self.problem = f"{self._path}: another process writes this file, this one reads it"
        recorder = _Recorder(store)
        with self._watched():
            recorder.trim(datetime.now(UTC))
        return recorder

    def _flush(self) -> None:
        """Take all noted changes over and write them; after an error they stay in memory."""
        assert self._recorder is not None
        with self._watched():
            while self._seen:
                self._recorder.take(self._seen.popleft())
            try:
                self._recorder.write()
            except sqlite3.Error:
                self._recorder.trim(datetime.now(UTC))  # the file may have reached its limit
                raise
            if self.problem and self._recorder.recovered:
                _log.info("Writing the history works again")
                self.problem = ""

    def _trim(self) -> None:
        assert self._recorder is not None
        with self._watched():
            self._recorder.trim(datetime.now(UTC))

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Note an error of the file as `problem`, and log it once."""
        try:
            yield
        except sqlite3.Error as error:
            problem = f"{self._path}: {error}; new records stay in memory for now"
            if problem != self.problem:
                _log.warning("Writing the history failed", extra={"error": problem})
            self.problem = problem


class _Recorder:
    """The state of the history and its file, used by the recorder's thread only."""

    def __init__(self, store: HistoryFile) -> None:
        self._store = store
        # By UID and sub-job: the last span of each track, which the next look continues.
        self._tracks: dict[str, dict[str, Span]] = {}
        # What the next flush writes: spans, HyperJobs, uses and points.
        self._rows: dict[str, dict[tuple[str, datetime], Span]] = {}
        self._held = 0  # an upper limit, since an overwritten row counts twice
        self._known: dict[str, Known] = {}
        self._uses: deque[Use] = deque(maxlen=UNWRITTEN)
        self._last: dict[tuple[Kind, str, str], Sample] = {}
        self._points: deque[NewPoint] = deque(maxlen=UNWRITTEN)
        self._progress: dict[str, ProgressPoint] = {}
        self._latest: datetime | None = None
        self._written = datetime.min.replace(tzinfo=UTC)
        self._failed = False
        self.recovered = False
        self.namespaces = store.namespaces
        seen = store.seen_until
        self._seen_until = None if seen is None else datetime.fromtimestamp(seen, UTC)

    def close(self) -> None:
        self._store.close()

    def take(self, noted: _Noted) -> None:
        """Take a record over into those of the next write."""
        self._latest, take = noted
        take(self)

    def present(self, uids: Collection[str], now: datetime) -> None:
        """Close the open spans of all other HyperJobs, when this or an earlier process saw them."""
        for uid in self._store.open_uids().difference(uids):
            self.end(uid, now if uid in self._tracks else self._seen_until or now)

    def phases_changed(self, changes: Mapping[str, Sequence[Change]]) -> None:
        """Fill in phases from Events where the spans have none."""
        for uid, each in changes.items():
            self._add(uid, filled(self.spans(uid), each))

    def progressed(self, uid: str, points: Iterable[ProgressPoint]) -> None:
        """Keep points of a log for the next write."""
        self._points.extend((uid, point) for point in points)

    def look(self, now: datetime, summary: Summary) -> None:
        """Record the progress and the spans of a HyperJob as its status has them now."""
        uid = summary.uid
        point = point_of(summary)
        if point is not None and self._progress.get(uid) != point:
            self._progress[uid] = point
            self._points.append((uid, point))
        before = self._tracks.get(uid)
        if before is None:
            before = self._begin(now, summary)
        written, after = follow(before, states(summary, now), now)
        self._tracks[uid] = after
        self._add(uid, written)
        if written or uid in self._known:
            self.namespaces.add(summary.namespace)
            self._known[uid] = Known(uid, summary.namespace, summary.name, summary.queue, now)

    def _begin(self, now: datetime, summary: Summary) -> dict[str, Span]:
        """Fill in the spans before the first record, or from the time without a recorder.

        Return the last span of each track.
        """
        told = past(summary, now)
        recorded = self.spans(summary.uid)
        self._add(summary.uid, missing([*recorded, *states(summary, now)], told))
        before = {span.job: span for span in recorded}
        if before and self._seen_until is not None:
            written, before = resumed(before, told, self._seen_until)
            self._add(summary.uid, written)
        return before

    def end(self, uid: str, now: datetime) -> None:
        """Close the open spans of a deleted HyperJob."""
        before = self._tracks.pop(uid, None)
        self._progress.pop(uid, None)
        if before is None:
            before = {span.job: span for span in self.spans(uid)}
        self._add(uid, follow(before, (), now)[0])
        for known in self.known(uid):
            self._known[uid] = replace(known, seen=max(now, known.seen))

    def sample(self, uses: Iterable[Use]) -> None:
        """Keep each sample that differs from the last one, or comes UNCHANGED after it."""
        last: dict[tuple[Kind, str, str], Sample] = {}
        for kind, name, accelerator, sample in uses:
            key = (kind, name, accelerator)
            before = self._last.get(key)
            same = before is not None and (before.used, before.total) == (sample.used, sample.total)
            if before is not None and same and sample.at - before.at < UNCHANGED:
                last[key] = before
                continue
            last[key] = sample
            self._uses.append((kind, name, accelerator, sample))
        self._last = last

    def _add(self, uid: str, spans: Iterable[Span]) -> None:
        """Add spans for the next write; drop those of other HyperJobs beyond UNWRITTEN."""
        new = {(span.job, span.begin): span for span in spans}
        if not new:
            return
        self._rows.setdefault(uid, {}).update(new)
        self._held += len(new)
        while self._held > UNWRITTEN and len(self._rows) > 1:
            self._held -= len(self._rows.pop(next(iter(self._rows))))

    def write(self) -> None:
        """Write new records; after sqlite3.Error the records stay for the next attempt."""
        self.recovered = False
        if self._latest is None or not self._store.writes:
            return
        new = self._rows or self._uses or self._known or self._points
        if not new and self._latest - self._written < _BEAT:
            return
        try:
            self._store.write(
                [(uid, span) for uid, rows in self._rows.items() for span in rows.values()],
                self._uses,
                self._known.values(),
                self._points,
                now=self._latest.timestamp(),
            )
        except sqlite3.Error:
            self._failed = True
            raise
        self.recovered, self._failed = self._failed, False
        self._written = self._latest
        self._rows.clear()
        self._held = 0
        self._known.clear()
        self._uses.clear()
        self._points.clear()

    def trim(self, now: datetime) -> None:
        if self._store.writes:
            self._store.trim(now=now.timestamp())
            unwritten = {known.namespace for known in self._known.values()}
            self.namespaces = self._store.namespaces | unwritten

    def spans(self, uid: str) -> list[Span]:
        """Return the spans of the file, replaced by spans that are not written yet."""
        found = {(span.job, span.begin): span for span in self._store.spans(uid)}
        found |= self._rows.get(uid, {})
        return tidy(found.values())

    def points(self, uid: str) -> list[ProgressPoint]:
        return merged(self._store.points(uid), (new for key, new in self._points if key == uid))

    def hyperjobs(self, limit: int) -> list[Known]:
        found = {known.uid: known for known in self._store.hyperjobs(limit=limit)} | self._known
        return sorted(found.values(), key=lambda known: known.seen, reverse=True)[:limit]

    def known(self, uid: str) -> list[Known]:
        """Return a HyperJob by uid, as a list of one; empty for an unknown uid."""
        found = self._known.get(uid) or self._store.known(uid)
        return [found] if found is not None else []

    def gone(
        self,
        present: Collection[str],
        namespaces: Collection[str] | None,
        words: Sequence[str],
        limit: int,
    ) -> list[DeletedHyperJob]:
        """Return deleted HyperJobs as `History.gone` does; `words` are in lower case."""
        found: list[DeletedHyperJob] = []
        for known in self.hyperjobs(_LOOKED_THROUGH):
            text = f"{known.namespace}/{known.name} {known.queue}".lower()
            if known.uid in present or not (namespaces is None or known.namespace in namespaces):
                continue
            if all(word in text for word in words):
                found.append(gone_of(known, self.spans(known.uid)))
            if len(found) == limit:
                break
        return found

    def use(self, kind: Kind, since: datetime, until: datetime) -> list[Series]:
        begin = since - HELD
        return series(self._store.use(kind, begin.timestamp(), until.timestamp()), since, until)


def _of_clusters(now: datetime, clusters: Iterable[ClusterUse]) -> Iterable[Use]:
    for use in clusters:
        if use.accelerator and use.allocatable is not None:
            sample = Sample(now, use.used or 0, use.allocatable)
            yield "cluster", use.cluster, use.accelerator, sample


def _of_queues(now: datetime, queues: Iterable[QueueUse]) -> Iterable[Use]:
    for use in queues:
        if use.accelerator:
            total = next((n for n in (use.share, use.deserved, use.capability) if n is not None), 0)
            yield "queue", use.queue, use.accelerator, Sample(now, use.used, total)
