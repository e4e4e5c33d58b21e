"""Mutated reviews and mutated HTTP against the real process: answered or hung up on, never a 500.

HYPERJOB_FUZZ_HTTP_COUNT sets how many, HYPERJOB_FUZZ_SEED which ones.
"""

import asyncio
import os
import random
from pathlib import Path

import pytest

from hyperjob_rules.configuration import MUTATE_RESOURCEBINDING, PATHS
from tests.support.reviewfuzz import mutated
from tests.support.stack import issue_certificates
from tests.support.webhookprocess import RawConnection, webhook_process

pytestmark = pytest.mark.scenario

COUNT = int(os.environ.get("HYPERJOB_FUZZ_HTTP_COUNT", "2000"))
SEED = int(os.environ.get("HYPERJOB_FUZZ_SEED", "20261121"))
CONNECTIONS = 4
ANSWERS = {200, 400, 404, 405, 413, 415}

DATA = Path(__file__).parents[1] / "unit/webhook/data/admission-reviews.jsonl"
BODIES = DATA.read_bytes().splitlines()
BINDING = next(body for body in BODIES if b'"kind":"ResourceBinding"' in body)


def odd_head(rng: random.Random, body: bytes) -> bytes:
    """Write a request whose head is not what an API server sends."""
    path = rng.choice((*sorted(PATHS), "/", "//", "/%00", "*", "/" + "a" * 9000, "/ü"))
    method = rng.choice(("POST", "GET", "PUT", "post", "", "P\x00ST", "OPTIONS", "CONNECT"))
    version = rng.choice(("HTTP/1.1", "HTTP/1.0", "HTTP/9.9", "", "HTTP/1.1 x"))
    headers = [
        rng.choice(("Host: x", "Host: x", "", "Host")),
        rng.choice(("Content-Type: application/json", "Content-Type: ;", "Content-Type: text/x")),
        rng.choice(
            (
                f"Content-Length: {len(body)}",
                "Content-Length: -1",
                "Content-Length: 99999999999999999999",
                f"Content-Length: {len(body)}\r\nContent-Length: 1",
                "Transfer-Encoding: chunked",
                f"Content-Length: {len(body)}\r\nTransfer-Encoding: chunked",
                "Content-Encoding: gzip\r\nContent-Length: 0",
                "Expect: 100-continue\r\nContent-Length: 0",
                "X: " + "y" * 20_000,
                "Upgrade: h2c\r\nConnection: upgrade",
                "Connection: close",
                "",
            )
        ),
    ]
    head = "\r\n".join([f"{method} {path} {version}", *filter(None, headers), "", ""])
    return head.encode("latin-1", "replace") + body


async def reviews(webhook, seed: int, count: int) -> int:
    """Send mutated bodies in well-formed requests over kept connections."""
    rng = random.Random(seed)
    tls = webhook.client_tls()
    connection = await RawConnection.open(webhook.port, tls)
    for _ in range(count):
        body = mutated(rng, BODIES)
        status, headers, answer = await connection.post(rng.choice(sorted(PATHS)), body)
        assert status in ANSWERS, (status, answer, body)
        if headers.get("connection") == "close":
            await connection.close()
            connection = await RawConnection.open(webhook.port, tls)
    await connection.close()
    return count


async def heads(webhook, seed: int, count: int) -> None:
    """Send mutated heads, each over a connection of its own."""
    rng = random.Random(seed)
    tls = webhook.client_tls()
    for _ in range(count):
        connection = await RawConnection.open(webhook.port, tls)
        connection.writer.write(odd_head(rng, rng.choice((b"", b"x", b"5\r\nhello\r\n", BINDING))))
        if rng.random() < 0.5:
            connection.writer.write_eof() if connection.writer.can_write_eof() else None
        try:
            async with asyncio.timeout(0.5):  # it may rightly wait for more of the body
                line = await connection.reader.readline()
        except (TimeoutError, OSError):
            line = b""
        assert not line or int(line.split()[1]) in ANSWERS, line
        connection.writer.transport.abort()


def memory_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.timeout(600)
async def test_nothing_that_comes_over_the_wire_breaks_it(tmp_path):
    certificates = issue_certificates(tmp_path / "tls")
    with webhook_process(tmp_path, certificates) as webhook:
        await reviews(webhook, SEED, COUNT // 5)
        early = memory_mb(webhook.process.pid)
        async with asyncio.TaskGroup() as group:
            for number in range(CONNECTIONS):
                group.create_task(reviews(webhook, SEED + 1 + number, COUNT // 5))
            group.create_task(heads(webhook, SEED, COUNT // 20))
        assert webhook.process.poll() is None
        connection = await RawConnection.open(webhook.port, webhook.client_tls())
        assert (await connection.post(MUTATE_RESOURCEBINDING, BINDING))[0] == 200
        await connection.close()
        assert memory_mb(webhook.process.pid) - early < 40
        webhook.terminate()
        assert await asyncio.to_thread(webhook.process.wait, 60) == 0
        failures = [line for line in webhook.lines() if line["level"] == "error"]
        assert failures == []
