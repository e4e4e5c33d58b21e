"""The HTTPS server around `admission.admit`: limits, time limits, metrics and drain.

The server reads a body, calls `admit`, writes the response and logs it. With `missing` it also
looks up the objects that the pods of a new HyperJob need.
"""

import asyncio
import logging
import ssl
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from time import perf_counter
from typing import Final, TypeAlias

from aiohttp import StreamReader, web
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from hyperjob_core.api.meta import Object
from hyperjob_core.registry import filled
from hyperjob_core.serving.listener import (
    CONNECTIONS,
    HEADER_SECONDS,
    HTTP_LOG,
    UNANSWERED_BYTES,
    Connection,
    Listener,
    connection_of,
)
from hyperjob_rules.configuration import (
    MUTATE_HYPERJOB,
    MUTATE_RESOURCEBINDING,
    PATHS,
    VALIDATE_HYPERJOB,
    VALIDATE_TRAINJOB,
)
from hyperjob_rules.validation.context import NOTHING_KNOWN, Context
from hyperjob_rules.validation.rules import Decision
from hyperjob_webhook.admission import Reply, admit, check_http, fail, refuse
from hyperjob_webhook.review import MAX_BODY_BYTES, AdmissionRequest, encode

Judge: TypeAlias = Callable[[AdmissionRequest], Awaitable[Decision]]
Missing: TypeAlias = Callable[[AdmissionRequest, Object], Awaitable[Sequence[str]]]

LARGE_BODY_BYTES: Final = 128 * 1024
"""The bytes above which a review is processed in a thread, without delay of small reviews."""
LARGE_AT_A_TIME: Final = 2
"""The number of threads for large reviews; the other large reviews wait in memory."""
KEEPALIVE_SECONDS: Final = 120.0
"""Longer than the 90 s after which an API server closes an idle connection itself."""
_LINGER_SECONDS: Final = 2.0
"""How long the webhook reads on after a refusal, which the sender then receives."""
_ANSWER_SECONDS: Final = 1.0
"""The time limit, in seconds, for writing a response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one server; times in seconds.

    A review may take `request_timeout`, less than `timeoutSeconds` of the webhook configuration.
    """

    request_timeout: float = 4.0
    connections: int = CONNECTIONS
    unanswered_bytes: int = UNANSWERED_BYTES
    header_seconds: float = HEADER_SECONDS
    shutdown_grace_seconds: float = 10.0


