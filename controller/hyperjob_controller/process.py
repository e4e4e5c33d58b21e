"""The process around the manager: its clients, its health checks and its endpoints."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

import hyperjob_core.kube.metrics  # noqa: F401 - shows the counts of requests and informers
from hyperjob_controller.insight.renewals import Renewals
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import AUTO, Options
from hyperjob_controller.place import Place
from hyperjob_controller.watchdog import Watchdog
from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.duration import utc_now
from hyperjob_core.features import show_gates
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.renewals import RENEWALS
from hyperjob_core.telemetry.endpoints import Protection, serve
from hyperjob_core.telemetry.health import Checks
from hyperjob_trainjobs.follow import TrainJobs

log = logging.getLogger(__name__)

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
