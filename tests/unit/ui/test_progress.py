"""The history gets every progress line of a HyperJob that a visitor looks at."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hyperjob.client.summary import read
from hyperjob.ui import progress
from hyperjob.ui.history.recorder import History
from hyperjob.ui.progress import LogProgress
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import from_status, make_status
from tests.unit.cli.objects import hyperjob
from tests.unit.cli.test_following import JOB, Member

UID = "u1"


def lines(*steps: int) -> bytes:
    text = '2026-01-02T03:04:{:02}Z {{"hyperjob": {{"step": {}, "metrics": {{"loss": {}}}}}}}\n'
    return "".join(text.format(step, step, 60 - step) for step in steps).encode()


def row(version: int) -> Any:
    made = hyperjob("Running", JOB)
    made["metadata"]["uid"] = UID
    return SimpleNamespace(summary=read(made), version=version, progress="10%")


async def looked(
    history: History, member: Member, *versions: int, log: LogProgress | None = None
) -> Sequence[int]:
    """Look at a HyperJob at these versions; return the steps of the history."""
    log = log or LogProgress(history)
    for version in versions:
        await log.look(Kube(member), [row(version)], seconds=10)
    await log.close()
    return [point.step for point in await history.points(UID)]


async def test_all_lines_of_the_log_become_points() -> None:
    async with History(None) as history:
        member = Member([b"2026-01-02T03:04:00Z starts\n", lines(*range(60))])
        before = history.revision(UID)
        assert await looked(history, member, 1) == list(range(60))
        assert history.revision(UID) != before, "pages are made again"
        assert (await history.points(UID))[10].metrics == {"loss": 50.0}


async def test_a_log_is_read_once_for_each_progress_and_not_too_often() -> None:
    async with History(None) as history:
        member = Member([lines(1)], [lines(2)])
        assert await looked(history, member, 1, 1, 2, 3) == [1]
        assert len(member.asked) == 1


async def test_later_reads_ask_for_new_lines_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PAUSE_SECONDS", 0.0)
    async with History(None) as history:
        member = Member([lines(1, 2)], [lines(2, 3)])
        assert await looked(history, member, 1, 2) == [1, 2, 3]
        assert ["sinceSeconds" in each for each in member.asked] == [False, True]


async def test_a_failed_read_is_repeated_from_where_the_last_whole_one_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "_PAUSE_SECONDS", 0.0)
    refused = from_status(make_status(403, "no", reason="Forbidden"), "GET log")
    async with History(None) as history:
        member = Member([refused], [lines(1, 2)], [refused], [lines(3)])
        assert await looked(history, member, 1, 1, 2, 2) == [1, 2, 3]
        assert ["sinceSeconds" in each for each in member.asked] == [False, False, True, True]


async def test_a_hyperjob_without_sub_jobs_has_no_log() -> None:
    async with History(None) as history:
        member, ended = Member([lines(1)]), row(1)
        ended.summary = replace(ended.summary, jobs=())
        await LogProgress(history).look(Kube(member), [ended], seconds=10)
        assert member.asked == []


async def test_a_visitor_without_the_right_sees_the_points_of_the_status() -> None:
    async with History(None) as history:
        refused = from_status(make_status(403, "no", reason="Forbidden"), "GET log")
        assert await looked(history, Member([refused]), 1) == []
        assert history.revision(UID) == 0


async def test_a_hyperjob_without_progress_is_not_read() -> None:
    async with History(None) as history:
        member, log = Member([lines(1)]), LogProgress(history)
        silent = row(1)
        silent.progress = ""
        await log.look(Kube(member), [silent], seconds=10)
        assert member.asked == []
