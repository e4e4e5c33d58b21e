"""Calls to webhooks over HTTPS, with their own certificate authorities and one pool of connections.

Knows nothing of admission: bytes out, a JSON document or CallError in. The time of every call is
bounded.
"""

import asyncio
import os
import ssl
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import aiohttp
import orjson

from hyperjob.api.field import go_quote
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.admission.hooks import Hook
from hyperjob_sandbox.apiserver.jsonvalue import Json

ServiceResolver = Callable[[str, str, int], tuple[str, int]]

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
    404: "the server could not find the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
}


class CallError(Exception):
    """A call that gave no document; the text says why in the API server's words."""


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
        """Send a review and return the decoded answer; raise CallError."""
        query = f"?timeout={hook.timeout_seconds}s"
        shown, url, server_name = self._address(hook.client, query)
        try:
            async with asyncio.timeout(hook.timeout_seconds):
                try:
                    status, data = await self._send(hook, url, server_name, body)
                except (aiohttp.ServerDisconnectedError, ConnectionResetError):
                    # An idle connection that the webhook closed is no answer.
                    status, data = await self._send(hook, url, server_name, body)
        except TimeoutError as error:
            raise CallError(f'Post "{shown}": context deadline exceeded') from error
        except (aiohttp.ClientError, OSError) as error:
            raise CallError(f'Post "{shown}": {_network_text(error)}') from error
        try:
            found = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            if status >= 300:
                raise CallError(_status_text(status, data.decode(errors="replace"))) from error
            text = f"couldn't get version/kind; json parse error: {error} ({data[:256]!r})"
            raise CallError(text) from error
        if status >= 300:
            said = found.get("message") if isinstance(found, dict) else None
            raise CallError(str(said) if said else _status_text(status, "unknown"))
        return found

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

    def _address(self, client: Object, query: str) -> tuple[str, str, str | None]:
        """Return the URL as it is shown, as it is called, and the name that the certificate has."""
        service = client.get("service")
        if service is None:
            return f"{client['url']}{query}", f"{client['url']}{query}", None
        name, port = f"{service['name']}.{service['namespace']}.svc", service.get("port") or 443
        path = f"/{(service.get('path') or '').removeprefix('/')}{query}"
        shown = f"https://{name}:{port}{path}"
        try:
            host, behind = self._resolve_service(service["namespace"], service["name"], port)
        except LookupError as error:
            raise CallError(f'Post "{shown}": {error.args[0]}') from error
        return shown, f"https://{host}:{behind}{path}", name


def _network_text(error: Exception) -> str:
    """Say what went wrong on the network in Go's words, as far as Python knows."""
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=cause):
            code = getattr(cause, "verify_code", 0)
            text = _CERTIFICATE_PROBLEMS.get(code, "x509: certificate signed by unknown authority")
            return f"tls: failed to verify certificate: {text}"
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {error.host}: no such host"
        case aiohttp.ClientConnectorError():
            where = f"dial tcp {error.host}:{error.port}"
            return f"{where}: connect: {_os_text(error.os_error)}"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
        case OSError():
            return _os_text(error)
    return str(error)


def _os_text(error: OSError) -> str:
    # asyncio puts a text of its own in place of the system's.
    return os.strerror(error.errno).lower() if error.errno else str(error)


def _status_text(status: int, said: str) -> str:
    """Say what an HTTP error without a Status means."""
    if text := _STATUS_TEXTS.get(status):
        return text
    shown = go_quote(said.strip())
    return f"an error on the server ({shown}) has prevented the request from succeeding"