class WebhookServer:
    """The server of reviews on one address."""

    def __init__(
        self,
        *,
        reporter: "RequestLog",
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
        self._large_slots = asyncio.Semaphore(LARGE_AT_A_TIME)
        self._threads = ThreadPoolExecutor(LARGE_AT_A_TIME, thread_name_prefix="large-review")
        self._open: tuple[web.Server, Listener] | None = None
        self._draining = False
        self._busy: set[web.RequestHandler] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()

    @property
    def draining(self) -> bool:
        """Whether the server is shutting down and closes connections."""
        return self._draining

    async def start(self, *, host: str, port: int, tls: ssl.SSLContext) -> int:
        """Listen, and return the port; raise OSError if the address is not available."""
        http = web.Server(
            self._handle,
            logger=HTTP_LOG,
            access_log=None,
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=_LINGER_SECONDS,
            auto_decompress=False,
        )
        listener = Listener(
            http,
            tls=tls,
            connections=self._limits.connections,
            unanswered_bytes=self._limits.unanswered_bytes,
            header_seconds=self._limits.header_seconds,
        )
        _, found = await listener.open(host, port)
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
            await http.shutdown(_ANSWER_SECONDS)
            listener.abort()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, and report it exactly once, whatever happens.

        The connection counts as busy until its reply is made: `stop` waits for it.
        """
        started = perf_counter()
        path = request.path
        webhook = path if path in PATHS else "unknown"
        connection = connection_of(request)
        if connection is None:  # its client has gone
            return self._as_response(refuse(400, "the connection has ended"))
        connection.asked()
        self._busy.add(request.protocol)
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
            reply = refuse(400, "the connection ended before its review was read")
        except Exception as bug:  # noqa: BLE001 - ours, and reported as such
            reply = fail(bug)
        except BaseException:
            ended = refuse(503, "the server was stopped before an answer")
            self._reporter.done(webhook, ended, perf_counter() - started)
            raise
        finally:
            connection.answered()
            self._busy.discard(request.protocol)
            if not self._busy:
                self._quiet.set()
        self._reporter.done(webhook, reply, perf_counter() - started)
        return self._as_response(reply)

    def _as_response(self, reply: Reply) -> web.Response:
        """Return a reply as an aiohttp response, while draining the last one of its connection."""
        response = web.Response(
            body=reply.body, status=reply.status, headers={"Content-Type": "application/json"}
        )
        if self._draining:
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest, path: str, connection: Connection) -> Reply:
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
        try:
            async with asyncio.timeout(self._limits.request_timeout):
                body = await _read(request.content)
                if len(body) > MAX_BODY_BYTES:
                    return refuse(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
                if len(body) <= LARGE_BODY_BYTES:
                    return admit(path, body, self._context())
                connection.hold()
                return await self._admit_large(path, body)
        except TimeoutError:
            return refuse(504, f"no answer within {self._limits.request_timeout:g} s")
        except web.RequestPayloadError as error:
            return refuse(400, f"the body could not be read: {error}")

    async def _admit_large(self, path: str, body: bytes) -> Reply:
        """Judge a large body in a thread, of which few run at a time."""
        await self._large_slots.acquire()
        try:
            judging = asyncio.get_running_loop().run_in_executor(
                self._threads, admit, path, body, self._context()
            )
        except BaseException:
            self._large_slots.release()
            raise
        # A thread cannot be interrupted: its slot is free at its end, not at the time limit.
        judging.add_done_callback(lambda _: self._large_slots.release())
        return await asyncio.shield(judging)


async def _read(content: StreamReader) -> bytes:
    """Read a body to its end, or to the first bytes above the limit."""
    pieces: list[bytes] = []
    size = 0
    while size <= MAX_BODY_BYTES and (piece := await content.readany()):
        size += len(piece)
        pieces.append(piece)
    return b"".join(pieces)


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


_log: Final = logging.getLogger("hyperjob_webhook")
_NAME: Final = "controller_runtime_webhook_"
_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_MUTATIONS: Final = frozenset({MUTATE_HYPERJOB, MUTATE_RESOURCEBINDING})


class RequestLog(Collector):
    """Logs and counts requests.

    The counts are plain numbers, of which a scrape makes series: counters of the Prometheus client
    would take 4 % of the time of a small review.
    """

    def __init__(self) -> None:
        self._in_flight: Counter[str] = Counter()
        self._answers: Counter[tuple[str, int]] = Counter()
        self._seconds: dict[str, float] = defaultdict(float)
        self._within: dict[str, list[int]] = defaultdict(lambda: [0] * (len(_BOUNDS) + 1))

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all requests, by webhook."""
        name, text = f"{_NAME}requests_total", "Admission requests by HTTP status"
        answers = (((webhook, str(code)), n) for (webhook, code), n in self._answers.items())
        yield filled(CounterMetricFamily(name, text, labels=("webhook", "code")), answers)
        name, text = f"{_NAME}requests_in_flight", "Admission requests being served"
        flights = (((webhook,), n) for webhook, n in self._in_flight.items())
        yield filled(GaugeMetricFamily(name, text, labels=("webhook",)), flights)
        name, text = f"{_NAME}latency_seconds", "Latency of admission requests"
        latencies = HistogramMetricFamily(name, text, labels=("webhook",))
        bounds = [*(str(float(bound)) for bound in _BOUNDS), "+Inf"]
        for webhook, within in self._within.items():
            buckets = list(zip(bounds, accumulate(within), strict=True))
            latencies.add_metric((webhook,), buckets, self._seconds[webhook])
        yield latencies

    def started(self, webhook: str) -> None:
        """Count an arrived request."""
        self._in_flight[webhook] += 1

    def done(self, webhook: str, reply: Reply, seconds: float) -> None:
        """Count and log an answered request: its decision, or the error."""
        self._in_flight[webhook] -= 1
        self._answers[webhook, reply.status] += 1
        self._within[webhook][bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[webhook] += seconds
        request, decision = reply.request, reply.decision
        if request is not None and decision is not None:
            is_routine = decision.allowed and webhook in _MUTATIONS
            level = logging.DEBUG if is_routine else logging.INFO
            if _log.isEnabledFor(level):
                fields = _decided(webhook, request, decision, seconds)
                _log.log(level, "admission decision", extra=fields)
            return
        fields = {"webhook": webhook, "code": reply.status, "reason": reply.problem}
        fields["duration"] = round(seconds, 6)
        if request is not None:
            fields |= _named(request)
        if reply.bug is not None:
            _log.error("the webhook failed", extra=fields, exc_info=reply.bug)
        else:
            _log.warning("request refused", extra=fields)


def _decided(
    webhook: str, request: AdmissionRequest, decision: Decision, seconds: float
) -> dict[str, object]:
    fields = _named(request)
    fields["webhook"] = webhook
    fields["allowed"] = decision.allowed
    fields["duration"] = round(seconds, 6)
    if decision.patch:
        fields["patched"] = len(decision.patch)
    if decision.warnings:
        fields["warnings"] = len(decision.warnings)
    if decision.errors:
        fields["errors"] = len(decision.errors)
        fields["reason"] = str(decision.errors[0])[:512]
    return fields


def _named(request: AdmissionRequest) -> dict[str, object]:
    fields: dict[str, object] = {
        request.kind or "object": {"namespace": request.namespace, "name": request.name},
        "operation": request.operation,
        "user": request.user,
        "requestID": request.uid,
    }
    if request.dry_run:
        fields["dryRun"] = True
    return fields
