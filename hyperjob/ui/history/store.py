"""The SQLite file of the history: schema, limits, reads and writes.

All functions block and must run in one thread. Times are seconds since 1970. Each write is one
transaction: a killed process loses at most its last transaction.
"""

import contextlib
import fcntl
import logging
import os
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from hyperjob.ui.history import points
from hyperjob.ui.history.points import NewPoint, ProgressPoint
from hyperjob.ui.history.spans import Sample, Span
from hyperjob.ui.history.use import UsedSample

SCHEMA_VERSION: Final = 2
_WITHOUT_POINTS: Final = 1
_PAGE: Final = 4096
_SHARE_KEPT: Final = 0.8
"""Share of the size limit above which `trim` deletes the oldest rows."""

_SCHEMA: Final = """
CREATE TABLE known (key TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE hyperjobs (
    uid TEXT PRIMARY KEY, namespace TEXT NOT NULL, name TEXT NOT NULL, queue TEXT NOT NULL,
    seen REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX hyperjobs_by_time ON hyperjobs (seen);
CREATE TABLE spans (
    uid TEXT NOT NULL, job TEXT NOT NULL, begin REAL NOT NULL, end REAL, attempt INTEGER NOT NULL,
    cluster TEXT NOT NULL, phase TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL,
    PRIMARY KEY (uid, job, begin)
) WITHOUT ROWID;
CREATE INDEX spans_by_end ON spans (end);
CREATE TABLE samples (
    kind TEXT NOT NULL, name TEXT NOT NULL, accelerator TEXT NOT NULL, at REAL NOT NULL,
    used INTEGER NOT NULL, total INTEGER NOT NULL, PRIMARY KEY (kind, name, accelerator, at)
) WITHOUT ROWID;
CREATE INDEX samples_by_time ON samples (at);
"""

Kind = Literal["cluster", "queue"]


@dataclass(frozen=True, slots=True)
class Known:
    """A HyperJob of the history, and the time of its last change."""

    uid: str
    namespace: str
    name: str
    queue: str
    seen: datetime


NewSpan = tuple[str, Span]
"""The uid of a HyperJob, and a span of it."""
Use = tuple[Kind, str, str, Sample]
"""The kind (cluster or queue), its name, and the accelerator of a sample."""

_log = logging.getLogger(__name__)


class HistoryError(Exception):
    """The file cannot be used; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The limits of the file."""

    days: float = 30.0
    size: int = 256 * 1024 * 1024


