"""The manager: it builds and runs client, caches, leader election, workers and endpoints.

Every task that the manager starts ends before `run` returns.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hyperjob_controller.admission.engine import MESSAGES_PER_SECOND, Admission
from hyperjob_controller.admission.recorder import ConsumptionRecorder
from hyperjob_controller.admission.releases import Mode
from hyperjob_controller.apply.applier import Applier
from hyperjob_controller.caches import Caches
from hyperjob_controller.insight.measures import Meter, Scrape
from hyperjob_controller.insight.usage import Usage
from hyperjob_controller.leadership import Leadership
from hyperjob_controller.members.causes import CauseReader
from hyperjob_controller.members.reader import Members
from hyperjob_controller.memory import (
    ClosedQueues,
    Memory,
    Refusals,
    Tombstones,
    Unplaced,
)
from hyperjob_controller.observe import Observer
from hyperjob_controller.options import LOGS_PER_SECOND, SPLITTER_SECONDS, Options, Tuning
from hyperjob_controller.reconciler import Events, Reconciler, StatusWriter
from hyperjob_controller.reservations import Reservations
from hyperjob_controller.training.reader import Reader
from hyperjob_controller.wake.handlers import Guard, Handlers, PassRateLimit, Reconcile
from hyperjob_controller.wall import Wall
from hyperjob_controller.watchdog import LONGEST, Place, Watchdog
from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.duration import utc_now
from hyperjob_core.api.names import lease_name
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.events import EventRecorder
from hyperjob_core.kube.informer import Informer, refused
from hyperjob_core.kube.resources import LEASES, key_of, split_key
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_core.tasks import cancel
from hyperjob_core.workers import CONTROLLER, run_workers
from hyperjob_engine.lifecycle.failures import CAUSE_TIME_LIMIT
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.observed import Limits, QueueAdmission
from hyperjob_queueing.state import Settings

if TYPE_CHECKING:
    from hyperjob_controller.splitting import Splitter
    from hyperjob_core.telemetry.endpoints import Handler

log = logging.getLogger(__name__)

_REPORT_SECONDS: Final = 10.0
_MEMBERS_SECONDS: Final = 10.0
_LONGEST_BACKOFF: Final = 60.0
_SWEEP: Final = 100
_PLACES_EVERY: Final = timedelta(seconds=30)
_IN_FLIGHT: Final = 200  # sub-jobs: a pass subtracts the reservations of all of them


class Manager:
    """One controller process against one API server."""

    def __init__(
        self,
        kube: Kube,
        options: Options,
        *,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = time.monotonic,
        members: Kube | None = None,
        views: Mapping[str, MemberView] | None = None,
        messages_per_second: float = MESSAGES_PER_SECOND,
        tuning: Tuning | None = None,
        through: Callable[[Reconcile], Reconcile] = lambda reconcile: reconcile,
        watchdog: Watchdog | None = None,
    ) -> None:
        """`now` returns the time of day, `clock` the seconds for measuring passes.

        `members` is the client that reads in the members, as far as `options.members` says; None:
        the controller reads nothing there. `views` are members as another process has read them.
        `messages_per_second` bounds the refreshed messages of waiting HyperJobs, and `tuning`
        has what only tests change. `through` wraps the pass of a HyperJob. By default no turn of
        the event loop is timed. `beside` may get, before `run`, what runs while this process leads.
        """
        self.options = options
        self.identity = f"{socket.gethostname()}_{os.getpid()}_{id(self):x}"
        self.working = asyncio.Event()
        self._kube = kube
        self._now = now
        self._tuning = tuning or Tuning()
        self.watchdog = watchdog or Watchdog()
        self._begun = asyncio.Event()
        self._changed = asyncio.Event()
        self.caches = self._make_caches()
        self.mode = Mode(
            options.queue_admission, self.caches.mutating_webhooks, changed=self._mode_changed
        )
        self.queue = self._make_queue()
        self.wall = self._make_wall()
        self.recorder = EventRecorder(kube, "hyperjob-controller", instance=self.identity)
        self.members = self._make_members(members)
        self.memory = self._make_memory(views or {}, messages_per_second=messages_per_second)
        self.usage = self._make_usage()
        self.leadership = self._make_leadership()
        self._splitter = self._make_splitter()
        self._causes: CauseReader | None = None
        if self._tuning.failure_causes:  # the account that may read logs may read failed pods too
            self._causes = self._make_causes(members or kube)
        self.reader = self._make_reader(members)
        background = (self._splitter, self._causes, self.reader, self.members)
        self._background = [task for task in background if task is not None]
        self.observer = self._make_observer()
        meter = Meter()
        self.beside: list[tuple[Place, Callable[[], Awaitable[None]]]] = []
        self._rate_limit = PassRateLimit(self._make_passes(meter, through), clock=clock)
        self.scrape = Scrape(
            lambda now: (
                self.memory.reservations.clusters(now=now),
                self.memory.reservations.reserved(now=now),
            ),
            meter=meter,
            mode=lambda: str(self.mode.current),
            now=now,
            scraped=self.usage.scraped if self.usage is not None else lambda: None,
            queues=lambda: self.admission.state,
        )
        settle = self._rate_limit.settle_seconds
        self.caches.hyperjobs.add_handler(meter.seen)
        self._handlers = Handlers(
            self.caches, self.queue, self.memory, wall=self.wall, settle=settle, now=now
        )

    @property
    def _recorder(self) -> ConsumptionRecorder | None:
        if self.options.half_life is None:
            return None
        usage = lambda: self.admission.state.usage  # noqa: E731 - the state is replaced
        return ConsumptionRecorder(self._kube, self.caches.queues.items, usage)

    @property
    def admission(self) -> Admission:
        """Return the queue engine."""
        return self.memory.admission

    def _make_caches(self) -> Caches:
        return Caches(
            self._kube,
            namespace=self.options.namespace,
            webhooks=self.options.queue_admission is None,
            faulty=lambda *event: self._handlers.faulty(*event),  # noqa: PLW0108 - made later
            in_turn=self.watchdog.event,
        )

    def _make_queue(self) -> WorkQueue[str]:
        return WorkQueue(
            CONTROLLER,
            # No bucket for all: failures in one namespace would delay the retries of the others.
            longest_wait=_LONGEST_BACKOFF,
            namespace=lambda key: split_key(key)[0] or "",
            most=max(1, self.options.workers - 1),
        )

    def _make_wall(self) -> Wall:
        return Wall(
            self.caches.hyperjob,
            now=self._now,
            wake=self.queue.add,
            set_aside=self._set_aside,
            watchdog=self.watchdog,
            distrust=lambda: self.members.distrust() if self.members is not None else None,
        )

    def _make_usage(self) -> Usage | None:
        if self.members is None:
            return None
        caches = self.caches
        return Usage(self.members.held, job=caches.job, hyperjob=caches.hyperjob, now=self._now)

    def _make_leadership(self) -> Leadership:
        return Leadership(
            self._kube,
            self.options,
            self.admission,
            wall=self.wall,
            namespace=self._tuning.lease_namespace,
            identity=self.identity,
            mode=lambda: self.mode.current,
            usage=self.usage,
        )

    def _make_members(self, client: Kube | None) -> Members | None:
        if client is None:
            return None
        return Members(
            client,
            self.caches.clusters,
            nodes=self.options.members.includes(MemberAccess.NODES),
            now=self._now,
            freed=lambda name: self.memory.wake_freed([name], now=self._now()),
            shown=lambda jobs: self._handlers.shown(jobs),  # noqa: PLW0108 - made later
            turned=lambda name: self._handlers.turned(name),  # noqa: PLW0108 - made later
            wake=self.queue.add,
            faulty=partial(self.wall.failed, Place.MEMBERS),
            in_turn=partial(self.watchdog.turn, Place.MEMBERS, most=LONGEST),
        )

    def _make_causes(self, client: Kube) -> CauseReader:
        members = self.members
        return CauseReader(
            client,
            read_logs=self.options.members.includes(MemberAccess.LOGS),
            answered=self.queue.add,
            now=self._now,
            time_limit=CAUSE_TIME_LIMIT,
            faulty=partial(self.wall.failed, Place.CAUSES),
            watched=lambda *job: members.failure(*job) if members else None,
        )

    def _make_reader(self, client: Kube | None) -> Reader | None:
        if client is None or not self.options.members.includes(MemberAccess.LOGS):
            return None
        return Reader(
            client,
            qps=LOGS_PER_SECOND,
            interval=self.options.progress_interval,
            now=self._now,
            wake=self.queue.add_after,
            faulty=partial(self.wall.failed, Place.PROGRESS),
            in_turn=partial(self.watchdog.turn, Place.PROGRESS, most=LONGEST),
        )

    def _make_splitter(self) -> "Splitter | None":
        options = self.options
        if options.splitter_url is None:
            return None
        from hyperjob_controller.splitting import Splitter  # aiohttp: a slow import

        files = options.splitter_token_file, options.splitter_ca_file
        token, ca = (None if each is None else Path(each) for each in files)
        return Splitter(
            options.splitter_url,
            time_limit=SPLITTER_SECONDS,
            answered=self.queue.add,
            now=self._now,
            faulty=partial(self.wall.failed, Place.SPLITTER),
            token_file=token,
            ca_file=ca,
        )

    def _make_memory(
        self, views: Mapping[str, MemberView], *, messages_per_second: float
    ) -> Memory:
        """Make the memory; `views` are the members where this process reads none."""
        now, members = self._now, self.members
        reservations = Reservations(
            hyperjob=self.caches.hyperjob,
            job=self.caches.job,
            policy=self.caches.policy,
            binding=self.caches.binding_of,
            lag=self.options.lag,
            pods_of=lambda *pods: members.counted(*pods) if members else None,
            views=members.views if members is not None else lambda *_: views,
        )
        self.caches.clusters.add_handler(reservations.follow)
        settings = Settings(
            most_in_flight=_IN_FLIGHT,
            lag=self.options.lag,
            half_life=self.options.half_life,
            grows_after=timedelta(seconds=self.options.growth_interval),
            counts=reservations.counts,
            names_others=self.options.tenant_messages == "names",
            # A search for stale messages is useless before the last ones are written.
            places_every=max(_PLACES_EVERY, timedelta(seconds=10 / messages_per_second)),
        )
        admission = Admission(
            self.caches,
            self.queue,
            settings,
            reservations,
            wall=self.wall,
            mode=lambda: self.mode.current,
            now=now,
            messages_per_second=messages_per_second,
            pods_left=lambda *pods: members.pods_of(*pods) if members else None,
        )
        return Memory(
            reservations=reservations,
            admission=admission,
            unplaced=Unplaced(self.queue.add_after),
            refusals=Refusals(now=now),
            tombstones=Tombstones(self.caches.jobs, now=now),
            closed_queues=ClosedQueues(self.caches.queue_bindings, changed=admission.queue_closed),
        )

    def _make_observer(self) -> Observer:
        limits = Limits(
            cluster_lost=self.options.lost_after,
            gang=timedelta(seconds=self.options.gang_timeout),
            silence=self._tuning.silence,
            unschedulable=timedelta(seconds=self.options.unschedulable_timeout),
            start=timedelta(seconds=self.options.start_timeout),
        )
        return Observer(
            self.caches,
            self.memory,
            limits=limits,
            admission=lambda: self.mode.current,
            decides_alone=lambda: self.mode.decides_alone,
            now=self._now,
            splitter=self._splitter,
            cause_reader=self._causes,
            reader=self.reader,
            members=self.members,
        )

    def _make_passes(self, meter: Meter, through: Callable[[Reconcile], Reconcile]) -> Reconcile:
        """Return the pass of a HyperJob behind its guard; `through` wraps the pass alone."""
        caches, seconds = self.caches, self.options.progress_interval
        self._events = Events(caches, self.recorder)
        reconciler = Reconciler(
            caches,
            self.memory,
            observer=self.observer,
            applier=Applier(self._kube, caches, in_flight=self._tuning.writes),
            writer=StatusWriter(self._kube, caches, self.memory, meter, progress_seconds=seconds),
            events=self._events,
            wall=self.wall,
            meter=meter,
            now=self._now,
            background=self._background,
        )
        self.beside.append((Place.MEMBERS, reconciler.sweep))
        guard = Guard(
            through(reconciler.reconcile),
            self.wall,
            self._kube,
            caches,
            events=self._events,
            now=self._now,
            refresh=lambda key: self._handlers.refresh(key),  # noqa: PLW0108 - made later
        )
        return guard.reconcile

    def _set_aside(self, key: str) -> None:
        """Let others have the room of a HyperJob that is set aside, but not of its sub-jobs."""
        try:
            self.observer.update(key)  # its pass may have created sub-jobs before it failed
        except Exception:
            with self.wall.around((), Place.ROUND):
                self.admission.set_aside(key)
            raise

    def debug_routes(self) -> "dict[str, Handler]":
        """Return the handlers of the debug pages by path."""
        # The import of aiohttp takes long, and a simulation needs neither.
        from hyperjob_controller.insight.measures import debug_routes

        return debug_routes(self.memory, self.wall, now=self._now, members=self.members)

    async def run(self) -> None:
        """Run until cancelled; the workers start after the sync of every cache."""
        async with asyncio.TaskGroup() as group:
            keep = self.wall.keep
            tasks = [group.create_task(keep(Place.INFORMER, each.run)) for each in self.caches.all]
            tasks.append(group.create_task(keep(Place.EVENTS, self.recorder.run)))
            tasks.append(group.create_task(keep(Place.LOOP, self.watchdog.run)))
            tasks.append(group.create_task(keep(Place.INFORMER, self._begin)))
            tasks.append(group.create_task(keep(Place.INFORMER, self.caches.say_what_is_missing)))
            readers = (self._splitter, self._causes, self.members)
            tasks.extend(group.create_task(keep(each.place, each.run)) for each in readers if each)
            try:
                if self.options.leader_elect:
                    await self.leadership.run(self._work)
                else:
                    await self._work()
            finally:
                for task in tasks:
                    task.cancel()

    async def _work(self) -> None:
        """Run the queue engine, the readers of a leader and the workers until cancelled."""
        await self._begun.wait()
        self.working.set()
        try:
            async with asyncio.TaskGroup() as group:
                keep = self.wall.keep
                background = [group.create_task(keep(Place.ROUND, self._admit))]
                leading = (self.reader, self.usage, self._recorder)
                background += [
                    group.create_task(keep(each.place, each.run)) for each in leading if each
                ]
                background += [group.create_task(keep(*each)) for each in self.beside]
                workers = self.options.workers
                await run_workers(self.queue, self._rate_limit.reconcile, workers=workers)
                for task in background:
                    task.cancel()
        finally:
            self._events.flush()
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
            self.memory.refusals.forget_all()  # another component may have refused
            for obj in self.caches.hyperjobs.items():
                self.queue.add(key_of(obj))

    async def _rounds(self) -> None:
        async with asyncio.TaskGroup() as group:
            if self.mode.current is QueueAdmission.VOLCANO_GLOBAL:  # its quota counts them
                group.create_task(self.wall.keep(Place.INFORMER, self.caches.deployments.run))
            await self.admission.run(self.observer.update)

    def _mode_changed(self) -> None:
        """Restart the queue engine and record an Event; running sub-jobs stay as they are."""
        self._changed.set()
        name = lease_name(self.options.namespace)
        lease = {
            **LEASES.head,
            "metadata": {"namespace": self._tuning.lease_namespace, "name": name},
        }
        if self.working.is_set():
            note = f"Queue admission is {self.mode.current} from now on: {self.mode.why}"
            self.recorder.event(lease, "Normal", "QueueAdmissionChanged", "Follow", note)

    async def _begin(self) -> None:
        """Wait for caches and members, then count every reservation; work starts after it."""
        await self._wait_for_caches()
        if self.members is not None:
            await self.members.tried(_MEMBERS_SECONDS)
        for number, _ in enumerate(self._handlers.begin(), start=1):
            if number % _SWEEP == 0:
                await asyncio.sleep(0)  # lets the leader election renew the Lease
        self._begun.set()

    async def _wait_for_caches(self) -> None:
        """Wait for the sync of every cache; log regularly which one is missing, and why."""
        while missing := self._missing():
            waits = [asyncio.ensure_future(item.synced.wait()) for item in missing]
            try:
                await asyncio.wait(
                    waits, timeout=_REPORT_SECONDS, return_when=asyncio.ALL_COMPLETED
                )
            finally:
                for wait in waits:
                    wait.cancel()
            for item in self._missing():
                log.warning(
                    "Waiting for a resource that cannot be listed",
                    extra={
                        "resource": item.resource.group_resource,
                        "error": str(item.last_error or "no answer yet"),
                    },
                )
        log.info("Caches are complete", extra={"hyperjobs": len(self.caches.hyperjobs)})

    def _missing(self) -> list[Informer]:
        return [item for item in self.caches.required if not item.synced.is_set()]

    def refused(self) -> str | None:
        """Return that the API server refuses the credentials; None if it does not."""
        return refused(self.caches.required)

    def ready(self) -> str | None:
        """Return why the process is not ready; None if it is. A standby with synced caches is."""
        missing = [item.resource.group_resource for item in self._missing()]
        return f"waiting for {', '.join(missing)}" if missing else None
