"""The history in its file: there again after a restart, bounded, and never half of a change."""

import asyncio
import os
import signal
import sqlite3
import stat
import sys
from datetime import UTC, datetime, timedelta

import pytest

from hyperjob.client.summary import read
from hyperjob.client.usage import ClusterUse, QueueUse
from hyperjob.ui.history.recorder import History
from hyperjob.ui.history.spans import Sample, Span
from hyperjob.ui.history.store import SCHEMA_VERSION, HistoryFile, Known, Retention
from hyperjob.ui.history.use import SLOTS

BEGIN = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
LIMIT = 30.0


def at(seconds):
    return BEGIN + timedelta(seconds=seconds)


def text(seconds):
    return at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def summary(phase, since, *, uid="u1", name="llm", attempt=0, history=()):
    return read(
        {
            "metadata": {
                "namespace": "team",
                "name": name,
                "uid": uid,
                "creationTimestamp": text(0),
            },
            "status": {
                "state": {"phase": phase, "lastTransitionTime": text(since)},
                "queue": "research",
                "jobs": [
                    {
                        "name": f"{name}-w-0",
                        "phase": phase,
                        "attempt": attempt,
                        "cluster": "c1",
                        "lastTransitionTime": text(since),
                        "history": list(history),
                    }
                ],
            },
        }
    )


def clusters(used, total=8):
    return [
        ClusterUse(
            cluster="c1",
            ready=True,
            accelerator="nvidia.com/gpu",
            allocatable=total,
            used=used,
            free=total - used,
            hyperjobs=used,
        )
    ]


def queues(used):
    return [
        QueueUse(
            queue="research",
            state="Open",
            accelerator="nvidia.com/gpu",
            share=16,
            deserved=None,
            capability=None,
            used=used,
            ended=None,
            waiting=0,
            running_hyperjobs=1,
            waiting_hyperjobs=0,
        )
    ]


async def phases(history, uid="u1", job="llm-w-0"):
    found = await history.spans(uid)
    return [
        (
            one.phase,
            (one.begin - BEGIN).total_seconds(),
            one.end and (one.end - BEGIN).total_seconds(),
        )
        for one in found
        if one.job == job
    ]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "history.sqlite"


async def test_what_was_recorded_is_there_after_a_restart(path):
    async with History(path) as history:
        history.record(at(10), summary("Queued", 5))
        history.record(at(20), summary("Running", 18))
        assert await phases(history) == [("Queued", 5, 18), ("Running", 18, None)]
    async with History(path) as history:
        history.record(at(60), summary("Completed", 50))
        assert await phases(history) == [
            ("Queued", 5, 18),
            ("Running", 18, 50),
            ("Completed", 50, 50),
        ]
        known = await history.hyperjobs()
        assert [(one.namespace, one.name, one.queue) for one in known] == [
            ("team", "llm", "research")
        ]
        assert history.problem == ""


async def test_what_happened_before_and_between_is_told_by_the_status(path):
    first = {"attempt": 0, "cluster": "c1", "startTime": text(1), "endTime": text(4)}
    first |= {"phase": "Failed", "reason": "Failed"}
    second = {"attempt": 1, "cluster": "c1", "startTime": text(30), "endTime": text(40)}
    second |= {"phase": "Failed", "reason": "Failed"}
    async with History(path) as history:
        history.record(at(10), summary("Queued", 5, attempt=1, history=[first]))
    async with History(path) as history:
        history.record(at(60), summary("Running", 50, attempt=2, history=[first, second]))
        history.record(at(61), summary("Running", 50, attempt=2, history=[first, second]))
        assert await phases(history) == [
            ("Running", 1, 4),
            ("Failed", 4, 4),
            ("Queued", 5, 10),
            ("Running", 30, 40),
            ("Failed", 40, 40),
            ("Running", 50, None),
        ]


async def test_a_hyperjob_that_went_while_nobody_looked_ended_when_somebody_last_looked(path):
    async with History(path) as history:
        history.record(at(10), summary("Running", 5))
        history.record(at(10), summary("Running", 5, uid="u2", name="other"))
    async with History(path) as history:
        history.record(at(100), summary("Running", 5, uid="u2", name="other"))
        history.present(at(100), {"u2"})
        assert await phases(history) == [("Running", 5, 10)]
        assert await phases(history, "u2", "other-w-0") == [("Running", 5, None)]
        history.removed(at(120), "u2")
        assert await phases(history, "u2", "other-w-0") == [("Running", 5, 120)]


