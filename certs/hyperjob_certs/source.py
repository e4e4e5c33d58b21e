"""The certificate of a server, reloaded from two files without closing connections.

A changed pair is read, checked and loaded into a new SSLContext, which then serves new handshakes.
With an unusable pair the source goes on with the old one and reports the problem. It never loads
into a context in use: with half a pair a listening server would reset every connection.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from prometheus_client import Counter

from hyperjob_certs.x509 import Facts, InvalidPair, Pair, check_pair, split_bundle
from hyperjob_core.memoryfile import in_memory
from hyperjob_core.registry import REGISTRY

POLL_SECONDS: Final = 1.0
READ_LIMIT: Final = 1 << 20
"""The greatest size of a file in bytes; a chain has a few kilobytes."""

_READS: Final = Counter(
    "certwatcher_read_certificate_total", "Certificate reads", registry=REGISTRY
)
_ERRORS: Final = Counter(
    "certwatcher_read_certificate_errors_total",
    "Certificate reads that failed",
    registry=REGISTRY,
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Files:
    pair: Pair
    client_ca: bytes


@dataclass(eq=False)
class FileSource:
    """The certificate and key in two files; `run` reads their changes.

    With a `client_ca_file` a handshake needs a client certificate of its authorities; `run` reads
    changes of this file too.
    """

    certificate_file: Path
    key_file: Path
    _: KW_ONLY
    client_ca_file: Path | None = None
    minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    poll_seconds: float = POLL_SECONDS
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _current: ssl.SSLContext | None = field(default=None, init=False)
    _facts: Facts | None = field(default=None, init=False)
    _served: _Files | None = field(default=None, init=False)
    _problem: str | None = field(default=None, init=False)

    @property
    def facts(self) -> Facts:
        """The facts of the served certificate; RuntimeError before the first `load`."""
        if self._facts is None:
            raise RuntimeError("no certificate has been loaded")
        return self._facts

    @property
    def problem(self) -> str | None:
        """Why the newest pair is not served; None if it is served."""
        return self._problem

    @property
    def expired(self) -> bool:
        """Whether the served certificate has expired."""
        return self.clock() >= self.facts.not_after

    def load(self) -> None:
        """Read the pair for the first time; raise `InvalidPair` if it is unusable."""
        self._swap(self._read())

    def refresh(self) -> bool:
        """Read the files once; return whether another pair is served from now on.

        It never raises: `problem` has the error, which is logged once per change.
        """
        try:
            files = self._read()
            if changed := files != self._served:
                self._swap(files)
        except InvalidPair as problem:
            self._complain(str(problem))
            return False
        except Exception as bug:  # noqa: BLE001 - a surprise must not end the polling
            _log.exception("reading the serving certificate failed")
            self._complain(f"{type(bug).__name__} while reading")
            return False
        self._problem = None
        return changed

    async def run(self) -> None:
        """Read changes of the files until cancelled."""
        while True:
            await asyncio.sleep(self.poll_seconds)
            if await asyncio.to_thread(self.refresh):
                _log.info(
                    "serving a new certificate",
                    extra={"notAfter": self.facts.not_after.isoformat()},
                )

    def server_context(self) -> ssl.SSLContext:
        """Return the context to listen with; each handshake uses the current one."""
        context = _new_context(self.minimum_version)
        if self.client_ca_file is not None:
            # A connection has this context's verify mode, and the authorities of the chosen one.
            context.verify_mode = ssl.CERT_REQUIRED

        def choose(
            connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext
        ) -> None:
            if self._current is not None:
                connection.context = self._current

        context.sni_callback = choose
        return context

    def _read(self) -> "_Files":
        try:
            return self._read_once()
        except InvalidPair:
            return self._read_once()  # the kubelet may have replaced the version during the read

    def _read_once(self) -> "_Files":
        certificate_file, key_file = _resolve(self.certificate_file, self.key_file)
        pair = Pair(_bytes_of(certificate_file), _bytes_of(key_file))
        return _Files(pair, _bytes_of(self.client_ca_file) if self.client_ca_file else b"")

    def _swap(self, files: "_Files") -> None:
        """Serve the files from the next handshake on; raises InvalidPair and changes nothing."""
        found = check_pair(files.pair, now=self.clock())
        context = _new_context(self.minimum_version)
        with in_memory(files.pair.key.strip() + b"\n" + files.pair.certificate) as path:
            try:
                context.load_cert_chain(path)
            except ssl.SSLError as error:
                raise InvalidPair(f"TLS refuses the pair: {error.reason or error}") from None
        if self.client_ca_file is not None:
            _trust(context, files.client_ca, self.client_ca_file)
        self._current, self._facts, self._served = context, found, files
        _READS.inc()

    def _complain(self, problem: str) -> None:
        """Record why the newest files are not served; log each reason once in a row."""
        _READS.inc()
        _ERRORS.inc()
        if problem != self._problem:
            self._problem = problem
            _log.error(
                "the new certificate cannot be served, the old one stays",
                extra={
                    "reason": problem,
                    "file": str(self.certificate_file),
                },
            )


def _resolve(certificate_file: Path, key_file: Path) -> tuple[Path, Path]:
    """Resolve a Secret volume's `..data` link once: both files are then of one version."""
    data = certificate_file.parent / "..data"
    if key_file.parent != certificate_file.parent or not data.is_symlink():
        return certificate_file, key_file
    version = data.resolve()
    return version / certificate_file.name, version / key_file.name


def _bytes_of(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            content = stream.read(READ_LIMIT + 1)
    except OSError as error:
        raise InvalidPair(f"{file} cannot be read: {error.strerror or error}") from None
    if len(content) > READ_LIMIT:
        raise InvalidPair(f"{file} is larger than {READ_LIMIT} bytes, so it is no certificate")
    if not content.strip():
        raise InvalidPair(f"{file} is empty")
    return content


def _trust(context: ssl.SSLContext, authorities: bytes, file: Path) -> None:
    """Make the context refuse clients without a certificate of these authorities."""
    try:
        split_bundle(authorities)
        context.load_verify_locations(cadata=authorities.decode("ascii"))
    except (InvalidPair, ValueError, ssl.SSLError):
        raise InvalidPair(f"{file} holds no PEM certificates of authorities") from None
    context.verify_mode = ssl.CERT_REQUIRED


def _new_context(minimum_version: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = minimum_version
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # A resumed session could use a client certificate whose authority is no longer trusted.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    return context
