"""The manager: it builds and runs client, caches, leader election, workers and endpoints.

Every task that the manager starts ends before `run` returns.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import hyperjob_core
from hyperjob_certs.metrics import protection
from hyperjob_controller.admission.engine import MESSAGES_PER_SECOND, Admission
from hyperjob_controller.admission.mode import Mode
from hyperjob_controller.apply.applier import Applier
from hyperjob_controller.caches.informers import Caches
from hyperjob_controller.causes.reader import CauseReader
from hyperjob_controller.events import Events
from hyperjob_controller.insight.accelerators import accelerator_samples
from hyperjob_controller.insight.debug import debug_routes
from hyperjob_controller.insight.measures import Meter
from hyperjob_controller.insight.timeuse import TimeUses
from hyperjob_controller.memory.capacity import Capacity
from hyperjob_controller.memory.memory import Memory
from hyperjob_controller.memory.priorities import Priorities
from hyperjob_controller.memory.refusals import Refusals
from hyperjob_controller.memory.reservations import Reservations
from hyperjob_controller.memory.tombstones import Tombstones
from hyperjob_controller.memory.unplaced import Unplaced
from hyperjob_controller.observe import Limits, Observer
from hyperjob_controller.options import AUTO, Options, annotations_of
from hyperjob_controller.reconciler import Reconciler
from hyperjob_controller.splitting.client import Splitter
from hyperjob_controller.training.reader import Reader
from hyperjob_controller.tuning import LOGS_PER_SECOND, SPLITTER_SECONDS, Tuning
from hyperjob_controller.update import Updater
from hyperjob_controller.wake.handlers import Handlers
from hyperjob_controller.wake.ratelimit import PassRateLimit, Reconcile
from hyperjob_controller.wake.workers import CONTROLLER, run_workers
from hyperjob_controller.write import StatusWriter
from hyperjob_core.api.names import CONTROLLER_VERSION, LEASE_NAME
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.events import EventRecorder
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.leaderelection import LeaderElector
from hyperjob_core.kube.ratelimit import DefaultLimiter
from hyperjob_core.kube.resources import LEASES, NAMESPACES, key_of
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_core.tasks import cancel
from hyperjob_core.telemetry.endpoints import serve
from hyperjob_core.telemetry.health import Checks
from hyperjob_core.telemetry.metrics import Metrics
from hyperjob_core.telemetry.training import TrainingMetrics, show_accelerators, show_time_use
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.plan import CAUSE_RECHECK
from hyperjob_engine.queueing.state import Settings

log = logging.getLogger(__name__)

USER_AGENT: Final = "hyperjob-controller/1"
_REPORT_SECONDS: Final = 10.0
_LONGEST_BACKOFF: Final = 60.0
_SWEEP: Final = 100
_RETRIES_PER_SECOND: Final = 100.0
_PLACES_EVERY: Final = timedelta(seconds=30)
_IN_FLIGHT: Final = 200  # sub-jobs: a pass subtracts the reservations of all of them


def utc_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


def _splitter(
    options: Options, *, answered: Callable[[str], None], now: Callable[[], datetime]
) -> Splitter | None:
    """Return the client of the external splitter; None without `--splitter-url`."""
    if options.splitter_url is None:
        return None
    return Splitter(
        options.splitter_url,
        time_limit=SPLITTER_SECONDS,
        answered=answered,
        now=now,
        token_file=_path(options.splitter_token_file),
        ca_file=_path(options.splitter_ca_file),
    )


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)


class Manager:
    """One controller process against one API server."""

    def __init__(
        self,
        kube: Kube,
        options: Options,
        *,
        metrics: Metrics | None = None,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = time.monotonic,
        progress: Kube | None = None,
        messages_per_second: float = MESSAGES_PER_SECOND,
        tuning: Tuning | None = None,
        through: Callable[[Reconcile], Reconcile] = lambda reconcile: reconcile,
    ) -> None:
        """`now` returns the time of day, `clock` the seconds for measuring passes.

        `progress` is the client for the logs of trainings; None: the controller reads no logs.
        `messages_per_second` bounds the refreshed messages of waiting HyperJobs, and `tuning`
        has what only tests change. `through` wraps the pass of a HyperJob.
        """
        self.options = options
        tuning = tuning or Tuning()
        self._lease_namespace = tuning.lease_namespace
        self.metrics = metrics or Metrics()
        self.identity = f"{socket.gethostname()}_{os.getpid()}_{id(self):x}"
        self.working = asyncio.Event()
        self._begun = asyncio.Event()
        self.caches = Caches(
            kube,
            namespace=options.namespace,
            metrics=self.metrics,
            webhooks=options.queue_admission is None,
        )
        self._changed = asyncio.Event()
        self.mode = Mode(
            options.queue_admission, self.caches.mutating_webhooks, changed=self._mode_changed
        )
        self.queue: WorkQueue[str] = WorkQueue(
            CONTROLLER,
            limiter=DefaultLimiter(cap=_LONGEST_BACKOFF, qps=_RETRIES_PER_SECOND),
            metrics=self.metrics,
        )
        self._kube = kube
        self._recorder = EventRecorder(
            kube, "hyperjob-controller", instance=self.identity, metrics=self.metrics
        )
        reservations = Reservations(
            hyperjob=self.caches.hyperjob,
            job=self.caches.job,
            policy=self.caches.policy,
            binding=self.caches.binding_of,
            lag=options.lag,
        )
        capacity = Capacity(
            self.caches.clusters, reservations, candidacy=options.candidacy, now=now
        )
        self.admission = Admission(
            self.caches,
            self.queue,
            Settings(
                most_in_flight=_IN_FLIGHT,
                lag=options.lag,
                counts=reservations.counts,
                names_others=options.tenant_messages == "names",
                # A search for stale messages is useless before the last ones are written.
                places_every=max(_PLACES_EVERY, timedelta(seconds=10 / messages_per_second)),
            ),
            capacity,
            mode=lambda: self.mode.current,
            now=now,
            messages_per_second=messages_per_second,
        )
        self.memory = Memory(
            reservations=reservations,
            capacity=capacity,
            admission=self.admission,
            unplaced=Unplaced(self.queue.add_after),
            refusals=Refusals(),
            tombstones=Tombstones(self.caches.jobs, now=now),
            priorities=Priorities(self.caches.priority_classes),
        )
        self._splitter = _splitter(options, answered=self.queue.add, now=now)
        self._causes = None
        if tuning.failure_causes:
            # The ServiceAccount that may read logs may also read failed pods.
            self._causes = CauseReader(
                progress or kube, answered=self.queue.add, now=now, time_limit=CAUSE_RECHECK
            )
        training_metrics = TrainingMetrics(self.metrics.families)
        self.reader = (
            None
            if progress is None
            else Reader(
                progress,
                qps=LOGS_PER_SECOND,
                interval=options.progress_interval,
                now=now,
                wake=self.queue.add_after,
                counts=training_metrics,
            )
        )
        observer = Observer(
            self.caches,
            self.memory,
            limits=Limits(
                cluster_lost=options.lost_after,
                gang=timedelta(seconds=options.gang_timeout),
                silence=tuning.silence,
                start=timedelta(seconds=options.start_timeout),
            ),
            admission=lambda: self.mode.current,
            now=now,
            splitter=self._splitter,
            cause_reader=self._causes,
            trainings=(lambda _key: {}) if self.reader is None else self.reader.trainings,
        )
        self.observer = observer
        self.updater = Updater(observer, self.memory)
        meter = Meter(training_metrics)
        self._background = [
            task for task in (self._splitter, self._causes, self.reader) if task is not None
        ]
        reconciler = Reconciler(
            self.caches,
            self.memory,
            updater=self.updater,
            observer=observer,
            applier=Applier(kube, self.caches, in_flight=tuning.writes),
            writer=StatusWriter(
                kube,
                self.caches,
                self.memory,
                meter,
                progress_seconds=options.progress_interval,
            ),
            events=Events(self.caches, self._recorder),
            meter=meter,
            background=self._background,
        )
        self._rate_limit = PassRateLimit(through(reconciler.reconcile), clock=clock)
        self.caches.hyperjobs.add_handler(meter.seen)
        time_uses = TimeUses()
        self.caches.hyperjobs.add_handler(time_uses.seen)
        show_time_use(
            self.metrics.families,
            {
                "hyperjob_time_seconds": lambda: time_uses.seconds(now()),
                "hyperjob_goodput_ratio": lambda: time_uses.ratios(now()),
                "hyperjob_training_reporting": time_uses.reporting,
            },
        )
        self._handlers = Handlers(
            self.caches,
            self.queue,
            self.memory,
            settle=self._rate_limit.settle_seconds,
            now=now,
        )
        self.debug_routes = debug_routes(observer, self.memory, self.queue, now=now)
        self.metrics.families.computed(
            "hyperjob_queue_admission",
            "The present queue admission has the value 1",
            "mode",
            samples=lambda: [((str(self.mode.current),), 1.0)],
        )
        show_accelerators(
            self.metrics.families,
            accelerator_samples(
                lambda: capacity.clusters(now=now()), lambda: reservations.reserved(now=now())
            ),
        )

    async def run(self) -> None:
        """Run until cancelled; the workers start after the sync of every cache."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(informer.run()) for informer in self.caches.all]
            tasks.append(group.create_task(self._recorder.run()))
            tasks.append(group.create_task(self._begin()))
            if self._splitter is not None:
                tasks.append(group.create_task(self._splitter.run()))
            if self._causes is not None:
                tasks.append(group.create_task(self._causes.run()))
            try:
                if self.options.leader_elect:
                    await self._look_for_namespace()
                    await self._elector().run(self._work)
                else:
                    await self._work()
            finally:
                for task in tasks:
                    task.cancel()

    async def _work(self) -> None:
        await self._begun.wait()
        self.working.set()
        try:
            async with asyncio.TaskGroup() as group:
                background = [group.create_task(self._admit())]
                if self.reader is not None:
                    background.append(group.create_task(self.reader.run()))
                await run_workers(
                    self.queue,
                    self._rate_limit.reconcile,
                    workers=self.options.workers,
                    metrics=self.metrics,
                )
                for task in background:
                    task.cancel()
        finally:
            self.working.clear()

    async def _admit(self) -> None:
        """Run the queue engine, and restart it after each change of the mode."""
        log.info(
            "Queue admission", extra={"mode": str(self.mode.current), "because": self.mode.why}
        )
        while True:
            self._changed.clear()
            task = asyncio.ensure_future(self._rounds())
            changed = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait({task, changed}, return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    task.result()
                await changed
            finally:
                await cancel([task, changed])
            self.admission.reset()
            for obj in self.caches.hyperjobs.items():
                self.queue.add(key_of(obj))

    async def _rounds(self) -> None:
        others: tuple[Informer, ...] = ()
        if self.mode.current is QueueAdmission.VOLCANO_GLOBAL:
            others = self.caches.beside_volcano_global
        async with asyncio.TaskGroup() as group:
            for informer in others:
                group.create_task(informer.run())
            await self.admission.run(self.updater.update)

    def _mode_changed(self) -> None:
        """Restart the queue engine and record an Event; running sub-jobs stay as they are."""
        self._changed.set()
        mode = self.mode
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {
                "namespace": self._lease_namespace,
                "name": LEASE_NAME,
            },
        }
        if self.working.is_set():
            self._recorder.event(
                lease,
                "Normal",
                "QueueAdmissionChanged",
                "Follow",
                f"Queue admission is {mode.current} from now on: {mode.why}",
            )

    async def _begin(self) -> None:
        await self._wait_for_caches()
        for number, _ in enumerate(self._handlers.begin(), start=1):
            if number % _SWEEP == 0:
                await asyncio.sleep(0)  # lets the leader election renew the Lease
        self._begun.set()

    async def _wait_for_caches(self) -> None:
        """Wait for the sync of every cache; log regularly which one is missing, and why."""
        while missing := [item for item in self.caches.required if not item.synced.is_set()]:
            waits = [asyncio.ensure_future(item.synced.wait()) for item in missing]
            try:
                await asyncio.wait(
                    waits, timeout=_REPORT_SECONDS, return_when=asyncio.ALL_COMPLETED
                )
            finally:
                for wait in waits:
                    wait.cancel()
            for item in missing:
                if not item.synced.is_set():
                    log.warning(
                        "Waiting for a resource that cannot be listed",
                        extra={
                            "resource": item.resource.group_resource,
                            "error": str(item.last_error or "no answer yet"),
                        },
                    )
        log.info("Caches are complete", extra={"hyperjobs": len(self.caches.hyperjobs)})

    def ready(self) -> str | None:
        """Return why the process is not ready; None if it is. A standby with synced caches is."""
        missing = [
            item.resource.group_resource
            for item in self.caches.required
            if not item.synced.is_set()
        ]
        return f"waiting for {', '.join(missing)}" if missing else None

    async def _look_for_namespace(self) -> None:
        """Log if the namespace of the Lease does not exist: leader election then waits for it."""
        name = self._lease_namespace
        try:
            await self._kube.get(NAMESPACES, name)
        except NotFound:
            log.error(  # noqa: TRY400 - the operator's error
                "The namespace of the Lease does not exist; `hyperjob install` creates it",
                extra={"lease_namespace": name},
            )
        except KubeError as error:
            log.info("Cannot look for the namespace of the Lease", extra={"error": str(error)})

    def _elector(self) -> LeaderElector:
        return LeaderElector(
            self._kube,
            self._lease_namespace,
            LEASE_NAME,
            self.identity,
            metrics=self.metrics,
            overdue=lambda: os._exit(1),
            lease_seconds=self.options.leader_elect_lease_duration,
            renew_seconds=self.options.leader_elect_lease_duration * 2 / 3,
            annotations=lambda: {
                CONTROLLER_VERSION: hyperjob_core.__version__,
                **annotations_of(self.options, admission=self.mode.current),
            },
        )


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
