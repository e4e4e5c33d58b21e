"""The endpoints of a process: /healthz, /livez, /readyz and /metrics, and their named checks."""

import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType

from aiohttp import web
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from hyperjob_core.registry import REGISTRY
from hyperjob_core.serving.addresses import parse_address
from hyperjob_core.serving.listener import in_line, listening

Check = Callable[[], str | None]
"""Returns None or a Remark if the check passes, else the reason."""


class Remark(str):
    """A remark of a check that passes."""

    __slots__ = ()


class Checks:
    """The checks of one path; `ping`, which passes while the process answers, is the first."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._checks: dict[str, Check] = {"ping": lambda: None}

    def add(self, name: str, check: Check) -> None:
        """Add a check; raises ValueError for a duplicate name."""
        if name in self._checks:
            raise ValueError(f"duplicate check {name!r}")
        self._checks[name] = check

    def report(self, *, verbose: bool) -> tuple[bool, str]:
        """Run all checks; return whether each passes, and `ok` or a line for each."""
        results = {name: _run(check) for name, check in self._checks.items()}
        passed = all(map(_has_passed, results.values()))
        if passed and not verbose:
            return passed, "ok"
        lines = [_line(name, reason) for name, reason in results.items()]
        lines.append(f"{self.name} check {'passed' if passed else 'failed'}\n")
        return passed, "\n".join(lines)


def _has_passed(reason: str | None) -> bool:
    return reason is None or isinstance(reason, Remark)


def _line(name: str, reason: str | None) -> str:
    if not _has_passed(reason):
        return f"[-]{name} failed: {reason}"
    return f"[+]{name} ok" if reason is None else f"[+]{name} ok: {reason}"


def _run(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a broken check is a failed one
        return f"{type(error).__name__}: {error}"


_CONNECTIONS = 128
"""Maximum number of connections, of which the kubelet and Prometheus need one each."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Admit = Callable[[web.Request], Awaitable[None]]
"""Raises the HTTP error of a client that may not read the path."""


@dataclass(frozen=True, slots=True)
class Protection:
    """The HTTPS of /metrics, and the check of each request."""

    tls: ssl.SSLContext
    admit: Admit


@dataclass(frozen=True, slots=True)
class Addresses:
    """The bound addresses, `host:port`; None for a disabled endpoint."""

    health: str | None
    metrics: str | None
    debug: str | None = None


class ListenError(OSError):
    """Listening on an address failed; the text names the address and its flag."""

    def __init__(self, where: str, error: OSError, *, flag: str) -> None:
        # asyncio's own text repeats the address
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        super().__init__(f"cannot listen on {where}: {reason}; choose another address with {flag}")


@asynccontextmanager
async def serve(
    *,
    healthz: Checks,
    readyz: Checks,
    health_address: str,
    metrics_address: str,
    debug: Mapping[str, Handler] = MappingProxyType({}),
    debug_address: str = "0",
    protection: Protection | None = None,
    computed: Sequence[Collector] = (),
) -> AsyncIterator[Addresses]:
    """Serve for the length of the block; equal addresses share a listener. Raises ListenError.

    `debug` has the handlers of the debug paths, which show objects. With `protection` the address
    of /metrics must be its own: ValueError. It shows the metrics of `computed` too.
    """
    if protection is not None and metrics_address in (health_address, debug_address):
        raise ValueError("--metrics-cert-dir needs an address of its own: --metrics-bind-address")
    routes: dict[str, dict[str, Handler]] = {}
    routes.setdefault(health_address, {}).update(health_routes(healthz, readyz))
    routes.setdefault(metrics_address, {}).update(metrics_routes(protection))
    routes.setdefault(debug_address, {}).update(debug)
    flags = {
        debug_address: "--debug-bind-address",
        metrics_address: "--metrics-bind-address",
        health_address: "--health-probe-bind-address",
    }
    async with AsyncExitStack() as stack:
        for collector in computed:
            REGISTRY.register(collector)
            stack.callback(REGISTRY.unregister, collector)
        found = {
            address: await stack.enter_async_context(
                _listen(
                    _app(handlers),
                    address,
                    flag=flags[address],
                    tls=protection.tls if protection and address == metrics_address else None,
                )
            )
            for address, handlers in routes.items()
        }
        yield Addresses(found[health_address], found[metrics_address], found[debug_address])


def health_routes(healthz: Checks, readyz: Checks) -> dict[str, Handler]:
    """Return the handlers of the health paths, for the application of another server."""
    routes: dict[str, Handler] = {}
    for path, checks in (("/healthz", healthz), ("/livez", healthz), ("/readyz", readyz)):
        routes[path] = _health(checks)
    return routes


def metrics_routes(protection: Protection | None = None) -> dict[str, Handler]:
    """Return the handler of /metrics."""

    async def handler(request: web.Request) -> web.StreamResponse:
        if protection is not None:
            await protection.admit(request)
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        response = web.Response(body=encode(REGISTRY), headers={"Content-Type": content_type})
        response.enable_compression()
        return response

    return {"/metrics": handler}


def _health(checks: Checks) -> Handler:
    """Return the handler of checks, with a line for each if the request has `?verbose`."""

    async def handler(request: web.Request) -> web.StreamResponse:
        passed, text = checks.report(verbose="verbose" in request.query)
        return web.Response(
            text=text,
            status=200 if passed else 500,
            headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"},
        )

    return handler


def _app(routes: dict[str, Handler]) -> web.Application:
    app = web.Application(client_max_size=1024, middlewares=[in_line])
    for path, handler in routes.items():
        app.router.add_get(path, handler)
    return app


@asynccontextmanager
async def _listen(
    app: web.Application, address: str, *, flag: str, tls: ssl.SSLContext | None
) -> AsyncIterator[str | None]:
    """Serve an application at an address; yield the bound one, None for 0. Raises ListenError."""
    place = parse_address(address)
    if place is None:
        yield None
        return
    host, port = place[0] or "", place[1]
    async with AsyncExitStack() as stack:
        opening = listening(app, host, port, tls=tls, connections=_CONNECTIONS)
        try:
            host, port = await stack.enter_async_context(opening)
        except OSError as error:
            raise ListenError(address, error, flag=flag) from None
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
