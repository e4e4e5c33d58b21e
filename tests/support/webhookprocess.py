"""The webhook as a separate process on free ports, and TLS connections to it."""

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import wait_for
from tests.support.stack import Certificates, issue_certificates, registered

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class WebhookProcess:
    """A running webhook: its address and its log."""

    process: subprocess.Popen[bytes]
    port: int
    side_door: str
    log: Path
    authority: Path

    def lines(self) -> list[dict[str, object]]:
        """Return the records of its log so far."""
        return [json.loads(line) for line in self.log.read_bytes().splitlines()]

    def client_tls(self) -> ssl.SSLContext:
        """Return a client's TLS context that trusts the present content of the CA file."""
        return ssl.create_default_context(cafile=str(self.authority))


_WITH_LIMITS = """
import dataclasses, sys
from hyperjob_webhook import __main__ as process
process.LIMITS = dataclasses.replace(process.LIMITS, {})
sys.exit(process.main())
"""


def command(certificates: Certificates, *more: str, **limits: float) -> list[str]:
    """Return the command line with free ports; later flags override earlier flags.

    `limits` are fields of the server's `Limits` with other values than in production.
    """
    given = ", ".join(f"{name}={value}" for name, value in limits.items())
    program = ("-c", _WITH_LIMITS.format(given)) if limits else ("-m", "hyperjob_webhook")
    return [
        *(sys.executable, *program, "--bind-address=127.0.0.1", "--secure-port=0"),
        f"--tls-cert-file={certificates.certificate}",
        f"--tls-private-key-file={certificates.key}",
        *("--health-probe-bind-address=127.0.0.1:0", "--log-format=json", "--shutdown-delay=0"),
        *more,
    ]


@contextlib.contextmanager
def webhook_process(
    directory: Path, certificates: Certificates, *, flags: Sequence[str] = (), **limits: float
) -> Iterator[WebhookProcess]:
    """Run the webhook until the end of the block; it is ready inside."""
    log = directory / "webhook.jsonl"
    environment = {name: value for name, value in os.environ.items() if "HYPERJOB" not in name}
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command(certificates, *flags, **limits), cwd=ROOT, env=environment, stderr=sink
        )
    try:
        wait_for(lambda: log.read_bytes().endswith(b"\n"), what="webhook", process=process, log=log)
        first = json.loads(log.read_bytes().splitlines()[0])
        assert first["msg"] == "serving", first
        yield WebhookProcess(
            process=process,
            port=int(first["address"].rpartition(":")[2]),
            side_door=f"http://{first['health']}",
            log=log,
            authority=certificates.authority,
        )
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)


@contextlib.contextmanager
def registered_webhook(kubeconfig: Path, directory: Path) -> Iterator[WebhookProcess]:
    """Run the webhook, registered in the API server, until the end of the block."""
    certificates = issue_certificates(directory / "tls")
    with (
        webhook_process(directory, certificates) as process,
        registered(kubeconfig, certificates, port=process.port),
    ):
        yield process


class RawConnection:
    """A keep-alive connection that can send a review in parts."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, port: int, tls: ssl.SSLContext) -> "RawConnection":
        """Connect, with the TLS handshake."""
        async with asyncio.timeout(30):
            return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=tls))

    @property
    def certificate(self) -> bytes:
        """The DER certificate that the server showed on this connection."""
        shown = self.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return bytes(shown)

    async def send_head(self, path: str, length: int) -> None:
        """Announce a body of some length."""
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {length}\r\n\r\n".encode())
        await self.writer.drain()

    async def post(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Send a review and return status, headers and body of the answer."""
        await self.send_head(path, len(body))
        self.writer.write(body)
        return await self.answer()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Read one answer."""
        async with asyncio.timeout(30):
            text = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = text.strip().split("\r\n")
            pairs = (line.partition(": ") for line in lines)
            headers = {name.lower(): value for name, _, value in pairs}
            body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(first.split()[1]), headers, body

    async def close(self) -> None:
        """Close the connection."""
        self.writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await self.writer.wait_closed()
