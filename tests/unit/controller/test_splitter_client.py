"""The client of an external splitter, over real HTTP."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from hyperjob_controller.splitting import Splitter
from hyperjob_engine.model.observed import SplitAnswer
from hyperjob_engine.model.planned import SplitQuestion
from tests.support.splitters import application
from tests.support.walls import unexpected
from tests.unit.engine.builders import NOW, cluster
from tests.unit.engine.test_splitter_protocol import A, B, asked, wish

KEY = "default/hj"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Served:
    """A client of a splitter, and what it was told."""

    client: Splitter
    keys: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    async def ask(self, question: SplitQuestion) -> SplitAnswer:
        self.client.ask(KEY, [question])
        assert await asyncio.wait_for(self.keys.get(), 30) == KEY
        return self.client.answers(KEY)[question.group]


@asynccontextmanager
async def served(
    app: web.Application,
    *,
    tls: ssl.SSLContext | None = None,
    time_limit: float = 30,
    **files: Path,
) -> AsyncIterator[Served]:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    scheme = "http" if tls is None else "https"
    keys: asyncio.Queue[str] = asyncio.Queue()
    client = Splitter(
        f"{scheme}://localhost:{runner.addresses[0][1]}/",
        time_limit=time_limit,
        answered=keys.put_nowait,
        now=lambda: NOW,
        faulty=unexpected,
        **files,
    )
    task = asyncio.create_task(client.run())
    try:
        yield Served(client, keys)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await runner.cleanup()


def said(answer: SplitAnswer) -> str:
    assert answer.trouble
    return answer.trouble


def app(handler: Handler) -> web.Application:
    made = web.Application()
    made.router.add_post("/", handler)
    return made


async def test_the_example_answers_a_question() -> None:
    async with served(application()) as at:
        question = asked(wish(), A, B)
        answer = await at.ask(question)
    assert answer == SplitAnswer(
        digest=question.digest,
        occasion=question.occasion,
        shares=(("a", 96), ("b", 32)),
        retry_at=NOW + timedelta(seconds=5),
    )


async def test_a_token_is_sent_and_read_anew(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("wrong\n")
    async with served(application("secret"), token_file=token) as at:
        refused = await at.ask(asked(wish(), A, B))
        assert said(refused) == "it answered 401 Unauthorized"
        token.write_text("secret\n")
        assert (await at.ask(asked(wish(64), A, B))).shares == (("a", 64),)
        token.unlink()
        assert "cannot be reached" in said(await at.ask(asked(wish(), A, B)))


@pytest.mark.parametrize("content", [b"gr\xc3\xbcn\n", b"\xff", b"two\nlines\n"])
async def test_a_token_that_no_header_can_carry_fails_the_call_alone(
    tmp_path: Path, content: bytes
) -> None:
    token = tmp_path / "token"
    token.write_bytes(content)
    async with served(application("secret"), token_file=token) as at:
        assert "cannot be reached" in said(await at.ask(asked(wish(), A, B)))
        token.write_text("secret\n")
        assert (await at.ask(asked(wish(64), A, B))).shares == (("a", 64),)


async def test_a_request_with_a_strange_authorization_is_refused() -> None:
    runner = web.AppRunner(application("secret"))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
    try:
        writer.write(b"POST / HTTP/1.0\r\nAuthorization: Bearer gr\xc3\xbcn\r\n\r\n")
        assert b" 401 " in await reader.readline()
    finally:
        writer.close()
        await runner.cleanup()


async def test_its_certificate_is_checked(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    trusted, stranger = tmp_path / "ca.pem", tmp_path / "other.pem"
    authority.cert_pem.write_to_path(trusted)
    trustme.CA().cert_pem.write_to_path(stranger)
    async with served(application(), tls=context, ca_file=trusted) as at:
        assert (await at.ask(asked(wish(), A, B))).shares
    async with served(application(), tls=context, ca_file=stranger) as at:
        answer = await at.ask(asked(wish(), A, B))
        assert answer.shares == ()
        assert "cannot be reached" in said(answer)


async def says_nothing(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError("never")


def responds(**how: Any) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(**how)

    return handle


async def hangs_up(request: web.Request) -> web.StreamResponse:
    request.transport.abort()
    return web.Response()


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (says_nothing, "it did not answer in time"),
        (responds(status=503), "it answered 503 Service Unavailable"),
        (
            responds(status=302, headers={"Location": "http://localhost:1/"}),
            "it answered 302 Found",
        ),
        (responds(text="shares: none"), "not JSON"),
        (responds(body=b" " * (1024 * 1024 + 1)), "its answer is larger than 1048576 bytes"),
        (hangs_up, "it cannot be reached"),
    ],
)
async def test_trouble_is_told_and_the_next_question_is_answered_for(
    handler: Handler, text: str
) -> None:
    async with served(app(handler), time_limit=0.3) as at:
        first = await at.ask(asked(wish(), A, B))
        assert text in said(first)
        assert first.shares == ()
        second = await at.ask(asked(wish(), A, B))
        third = await at.ask(asked(wish(), A, B))
    waits = [(each.retry_at - NOW).total_seconds() for each in (first, second, third)]
    assert waits == [5, 10, 20]


async def test_the_same_split_is_asked_once_at_a_time() -> None:
    asked_for: list[bytes] = []
    go, came = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        asked_for.append(await request.read())
        came.set()
        await go.wait()
        return web.json_response({"shares": [{"cluster": "a", "accelerators": 64}]})

    async with served(app(slow)) as at:
        question = asked(wish(64), A, B)
        for _ in range(50):
            at.client.ask(KEY, [question])
        await asyncio.wait_for(came.wait(), 30)
        at.client.ask(KEY, [asked(wish(72), A, B)])
        go.set()
        await asyncio.wait_for(at.keys.get(), 30)
        assert at.client.answers(KEY)["trainer"].shares == (("a", 64),)
        assert at.keys.empty()
    assert asked_for == [question.body]


async def test_a_hyperjob_that_is_gone_is_forgotten() -> None:
    async with served(application()) as at:
        await at.ask(asked(wish(), A, B))
        at.client.forget(KEY)
        assert at.client.answers(KEY) == {}


async def test_an_answer_in_pieces_is_read_to_its_end_and_no_further_than_its_limit() -> None:
    limit, shares = 1024 * 1024, b'{"shares": [{"cluster": "a", "accelerators": 128}]}'
    length = limit

    async def slowly(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in (shares[:20], shares[20:], b" " * (length - len(shares))):
            await response.write(piece)
            await asyncio.sleep(0)
        await response.write_eof()
        return response

    async with served(app(slowly)) as at:
        assert (await at.ask(asked(wish(), cluster("a", 200)))).shares
    length = limit + 1
    async with served(app(slowly)) as at:
        answer = await at.ask(asked(wish(), cluster("a", 200)))
        assert "larger than 1048576 bytes" in said(answer)


async def test_a_long_token_is_sent_whole(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("x" * 4096)
    async with served(application("x" * 4096), token_file=token) as at:
        assert (await at.ask(asked(wish(64), A, B))).shares == (("a", 64),)
