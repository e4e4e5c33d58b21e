"""The HTTPS shell around `admission.admit`: bounded, timed, counted, drained.

Reads a body, hands it to the pure half, writes the answer and reports it. It judges nothing
itself and makes no call to anybody.
"""

import asyncio
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from webhook.admission import Reply, admit, check_http, fail, refuse
from webhook.connections import BoundedServer, Reporter, as_response
from webhook.paths import PATHS
from webhook.review import MAX_BODY_BYTES
from webhook.validation.context import NOTHING_KNOWN, Context

LARGE_BODY_BYTES: Final = 128 * 1024
"""A larger review is judged in a thread, so that the small ones beside it are not held up."""
LARGE_AT_A_TIME: Final = 2
"""Bounds the memory and the threads that large reviews can take together."""
HANDSHAKE_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 1.0
"""For an answer to be written out once it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one server takes on at a time; times in seconds."""

    request_timeout: float = 4.0
    requests_inflight: int = 128
    connections: int = 1024


class WebhookServer:
    """Answers reviews on one address, until it is drained."""

    def __init__(
        self,
        *,
        reporter: Reporter,
        limits: Limits | None = None,
        context: Callable[[], Context] = lambda: NOTHING_KNOWN,
    ) -> None:
        self._reporter = reporter
        self._limits = limits or Limits()
        self._context = context
        self._slots = asyncio.Semaphore(self._limits.requests_inflight)
        self._large_slots = asyncio.Semaphore(LARGE_AT_A_TIME)
        self._threads = ThreadPoolExecutor(LARGE_AT_A_TIME, thread_name_prefix="large-review")
        self._http: BoundedServer | None = None
        self._listener: asyncio.Server | None = None
        self._draining = False
        self._busy: set[RequestHandler] = set()
        self._last_done: asyncio.Future[None] | None = None

    @property
    def draining(self) -> bool:
        """Whether the server is on its way out, and wants no new connections."""
        return self._draining

    async def start(self, *, host: str, port: int, tls: ssl.SSLContext) -> int:
        """Listen, and return the port; raise OSError when the address cannot be had."""
        loop = asyncio.get_running_loop()
        self._http = BoundedServer(
            self._handle,
            max_connections=self._limits.connections,
            reporter=self._reporter,
        )
        self._listener = await loop.create_server(
            self._http,
            host or None,
            port,
            ssl=tls,
            backlog=512,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=2.0,
        )
        return int(self._listener.sockets[0].getsockname()[1])

    def drain(self) -> None:
        """Serve on, but end each connection with its next answer."""
        self._draining = True

    async def stop(self, *, grace: float) -> None:
        """Stop listening, and end when the requests in flight are answered or `grace` is over.

        aiohttp's own shutdown would drop the rest of a body that is still being sent; here a
        connection with a request on it is left alone until its answer, which closes it.
        """
        self._draining = True
        deadline = asyncio.get_running_loop().time() + grace
        if self._listener is not None:
            self._listener.close()
        if self._http is not None:
            await asyncio.sleep(0)  # let requests that have arrived be taken up first
            for connection in self._http.connections:
                if connection not in self._busy:
                    connection.close()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await self._quiet()
            await self._http.shutdown(_ANSWER_SECONDS)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _quiet(self) -> None:
        if self._busy:
            self._last_done = asyncio.get_running_loop().create_future()
            await self._last_done

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        started = perf_counter()
        path = request.path
        webhook = path if path in PATHS else "unknown"
        connection = request.protocol
        self._busy.add(connection)
        self._reporter.started(webhook)
        try:
            reply = await self._answer(request, path)
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
            if self._last_done is not None and not self._busy and not self._last_done.done():
                self._last_done.set_result(None)
        self._reporter.done(webhook, reply, perf_counter() - started)
        return as_response(reply, close=self._draining)

    async def _answer(self, request: web.BaseRequest, path: str) -> Reply:
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
            # All of it is here: there is nothing to wait for, so nothing to limit.
            return admit(path, request.content.read_nowait(), self._context())
        try:
            async with asyncio.timeout(self._limits.request_timeout):
                return await self._read_and_admit(request, path, length)
        except TimeoutError:
            return refuse(504, f"no answer within {self._limits.request_timeout:g} s")
        except web.HTTPRequestEntityTooLarge:
            return refuse(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
        except web.RequestPayloadError as error:
            return refuse(400, f"the body could not be read: {error}")

    async def _read_and_admit(
        self, request: web.BaseRequest, path: str, length: int | None
    ) -> Reply:
        if length is not None and length <= LARGE_BODY_BYTES:
            async with self._slots:
                body = await request.read()
            return admit(path, body, self._context())
        await self._large_slots.acquire()
        try:
            body = await request.read()
            judging = asyncio.get_running_loop().run_in_executor(
                self._threads, admit, path, body, self._context()
            )
        except BaseException:
            self._large_slots.release()
            raise
        # A thread cannot be interrupted: its slot is free when it ends, not when we stop waiting.
        judging.add_done_callback(lambda _: self._large_slots.release())
        return await asyncio.shield(judging)
