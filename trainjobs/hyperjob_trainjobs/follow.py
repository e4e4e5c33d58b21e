"""Follow TrainJobs while the API server serves them and the controller may list them.

The CRDs of Kubeflow Trainer and the rights of `hyperjob install --with trainjobs` may come and go
at any time; without one of them the controller watches nothing, and asks again from time to time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.trainer import CLUSTER_RUNTIME_KIND, RUNTIME_KIND
from hyperjob_core.api.wire import at, objects, string
from hyperjob_core.kube.client import EventType, Kube
from hyperjob_core.kube.errors import Forbidden, KubeError, NotFound
from hyperjob_core.kube.events import EventRecorder
from hyperjob_core.kube.informer import Faulty, Informer, InTurn
from hyperjob_core.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    NAMESPACES,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    Resource,
    key_of,
)
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_core.workers import run_workers
from hyperjob_trainjobs.reconcile import Objects, Passes

log = logging.getLogger(__name__)

NAME: Final = "trainjob"
_WORKERS: Final = 4
_NEEDED: Final = {each.plural for each in (TRAINJOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)}


class TrainJobs:
    """The part of the controller that makes HyperJobs of TrainJobs."""

    def __init__(
        self,
        kube: Kube,
        hyperjobs: Informer,
        recorder: EventRecorder,
        *,
        namespace: str | None,
        now: Callable[[], datetime],
        look_again: timedelta,
        faulty: Faulty,
        in_turn: InTurn,
    ) -> None:
        """`look_again` is the time between two requests whether TrainJobs can be followed."""
        self._kube = kube
        self._hyperjobs = hyperjobs
        self._recorder = recorder
        self._namespace = namespace
        self._now = now
        self._look_again = look_again.total_seconds()
        self._faulty = faulty
        self._in_turn = in_turn
        self._queue: WorkQueue[str] = WorkQueue(NAME)
        self._objects: Objects | None = None
        self._forbidden = False
        hyperjobs.add_handler(self._hyperjob_changed)

    async def run(self) -> None:
        """Make HyperJobs of TrainJobs until cancelled."""
        while True:
            while not await self._can_follow():  # noqa: ASYNC110 - the server sends no event
                await asyncio.sleep(self._look_again)
            log.info("TrainJobs are served: following them")
            await self._follow()
            log.info("TrainJobs can no longer be followed")

    async def _can_follow(self) -> bool:
        """Return whether TrainJobs and both kinds of runtimes are served, and may be listed."""
        path = f"/apis/{TRAINJOBS.api_version}"
        try:
            served = (await self._kube.raw("GET", path)).json()
            names = {string(each.get("name")) for each in objects(at(served, "resources"))}
            if not names >= _NEEDED:
                return False
            await self._kube.raw("GET", TRAINJOBS.path(self._namespace), params={"limit": "1"})
        except NotFound:
            return False
        except Forbidden:
            if not self._forbidden:
                log.info(
                    "TrainJobs are served, but the controller may not list them:"
                    " `hyperjob install --with trainjobs` lets it make HyperJobs of them"
                )
            self._forbidden = True
            return False
        except KubeError as error:
            log.debug("Cannot ask for TrainJobs", extra={"error": str(error)})
            return self._objects is not None
        self._forbidden = False
        return True

    async def _follow(self) -> None:
        followed = self._objects = Objects(
            trainjobs=self._informer(TRAINJOBS),
            runtimes=self._informer(TRAINING_RUNTIMES),
            cluster_runtimes=self._informer(CLUSTER_TRAINING_RUNTIMES),
            namespaces=self._informer(NAMESPACES),
            hyperjobs=self._hyperjobs,
        )
        passes = Passes(self._kube, followed, self._recorder, now=self._now, in_turn=self._in_turn)
        followed.trainjobs.add_handler(self._trainjob_changed)
        followed.runtimes.add_handler(self._runtime_changed)
        followed.cluster_runtimes.add_handler(self._runtime_changed)
        followed.namespaces.add_handler(self._namespace_changed)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(each.run()) for each in followed.all]
                tasks.append(group.create_task(self._work(followed, passes.reconcile)))
                while await self._can_follow():  # noqa: ASYNC110 - the server sends no event
                    await asyncio.sleep(self._look_again)
                for task in tasks:
                    task.cancel()
        finally:
            self._objects = None

    async def _work(
        self, followed: Objects, reconcile: Callable[[str], Awaitable[timedelta | None]]
    ) -> None:
        for informer in followed.all:
            await informer.synced.wait()
        await run_workers(self._queue, reconcile, workers=_WORKERS, controller=NAME)

    def _informer(self, resource: Resource) -> Informer:
        return Informer(
            self._kube,
            resource,
            namespace=self._namespace if resource.namespaced else None,
            faulty=self._faulty,
            in_turn=self._in_turn,
        )

    def _trainjob_changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        del kind
        self._queue.add(key_of(new or old or {}))

    def _hyperjob_changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        del kind
        obj = new or old or {}
        # A HyperJob of another owner may make way for a TrainJob of its name.
        if self._objects is not None and self._objects.trainjobs.get(key_of(obj)) is not None:
            self._queue.add(key_of(obj))

    def _runtime_changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        del kind
        obj = new or old or {}
        scope = string(at(obj, "metadata", "namespace"))
        wanted = RUNTIME_KIND if scope else CLUSTER_RUNTIME_KIND
        for trainjob in self._trainjobs(scope):
            reference = at(trainjob, "spec", "runtimeRef")
            kind_of = string(at(reference, "kind")) or CLUSTER_RUNTIME_KIND
            if (kind_of, at(reference, "name")) == (wanted, obj["metadata"]["name"]):
                self._queue.add(key_of(trainjob))

    def _namespace_changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        del kind
        for trainjob in self._trainjobs((new or old or {})["metadata"]["name"]):
            self._queue.add(key_of(trainjob))

    def _trainjobs(self, namespace: str) -> list[Object]:
        """Return the TrainJobs of a namespace; of all with an empty name."""
        items = () if self._objects is None else self._objects.trainjobs.items()
        return [
            each for each in items if namespace in ("", string(at(each, "metadata", "namespace")))
        ]
