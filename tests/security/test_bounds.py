"""What a peer can make HyperJob take: a row of the table in docs/security.md for each bound.

The peers are real servers on the loopback which send without end, too much or too slowly.
"""

import asyncio
import gzip
import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import orjson
import pytest

from hyperjob.client.members import views_of
from hyperjob_core.kube import errors, ratelimit
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, TooLarge, Unavailable
from hyperjob_core.kube.logs import Log
from hyperjob_core.kube.paging import LONGEST_TOKEN, LONGEST_VERSION, Bounds
from hyperjob_core.kube.resources import NODES, PODS
from hyperjob_core.kube.transport import LONGEST_BODY
from tests.support.peer import CHUNKED, OK, Answer, chunk, talking, whole

ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024
BUFFERS = 32 * MIB
"""More than what the sockets on both sides and the reader hold."""


def rows() -> list[list[str]]:
    """Return the cells of each row of the table."""
    text = (ROOT / "docs/security.md").read_text().split("## Bounds", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[2:]]


def test_each_row_names_tests_that_exist() -> None:
    assert len(rows()) >= 10
    for row in rows():
        names = re.findall(r"`([^`]+)`", row[-1])
        assert names, row
        for name in names:
            path, _, function = name.partition("::")
            assert f"def {function}(" in (ROOT / path).read_text(), name


def spoken(number: int) -> str:
    return f"{number // MIB} MiB" if number % MIB == 0 else f"{number:,}"


@pytest.mark.parametrize(
    ("what", "bounds"),
    [
        ("the body of an answer,", [spoken(LONGEST_BODY)]),
        ("a list", [spoken(Bounds().items), spoken(Bounds().bytes), "5 minutes"]),
        ("a resourceVersion", [spoken(LONGEST_VERSION), spoken(LONGEST_TOKEN)]),
        ("`Retry-After`", [f"{ratelimit.LONGEST:g} seconds"]),
        ("a Status", [spoken(errors.LONGEST_STATUS), spoken(errors.LONGEST_MESSAGE)]),
    ],
)
def test_the_table_has_the_bounds_of_the_code(what: str, bounds: list[str]) -> None:
    (row,) = [each for each in rows() if each[1].startswith(what)]
    for bound in bounds:
        assert bound in row[2]


async def asked(
    answer: Answer,
    folder: Path,
    call: Callable[[Kube], Awaitable[Any]],
    *,
    bounds: Bounds = Bounds(),
    time_limit: float = 30.0,
) -> tuple[KubeError, int]:
    """Return the error of a call to a peer, and how many bytes the peer could send."""
    options = {"bounds": bounds, "time_limit": time_limit}
    async with talking(answer, folder, **options) as (peer, kube):
        with pytest.raises(KubeError) as raised:
            await call(kube)
        return raised.value, peer.sent


async def get(kube: Kube) -> Any:
    return await kube.get(NODES, "n")


async def member(kube: Kube) -> Any:
    return await kube.member("east").get(NODES, "n")


async def raw(kube: Kube) -> Any:
    return await kube.raw("GET", "/apis")


async def watch(kube: Kube, **options: Any) -> None:
    async with aclosing(kube.watch(NODES, resource_version="5", **options)) as events:
        async for _ in events:
            pass


def endless(part: bytes, head: bytes) -> Answer:
    """Send a head, and then a part again and again."""

    async def answer(_: str) -> AsyncIterator[bytes]:
        yield head
        while True:
            yield part

    return answer


def once(response: bytes) -> Answer:
    """Answer each request with the same response."""

    async def answer(_: str) -> AsyncIterator[bytes]:
        yield response

    return answer


SPACES = b" " * 65_536
ENDLESS = {
    "chunks": endless(chunk(SPACES), OK + CHUNKED),
    "until the connection ends": endless(SPACES, OK + b"\r\n"),
    "a length of a terabyte": endless(SPACES, OK + b"Content-Length: 1099511627776\r\n\r\n"),
    "an error": endless(chunk(SPACES), b"HTTP/1.1 403 Forbidden\r\n" + CHUNKED),
}


