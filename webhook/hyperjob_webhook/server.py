"""The HTTPS server around `admission.admit`: limits, time limits, metrics and drain.

The server reads a body, calls `admit`, writes the response and logs it. With `missing` it also
looks up the objects that the pods of a new HyperJob need.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Final, TypeAlias, cast

from aiohttp import web

from hyperjob_core.api.meta import Object
from hyperjob_core.serving.listener import OTHER_FILES, Listener, allow_files
from hyperjob_core.serving.table import ConnectionTable
from hyperjob_rules.configuration import PATHS, VALIDATE_HYPERJOB, VALIDATE_TRAINJOB
from hyperjob_rules.validation.context import NOTHING_KNOWN, Context
from hyperjob_rules.validation.rules import Decision
from hyperjob_webhook.admission import Reply, admit, check_http, fail, refuse
from hyperjob_webhook.connections import (
    HEADER_SECONDS,
    Bodies,
    Body,
    BodyTooLarge,
    Reporter,
    ReviewProtocol,
    WebhookProtocols,
    as_response,
)
from hyperjob_webhook.review import MAX_BODY_BYTES, AdmissionRequest, encode

Judge: TypeAlias = Callable[[AdmissionRequest], Awaitable[Decision]]
Missing: TypeAlias = Callable[[AdmissionRequest, Object], Awaitable[Sequence[str]]]

LARGE_BODY_BYTES: Final = 128 * 1024
"""The bytes above which a review is processed in a thread, without delay of small reviews."""
LARGE_AT_A_TIME: Final = 2
"""The number of threads for large reviews; the other large reviews wait in memory."""
_ANSWER_SECONDS: Final = 1.0
"""The time limit, in seconds, for writing a response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one server; times in seconds.

    A review may take `request_timeout`, less than `timeoutSeconds` of the webhook configuration.
    Above `requests_inflight` bodies the server refuses the oldest body of the peer with the most,
    and above a number of connections it closes the oldest idle one.
    """

    request_timeout: float = 4.0
    requests_inflight: int = 128
    connections: int = 1024
    connections_per_peer: int = 512
    header_seconds: float = HEADER_SECONDS
    shutdown_grace_seconds: float = 10.0


class WebhookServer:
    """The server of reviews on one address."""

    def __init__(
        self,
        *,
        reporter: Reporter,
        limits: Limits | None = None,
        context: Callable[[], Context] = lambda: NOTHING_KNOWN,
        missing: Missing | None = None,
        judge: Judge | None = None,
    ) -> None:
        """`missing` returns warnings about objects that an allowed new HyperJob needs.

        `judge` decides about a TrainJob with its runtime.
        """
        self._reporter = reporter
        self._limits = limits or Limits()
        self._context = context
        self._missing = missing
        self._judge = judge
        self._bodies = Bodies(at_a_time=self._limits.requests_inflight)
        self._table = ConnectionTable(
            limit=self._limits.connections, per_peer=self._limits.connections_per_peer
        )
        self._large_slots = asyncio.Semaphore(LARGE_AT_A_TIME)
        self._threads = ThreadPoolExecutor(LARGE_AT_A_TIME, thread_name_prefix="large-review")
        self._open: tuple[WebhookProtocols, Listener] | None = None
        self._draining = False
        self._busy: set[ReviewProtocol] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()

    @property
    def draining(self) -> bool:
        """Whether the server is shutting down and closes connections."""
        return self._draining

    async def start(self, *, host: str, port: int, tls: ssl.SSLContext) -> int:
        """Listen, and return the port; raise OSError if the address is not available."""
        http = WebhookProtocols(
            self._handle,
            table=self._table,
            reporter=self._reporter,
            header_seconds=self._limits.header_seconds,
        )
        allow_files(self._limits.connections + OTHER_FILES)
        listener = Listener(http.connect, table=self._table, tls=tls)
        _, found = listener.open(host, port)
        self._open = http, listener
        return found

    def drain(self) -> None:
        """Serve on, but close each connection after its next response."""
        self._draining = True

    async def stop(self, *, grace: float) -> None:
        """Stop listening; return after the last request in flight, or after `grace` seconds.

        aiohttp's own shutdown would drop a body that is still being sent. Here a connection with a
        request stays open until its response.
        """
        self._draining = True
        deadline = asyncio.get_running_loop().time() + grace
        if self._open is not None:
            http, listener = self._open
            listener.close()
            await asyncio.sleep(0)  # starts the requests that have already arrived
            for connection in http.connections:
                if connection not in self._busy:
                    connection.close()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await self._quiet.wait()
            listener.abort_handshakes()
            await http.shutdown(_ANSWER_SECONDS)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, and report it exactly once, whatever happens.

        The connection counts as busy until its reply is made: `stop` waits for it.
        """
        started = perf_counter()
        path = request.path
        webhook = path if path in PATHS else "unknown"
        connection = cast("ReviewProtocol", request.protocol)
        self._busy.add(connection)
        self._quiet.clear()
        self._reporter.started(webhook)
        reply: Reply | None = None
        try:
            reply = await self._answer(request, path, connection)
            if self._missing is not None and path == VALIDATE_HYPERJOB:
                reply = await _with_warnings(reply, self._missing)
            if self._judge is not None and path == VALIDATE_TRAINJOB:
                reply = await _judged(reply, self._judge)
        except ConnectionError:
            reply = refuse(400, "the client went away before its review was read")
        except Exception as bug:  # noqa: BLE001 - ours, and reported as such
            reply = fail(bug)
        except BaseException:
            ended = refuse(503, "the server was stopped before an answer")
            self._reporter.done(webhook, ended, perf_counter() - started)
            raise
        finally:
            self._busy.discard(connection)
            connection.request_ends(
                answered=reply is not None and reply.status == 200, read=request.content.is_eof()
            )
            if not self._busy:
                self._quiet.set()
        self._reporter.done(webhook, reply, perf_counter() - started)
        return as_response(reply, close=self._draining)

    async def _answer(
        self, request: web.BaseRequest, path: str, connection: ReviewProtocol
    ) -> Reply:
        """Return the reply to one request; a body that has arrived whole is judged at once."""
        headers = request.headers
        length = request.content_length
        refusal = check_http(
            method=request.method,
            content_type=headers.get("Content-Type", ""),
            content_encoding=headers.get("Content-Encoding", ""),
            length=length,
        )
        if refusal is not None:
            return refusal
        if length is not None and length <= LARGE_BODY_BYTES and request.content.is_eof():
            # The whole body has arrived: it needs no time limit.
            return admit(path, request.content.read_nowait(), self._context())
        connection.body_begins()
        deadline = asyncio.timeout(self._limits.request_timeout)
        body = Body(connection.peer, deadline)
        try:
            async with deadline:
                with self._bodies.taken(body):
                    return await self._read_and_admit(request, path, body, connection)
        except TimeoutError:
            if body.gave_way:
                return refuse(503, "too many reviews at a time: the oldest unread one gave way")
            return refuse(504, f"no answer within {self._limits.request_timeout:g} s")
        except BodyTooLarge:
            return refuse(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
        except web.RequestPayloadError as error:
            return refuse(400, f"the body could not be read: {error}")

    async def _read_and_admit(
        self, request: web.BaseRequest, path: str, body: Body, connection: ReviewProtocol
    ) -> Reply:
        """Read the body and judge it, a large one in a thread, of which few run at a time."""
        content = await self._bodies.read(body, request.content)
        if len(content) <= LARGE_BODY_BYTES:
            self._bodies.release(body)
            return admit(path, content, self._context())
        await self._large_slots.acquire()
        try:
            self._bodies.release(body)
            connection.answer_begins()
            judging = asyncio.get_running_loop().run_in_executor(
                self._threads, admit, path, content, self._context()
            )
        except BaseException:
            self._large_slots.release()
            raise
        # A thread cannot be interrupted: its slot is free at its end, not at the time limit.
        judging.add_done_callback(lambda _: self._large_slots.release())
        return await asyncio.shield(judging)


async def _judged(reply: Reply, judge: Judge) -> Reply:
    """Return the reply to a TrainJob that its runtime decides; other replies stay as they are."""
    request = reply.request
    if request is None or reply.decision is None or request.object is None or request.subresource:
        return reply
    decision = await judge(request)
    return reply._replace(body=encode(request, decision), decision=decision)


async def _with_warnings(reply: Reply, missing: Missing) -> Reply:
    """Return the reply to an allowed HyperJob with warnings about missing objects."""
    request, decision = reply.request, reply.decision
    if request is None or decision is None or decision.checked is None:
        return reply
    more = await missing(request, decision.checked)
    if not more:
        return reply
    decision = decision._replace(warnings=(*decision.warnings, *more))
    return reply._replace(body=encode(request, decision), decision=decision)
