"""The lines of many logs come in the order of their times, also over few connections."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence

import pytest

from hyperjob.client.logs import reading
from hyperjob.client.logs.choosing import ContainerLog
from hyperjob.client.logs.reading import ChosenLogs
from hyperjob_core.virtualtime import run

LINES = 20


class Reader:
    """Reads logs of LINES lines each, line N of each log at second N, over few connections."""

    def __init__(self, connections: int) -> None:
        self.said: list[str] = []
        self.failed: set[ContainerLog] = set()
        self._connections = asyncio.Semaphore(connections)

    def say(self, text: str) -> None:
        self.said.append(text)

    async def read(
        self, source: ContainerLog, query: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        async with self._connections:
            for second in range(LINES - int(query.get("tailLines", LINES)), LINES):
                await asyncio.sleep(0)
                yield f"2026-01-02T03:04:{second:02}Z {source.pod}".encode()


def read(number: int, params: Mapping[str, str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the lines of this many logs over 6 connections, and the remarks."""

    async def act() -> tuple[list[str], list[str]]:
        logs = [ContainerLog(cluster="east", pod=f"p{n}", container="c") for n in range(number)]
        reader = Reader(6)
        chosen = ChosenLogs(reader, logs, params, unread=False)  # type: ignore[arg-type]  # a fake
        return [line.decode() async for _, line in chosen.lines()], reader.said

    return run(act())


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_LOGS", 4)
    monkeypatch.setattr(reading, "_LINES_HELD", 5)


def test_lines_of_all_logs_are_merged_by_their_times() -> None:
    lines, said = read(3, {})
    assert lines == sorted(lines)
    assert (len(lines), said) == (3 * LINES, [])


def test_last_lines_of_more_logs_than_connections_are_merged() -> None:
    lines, said = read(50, {"tailLines": "5"})
    assert [line[:20] for line in lines] == sorted(line[:20] for line in lines)
    assert (len(lines), said) == (50 * 5, [])


def test_whole_logs_come_in_parts_where_connections_do_not_suffice() -> None:
    lines, (remark,) = read(10, {})
    parts = [lines[: 4 * LINES], lines[4 * LINES : 8 * LINES], lines[8 * LINES :]]
    assert [len(part) for part in parts] == [4 * LINES, 4 * LINES, 2 * LINES]
    for part in parts:
        assert [line[:20] for line in part] == sorted(line[:20] for line in part)
    assert "4 logs at a time are in the order of their times, of 10 logs" in remark