@pytest.mark.parametrize("call", [get, member, raw])
@pytest.mark.parametrize("answer", ENDLESS.values(), ids=ENDLESS.keys())
async def test_a_body_without_end_is_read_to_its_bound(
    answer: Answer, call: Callable[[Kube], Awaitable[Any]], tmp_path: Path
) -> None:
    error, sent = await asked(answer, tmp_path, call)
    assert isinstance(error, TooLarge)
    assert f"the answer has more than {LONGEST_BODY} bytes" in str(error)
    assert sent < LONGEST_BODY + BUFFERS


async def test_a_body_of_exactly_the_bound_is_taken(tmp_path: Path) -> None:
    body = b'{"a": 1}' + b" " * (LONGEST_BODY - 8)
    async with talking(once(whole(body)), tmp_path) as (_, kube):
        assert await get(kube) == {"a": 1}
    error, _ = await asked(once(whole(body + b" ")), tmp_path, get)
    assert isinstance(error, TooLarge)


async def test_a_refused_watch_with_a_body_without_end_is_read_to_its_bound(tmp_path: Path) -> None:
    error, sent = await asked(ENDLESS["an error"], tmp_path, watch)
    assert isinstance(error, TooLarge)
    assert sent < LONGEST_BODY + BUFFERS


async def test_a_body_counts_after_its_decompression(tmp_path: Path) -> None:
    packed = gzip.compress(b" " * (4 * LONGEST_BODY))
    response = whole(packed, header=b"Content-Encoding: gzip\r\n")
    error, sent = await asked(once(response), tmp_path, get)
    assert isinstance(error, TooLarge)
    assert sent < MIB


async def slowly(_: str) -> AsyncIterator[bytes]:
    yield OK + CHUNKED
    while True:
        await asyncio.sleep(0.01)
        yield chunk(b" ")


async def informs(_: str) -> AsyncIterator[bytes]:
    while True:
        await asyncio.sleep(0.01)
        yield b"HTTP/1.1 103 Early Hints\r\n\r\n"


@pytest.mark.parametrize("answer", [slowly, informs])
async def test_an_answer_without_end_meets_its_time_limit(answer: Answer, tmp_path: Path) -> None:
    error, _ = await asked(answer, tmp_path, get, time_limit=0.5)
    assert isinstance(error, Unavailable)
    assert "no answer within 0.5s" in str(error)


@pytest.mark.parametrize("line", [b"X: " + b"y" * 100 + b"\r\n", b"X: " + b"y" * 100_000])
async def test_a_header_without_end_is_refused(line: bytes, tmp_path: Path) -> None:
    error, sent = await asked(endless(line, OK), tmp_path, get)
    assert isinstance(error, Unavailable)
    assert sent < BUFFERS


def page(*names: str, token: str = "", version: str = "5", **more: Any) -> bytes:
    items = [{"metadata": {"name": name}, **more} for name in names]
    metadata = {"resourceVersion": version, "continue": token}
    return whole(orjson.dumps({"metadata": metadata, "items": items}))


def pages(*names: str, **more: Any) -> Answer:
    """Answer each list with the same page, and the token of another one."""

    async def answer(_: str) -> AsyncIterator[bytes]:
        yield page(*names, token="more", **more)

    return answer


@pytest.mark.parametrize(
    ("answer", "bounds", "text"),
    [
        (pages("a", "b"), Bounds(items=100), "more than 100 objects and pages"),
        (pages(), Bounds(items=100), "more than 100 objects and pages"),
        (pages("a", spec="x" * MIB), Bounds(bytes=20 * MIB), f"more than {20 * MIB} bytes"),
        (pages("a"), Bounds(seconds=0.5), "the list took longer than 0.5s"),
    ],
)
async def test_a_list_of_pages_without_end_is_read_to_its_bound(
    answer: Answer, bounds: Bounds, text: str, tmp_path: Path
) -> None:
    kept = itertools.count()

    async def call(kube: Kube) -> Any:
        return await kube.member("east").list(PODS, transform=lambda _: {"kept": next(kept)})

    error, sent = await asked(answer, tmp_path, call, bounds=bounds)
    assert isinstance(error, TooLarge | Unavailable)
    assert text in str(error)
    assert next(kept) <= bounds.items
    assert sent <= bounds.bytes + LONGEST_BODY


