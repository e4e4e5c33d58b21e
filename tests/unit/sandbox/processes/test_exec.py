"""A command in a container over a WebSocket, as kubectl and Kubernetes' clients speak."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from hyperjob_sandbox.processes.exec import converse

STDIN, STDOUT, STDERR, STATUS, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
killed: list[Sequence[str]] = []


async def run(words: Sequence[str]) -> int:
    """Run words as a container does: in a session of its own, without files of this process."""
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
    )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        killed.append(words)
        process.kill()
        await process.wait()
        raise


@asynccontextmanager
async def talking(
    *command: str, stdin: bool = True, tty: bool = False
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async def answer(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await converse(socket, run, command, stdin=stdin, tty=tty)
        await socket.close()
        return socket

    app = web.Application()
    app.router.add_get("/", answer)
    async with TestClient(TestServer(app)) as client, client.ws_connect("/") as socket:
        yield socket


async def rest(socket: aiohttp.ClientWebSocketResponse) -> tuple[bytes, bytes, Any]:
    """Return what comes on the two outputs, and the status."""
    found = {STDOUT: b"", STDERR: b"", STATUS: b""}
    async for message in socket:
        found[message.data[0]] += message.data[1:]
    return found[STDOUT], found[STDERR], json.loads(found[STATUS])


async def test_output_errors_and_the_exit_code_come_back() -> None:
    async with talking("sh", "-c", "echo out; echo err >&2; exit 3", stdin=False) as socket:
        out, err, status = await rest(socket)
    assert (out, err, status["reason"]) == (b"out\n", b"err\n", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


@pytest.mark.parametrize("size", [0, 5, 300_000])
async def test_input_ends_where_the_client_closes_its_channel(size: int) -> None:
    async with talking("cat") as socket:
        await socket.send_bytes(bytes([STDIN]) + b"x" * size)
        await socket.send_bytes(bytes([CLOSE, STDIN]))
        out, _, status = await rest(socket)
    assert (len(out), status["status"]) == (size, "Success")


async def test_a_terminal_has_the_size_of_the_client_and_takes_what_is_typed() -> None:
    async with talking("sh", "-c", "read word; stty size; test -t 1", tty=True) as socket:
        await socket.send_bytes(bytes([RESIZE]) + b'{"Width": 120, "Height": 40}')
        await socket.send_bytes(bytes([RESIZE]) + b'{"Width": -1, "Height": 1e99}')
        await socket.send_bytes(bytes([STDIN]) + b"go\n")
        out, err, status = await rest(socket)
    assert (out, err, status["status"]) == (b"go\r\n40 120\r\n", b"", "Success")


async def test_a_command_ends_with_its_client() -> None:
    async with talking("cat") as socket:
        await socket.send_bytes(bytes([STDIN]) + b"x")
        assert (await socket.receive_bytes())[1:] == b"x"
    assert killed
    assert killed[-1][-1] == "cat"
