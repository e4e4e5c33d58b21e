"""The progress of HyperJobs over time: points of steps and metrics, bounded for each HyperJob.

A HyperJob has at most POINTS points: when it has more, every second one is deleted, and the first
and the latest stay.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import orjson

from hyperjob.client.summary import Summary
from hyperjob.client.training import training_of
from hyperjob_core.api.wire import decoded, mapping

POINTS: Final = 5_000
DRAWN: Final = 400
"""Points of a HyperJob that a curve shows."""
_METRICS: Final = 32

SCHEMA: Final = """
CREATE TABLE points (
    uid TEXT NOT NULL, at REAL NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL,
    PRIMARY KEY (uid, at)
) WITHOUT ROWID;
CREATE INDEX points_by_time ON points (at);
"""


@dataclass(frozen=True, slots=True)
class ProgressPoint:
    """The step of a training and its metrics at a time."""

    at: datetime
    step: int
    metrics: Mapping[str, float]


NewPoint = tuple[str, ProgressPoint]
"""The uid of a HyperJob, and a point of it."""


def point_of(summary: Summary) -> ProgressPoint | None:
    """Return the progress in a status; None where the program reports none."""
    training = training_of(summary.training)
    if training is None or training.updated is None:
        return None
    return ProgressPoint(
        training.updated, training.step, dict(list(training.metrics.items())[:_METRICS])
    )


def write(database: sqlite3.Connection, points: Iterable[NewPoint], counts: dict[str, int]) -> None:
    """Write points within a transaction, and thin the HyperJobs that have too many.

    `counts` has the greatest possible number of points of HyperJobs that were written before:
    counting them at each write would read all of them.
    """
    rows = [
        (uid, point.at.timestamp(), point.step, orjson.dumps(point.metrics).decode())
        for uid, point in points
    ]
    database.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?)", rows)
    for uid, new in Counter(row[0] for row in rows).items():
        counts[uid] = counts[uid] + new if uid in counts else _number_of_points(database, uid)
        if counts[uid] > POINTS:
            database.execute(_THIN, {"uid": uid, "most": POINTS})
            counts[uid] = _number_of_points(database, uid)


def _number_of_points(database: sqlite3.Connection, uid: str) -> int:
    return int(database.execute("SELECT count(*) FROM points WHERE uid = ?", (uid,)).fetchone()[0])


def read(database: sqlite3.Connection, uid: str, *, most: int = DRAWN) -> list[ProgressPoint]:
    """Return at most about `most` points of a HyperJob, evenly chosen, and its latest."""
    # SQLite takes twice the time to number the rows as Python to drop most of them.
    rows = database.execute(_READ, (uid,)).fetchall()
    chosen = rows[:: 1 + (len(rows) - 1) // most] if rows else []
    if chosen and chosen[-1] is not rows[-1]:
        chosen.append(rows[-1])
    return [
        ProgressPoint(datetime.fromtimestamp(at, UTC), step, mapping(decoded(metrics)))
        for at, step, metrics in chosen
    ]


def merged(
    written: Sequence[ProgressPoint], unwritten: Iterable[ProgressPoint]
) -> list[ProgressPoint]:
    """Return the points of the file and those that are not written yet, by time."""
    found = {point.at: point for point in (*written, *unwritten)}
    return [found[at] for at in sorted(found)]


_READ: Final = "SELECT at, step, metrics FROM points WHERE uid = ? ORDER BY at"
_THIN: Final = """
DELETE FROM points WHERE uid = :uid AND (SELECT count(*) FROM points WHERE uid = :uid) > :most
AND at IN (
    SELECT at FROM (
        SELECT at, row_number() OVER (ORDER BY at) - 1 AS number, count(*) OVER () AS total
        FROM points WHERE uid = :uid
    ) WHERE number % 2 = 1 AND number < total - 1
)
"""