async def test_a_page_that_is_too_large_is_read_in_smaller_ones(tmp_path: Path) -> None:
    """An API server counts the objects of a page, and not their bytes."""
    objects = [f"n{number:02}" for number in range(40)]

    async def answer(request: str) -> AsyncIterator[bytes]:
        found = re.search(r"limit=(\d+)(?:&continue=(\d+))?", request)
        assert found
        limit, start = int(found[1]), int(found[2] or 0)
        end = start + limit
        token = str(end) if end < len(objects) else ""
        yield page(*objects[start:end], token=token, spec="x" * MIB)

    async with talking(answer, tmp_path) as (peer, kube):
        listed = await kube.list(NODES, transform=lambda obj: obj["metadata"])
    assert [each["name"] for each in listed.items] == objects
    limits = [re.findall(r"limit=(\d+)", each)[0] for each in peer.requests]
    assert limits == ["500", "62", *["7"] * 6]


@pytest.mark.parametrize(
    "answer",
    [
        pages("a", version="9" * (LONGEST_VERSION + 1)),
        pages("a", "b" * 10, version={"a": 1}),
        once(page("a", token="t" * (LONGEST_TOKEN + 1))),
        once(whole(b'{"items": [1]}')),
        once(whole(b'{"items": "text"}')),
        once(whole(b'{"items": [{"metadata": {}}]}')),
        once(whole(b'{"items": [], "metadata": [1]}')),
    ],
)
async def test_a_list_that_carries_garbage_is_refused(answer: Answer, tmp_path: Path) -> None:
    error, _ = await asked(answer, tmp_path, lambda kube: kube.list(NODES))
    assert isinstance(error, Unavailable)
    assert "the list carries garbage" in str(error)


def bookmark(version: object = "6") -> bytes:
    return orjson.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}})


async def bookmarks(_: str) -> AsyncIterator[bytes]:
    yield OK + CHUNKED
    while True:
        yield chunk(bookmark() + b"\n")
        await asyncio.sleep(0.01)


async def silence(_: str) -> AsyncIterator[bytes]:
    yield OK + CHUNKED
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("answer", "options", "text"),
    [
        (ENDLESS["chunks"], {}, f"a line is longer than {LONGEST_BODY} bytes"),
        (silence, {"idle_limit": 0.2}, "nothing came for 0.2s"),
        (bookmarks, {"timeout_seconds": 0}, "the stream took longer than 0.5s"),
        (once(OK + CHUNKED + chunk(bookmark("9" * 129) + b"\n")), {}, "garbage"),
        (once(OK + CHUNKED + chunk(bookmark(6) + b"\n")), {}, "garbage"),
        (once(OK + CHUNKED + chunk(b"[" * 100_000 + b"\n")), {}, "garbage"),
    ],
)
async def test_a_watch_ends_at_its_bounds(
    answer: Answer, options: dict[str, Any], text: str, tmp_path: Path
) -> None:
    error, sent = await asked(answer, tmp_path, lambda kube: watch(kube, **options), time_limit=0.5)
    assert isinstance(error, Unavailable)
    assert text in str(error)
    assert sent < LONGEST_BODY + BUFFERS


@pytest.mark.parametrize("depth", [1_025, MIB])
@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden"])
async def test_deep_json_is_no_json(depth: int, status: str, tmp_path: Path) -> None:
    deep = b'{"kind": "Status", "message": ' + b"[" * depth + b"]" * depth + b"}"
    error, _ = await asked(once(whole(deep, status=status)), tmp_path, get)
    assert error.http_code == (403 if "403" in status else 0)
    assert len(str(error)) < 1000


STATUS = {"kind": "Status", "reason": "Odd", "message": "no"}


