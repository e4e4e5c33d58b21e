"""A server on the loopback that misbehaves: it sends what a test says, also without end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from hyperjob_core.kube.client import Kube
from tests.support.kubeconfigs import write_kubeconfig

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"

SECONDS = 60.0
"""A test that takes longer has met no bound."""

Answer = Callable[[str], AsyncIterator[bytes]]
"""Yields the bytes of the response to a request line such as `GET /api/v1/nodes?limit=1`."""


class Peer:
    """The server; `sent` counts the bytes that clients have let it send."""

    def __init__(self, answer: Answer, folder: Path) -> None:
        self.requests: list[str] = []
        self.sent = 0
        self.gone = asyncio.Event()
        self.kubeconfig = folder / "peer.kubeconfig"
        self._answer = answer
        self._writers: list[asyncio.StreamWriter] = []
        self.url = ""

    async def end(self) -> None:
        """Close all connections, also with bytes that no client reads any more."""
        for writer in self._writers:
            writer.transport.abort()
        waits = (writer.wait_closed() for writer in self._writers)
        await asyncio.gather(*waits, return_exceptions=True)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            request = head.split(b" HTTP/", 1)[0].decode()
            self.requests.append(request)
            async with contextlib.aclosing(self._answer(request)) as parts:
                async for part in parts:
                    writer.write(part)
                    await writer.drain()
                    self.sent += len(part)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone.set()
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def misbehaving(answer: Answer, folder: Path) -> AsyncIterator[Peer]:
    """Run a server with a kubeconfig for it."""
    peer = Peer(answer, folder)
    async with await asyncio.start_server(peer.handle, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        peer.url = f"http://127.0.0.1:{port}"
        write_kubeconfig(peer.kubeconfig, peer.url)
        try:
            yield peer
        finally:
            await peer.end()


@contextlib.asynccontextmanager
async def talking(answer: Answer, folder: Path, **options: Any) -> AsyncIterator[tuple[Peer, Kube]]:
    """Run such a server, and a client of it, for SECONDS at most."""
    async with (
        asyncio.timeout(SECONDS),
        misbehaving(answer, folder) as peer,
        Kube.connect(kubeconfig=peer.kubeconfig, **options) as kube,
    ):
        yield peer, kube


def chunk(data: bytes) -> bytes:
    """Return a chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def whole(body: bytes, *, status: str = "200 OK", header: bytes = b"") -> bytes:
    """Return a response with its length."""
    start = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    return start.encode() + header + b"\r\n" + body
