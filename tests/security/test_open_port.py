"""The webhook's open port, attacked without any credentials while an API server uses it."""

import asyncio
import contextlib
import json
import resource
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from hyperjob_rules.configuration import MUTATE_RESOURCEBINDING
from tests.support.stack import issue_certificates
from tests.support.webhookprocess import RawConnection, webhook_process
from tests.unit.webhook.test_server import REVIEW, head

pytestmark = pytest.mark.scenario

CONNECTIONS = 1500
"""Three times as many as the webhook keeps."""
ATTACKERS = [f"127.0.0.{n}" for n in range(2, 6)]


@pytest.fixture(scope="module", autouse=True)
def files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CONNECTIONS
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, hard)), hard))


@pytest.fixture(scope="module")
def webhook(tmp_path_factory):
    directory = tmp_path_factory.mktemp("webhook")
    certificates = issue_certificates(directory / "tls")
    with webhook_process(directory, certificates) as running:
        yield running


def large_review():
    review = json.loads(REVIEW)
    review["request"]["object"]["metadata"]["annotations"]["pad"] = "x" * 140_000
    return json.dumps(review).encode()


async def attack(webhook, beginning, *, number, addresses=tuple(ATTACKERS), tls=True):
    """Open connections from several addresses, send the beginning of a request, and hold them."""
    context = webhook.client_tls() if tls else None
    if context:
        context.check_hostname = False
    gate = asyncio.Semaphore(32)

    async def one(address):
        async with gate:
            with contextlib.suppress(OSError, ssl.SSLError):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", webhook.port, ssl=context, local_addr=(address, 0)
                )
                writer.write(beginning)
                return reader, writer

    places = [addresses[n % len(addresses)] for n in range(number)]
    return [held for held in await asyncio.gather(*map(one, places)) if held]


def memory_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def hang_up(held):
    for _, writer in held:
        writer.transport.abort()
    await asyncio.sleep(0)


async def answered(webhook, review, connection=None):
    """Tell whether the API server's review is answered, on a new connection or on one it keeps."""
    used = connection or await RawConnection.open(webhook.port, webhook.client_tls())
    try:
        status, _, body = await used.post(MUTATE_RESOURCEBINDING, review)
    finally:
        if connection is None:
            await used.close()
    return status == 200 and json.loads(body)["response"]["allowed"]


BEGINNINGS = {
    "half a header": head(None)[:-2],
    "a header without its body": head(len(REVIEW)),
}


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS.keys())
async def test_1500_connections_that_are_held_shut_nobody_out(webhook, beginning):
    flood = asyncio.create_task(attack(webhook, beginning, number=CONNECTIONS))
    while not flood.done():
        assert await answered(webhook, REVIEW), "also while they are opened"
    held = await flood
    try:
        assert len(held) == CONNECTIONS
        kept = await RawConnection.open(webhook.port, webhook.client_tls())
        assert await answered(webhook, REVIEW, kept)
        assert await answered(webhook, large_review(), kept), "the server has kept it"
        assert memory_mb(webhook.process.pid) < 512, "the limit of the chart"
    finally:
        await hang_up(held)
        await kept.close()


async def test_1500_connections_without_a_handshake_shut_nobody_out(webhook):
    held = await attack(webhook, b"", number=CONNECTIONS, tls=False)
    try:
        assert len(held) == CONNECTIONS
        assert await answered(webhook, REVIEW)
        assert memory_mb(webhook.process.pid) < 512, "the limit of the chart"
    finally:
        await hang_up(held)


async def test_connections_to_the_probes_shut_the_kubelet_out_of_nothing(webhook):
    """Held without a request, or with half of one: probes are answered, and few are kept open."""
    host, _, port = webhook.side_door.removeprefix("http://").rpartition(":")
    held = []
    for n in range(CONNECTIONS):
        local = (ATTACKERS[n % len(ATTACKERS)], 0)
        reader, writer = await asyncio.open_connection(host, int(port), local_addr=local)
        writer.write(b"GET /healthz HTTP/1.1\r\n"[: n % 20])
        held.append((reader, writer))
    try:
        for path in ("/healthz", "/readyz", "/metrics"):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            async with asyncio.timeout(30):
                assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            writer.close()
        closed = 0
        for reader, _ in held[:-128]:
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(30):
                    closed += await reader.read() == b""
        assert closed
    finally:
        await hang_up(held)


@pytest.mark.parametrize("door", ["webhook", "probes"])
async def test_what_is_no_request_is_refused_without_a_traceback(tmp_path, door):
    with webhook_process(tmp_path, issue_certificates(tmp_path / "tls")) as webhook:
        tls, port = webhook.client_tls(), webhook.port
        if door == "probes":
            tls, port = None, int(webhook.side_door.rpartition(":")[2])
        two = "/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\nX:"
        negative = "/ HTTP/1.1\r\nContent-Length: -1\r\nX:"
        for target in ("/" + "a" * 9000, "/healthz HTTP/1.1 HTTP/1.1", "/\x00", two, negative):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
            writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            async with asyncio.timeout(30):
                assert (await reader.readline()).split()[1] == b"400"
            writer.transport.abort()
        assert {line["level"] for line in webhook.lines()} == {"info"}


async def test_half_a_header_is_held_for_seconds_not_minutes(webhook):
    ((reader, writer),) = await attack(webhook, head(None)[:-2], number=1)
    async with asyncio.timeout(60):
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
    writer.transport.abort()


async def test_chunked_bodies_without_an_end_hold_up_no_large_review(tmp_path):
    chunked = head(None, "Transfer-Encoding: chunked") + b"1000\r\n" + b" " * 0x1000 + b"\r\n"
    certificates = issue_certificates(tmp_path / "tls")
    with webhook_process(tmp_path, certificates, request_timeout=25) as webhook:
        held = await attack(webhook, chunked, number=8)
        refused = [asyncio.create_task(reader.read(1)) for reader, _ in held]
        for _ in range(3):
            assert await answered(webhook, large_review())
        assert len(refused) == 8
        assert not any(task.done() for task in refused), "they are read on, and take no slot"
        await hang_up(held)
        await asyncio.gather(*refused, return_exceptions=True)


def issue_client(directory):
    command = [sys.executable, "-m", "hyperjob_certs", "client", "--directory", str(directory)]
    subprocess.run(command, check=True, timeout=60, capture_output=True)


async def test_with_an_authority_of_clients_strangers_get_no_answer(tmp_path):
    directory = tmp_path / "client"
    issue_client(directory)
    flags = [f"--client-ca-file={directory / 'client-ca.crt'}"]
    with webhook_process(tmp_path, issue_certificates(tmp_path / "tls"), flags=flags) as webhook:
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await answered(webhook, REVIEW)
        context = webhook.client_tls()
        context.load_cert_chain(directory / "client.crt", directory / "client.key")
        connection = await RawConnection.open(webhook.port, context)
        assert await answered(webhook, REVIEW, connection)
        await connection.close()
        assert b"client certificate refused" in webhook.log.read_bytes()
