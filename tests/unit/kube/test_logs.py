"""A log that is read and followed yields each line once, however its streams end."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.field import make_status
from hyperjob_core.api.lines import SECOND, LogLine, Position
from hyperjob_core.kube.errors import KubeError, from_status, unreachable
from hyperjob_core.kube.logs import Log
from tests.support.virtually import virtually

START = int(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp())
ONE = b"2026-01-02T03:04:05.1Z one\n"
TWO = b"2026-01-02T03:04:05.25Z two\n"
SAME = b"2026-01-02T03:04:05.250Z and two\n"
THREE = b"2026-01-02T03:04:06Z three\n"
FOUR = b"2026-01-02T03:04:06Z and four\n"


# Times.


@pytest.mark.parametrize(
    ("stamp", "nanoseconds"),
    [
        (b"2026-01-02T03:04:05Z", 0),
        (b"2026-01-02T03:04:05.1Z", 100_000_000),
        (b"2026-01-02T03:04:05.123456789Z", 123_456_789),
        (b"2026-01-02T05:04:05.5+02:00", 500_000_000),
        (b"2026-01-01T21:34:05.000000001-05:30", 1),
    ],
)
def test_a_time_has_up_to_nine_digits_and_any_zone(stamp: bytes, nanoseconds: int) -> None:
    line = LogLine.of(stamp + b" a line")
    assert (line.time, line.text) == (START * SECOND + nanoseconds, b"a line")
    assert line.moment == datetime.fromtimestamp(START + nanoseconds // 1000 / 10**6, UTC)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"step 1",
        b"2026-01-02T03:04:05Z",
        b"2026-13-02T03:04:05Z x",
        b"0001-01-01T00:00:00Z x",
        b"9999-12-31T23:59:59-23:00 x",
        b"2026-01-02T03:04:05.1234567890Z x",
    ],
)
def test_a_line_without_a_time_is_all_text(raw: bytes) -> None:
    line = LogLine.of(raw)
    assert (line.time, line.text) == (0, raw)


# Positions.

LINES = st.lists(st.integers(0, 40), min_size=1, max_size=30).map(sorted)


@given(LINES, st.lists(st.integers(0, 30)), st.integers(0, 20))
def test_streams_that_end_anywhere_yield_each_line_once(
    tenths: list[int], ends: list[int], rotated: int
) -> None:
    """The server keeps at least the lines that were not read yet, maybe fewer of the others."""
    written = [
        LogLine((START * 10 + tenth) * SECOND // 10, b"%d" % n) for n, tenth in enumerate(tenths)
    ]
    position, found = Position(), list[LogLine]()
    for end in [*ends, len(written)]:
        since = position.newest - position.newest % SECOND
        kept = written[min(rotated, len(found)) :]
        served = [line for line in kept if line.time >= since]
        position.begin()
        found += position.fresh(served[: end + 1] if end < len(written) else served)
    if rotated == 0 or len(set(tenths)) == len(tenths):
        assert found == written


def test_a_position_is_asked_for_in_whole_seconds() -> None:
    position = Position()
    assert position.since == {}
    position.fresh(map(LogLine.of, [ONE, TWO]))
    assert position.since == {"sinceTime": "2026-01-02T03:04:05Z"}


@pytest.mark.parametrize(
    ("read", "served", "fresh"),
    [
        pytest.param([ONE, TWO, THREE], [THREE, FOUR], [FOUR], id="two lines of a new second"),
        pytest.param([THREE, TWO], [THREE, FOUR], [FOUR], id="a clock is set back"),
        pytest.param([ONE, TWO], [THREE, TWO], [THREE, TWO], id="it is after a rotation"),
        pytest.param([ONE, THREE], [ONE, THREE, FOUR], [FOUR], id="a server begins too early"),
    ],
)
def test_the_next_stream_yields_what_was_not_read(
    read: list[bytes], served: list[bytes], fresh: list[bytes]
) -> None:
    position = Position()
    position.fresh(map(LogLine.of, read))
    position.begin()
    assert [line.raw for line in position.fresh(map(LogLine.of, served))] == fresh


def test_a_position_from_a_status_is_behind_all_lines_of_its_microsecond() -> None:
    position = Position.after(datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=UTC))
    position.begin()
    last = b"2026-01-02T03:04:05.250000999Z within it\n"
    assert position.fresh(map(LogLine.of, [ONE, TWO, SAME, last, THREE])) == [LogLine.of(THREE)]


def test_a_position_of_one_container_is_no_count_of_lines_of_another() -> None:
    position = Position()
    position.fresh(map(LogLine.of, [ONE, TWO]))
    other = position.elsewhere()
    other.begin()
    assert other.fresh(map(LogLine.of, [TWO, SAME, THREE])) == [LogLine.of(THREE)]


# Reading and following.


@dataclass
class Server:
    """A kubelet: each stream is a script of parts, seconds to wait, and errors."""

    streams: list[Sequence[Any]]
    asked: list[dict[str, str]] = field(default_factory=list)

    async def stream(
        self, path: str, *, params: Mapping[str, str], **_: object
    ) -> AsyncGenerator[bytes, None]:
        self.asked.append(dict(params))
        for each in self.streams.pop(0):
            match each:
                case bytes():
                    yield each
                case float():
                    await asyncio.sleep(each)
                case KubeError():
                    raise each


def failure(code: int) -> KubeError:
    return from_status(make_status(code, "no"), "GET log")


async def follow(*streams: Sequence[Any], **query: str) -> tuple[list[bytes], Server]:
    server = Server(list(streams))
    log = Log(server, "log", container="main")  # type: ignore[arg-type]  # all that it calls
    lines = [line.text async for batch in log.follow(query) for line in batch]
    return lines, server


NOTHING: list[Any] = []


@virtually
async def test_a_stream_that_ends_cleanly_is_continued_until_it_has_nothing_new() -> None:
    lines, server = await follow([ONE, TWO], [TWO, THREE], [THREE], tailLines="5", sinceSeconds="9")
    assert lines == [b"one", b"two", b"three"]
    assert [asked.get("sinceTime") for asked in server.asked] == [
        None,
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:06Z",
    ]
    assert [asked.get("tailLines") for asked in server.asked] == ["5", None, None]
    assert [asked.get("sinceSeconds") for asked in server.asked] == ["9", None, None]


@virtually
async def test_a_silent_stream_that_a_proxy_closes_is_no_end() -> None:
    lines, server = await follow([ONE], [ONE, 60.0], [ONE, 60.0], [ONE, 9.0, TWO], [ONE, TWO])
    assert lines == [b"one", b"two"]
    assert not server.streams


@virtually
async def test_a_line_in_which_a_stream_ends_is_read_whole_by_the_next() -> None:
    lines, _ = await follow([ONE + TWO[:-2]], [ONE, TWO], [ONE, TWO])
    assert lines == [b"one", b"two"]


@virtually
async def test_the_last_line_of_an_ended_log_needs_no_newline() -> None:
    lines, _ = await follow([ONE, TWO[:-1]], [ONE, TWO[:-1]])
    assert lines == [b"one", b"two"]


@pytest.mark.parametrize("cut", range(len(TWO) + 6))
@virtually
async def test_parts_may_end_in_the_middle_of_a_character(cut: int) -> None:
    raw = ONE + "2026-01-02T03:04:06Z größte €\n".encode()
    lines, _ = await follow([raw[: 27 + cut], raw[27 + cut :]], [raw[27:]])
    assert [line.decode() for line in lines] == ["one", "größte €"]


@virtually
async def test_a_very_long_line_is_cut_and_the_next_one_is_read() -> None:
    long = b"2026-01-02T03:04:05.2Z " + "é".encode() * 10**6
    lines, _ = await follow([ONE, long, b"\n", TWO], [ONE, TWO])
    assert (lines[0], lines[2]) == (b"one", b"two")
    assert len(lines[1].decode()) == (1024 * 1024 - 23) // 2


@virtually
async def test_a_broken_stream_is_continued_after_a_pause() -> None:
    broken = unreachable("GET log", "connection reset")
    begun = asyncio.get_running_loop().time()
    lines, _ = await follow([ONE, broken], [broken], [broken], [ONE, TWO], [TWO])
    assert lines == [b"one", b"two"]
    assert 0.5 + 1 + 2 <= asyncio.get_running_loop().time() - begun <= 6


@virtually
async def test_a_stream_that_never_begins_is_an_error_after_some_tries() -> None:
    unanswered = unreachable("GET log", "connection refused")
    with pytest.raises(KubeError, match="connection refused"):
        await follow([unanswered])
    with pytest.raises(KubeError):
        await follow(*[[failure(503)]] * 5)
    with pytest.raises(KubeError):
        await follow([ONE, unanswered], *[[unanswered]] * 4)


@pytest.mark.parametrize("code", [400, 404])
@virtually
async def test_a_container_without_a_log_is_an_error_and_one_that_is_gone_the_end(
    code: int,
) -> None:
    with pytest.raises(KubeError):
        await follow([failure(code)])
    lines, _ = await follow([ONE, TWO], [failure(code)])
    assert lines == [b"one", b"two"]


@virtually
async def test_a_text_of_the_kubelet_without_times_does_not_repeat_for_ever() -> None:
    text = b"unable to retrieve container logs for containerd://c0ffee\n"
    lines, _ = await follow([ONE], [text, 60.0])
    assert lines == [b"one", text[:-1]]


@virtually
async def test_a_server_that_ends_each_stream_is_asked_ever_more_rarely() -> None:
    stamps = [b"2026-01-02T03:04:%02dZ x\n" % second for second in range(10, 20)]
    begun = asyncio.get_running_loop().time()
    lines, _ = await follow(*[[stamp] for stamp in stamps], [stamps[-1]])
    assert lines == [b"x"] * 10
    assert asyncio.get_running_loop().time() - begun > 60


@virtually
async def test_a_follower_that_is_restricted_ends_at_its_number_of_bytes() -> None:
    server = Server([[ONE * 100]])
    log = Log(server, "log", container="main")  # type: ignore[arg-type]  # all that it calls
    found = [line async for batch in log.follow({}, most=len(ONE) * 10 + 5) for line in batch]
    assert len(found) == 10


@virtually
async def test_the_bytes_of_broken_streams_count_for_a_follower_that_is_restricted() -> None:
    server = Server([[ONE * 8, unreachable("GET log", "connection reset")], [ONE * 100]])
    log = Log(server, "log", container="main")  # type: ignore[arg-type]  # all that it calls
    async with aclosing(log.follow({}, most=len(ONE) * 10)) as batches:
        found = [line async for batch in batches for line in batch]
    assert len(found) == 8, "the second stream repeats them, and two more lines are its rest"
    assert log.size == len(ONE) * 2


@virtually
async def test_a_read_ends_with_the_present_lines_and_a_later_one_goes_on() -> None:
    server = Server([[ONE, TWO[:-1]], [ONE, TWO, SAME], [SAME * 3]])
    log = Log(server, "log", container="main")  # type: ignore[arg-type]  # all that it calls

    async def read(most: int | None = None) -> list[bytes]:
        return [
            line.text async for batch in log.read({"tailLines": "9"}, most=most) for line in batch
        ]

    assert await read() == [b"one", b"two"]
    assert await read() == [b"and two"]
    assert server.asked[1]["tailLines"] == "9"
    assert server.asked[1]["sinceTime"] == "2026-01-02T03:04:05Z"
    assert await read(most=len(SAME) + 3) == []
    assert log.size == len(SAME) + 3


@virtually
async def test_a_batch_has_64_kib_and_a_turn_of_its_own() -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        turns += 1

    log = Log(Server([[ONE * 10_000]]), "log", container="main", turn=turn)  # type: ignore[arg-type]
    async with aclosing(log.read({})) as batches:
        sizes = [sum(len(line.raw) + 1 for line in batch) async for batch in batches]
    assert max(sizes) <= 64 * 1024 + len(ONE)
    assert turns == len(sizes) == -(-len(ONE) * 10_000 // (64 * 1024))