async def test_use_is_kept_over_time(path):
    async with History(path) as history:
        for minute, used in enumerate((0, 4, 4, 4, 8, 2)):
            history.sample(at(60 * minute), clusters(used), queues(2 * used))
        (cluster,) = await history.use("cluster", at(0), at(360))
        assert (cluster.name, cluster.accelerator) == ("c1", "nvidia.com/gpu")
        expected = [(used, 8) for used in (0, 4, 4, 4, 8, 2) for _ in range(SLOTS // 6)]
        assert cluster.points == expected
        # what was used before the time asked for goes on into it
        (later,) = await history.use("cluster", at(200), at(230))
        assert later.points == [(4, 8)] * SLOTS
        (queue,) = await history.use("queue", at(0), at(360))
        assert [queue.points[slot] for slot in (0, SLOTS // 6, SLOTS - 1)] == [
            (0, 16),
            (8, 16),
            (4, 16),
        ]
        assert await history.use("cluster", at(-9000), at(-6000)) == []


async def test_a_use_that_stays_is_written_now_and_then(path):
    async with History(path) as history:
        for minute in range(60):
            history.sample(at(60 * minute), clusters(4), ())
        (found,) = await history.use("cluster", at(0), at(3600))
        assert found.points == [(4, 8)] * SLOTS
    database = sqlite3.connect(path)
    assert database.execute("SELECT count(*) FROM samples").fetchone() == (6,)
    database.close()


async def test_deleted_hyperjobs_are_found_by_their_words(path):
    async with History(path) as history:
        for uid, name in (("u1", "llm"), ("u2", "ranker"), ("u3", "stays")):
            history.record(at(10), summary("Running", 5, uid=uid, name=name))
        history.removed(at(60), "u1")
        history.removed(at(50), "u2")
        found = await history.gone({"u3"}, None, "", 10)
        assert [(one.key, one.phase, one.known.seen) for one in found] == [
            ("team/llm", "Running", at(60)),
            ("team/ranker", "Running", at(50)),
        ]
        assert found[0].clusters == ["c1"]
        assert found[0].begin == at(0)
        assert [one.key for one in await history.gone({"u3"}, None, "Team rank", 10)] == [
            "team/ranker"
        ]
        assert [one.key for one in await history.gone({"u3"}, None, "", 1)] == ["team/llm"]
        assert await history.gone({"u3"}, {"other"}, "", 10) == []
        assert (await history.known("u1")).name == "llm"
        assert await history.known("u9") is None
    async with History(path) as history:
        assert history.namespaces == {"team"}
        assert len(await history.gone((), None, "", 10)) == 3


async def test_events_tell_the_phases_before_the_first_look(path):
    async with History(path) as history:
        history.record(at(100), summary("Running", 90))
        history.phases_changed(
            at(101), {"u1": [(at(0), "Pending"), (at(20), "Queued"), (at(95), "Failed")]}
        )
        assert await phases(history, job="") == [
            ("Pending", 0, 20),
            ("Queued", 20, 90),
            ("Running", 90, None),
        ]


async def test_ten_thousand_hyperjobs_are_recorded_and_nothing_is_written_at_rest(path):
    summaries = [summary("Running", 5, uid=f"u{n}", name=f"j{n}") for n in range(10_000)]
    async with History(path) as history:
        for one in summaries:
            history.record(at(10), one)
        assert len(await history.spans("u9999")) == 3
        size = path.stat().st_size + path.with_name(path.name + "-wal").stat().st_size
        for one in summaries:
            history.record(at(11), one)
        await history.spans("u1")
        assert path.stat().st_size + path.with_name(path.name + "-wal").stat().st_size == size


async def test_without_a_file_the_page_has_what_it_saw_itself():
    async with History(None) as history:
        history.record(at(10), summary("Running", 5))
        assert await phases(history) == [("Running", 5, None)]
        assert history.problem == ""


async def test_the_file_is_for_its_owner_alone(path):
    async with History(path) as history:
        history.record(at(10), summary("Running", 5))
    for one in path.parent.iterdir():
        assert stat.S_IMODE(one.stat().st_mode) == 0o600, one
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_file_of_a_newer_release_is_left_alone(path):
    HistoryFile(path, limits=Retention()).close()
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    database.close()
    before = path.read_bytes()
    async with History(path) as history:
        assert "newer release" in history.problem
        assert "--history" in history.problem
        history.record(at(10), summary("Running", 5))
        assert await phases(history) == [("Running", 5, None)]
    assert path.read_bytes() == before


async def test_a_damaged_file_is_put_aside(path):
    path.parent.mkdir()
    path.write_bytes(b"no database at all" * 1000)
    async with History(path) as history:
        history.record(at(10), summary("Running", 5))
        assert await phases(history) == [("Running", 5, None)]
        assert history.problem == ""
    assert path.with_name("history.sqlite.damaged").read_bytes().startswith(b"no database")


async def test_where_no_file_can_be_the_page_goes_on_and_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    async with History(tmp_path / "file" / "history.sqlite") as history:
        assert "in memory" in history.problem
        history.record(at(10), summary("Running", 5))
        assert await phases(history) == [("Running", 5, None)]


async def test_a_second_process_reads_and_does_not_write(path):
    async with History(path) as first:
        first.record(at(10), summary("Queued", 5))
        await first.spans("u1")
        async with History(path) as second:
            assert "another process" in second.problem
            assert await phases(second) == [("Queued", 5, None)]
            second.record(at(30), summary("Running", 25))
            assert await phases(second) == [("Queued", 5, 25), ("Running", 25, None)]
        assert await phases(first) == [("Queued", 5, None)]
        assert first.problem == ""


async def test_a_full_disk_stops_the_history_and_not_the_page(path):
    """The file may take no more pages, as on a disk that is full."""
    limits = Retention(size=64 * 4096)
    async with History(path, limits=limits) as history:
        history._recorder._store.trim = lambda *, now: None
        number = 0
        while not history.problem:
            number += 1
            history.record(at(10), summary("Running", 5, uid=f"u{number}", name=f"j{number}"))
            await history.spans("u1")
            assert number < 10_000
        assert "full" in history.problem
        assert await phases(history, f"u{number}", f"j{number}-w-0") == [("Running", 5, None)]
        del history._recorder._store.trim
        database = sqlite3.connect(path)
        database.execute("DELETE FROM spans WHERE uid < 'u3'")
        database.commit()
        database.close()
        history.record(at(20), summary("Running", 5, uid="next", name="next"))
        await history.spans("next")
        assert history.problem == ""
    async with History(path, limits=limits) as history:
        assert await phases(history, f"u{number}", f"j{number}-w-0") == [("Running", 5, None)]


def test_what_is_old_goes_and_what_lasts_stays(path):
    store = HistoryFile(path, limits=Retention(days=1))
    day = 86_400
    rows = [("u", _span(begin, end)) for begin, end in ((0, 10), (20, day - 5), (30, None))]
    store.write(rows, [("cluster", "c1", "gpu", Sample(at(0), 1, 2))], (), now=0.0)
    store.trim(now=at(day + 15).timestamp())
    assert [(one.begin, one.end) for one in store.spans("u")] == [
        (at(20), at(day - 5)),
        (at(30), None),
    ]
    assert list(store.use("cluster", 0, at(2 * day).timestamp())) == []
    store.close()


async def test_a_namespace_goes_with_its_last_hyperjob_of_the_history(path):
    """A visitor has an access review for each namespace."""
    limits = Retention(days=1)
    store = HistoryFile(path, limits=limits)
    seen = datetime.now(UTC) - timedelta(days=3)
    store.write([], [], [Known("u", "team-old", "j", "q", seen)], now=seen.timestamp())
    store.close()
    async with History(path, limits=limits) as history:
        await history.spans("u")
        assert history.namespaces == frozenset()


def test_the_file_stays_within_its_size(path):
    limits = Retention(days=10_000, size=1024 * 1024)
    store = HistoryFile(path, limits=limits)
    for block in range(40):
        begin = block * 1000
        rows = [(f"u{begin + n}", _span(begin + n, begin + n + 1)) for n in range(1000)]
        store.write(rows, (), (), now=0.0)
        store.trim(now=at(begin + 1000).timestamp())
        assert path.stat().st_size <= limits.size
    kept = [n for n in range(0, 40_000, 100) if store.spans(f"u{n}")]
    assert kept
    assert kept == list(range(kept[0], 40_000, 100))  # the latest, without a gap
    store.close()


def _span(begin, end):
    return Span(
        job="j",
        attempt=1,
        cluster="c1",
        phase="Running",
        reason="",
        message="",
        begin=at(begin),
        end=None if end is None else at(end),
    )


WRITER = """
import asyncio, sys
from pathlib import Path
from tests.unit.ui.test_history_store import History, at, summary

async def main():
    async with History(Path(sys.argv[1])) as history:
        number = 0
        while True:
            number += 1
            history.record(at(number), summary(f"Phase{number}", number))
            await history.spans("u1")
            print(number, flush=True)

asyncio.run(main())
"""


async def test_a_process_that_is_killed_loses_nothing_that_was_written(path):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(path), stdout=asyncio.subprocess.PIPE
    )
    last = 0
    async with asyncio.timeout(LIMIT):
        while last < 50:
            last = int(await process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        rest = await process.stdout.read()
        await process.wait()
    whole = [int(line) for line in rest.split(b"\n")[:-1] if line]
    last = max([last, *whole])
    async with History(path) as history:
        assert history.problem == ""
        found = [one for one in await history.spans("u1") if one.job]
        assert [one.phase for one in found] == [f"Phase{n + 1}" for n in range(len(found))]
        assert len(found) >= last
        assert [one.end for one in found].count(None) == 1
