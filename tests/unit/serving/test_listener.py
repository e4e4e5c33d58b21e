"""Which connection a server closes for another one, and what no connection may do."""

import asyncio
import contextlib
import logging
import socket
from unittest.mock import Mock

import pytest
from aiohttp import web

from hyperjob_core.serving.listener import HTTP_LOG, Connection, Listener, connection_of, in_line
from tests.support.virtually import virtually

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def opened(listener):
    """Open a connection over no socket; its transport tells whether it was aborted."""
    connection, transport = Connection(listener), Mock(spec=asyncio.Transport)
    transport.is_closing.side_effect = lambda: transport.abort.called
    connection.connection_made(transport)
    return connection, transport


def closed(connections):
    return [transport.abort.called for _, transport in connections]


def in_memory(**bounds):
    return Listener(lambda: Mock(spec=asyncio.Protocol), **bounds)


@virtually
async def test_the_time_of_a_header_begins_with_the_connection_and_ends_with_the_first_request():
    ends = []

    loop = asyncio.get_running_loop()
    listener = in_memory(header_seconds=5.0)
    for number in range(3):
        connection, transport = opened(listener)
        transport.abort.side_effect = lambda number=number: ends.append((number, loop.time()))
        await asyncio.sleep(1.0)
        connection.data_received(b"P")
        if number == 1:
            connection.asked()
            connection.answered()
    await asyncio.sleep(60.0)
    connection.connection_lost(None)
    assert ends == [(0, 5.0), (2, 7.0)]


@pytest.mark.parametrize(
    ("requests", "first"),
    [
        ((), [0, 1, 2]),
        ((0,), [1, 2, 0]),
        ((0, 1), [2, 0, 1]),
        ((0, 1, 0), [2, 1, 0]),
        ((2, 1), [0, 2, 1]),
    ],
)
async def test_the_connection_without_a_request_for_longest_makes_way(requests, first):
    listener = in_memory(connections=3)
    connections = [opened(listener) for _ in range(3)]
    for number in requests:
        connections[number][0].asked()
        connections[number][0].answered()
    for count in range(1, 4):
        opened(listener)
        gone = {n for n, found in enumerate(closed(connections)) if found}
        assert gone == set(first[:count])


async def test_a_connection_that_is_held_makes_way_for_nobody_until_its_answer():
    listener = in_memory(connections=1)
    held = opened(listener)
    held[0].asked()
    held[0].hold()
    others = [opened(listener) for _ in range(3)]
    assert closed([held, *others]) == [False, True, True, False]
    held[0].answered()
    assert closed([held, *others]) == [False, True, True, True]
    opened(listener)
    assert closed([held]) == [True]


async def test_the_bytes_of_all_unanswered_requests_have_a_bound():
    listener = in_memory(unanswered_bytes=100)
    silent, first, answered, last = connections = [opened(listener) for _ in range(4)]
    first[0].data_received(b"x" * 50)
    answered[0].data_received(b"x" * 50)
    answered[0].answered()
    last[0].data_received(b"x" * 50)
    assert closed(connections) == [False] * 4
    last[0].data_received(b"x")
    assert closed(connections) == [False, True, False, False], "only bytes make room for bytes"
    silent[0].data_received(b"x" * 60)
    assert closed(connections) == [True, True, False, False]
    last[0].data_received(b"x" * 49)
    assert closed(connections) == [True, True, False, False]
    last[0].data_received(b"x")
    assert closed(connections) == [True, True, False, True]


async def test_a_lost_connection_counts_no_more():
    listener = in_memory(connections=1, unanswered_bytes=100)
    lost, _ = opened(listener)
    lost.data_received(b"x" * 100)
    lost.connection_lost(None)
    connection = opened(listener)
    connection[0].data_received(b"x" * 100)
    assert closed([connection]) == [False]


@contextlib.asynccontextmanager
async def serving(handler, **bounds):
    app = web.Application(middlewares=[in_line])
    app.router.add_get("/", handler)
    runner = web.AppRunner(app, access_log=None, logger=HTTP_LOG, shutdown_timeout=1.0)
    await runner.setup()
    listener = Listener(runner.server, **bounds)
    _, port = await listener.open("127.0.0.1", 0)
    try:
        yield port
    finally:
        listener.close()
        await runner.cleanup()
        listener.abort()


async def status(port, text=GET):
    """Send bytes over a connection of its own, and return the status of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    async with asyncio.timeout(30):
        line = (await reader.readline()).decode()
    writer.close()
    await writer.wait_closed()
    return int(line.split()[1])


async def test_each_request_asks_at_its_own_connection():
    seen = []

    async def handler(request):
        seen.append(connection_of(request))
        return web.Response()

    async with serving(handler) as port:
        for _ in range(2):
            assert await status(port) == 200
    assert len({id(one) for one in seen}) == 2
    assert all(isinstance(one, Connection) for one in seen)


async def test_what_is_no_http_gets_a_400_and_no_line_in_the_log_but_a_bug_has_its_stack(caplog):
    async def handler(_):
        raise RuntimeError("ours")

    caplog.set_level(logging.DEBUG, logger="hyperjob_core")
    async with serving(handler) as port:
        for bad in (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", b"hello\r\n\r\n", b"\x16\x03"):
            assert await status(port, bad) == 400
        assert not caplog.records
        assert await status(port) == 500
    (record,) = caplog.records
    assert str(record.exc_info[1]) == "ours"


async def test_an_address_that_is_taken_is_an_os_error_and_closing_leaves_it_free():
    listener, other = Listener(Mock()), Listener(Mock())
    _, port = await listener.open("127.0.0.1", 0)
    with pytest.raises(OSError):
        await other.open("127.0.0.1", port)
    listener.close()
    assert await other.open("127.0.0.1", port) == ("127.0.0.1", port)
    other.close()


@pytest.mark.parametrize("host", ["::", ""])
@pytest.mark.parametrize("dual", [True, False], ids=["both families", "a machine without IPv6"])
async def test_every_address_is_of_both_families(
    host: str, dual: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dual = dual and socket.has_dualstack_ipv6()
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: dual)
    listener = Listener(asyncio.Protocol)
    _, port = await listener.open(host, 0)
    try:
        for address in ("127.0.0.1", "::1") if dual else ("127.0.0.1",):
            _, writer = await asyncio.open_connection(address, port)
            writer.close()
            await writer.wait_closed()
    finally:
        listener.close()
        listener.abort()
