"""One connection over no socket: its limits, what is no HTTP, and its rank among others."""

import asyncio
import contextlib
import gzip
import json
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web

from hyperjob_core.serving.table import Connection, ConnectionTable, Rank
from hyperjob_core.virtualtime import run
from hyperjob_webhook.admission import refuse
from hyperjob_webhook.connections import (
    HEADER_SECONDS,
    KEEPALIVE_SECONDS,
    LINGER_SECONDS,
    MAX_HEADER_BYTES,
    ReviewProtocol,
    WebhookProtocols,
    as_response,
)
from tests.unit.webhook.test_server import HEADERS, REVIEW, Witness, head


class Server(WebhookProtocols):
    """Hands each request to a queue, and answers it when told."""

    def __init__(self, *, header_seconds: float = 600.0) -> None:
        self.witness = Witness()
        self.table = ConnectionTable(limit=9, per_peer=9)
        self.requests: asyncio.Queue[web.BaseRequest] = asyncio.Queue()
        self.answers: asyncio.Queue[web.StreamResponse] = asyncio.Queue()
        super().__init__(
            self._handle, table=self.table, reporter=self.witness, header_seconds=header_seconds
        )

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.put_nowait(request)
        return await self.answers.get()

    def opened(self) -> tuple[ReviewProtocol, Mock, Connection]:
        connection = Connection("p")
        self.table.enter(connection)
        protocol, transport = self.connect(connection), Mock(spec=asyncio.Transport)
        transport.is_closing.return_value = False
        protocol.connection_made(transport)
        return protocol, transport, connection


@contextlib.asynccontextmanager
async def served(**limits: float):
    server = Server(**limits)
    try:
        yield server
    finally:
        connections = list(server.connections)
        await server.shutdown(0.01)
        for protocol in connections:
            protocol.connection_lost(None)
        await turns()


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_limits_are_longer_than_those_of_an_api_server_and_shorter_than_a_review():
    assert KEEPALIVE_SECONDS == 120.0
    assert HEADER_SECONDS == 5.0
    assert LINGER_SECONDS == 2.0
    assert MAX_HEADER_BYTES == 32768


def test_each_header_has_its_own_time_from_its_first_byte():
    aborted: list[tuple[int, float]] = []

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        async with served(header_seconds=5.0) as server:
            await asyncio.sleep(1.0)
            protocols = []
            for number in range(4):
                protocol, transport, _ = server.opened()
                transport.abort.side_effect = lambda number=number: aborted.append(
                    (number, loop.time())
                )
                protocols.append(protocol)
            protocols[0].data_received(b"P")
            await asyncio.sleep(2.0)
            protocols[1].data_received(b"P")
            protocols[0].data_received(b"O")  # does not begin it anew
            protocols[2].data_received(head(1)[:-2])
            await asyncio.sleep(1.0)
            protocols[2].data_received(b"\r\n")
            protocols[3].data_received(b"P")
            await asyncio.sleep(30.0)
            protocols[1].data_received(b"O")
            await asyncio.sleep(6.0)
            protocols[1].data_received(b"S")  # is not looked at after the end

    run(scene())
    assert aborted == [(0, 6.0), (1, 8.0), (3, 9.0), (1, 39.0)]


async def test_an_empty_piece_begins_no_header():
    async with served() as server:
        protocol, _, _ = server.opened()
        protocol.data_received(b"")
        assert protocol._header_end is None
        protocol.data_received(b"P")
        assert protocol._header_end is not None


async def test_the_second_header_of_a_connection_has_the_same_limit_of_bytes():
    async with served() as server:
        protocol, transport, _ = server.opened()
        protocol.data_received(head(0))
        await server.requests.get()
        protocol.request_ends(answered=True, read=True)
        server.answers.put_nowait(as_response(refuse(400, "x"), close=False))
        await turns()
        begun = head(1)[:-2] + b"".join(b"x-%d: " % n + b"y" * 6000 + b"\r\n" for n in range(5))
        protocol.data_received(begun + b"z: ".ljust(MAX_HEADER_BYTES - len(begun), b"y"))
        await turns()
        transport.abort.assert_not_called()
        protocol.data_received(b"y")
        await turns()
        transport.abort.assert_called_once()


