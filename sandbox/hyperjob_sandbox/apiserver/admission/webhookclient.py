"""Calls to webhooks over HTTPS, with their own certificate authorities and one pool of connections.

Knows nothing of admission: bytes out, a JSON document or CallError in. Time and size of every call
are bounded.
"""

import asyncio
import os
import ssl
from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace
from typing import Final

import aiohttp
import orjson

from hyperjob.api.field import go_quote
from hyperjob_sandbox.apiserver.admission.webhookhooks import Hook
from hyperjob_sandbox.apiserver.jsonvalue import Json

ServiceResolver = Callable[[str, str, int], tuple[str, int]]

MAX_RESPONSE_BYTES: Final = 16 * 2**20
_MAX_CONNECTIONS: Final = 100
_HEADERS: Final = {
    "User-Agent": "kube-apiserver-admission",
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
    "Accept-Encoding": "gzip",
}
_CERTIFICATE_PROBLEMS: Final = {
    10: "x509: certificate has expired or is not yet valid",
    62: "x509: certificate is not valid for this host",
    64: "x509: cannot validate certificate: it doesn't contain the address as an IP SAN",
}
_STATUS_TEXTS: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: (
        "the server was unable to return a response in the time allotted, "
        "but may still be processing the request"
    ),
}


class CallError(Exception):
    """A call that gave no document; the text says why in the API server's words."""


def _no_services(namespace: str, name: str, port: int) -> tuple[str, int]:
    del port
    raise LookupError(f'service "{name}" not found in namespace "{namespace}"')


@lru_cache(maxsize=256)
def _tls(ca_bundle: bytes) -> ssl.SSLContext:
    """Return the TLS settings of an authority; one object each, so that connections are shared."""
    if not ca_bundle:
        return ssl.create_default_context()
    return ssl.create_default_context(cadata=ca_bundle.decode("ascii"))


class WebhookClient:
    """Sends reviews; keeps connections open between calls."""

    def __init__(self, *, resolve_service: ServiceResolver = _no_services) -> None:
        self._resolve_service = resolve_service
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            trace = aiohttp.TraceConfig()
            trace.on_connection_reuseconn.append(_note_reuse)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_MAX_CONNECTIONS),
                trace_configs=[trace],
                auto_decompress=True,
            )
        return self._session

    async def post(self, hook: Hook, body: bytes) -> Json:
        """Send a review and return the decoded answer; raise CallError."""
        shown, url, server_name = self._address(hook)
        query = f"?timeout={hook.timeout_seconds}s"
        try:
            async with asyncio.timeout(hook.timeout_seconds):
                status, kind, data = await self._send(hook, url + query, server_name, body)
        except TimeoutError as error:
            raise CallError(f'Post "{shown}{query}": context deadline exceeded') from error
        except (aiohttp.ClientError, ssl.SSLError, OSError, ValueError) as error:
            raise CallError(f'Post "{shown}{query}": {_network_text(error)}') from error
        if not 200 <= status <= 206:
            raise CallError(_status_text(status, kind, data))
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError as error:
            shown_body = data[:256].decode(errors="replace")
            raise CallError(
                f"couldn't get version/kind; json parse error: {error} ({shown_body})"
            ) from error

    async def _send(
        self, hook: Hook, url: str, server_name: str | None, body: bytes
    ) -> tuple[int, str, bytes]:
        for attempt in (1, 2):
            reuse = SimpleNamespace(reused=False)
            try:
                return await self._once(hook, url, server_name, body, reuse)
            except (aiohttp.ServerDisconnectedError, ConnectionResetError):
                # An idle connection that the webhook closed is no answer: ask again on a new one.
                if attempt == 2 or not reuse.reused:
                    raise
        raise AssertionError

    async def _once(
        self,
        hook: Hook,
        url: str,
        server_name: str | None,
        body: bytes,
        reuse: SimpleNamespace,
    ) -> tuple[int, str, bytes]:
        async with self._open().post(
            url,
            data=body,
            headers=_HEADERS,
            ssl=_tls(hook.ca_bundle),
            server_hostname=server_name,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=hook.timeout_seconds),
            trace_request_ctx=reuse,
        ) as response:
            data = bytearray()
            async for chunk in response.content.iter_chunked(2**16):
                data += chunk
                if len(data) > MAX_RESPONSE_BYTES:
                    raise ValueError(f"response is larger than {MAX_RESPONSE_BYTES} bytes")
            return response.status, response.content_type, bytes(data)

    def _address(self, hook: Hook) -> tuple[str, str, str | None]:
        """Return the URL as it is shown, as it is called, and the name that the certificate has."""
        service = hook.service
        if service is None:
            if not hook.url:
                raise CallError("webhook configuration must have either service or URL")
            return hook.url, hook.url, None
        name = f"{service.name}.{service.namespace}.svc"
        path = service.path if service.path.startswith("/") else f"/{service.path}"
        shown = f"https://{name}:{service.port}{path}"
        try:
            host, port = self._resolve_service(service.namespace, service.name, service.port)
        except LookupError as error:
            query = f"?timeout={hook.timeout_seconds}s"
            raise CallError(f'Post "{shown}{query}": {error.args[0]}') from error
        return shown, f"https://{host}:{port}{path}", name


async def _note_reuse(
    session: aiohttp.ClientSession,
    context: SimpleNamespace,
    params: aiohttp.TraceConnectionReuseconnParams,
) -> None:
    del session, params
    if isinstance(context.trace_request_ctx, SimpleNamespace):
        context.trace_request_ctx.reused = True


def _network_text(error: Exception) -> str:
    """Say what went wrong on the network in Go's words, as far as Python knows."""
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=cause):
            return _certificate_text(cause)
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {error.host}: no such host"
        case aiohttp.ClientConnectorSSLError():
            return f"tls: {error.os_error.strerror or error.os_error}"
        case aiohttp.ClientConnectorError():
            where = f"dial tcp {error.host}:{error.port}"
            return f"{where}: connect: {_os_text(error.os_error)}"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
        case aiohttp.InvalidURL():
            return f"parse {go_quote(str(error.url))}: invalid URL"
        case ssl.SSLCertVerificationError():
            return _certificate_text(error)
        case ConnectionResetError():
            return "read: connection reset by peer"
        case OSError():
            return _os_text(error)
    return str(error)


def _certificate_text(cause: Exception) -> str:
    code = getattr(cause, "verify_code", 0)
    text = _CERTIFICATE_PROBLEMS.get(code, "x509: certificate signed by unknown authority")
    return f"tls: failed to verify certificate: {text}"


def _os_text(error: OSError) -> str:
    # asyncio puts a text of its own in place of the system's.
    return os.strerror(error.errno).lower() if error.errno else str(error)


def _status_text(status: int, kind: str, data: bytes) -> str:
    """Say what an HTTP error means; a Status in the body speaks for itself."""
    text = data.decode(errors="replace").strip() if kind.startswith("text/") else "unknown"
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        found = None
    if isinstance(found, dict) and found.get("kind") == "Status" and found.get("message"):
        return str(found["message"])
    if status == 403:
        return text
    if status in _STATUS_TEXTS:
        return _STATUS_TEXTS[status]
    if status >= 500:
        return (
            f"an error on the server ({go_quote(text)}) has prevented the request from succeeding"
        )
    return f"the server responded with the status code {status} but did not return more information"
