"""HTTPS in front of the API: sockets, TLS, time limits, bodies, and how answers are written."""

import asyncio
import logging
import ssl
from collections.abc import Callable

from aiohttp import web

from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.transport.call import Reply, Session, Stream, status_reply
from hyperjob_sandbox.apiserver.transport.requestinfo import parse
from hyperjob_sandbox.apiserver.verbs.dispatch import Dispatcher

BODY_LIMIT = 3 * 1024 * 1024
REQUEST_SECONDS = 60.0
_WRITE_SECONDS = 30.0
_BACKLOG = 512
_CLOSE_SECONDS = 1.0
_CHANNELS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_log = logging.getLogger(__name__)


class Frontend:
    """The listening side of an API server; it can stop and start without losing anything."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        context: ssl.SSLContext,
        *,
        host: str,
        port: int,
        on_stop: Callable[[], None],
    ) -> None:
        self._dispatcher = dispatcher
        self._context = context
        self._host = host
        self.port = port
        self._on_stop = on_stop
        self._runner: web.AppRunner | None = None
        self.closing = False

    async def start(self) -> None:
        """Listen; the first time with port 0 this chooses the port that later starts use."""
        if self._runner is not None:
            return
        self.closing = False
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(
            app, shutdown_timeout=_CLOSE_SECONDS, handler_cancellation=True, access_log=None
        )
        await runner.setup()
        site = web.TCPSite(
            runner,
            self._host,
            self.port,
            ssl_context=self._context,
            backlog=_BACKLOG,
            reuse_address=True,
        )
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            raise OSError(
                error.errno,
                f"cannot listen on {self._host}:{self.port}: {error.strerror or error}; stop the"
                " process that uses the port, or choose another port (0 takes any free one)",
            ) from error
        self._runner = runner
        self.port = int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Close the port and every connection, running requests and watches included."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        self.closing = True
        self._on_stop()
        await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        warnings: list[str] = []
        try:
            reply = await self._answer(request, warnings)
        except errors.ApiError as error:
            reply = status_reply(error.status)
        except errors.NoSuchPathError:
            reply = Reply(404, b"404 page not found\n", "text/plain; charset=utf-8")
        except web.HTTPRequestEntityTooLarge:
            why = f"Request entity too large: limit is {BODY_LIMIT}"
            reply = status_reply(errors.failure(413, "RequestEntityTooLarge", why))
        except TimeoutError:
            why = "the request did not end in time"
            reply = status_reply(errors.failure(504, "Timeout", why, kind=""))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:  # noqa: BLE001  a bug is answered 500; the server goes on
            _log.exception("request failed: %s %s", request.method, request.raw_path)
            reply = status_reply(errors.internal("the server failed; see its log").status)
        if isinstance(reply, Stream):
            return await self._stream(request, reply)
        if isinstance(reply, Session):
            socket = web.WebSocketResponse(protocols=_CHANNELS)
            if socket.can_prepare(request):
                await socket.prepare(request)
                await reply.talk(socket)
                await socket.close()
                return socket
        response = web.Response(status=reply.code, body=reply.body, headers=reply.headers)
        response.headers["Content-Type"] = reply.content_type
        if reply.retry_after:
            response.headers["Retry-After"] = str(reply.retry_after)
        for warning in warnings:
            response.headers.add("Warning", _warning(warning))
        return response

    async def _answer(self, request: web.Request, warnings: list[str]) -> Reply | Stream:
        transport = request.transport
        async with asyncio.timeout(REQUEST_SECONDS):
            return await self._dispatcher.handle(
                parse(request.method, request.raw_path),
                certificate=transport.get_extra_info("peercert") if transport else None,
                headers=request.headers,
                body=await request.read() if request.body_exists else b"",
                address=f"{self._host}:{self.port}",
                warnings=warnings,
            )

    async def _stream(self, request: web.Request, reply: Stream) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": reply.content_type})
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            async for chunk in reply.chunks:
                async with asyncio.timeout(_WRITE_SECONDS):
                    await response.write(chunk)
            await response.write_eof()
        except (ConnectionError, TimeoutError):
            # The reader is gone or does not read: closing is all that is left to say.
            if request.transport is not None:
                request.transport.abort()
        return response


def _warning(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'299 - "{quoted}"'