async def test_a_body_is_no_header_however_long():
    async with served() as server:
        protocol, transport, _ = server.opened()
        protocol.data_received(head(4 * MAX_HEADER_BYTES))
        await server.requests.get()
        assert protocol._header_end is None
        protocol.data_received(b"y" * 2 * MAX_HEADER_BYTES)
        await turns()
        transport.abort.assert_not_called()
        assert protocol._header_end is None


async def test_a_body_is_passed_on_as_it_was_sent_and_held_back_beyond_64_kibibytes():
    packed = gzip.compress(REVIEW)
    async with served() as server:
        protocol, transport, _ = server.opened()
        protocol.data_received(head(len(packed), "Content-Encoding: gzip") + packed)
        request = await server.requests.get()
        assert request.content.get_read_buffer_limits() == (65536, 131072)
        assert await request.content.read() == packed
    async with served() as server:
        protocol, transport, _ = server.opened()
        protocol.data_received(head(200_000))
        request = await server.requests.get()
        protocol.data_received(b"y" * 131072)
        transport.pause_reading.assert_not_called()
        protocol.data_received(b"y")
        transport.pause_reading.assert_called_once()
        transport.resume_reading.assert_not_called()
        assert len(request.content.read_nowait()) == 131073
        transport.resume_reading.assert_called()


async def test_a_connection_has_the_rank_of_its_requests():
    async with served() as server:
        protocol, _, connection = server.opened()
        seen = [connection.rank]
        for answered in (False, True, False):
            for step in (
                protocol.body_begins,
                protocol.answer_begins,
                lambda answered=answered: protocol.request_ends(answered=answered, read=True),
            ):
                step()
                seen.append(connection.rank)
    assert seen == [
        Rank.NEW,
        Rank.NEW_SENDING, Rank.BUSY, Rank.NEW,
        Rank.NEW_SENDING, Rank.BUSY, Rank.KNOWN,
        Rank.KNOWN_SENDING, Rank.BUSY, Rank.KNOWN,
    ]  # fmt: skip
    assert protocol.peer == "p"


@pytest.mark.parametrize(("read", "counts"), [(True, True), (False, False)])
async def test_the_rest_of_a_body_that_was_not_read_is_no_header(read, counts):
    async with served() as server:
        protocol, _, _ = server.opened()
        protocol.data_received(head(100))
        await server.requests.get()
        protocol.request_ends(answered=False, read=read)
        protocol.data_received(b"y")
        assert (protocol._header_end is not None) is counts


NO_HTTP = {
    "what the parser refuses": (
        (400, None, "bad\nmore"),
        (400, "no HTTP request: bad"),
    ),
    "a refusal without words": ((400, None, None), (400, "no HTTP request: ")),
    "words without end": ((400, None, "x" * 201), (400, f"no HTTP request: {'x' * 200}")),
    "a bug of ours": (
        (500, ValueError("secret"), "x"),
        (500, "the webhook failed on this request: ValueError; its log says more"),
    ),
    "a status without a bug": (
        (500, None, None),
        (500, "the webhook failed on this request: RuntimeError; its log says more"),
    ),
}


@pytest.mark.parametrize(("given", "expected"), NO_HTTP.values(), ids=NO_HTTP.keys())
async def test_what_is_no_request_is_answered_reported_and_ends_its_connection(given, expected):
    async with served() as server:
        protocol, _, _ = server.opened()
        request: Any = Mock(writer=Mock(output_size=0))
        response: Any = protocol.handle_error(request, *given)
        assert (response.status, json.loads(response.body)["message"]) == expected
        assert response.headers["Content-Type"] == HEADERS["Content-Type"]
        assert response.keep_alive is False
        assert server.witness.begun.get_nowait() == "unknown"
        assert server.witness.ended.get_nowait() == ("unknown", expected[0], 0.0)
        request.writer.output_size = 1
        with pytest.raises(ConnectionError):
            protocol.handle_error(request, *given)


async def test_a_connection_that_was_lost_cannot_be_aborted():
    async with served() as server:
        protocol, transport, _ = server.opened()
        await turns()
        protocol.connection_lost(None)
        protocol.abort()
        transport.abort.assert_not_called()
        await turns()
        assert not server.connections


@pytest.mark.parametrize("close", [True, False])
def test_a_reply_is_json_and_ends_the_connection_where_asked_to(close):
    response: Any = as_response(refuse(404, "none"), close=close)
    assert (response.status, json.loads(response.body)["message"]) == (404, "none")
    assert response.headers["Content-Type"] == "application/json"
    assert (response.keep_alive is False) is close
