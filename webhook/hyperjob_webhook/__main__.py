"""The command `hyperjob-webhook`: it builds the webhook from its options and serves it.

It connects to the API server only with `--kubeconfig`; a review never waits for that connection,
except for the bounded look-up in `hyperjob_webhook.surroundings`.
"""

import asyncio
import gc
import logging
import signal
import ssl
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from prometheus_client import Gauge

from hyperjob_certs.source import FileSource
from hyperjob_certs.x509 import InvalidPair
from hyperjob_core.garbage import collect_rarely
from hyperjob_core.registry import REGISTRY
from hyperjob_core.tasks import cancel
from hyperjob_core.telemetry import logs
from hyperjob_core.telemetry.endpoints import (
    Addresses,
    Checks,
    ListenError,
    Protection,
    Remark,
    serve,
)
from hyperjob_rules.validation.context import NOTHING_KNOWN, Context
from hyperjob_rules.validation.create import validate_create
from hyperjob_webhook.options import Options, parse
from hyperjob_webhook.server import Limits, RequestLog, WebhookServer

if TYPE_CHECKING:
    from hyperjob_webhook.surroundings import Surroundings

LIMITS: Final = Limits()
_USER_AGENT: Final = "hyperjob-webhook/1"
_EXPIRY: Final = Gauge(
    "hyperjob_certificate_expiry_timestamp_seconds",
    "Expiry of the serving certificate, in seconds since 1970",
    registry=REGISTRY,
)
_log: Final = logging.getLogger("hyperjob_webhook")


class CannotStart(Exception):  # noqa: N818 - the end of the process, in one line
    """Why the webhook cannot start, with the next step."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return 0 after a drain, 1 if the webhook could not start."""
    options = parse(arguments)
    logs.setup(format=options.log_format, level=options.log_level)
    try:
        asyncio.run(_run(options))
    except CannotStart as problem:
        sys.stderr.write(f"error: {problem}\n")
        return 1
    return 0


async def _run(options: Options) -> None:
    async with AsyncExitStack() as stack:
        known = known_from(options)
        around = await _look_around(stack, options, known)
        await _serve(options, around, known)


def known_from(options: Options) -> Context:
    """Return what reviews know without other objects: who may open gates, the longest grace."""
    users = frozenset(filter(None, map(str.strip, options.controller_users.split(","))))
    known = replace(NOTHING_KNOWN, controllers=users, max_grace_seconds=options.max_grace_period)
    return NOTHING_KNOWN if known == NOTHING_KNOWN else known


async def _look_around(
    stack: AsyncExitStack, options: Options, known: Context
) -> "Surroundings | None":
    """Watch the objects that warnings are about; return None without `--kubeconfig`."""
    if options.kubeconfig is None:
        return None
    # A Kubernetes client costs half a second and much memory: import it only if it is used.
    from hyperjob_core.kube.errors import ConfigError
    from hyperjob_webhook.surroundings import watched

    try:
        return await stack.enter_async_context(watched(options.kubeconfig, known))
    except ConfigError as problem:
        raise CannotStart(str(problem)) from None


async def _serve(options: Options, around: "Surroundings | None", known: Context) -> None:
    """Serve reviews until a signal, then drain. Raises CannotStart for a file or port.

    The certificate is loaded before the listener opens: no client meets a server without one.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    source = _load(options)
    _EXPIRY.set_function(lambda: source.facts.not_after.timestamp())  # noqa: PLW0108 - renewed
    requests = RequestLog()
    server = WebhookServer(
        reporter=requests,
        limits=LIMITS,
        context=around.context if around else lambda: known,
        missing=around.missing if around else None,
        judge=around.judge if around else None,
    )
    readyz = Checks("readyz")
    readyz.add("certificate", lambda: _certificate(source))
    if around is not None:
        readyz.add("credentials", around.refused)
    readyz.add("shutdown", lambda: "the webhook is shutting down" if server.draining else None)
    validate_create({"spec": {}})  # builds cached values, above all the compiled schema
    port = await _listen(server, options, source.server_context())
    following = asyncio.create_task(source.run(), name="certificate")
    try:
        async with AsyncExitStack() as stack:
            addresses = await _serve_endpoints(stack, options, readyz, requests)
            # The objects made at start-up live as long as the process: the collector skips them.
            gc.collect()
            gc.freeze()
            collect_rarely()
            _log.info(
                "serving",
                extra={
                    "address": f"{options.bind_address}:{port}",
                    "health": addresses.health,
                    "metrics": addresses.metrics,
                    "notAfter": source.facts.not_after.isoformat(),
                },
            )
            await stop.wait()
            await _drain(server, options)
            _log.info("stopped")
    finally:
        await cancel([following])
        await server.stop(grace=0)


async def _serve_endpoints(
    stack: AsyncExitStack, options: Options, readyz: Checks, requests: RequestLog
) -> Addresses:
    protected = await _protection(stack, options)
    try:
        return await stack.enter_async_context(
            serve(
                healthz=Checks("healthz"),
                readyz=readyz,
                health_address=options.health_probe_bind_address,
                metrics_address=options.metrics_address,
                protection=protected,
                computed=(requests,),
            )
        )
    except ListenError as problem:
        raise CannotStart(str(problem)) from None


async def _protection(stack: AsyncExitStack, options: Options) -> Protection | None:
    if options.metrics_cert_dir is None:
        return None
    # As in `_look_around`.
    from hyperjob_certs.metrics import ProtectionError, protection

    try:
        return await stack.enter_async_context(
            protection(options.metrics_cert_dir, user_agent=_USER_AGENT)
        )
    except ProtectionError as problem:
        raise CannotStart(str(problem)) from None


async def _drain(server: WebhookServer, options: Options) -> None:
    """Fail readiness, serve on until the endpoints are updated, then finish reviews in flight."""
    _log.info("draining", extra={"delay": options.shutdown_delay})
    server.drain()
    await asyncio.sleep(options.shutdown_delay)
    await server.stop(grace=LIMITS.shutdown_grace_seconds)


def _load(options: Options) -> FileSource:
    """Return the loaded certificate; raises CannotStart with the flags of the files."""
    source = FileSource(
        options.tls_cert_file,
        options.tls_private_key_file,
        client_ca_file=options.client_ca_file,
        minimum_version=options.tls_min_version,
    )
    try:
        source.load()
    except InvalidPair as problem:
        files = "--tls-cert-file and --tls-private-key-file"
        if options.client_ca_file is not None:
            files = "--tls-cert-file, --tls-private-key-file and --client-ca-file"
        hint = f"check {files}, or run `hyperjob-certs issue`"
        raise CannotStart(f"no certificate to serve: {problem}; {hint}") from None
    return source


async def _listen(server: WebhookServer, options: Options, tls: ssl.SSLContext) -> int:
    try:
        return await server.start(host=options.bind_address, port=options.secure_port, tls=tls)
    except OSError as error:
        where = f"{options.bind_address}:{options.secure_port}"
        raise CannotStart(str(ListenError(where, error, flag="--secure-port"))) from None


def _certificate(source: FileSource) -> str | None:
    """Return why the webhook is not ready: only if its served certificate has expired.

    A new but unusable pair of files is a remark in the text.
    """
    if source.expired:
        reason = f"; {source.problem}" if source.problem else ""
        return f"the served certificate expired at {source.facts.not_after.isoformat()}{reason}"
    if source.problem:
        return Remark(f"still serving the old one, because {source.problem}")
    return None


if __name__ == "__main__":
    sys.exit(main())
