"""The process around the manager: its clients, its health checks and its endpoints."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from hyperjob_certs.metrics import protection
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import AUTO, Options
from hyperjob_core.kube.client import Kube
from hyperjob_core.telemetry.endpoints import serve
from hyperjob_core.telemetry.health import Checks
from hyperjob_core.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

USER_AGENT: Final = "hyperjob-controller/1"


@asynccontextmanager
async def _progress_client(options: Options, own: Kube) -> AsyncIterator[Kube | None]:
    """Yield the client that reads logs; its requests have metrics of their own."""
    if not options.progress:
        yield None
    elif options.progress_kubeconfig is None:
        yield own
    else:
        kubeconfig = options.progress_kubeconfig
        async with Kube.connect(kubeconfig=kubeconfig, user_agent=USER_AGENT) as kube:
            yield kube


async def run(options: Options) -> None:
    """Run the controller with its endpoints until cancelled."""
    metrics = Metrics()
    async with (
        Kube.connect(
            kubeconfig=options.kubeconfig,
            user_agent=USER_AGENT,
            metrics=metrics,
        ) as kube,
        _progress_client(options, kube) as progress,
        protection(options.metrics_cert_dir, user_agent=USER_AGENT) as protected,
    ):
        manager = Manager(kube, options, metrics=metrics, progress=progress)
        readyz = Checks("readyz")
        readyz.add("caches", manager.ready)
        async with serve(
            healthz=Checks("healthz"),
            readyz=readyz,
            registry=metrics.registry,
            health_address=options.health_probe_bind_address,
            metrics_address=options.metrics_bind_address,
            debug=manager.debug_routes,
            debug_address=options.debug_bind_address,
            protection=protected,
        ) as addresses:
            log.info(
                "Controller started",
                extra={
                    "server": kube.host,
                    "queueAdmission": str(options.queue_admission or AUTO),
                    "health": addresses.health,
                    "metrics": addresses.metrics,
                    "debug": addresses.debug,
                },
            )
            await manager.run()
