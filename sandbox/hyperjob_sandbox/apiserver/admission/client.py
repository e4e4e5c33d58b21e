"""Calls to webhooks over HTTPS, with their own certificate authorities and one connection pool."""

import asyncio
import os
import ssl
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import aiohttp
import orjson

from hyperjob_core.api.field import go_quote
from hyperjob_sandbox.apiserver.admission.hooks import Hook
from hyperjob_sandbox.apiserver.admission.review import WebhookError
from hyperjob_sandbox.apiserver.jsonvalue import Json

ServiceResolver = Callable[[str, str, int], tuple[str, int]]

_HEADERS: Final = {
    "User-Agent": "kube-apiserver-admission",
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
    "Accept-Encoding": "gzip",
}


@lru_cache(maxsize=256)
def _tls(ca_bundle: bytes) -> ssl.SSLContext:
    """Return the TLS settings of an authority; one object each, so that connections are shared."""
    return ssl.create_default_context(cadata=ca_bundle.decode("ascii") or None)


class WebhookClient:
    """Sends reviews; keeps connections open between calls."""

    def __init__(self, *, resolve_service: ServiceResolver) -> None:
        self._resolve_service = resolve_service
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def post(self, hook: Hook, body: bytes) -> Json:
        """Send a review and return the decoded answer; raise WebhookError."""
        query = f"?timeout={hook.timeout_seconds}s"
        shown = url = f"{hook.client.get('url')}{query}"
        server_name: str | None = None
        if (service := hook.client.get("service")) is not None:
            namespace, name, port = service["namespace"], service["name"], service.get("port", 443)
            path = f"/{(service.get('path') or '').removeprefix('/')}{query}"
            server_name = f"{name}.{namespace}.svc"
            shown = f"https://{server_name}:{port}{path}"
            try:
                host, behind = self._resolve_service(namespace, name, port)
            except LookupError as error:
                raise _failed(f'Post "{shown}": {error.args[0]}') from error
            url = f"https://{host}:{behind}{path}"
        try:
            async with asyncio.timeout(hook.timeout_seconds):
                try:
                    status, data = await self._send(hook, url, server_name, body)
                except (aiohttp.ServerDisconnectedError, ConnectionResetError):
                    # An idle connection that the webhook closed is no answer.
                    status, data = await self._send(hook, url, server_name, body)
        except TimeoutError as error:
            raise _failed(f'Post "{shown}": context deadline exceeded') from error
        except (aiohttp.ClientError, OSError) as error:
            raise _failed(f'Post "{shown}": {_network_text(error)}') from error
        return _decoded(status, data)

    async def _send(
        self, hook: Hook, url: str, server_name: str | None, body: bytes
    ) -> tuple[int, bytes]:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        async with self._session.post(
            url,
            data=body,
            headers=_HEADERS,
            ssl=_tls(hook.ca_bundle),
            server_hostname=server_name,
            allow_redirects=False,
        ) as response:
            return response.status, await response.read()


def _failed(why: str) -> WebhookError:
    return WebhookError(f"failed to call webhook: {why}")


def _decoded(status: int, data: bytes) -> Json:
    """Decode an answer; of an HTTP error return what its Status says, or else its text."""
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if status < 300:
            text = f"couldn't get version/kind; json parse error: {error} ({data[:256]!r})"
            raise _failed(text) from error
        found = {}
    if status < 300:
        return found
    said = go_quote(data.decode(errors="replace").strip())
    message = found.get("message") if isinstance(found, dict) else None
    raise _failed(
        message or f"an error on the server ({said}) has prevented the request from succeeding"
    )


def _network_text(error: Exception) -> str:
    """Say what went wrong on the network as Go does, as far as Python knows."""
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=cause):
            why = getattr(cause, "verify_message", cause)
            return f"tls: failed to verify certificate: x509: {why}"
        case aiohttp.ClientConnectorError(os_error=OSError(errno=int(code))) if code > 0:
            # asyncio puts a text of its own in place of the system's.
            why = os.strerror(code).lower()
            return f"dial tcp {error.host}:{error.port}: connect: {why}"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
    return str(error)
