"""The command `hyperjob-controller`: it reads the options and runs until SIGTERM or SIGINT.

An expected error ends it with a message of one line. Exit codes: 0 stopped, 1 error, 2 wrong usage.
"""

import asyncio
import contextlib
import logging
import signal
import sys
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

import hyperjob_core.kube.metrics  # noqa: F401 - shows the counts of requests and informers
from hyperjob_controller.insight.measures import Renewals
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import AUTO, Options, parse
from hyperjob_controller.watchdog import Place, Watchdog
from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.duration import utc_now
from hyperjob_core.garbage import collect_rarely
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import ConfigError
from hyperjob_core.kube.informer import RestoredError
from hyperjob_core.kube.leaderelection import LeadershipLostError
from hyperjob_core.kube.renewals import RENEWALS
from hyperjob_core.settings import show_gates
from hyperjob_core.telemetry import logs
from hyperjob_core.telemetry.endpoints import Checks, Protection, serve
from hyperjob_engine.resources import add_rows, parse_rows
from hyperjob_trainjobs.follow import TrainJobs

USER_AGENT: Final = "hyperjob-controller/1"
_CONNECTIONS: Final = 4096


@asynccontextmanager
async def _members_client(options: Options) -> AsyncIterator[Kube | None]:
    """Yield the client that reads the members, with connections of its own.

    It has several open watches for each member, which take no connection from other requests.
    """
    if options.members is MemberAccess.OFF:
        yield None
        return
    async with Kube.connect(
        kubeconfig=options.members_kubeconfig or options.kubeconfig,
        user_agent=USER_AGENT,
        connections=_CONNECTIONS,
    ) as kube:
        yield kube


async def run(options: Options) -> None:
    """Run the controller with its endpoints until cancelled."""
    watchdog = Watchdog()
    async with (
        Kube.connect(kubeconfig=options.kubeconfig, user_agent=USER_AGENT) as kube,
        _members_client(options) as members,
        _protection(options) as protected,
    ):
        manager = Manager(kube, options, members=members, watchdog=watchdog)
        if "TrainJobs" in options.feature_gates:
            follow_trainjobs(manager, kube)
        readyz = Checks("readyz")
        readyz.add("caches", manager.ready)
        readyz.add("credentials", manager.refused)
        async with serve(
            healthz=Checks("healthz"),
            readyz=readyz,
            health_address=options.health_probe_bind_address,
            metrics_address=options.metrics_bind_address,
            debug=manager.debug_routes(),
            debug_address=options.debug_bind_address,
            protection=protected,
            computed=(manager.scrape, *_renewals(options)),
        ) as addresses:
            log.info(
                "Controller started",
                extra={
                    "server": kube.host,
                    "queueAdmission": str(options.queue_admission or AUTO),
                    "featureGates": show_gates(options.feature_gates),
                    "health": addresses.health,
                    "metrics": addresses.metrics,
                    "debug": addresses.debug,
                },
            )
            with watchdog.ticking():
                await manager.run()


def follow_trainjobs(
    manager: Manager, kube: Kube, *, look_again: timedelta = timedelta(seconds=30)
) -> None:
    """Let the manager make HyperJobs of TrainJobs while it leads.

    `look_again` is the time between two requests whether TrainJobs can be followed.
    """
    trainjobs = TrainJobs(
        kube,
        manager.caches.hyperjobs,
        manager.recorder,
        namespace=manager.options.namespace,
        now=utc_now,
        look_again=look_again,
        faulty=partial(manager.wall.failed_at, Place.TRAINJOBS),
        in_turn=manager.watchdog.event,
    )
    manager.beside.append((Place.TRAINJOBS, trainjobs.run))


def _renewals(options: Options) -> list[Renewals]:
    """Return the metrics of the record beside the kubeconfig; none without --kubeconfig."""
    return [Renewals(Path(options.kubeconfig).parent / RENEWALS)] if options.kubeconfig else []


@asynccontextmanager
async def _protection(options: Options) -> AsyncIterator[Protection | None]:
    """Yield the protection of /metrics; None without --metrics-cert-dir."""
    if options.metrics_cert_dir is None:
        yield None
        return
    # The import of cryptography takes a large part of the start, and plain metrics need none.
    from hyperjob_certs.metrics import protection

    async with protection(options.metrics_cert_dir, user_agent=USER_AGENT) as protected:
        yield protected


log = logging.getLogger("hyperjob_controller")
_TLS_BUFFER: Final = 2**16
"""The bytes that asyncio allocates for each TLS connection, 256 KiB by default.

A quarter of the controller's memory beside a hundred members; a TLS record has at most 16 KiB.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controller and return the exit code."""
    options = parse(arguments)
    add_rows(parse_rows(options.devices))
    logs.setup(format=options.log_format, level=options.log_level)
    collect_rarely()
    SSLProtocol.max_size = _TLS_BUFFER  # of this process alone: programs import the client too
    try:
        asyncio.run(_until_stopped(options))
    except BaseException as error:
        reasons = [_known(leaf) for leaf in _leaves(error)]
        if not all(reasons):
            raise
        for reason, leaf in zip(reasons, _leaves(error), strict=True):
            log.error(reason, extra={"error": str(leaf)})  # noqa: TRY400 - the operator's error
        return 1
    return 0


async def _until_stopped(options: Options) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    running = asyncio.create_task(run(options))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            log.info("Stopping")
            running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    finally:
        stopping.cancel()


def _known(error: BaseException) -> str:
    """Return the message of an error that the operator can correct; empty for a bug."""
    if isinstance(error, ConfigError):
        return "Cannot reach the API server"
    if isinstance(error, RestoredError):
        return "The API server was put back from a backup; start again"
    if isinstance(error, LeadershipLostError):
        return "Lost the lease; start again"
    return "Cannot start" if isinstance(error, OSError) else ""


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


if __name__ == "__main__":
    sys.exit(main())