def default_path(host: str) -> Path:
    """Return the file for an API server (its host and port) in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    name = "".join(each if each.isalnum() or each in ".-" else "_" for each in host)
    return Path(base) / "hyperjob" / f"history-{name}.sqlite"


class HistoryFile:
    """An open file; `writes` is False while another process writes it."""

    def __init__(self, path: Path | None, *, limits: Retention) -> None:
        """Open or create the file, None is in memory; raise HistoryError on failure."""
        self._limits = limits
        self._lock: int | None = None
        self.writes = True
        self._counts: dict[str, int] = {}
        if path is None:
            self._database = sqlite3.connect(":memory:", isolation_level=None)
            self._prepare(self._database)
            return
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _lock(path.with_name(path.name + ".lock"))
            self.writes = self._lock is not None
            self._database = self._open(path)
        except (OSError, sqlite3.Error) as error:
            self._unlock()
            raise HistoryError(f"{path}: {error}") from error
        except HistoryError as error:
            self._unlock()
            raise HistoryError(f"{path}: {error}") from error

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(sqlite3.Error):
            self._database.close()
        self._unlock()

    def open_uids(self) -> set[str]:
        """Return the uids of HyperJobs with an open span."""
        return {row[0] for row in self._database.execute(_OPEN)}

    def spans(self, uid: str) -> list[Span]:
        """Return all spans of a HyperJob, by track and time."""
        rows = self._database.execute(_SPANS, (uid,))
        return [_span_of_row(row) for row in rows]

    def use(self, kind: Kind, since: float, until: float) -> Iterable[UsedSample]:
        """Return all samples between two times, by name, accelerator and time."""
        rows = self._database.execute(_USE, (kind, since, until))
        return ((str(a), str(b), at, used, total) for a, b, at, used, total in rows)

    @property
    def seen_until(self) -> float | None:
        """Return the time of the last write; None in a new file."""
        row = self._database.execute("SELECT value FROM known WHERE key = 'seen'").fetchone()
        return None if row is None else float(row[0])

    def hyperjobs(self, *, limit: int) -> list[Known]:
        """Return the HyperJobs that were seen last, the latest first."""
        rows = self._database.execute(_KNOWN + " ORDER BY seen DESC LIMIT ?", (limit,))
        return [_known(row) for row in rows]

    def known(self, uid: str) -> Known | None:
        """Return a HyperJob by uid; None for an unknown uid."""
        row = self._database.execute(_KNOWN + " WHERE uid = ?", (uid,)).fetchone()
        return None if row is None else _known(row)

    @property
    def namespaces(self) -> set[str]:
        """Return the namespaces of all HyperJobs of the history."""
        return {
            row[0] for row in self._database.execute("SELECT DISTINCT namespace FROM hyperjobs")
        }

    def points(self, uid: str) -> list[ProgressPoint]:
        """Return the progress of a HyperJob over time, in as many points as a curve shows."""
        return points.read(self._database, uid)

    def write(
        self,
        spans: Iterable[NewSpan],
        uses: Iterable[Use],
        known: Iterable[Known],
        progress: Iterable[NewPoint] = (),
        *,
        now: float,
    ) -> None:
        """Write everything in one transaction; raises sqlite3.Error."""
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(
                "INSERT OR REPLACE INTO spans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (_row_of_span(uid, span) for uid, span in spans),
            )
            self._database.executemany(
                "INSERT OR REPLACE INTO samples VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (kind, name, accelerator, one.at.timestamp(), one.used, one.total)
                    for kind, name, accelerator, one in uses
                ),
            )
            self._database.executemany(
                "INSERT OR REPLACE INTO hyperjobs VALUES (?, ?, ?, ?, ?)",
                ((k.uid, k.namespace, k.name, k.queue, k.seen.timestamp()) for k in known),
            )
            points.write(self._database, progress, self._counts)
            self._database.execute("INSERT OR REPLACE INTO known VALUES ('seen', ?)", (now,))

    def trim(self, *, now: float) -> None:
        """Delete rows older than the limit, then the oldest rows until the file is small enough."""
        self._counts.clear()
        oldest = now - self._limits.days * 86_400
        self._remove_before(oldest)
        while self._used() > self._limits.size * _SHARE_KEPT:
            row = self._database.execute(
                "SELECT min(at) FROM (SELECT min(at) AS at FROM samples UNION ALL"
                " SELECT min(at) FROM points UNION ALL"
                " SELECT min(end) FROM spans WHERE end IS NOT NULL)"
            ).fetchone()
            if row[0] is None or now - row[0] < 1:
                return
            oldest = row[0] + (now - row[0]) / 8
            self._remove_before(oldest)

    def _remove_before(self, oldest: float) -> None:
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("DELETE FROM spans WHERE end < ?", (oldest,))
            self._database.execute("DELETE FROM samples WHERE at < ?", (oldest,))
            self._database.execute("DELETE FROM points WHERE at < ?", (oldest,))
            self._database.execute(
                "DELETE FROM hyperjobs WHERE seen < ? AND NOT EXISTS"
                " (SELECT 1 FROM spans WHERE spans.uid = hyperjobs.uid)",
                (oldest,),
            )

    def _used(self) -> int:
        pages = self._database.execute("PRAGMA page_count").fetchone()[0]
        free = self._database.execute("PRAGMA freelist_count").fetchone()[0]
        return int(pages - free) * _PAGE

    def _open(self, path: Path) -> sqlite3.Connection:
        """Open the file; a damaged one is kept under another name and replaced by a new one."""
        try:
            return self._connect(path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) or not self.writes:
                raise  # after a full disk or a missing right the file itself is intact
            damaged = path.with_name(path.name + ".damaged")
            _log.warning(
                "Reading the history failed, creating a new file",
                extra={"file": str(path), "kept": str(damaged), "error": str(error)},
            )
            path.replace(damaged)
            for ending in ("-wal", "-shm"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
            return self._connect(path)

    def _connect(self, path: Path) -> sqlite3.Connection:
        """Open the file for writing, or for reading where another process writes it."""
        if self.writes:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            database = sqlite3.connect(path, isolation_level=None, timeout=5)
        else:
            where = f"{path.absolute().as_uri()}?mode=ro"
            database = sqlite3.connect(where, uri=True, isolation_level=None, timeout=5)
        try:
            self._prepare(database)
        except BaseException:
            database.close()
            raise
        return database

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Create the tables of a new file, and upgrade those of an older release.

        Raises HistoryError for a file of a newer release, sqlite3.DatabaseError for a damaged one.
        """
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise HistoryError(
                f"a newer release wrote the file (schema {version}, this release supports"
                f" {SCHEMA_VERSION}): give another file with --history"
            )
        if not self.writes:
            return
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA journal_size_limit = {self._limits.size // 8}")
        database.execute(f"PRAGMA max_page_count = {max(self._limits.size // _PAGE, 64)}")
        if version == 0:
            database.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} {points.SCHEMA}"
                f" PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )
            return
        found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        if version == _WITHOUT_POINTS:
            database.executescript(
                f"BEGIN IMMEDIATE; {points.SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


_OPEN: Final = "SELECT DISTINCT uid FROM spans WHERE end IS NULL"
_SPANS: Final = """
SELECT job, attempt, cluster, phase, reason, message, begin, end FROM spans WHERE uid = ?
ORDER BY job, begin
"""
_KNOWN: Final = "SELECT uid, namespace, name, queue, seen FROM hyperjobs"
_USE: Final = """
SELECT name, accelerator, at, used, total FROM samples
WHERE kind = ? AND at >= ? AND at < ? ORDER BY name, accelerator, at
"""


def _known(row: Sequence[object]) -> Known:
    uid, namespace, name, queue, seen = row
    return Known(str(uid), str(namespace), str(name), str(queue), _time(float(str(seen))))


def _span_of_row(row: Sequence[object]) -> Span:
    job, attempt, cluster, phase, reason, message, begin, end = row
    return Span(
        job=str(job),
        attempt=int(str(attempt)),
        cluster=str(cluster),
        phase=str(phase),
        reason=str(reason),
        message=str(message),
        begin=_time(float(str(begin))),
        end=None if end is None else _time(float(str(end))),
    )


def _row_of_span(uid: str, span: Span) -> tuple[object, ...]:
    end = None if span.end is None else span.end.timestamp()
    what = (span.attempt, span.cluster, span.phase, span.reason, span.message)
    return (uid, span.job, span.begin.timestamp(), end, *what)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _lock(path: Path) -> int | None:
    """Lock the file for writing until the descriptor is closed; None if another process has it."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
