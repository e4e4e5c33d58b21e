"""The load generator: a separate process with cheap keep-alive TLS connections.

The process reads jobs as JSON lines from standard input and writes a result for each to standard
output: connections and interpreter are warm before a measurement.
"""

import asyncio
import json
import ssl
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import Any

CONNECTIONS = 8


def request_of(path: str, body: bytes) -> bytes:
    lines = (
        f"POST {path}?timeout=5s HTTP/1.1",
        "Host: localhost",
        "User-Agent: kube-apiserver-admission",
        f"Content-Length: {len(body)}",
        "Accept: application/json, */*",
        "Content-Type: application/json",
        "Accept-Encoding: gzip",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class Connection(asyncio.Protocol):
    """Sends one request at a time and records its latency."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._buffer = b""
        self._answered: asyncio.Future[None] | None = None
        self.latencies: list[float] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionError("closed by the server"))

    async def ask(self, since: float | None = None) -> None:
        started = perf_counter() if since is None else since
        self._answered = asyncio.get_running_loop().create_future()
        self.transport.write(next(self._requests))
        await self._answered
        self.latencies.append(perf_counter() - started)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower()
        length = int(head.partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        if len(self._buffer) < end + 4 + length:
            return
        answer, self._buffer = self._buffer, b""
        if self._answered is not None and not self._answered.done():
            if answer.startswith(b"HTTP/1.1 200") and b'"allowed":true' in answer:
                self._answered.set_result(None)
            else:
                self._answered.set_exception(RuntimeError(answer[:500]))


async def closed_loop(connections: list[Connection], count: int) -> dict[str, Any]:
    """Send `count` requests over all connections, each after the answer of the last."""
    left = count

    async def drive(connection: Connection) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await connection.ask()

    started = perf_counter()
    async with asyncio.timeout(600), asyncio.TaskGroup() as group:
        for connection in connections:
            group.create_task(drive(connection))
    return {"seconds": perf_counter() - started, "count": count}


async def open_loop(connections: list[Connection], count: int, rate: float) -> dict[str, Any]:
    """Send requests at a steady rate; a late answer delays no request, and its latency counts."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for connection in connections:
        free.put_nowait(connection)
    started = perf_counter()

    async def one(due: float) -> None:
        connection = await free.get()
        await connection.ask(due)
        free.put_nowait(connection)

    async with asyncio.timeout(600), asyncio.TaskGroup() as group:
        for number in range(count):
            due = started + number / rate
            await asyncio.sleep(max(0.0, due - perf_counter()))
            group.create_task(one(max(due, perf_counter())))
    return {"seconds": perf_counter() - started, "count": count}


async def run(job: dict[str, Any]) -> dict[str, Any]:
    bodies = Path(job["bodies"]).read_bytes().splitlines()
    requests = cycle([request_of(job["path"], body) for body in bodies])
    tls = ssl.create_default_context(cafile=job["ca"])
    loop = asyncio.get_running_loop()
    connections = []
    for _ in range(CONNECTIONS):
        _, connection = await loop.create_connection(
            lambda: Connection(requests),
            "127.0.0.1",
            job["port"],
            ssl=tls,
            server_hostname="localhost",
        )
        connections.append(connection)
        await connection.ask()
        connection.latencies.clear()
    if job.get("rate"):
        result = await open_loop(connections, job["count"], job["rate"])
    else:
        result = await closed_loop(connections, job["count"])
    latencies = sorted(value for one in connections for value in one.latencies)
    result["p50"] = latencies[len(latencies) // 2]
    result["p99"] = latencies[int(len(latencies) * 0.99)]
    for connection in connections:
        connection.transport.close()
    return result


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(asyncio.run(run(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