@pytest.mark.parametrize(
    ("more", "code", "text"),
    [
        ({"message": "x" * MIB}, 403, "Forbidden"),
        ({"message": "x" * 100_000}, 403, "x" * 1000),
        ({"reason": "x" * 100_000}, 403, "no"),
        ({"code": "9" * 5_000}, 403, "no"),
        ({"code": [1]}, 403, "no"),
        ({"message": {"a": 1}, "details": [1]}, 403, "a"),
        ({"details": {"causes": [{"message": "m" * 10}] * 10_000}}, 403, "no"),
    ],
)
async def test_a_status_of_another_form_or_size_is_an_error_of_its_bounds(
    more: dict[str, Any], code: int, text: str, tmp_path: Path
) -> None:
    body = orjson.dumps(STATUS | more)
    error, _ = await asked(once(whole(body, status="403 Forbidden")), tmp_path, get)
    assert (type(error), error.http_code) == (errors.Forbidden, code)
    assert text in error.message or len(body) > errors.LONGEST_STATUS
    assert len(error.message) <= errors.LONGEST_MESSAGE
    assert len(error.reason) <= 256
    assert len(error.causes) <= 1000


@pytest.mark.parametrize("wait", ["31", "3600", "9" * 400])
async def test_a_server_may_not_ask_for_a_longer_wait_than_our_longest(
    wait: str, tmp_path: Path
) -> None:
    header = f"Retry-After: {wait}\r\n".encode()
    response = whole(b"{}", status="503 Service Unavailable", header=header)
    error, _ = await asked(once(response), tmp_path, get)
    assert error.retry_after == ratelimit.LONGEST


@pytest.mark.parametrize(
    ("pattern", "count", "why"),
    [
        (".?" * 40 + "!", 1, ""),
        (".*.*N!", 1000, ""),
        ("n", 1001, "1001 HyperNodes, and 1000 are the most"),
        ("(((){999}){999}){999}", 1, "too much work"),
        ("((n?o?){20}d?){6}#", 1, "too much work"),
        (".*", 1000, "more than 250000 nodes together"),
    ],
)
async def test_hypernodes_beyond_their_bounds_are_not_known(
    pattern: str, count: int, why: str, tmp_path: Path
) -> None:
    patterns = {pattern.replace("#", str(number)) for number in range(1000)}
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": p}}} for p in patterns]

    async def answer(request: str) -> AsyncIterator[bytes]:
        if "/hypernodes" in request:
            yield page(*map(str, range(count)), spec={"tier": 1, "members": members})
        else:
            yield page(*(f"node-{n}" for n in range(500 if "/nodes" in request else 0)))

    async with talking(answer, tmp_path) as (_, kube):
        views, errors = await views_of(kube, ["east"])
    assert not errors
    assert len(views["east"].nodes) == 500
    assert why in views["east"].unresolved
    assert bool(views["east"].unresolved) is bool(why)
    assert len(views["east"].hypernodes) == (0 if why else count)


LOG = "/api/v1/namespaces/n/pods/p/log"


@pytest.mark.parametrize("part", [b"x" * 65_536, b"a line\n" * 9_000])
async def test_a_log_without_end_is_read_to_its_bound(part: bytes, tmp_path: Path) -> None:
    longest, most = 20_000, 4 * MIB
    async with talking(endless(chunk(part), OK + CHUNKED), tmp_path) as (peer, kube):
        log = Log(kube, LOG, container="c", longest=longest)
        async with aclosing(log.read({}, most=most)) as batches:
            lines = [line.raw async for batch in batches for line in batch]
    assert log.size == most
    assert max(map(len, lines), default=0) <= longest
    assert peer.sent < most + BUFFERS


async def test_a_log_that_trickles_ends_at_the_time_limit_of_its_reader(tmp_path: Path) -> None:
    async with talking(slowly, tmp_path) as (_, kube):

        async def read() -> None:
            log = Log(kube, LOG, container="c")
            async with asyncio.timeout(0.5), aclosing(log.read({}, most=MIB)) as batches:
                async for _ in batches:
                    pass

        with pytest.raises(TimeoutError):
            await read()
