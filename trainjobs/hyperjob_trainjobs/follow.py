"""Follow TrainJobs while the API server serves them and the controller may list them.

The CRDs of Kubeflow Trainer and the rights of `hyperjob install --with trainjobs` may come and go
at any time; without one of them the controller watches nothing, and asks again from time to time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.trainer import CLUSTER_RUNTIME_KIND, RUNTIME_KIND
from hyperjob_core.api.wire import at, objects, string
from hyperjob_core.kube.client import EventType, Kube, PatchType
from hyperjob_core.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
)
from hyperjob_core.kube.events import EventRecorder
from hyperjob_core.kube.informer import Faulty, Informer, InTurn, untimed
from hyperjob_core.kube.mutationcache import MutationCache
from hyperjob_core.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    HYPERJOBS,
    NAMESPACES,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    Resource,
    key_of,
    split_key,
)
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_core.workers import run_workers
from hyperjob_engine.model.planned import Event
from hyperjob_trainjobs.decide import Decided, Seen, decide


class Passes:
    """Makes passes of TrainJobs, from caches of these, of what they name, and of HyperJobs."""

    def __init__(
        self,
        kube: Kube,
        caches: Mapping[Resource, Informer],
        recorder: EventRecorder,
        *,
        now: Callable[[], datetime],
        in_turn: InTurn = untimed,
    ) -> None:
        self._kube = kube
        self._caches = caches
        self._written = MutationCache(caches[TRAINJOBS])
        self._recorder = recorder
        self._now = now
        self._in_turn = in_turn

    async def reconcile(self, key: str) -> timedelta | None:
        """Make one pass; return the time until the next. Raises KubeError if it must be retried."""
        trainjob = self._written.get(key)
        if trainjob is None:
            return None
        with self._in_turn(TRAINJOBS, trainjob):
            seen = self._seen(key, trainjob)
            decided = decide(seen)
        if not await self._write_hyperjob(seen, decided):
            return None  # the event of the HyperJob causes another pass
        if decided.status is not None:
            await self._write_status(trainjob, decided.status)
        for event in decided.events:
            self._record(trainjob, event)
        return decided.again

    def _record(self, trainjob: Object, event: Event) -> None:
        regarding = {**trainjob, **TRAINJOBS.head}
        self._recorder.event(regarding, event.type, event.reason, event.action, event.note)

    def _seen(self, key: str, trainjob: Object) -> Seen:
        namespace, _ = split_key(key)
        reference = at(trainjob, "spec", "runtimeRef")
        name = string(at(reference, "name"))
        if at(reference, "kind") == RUNTIME_KIND:
            runtime = self._caches[TRAINING_RUNTIMES].get(f"{namespace}/{name}")
        else:
            runtime = self._caches[CLUSTER_TRAINING_RUNTIMES].get(name)
        return Seen(
            trainjob=trainjob,
            runtime=runtime,
            namespace=self._caches[NAMESPACES].get(namespace or ""),
            hyperjob=self._caches[HYPERJOBS].get(key),
            now=self._now(),
        )

    async def _write_hyperjob(self, seen: Seen, decided: Decided) -> bool:
        """Create, suspend, resume or delete the HyperJob; return whether it was as expected."""
        metadata = seen.trainjob["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        uid = string(at(seen.hyperjob, "metadata", "uid"))
        if decided.create is not None:
            try:
                await self._kube.create(HYPERJOBS, decided.create)
            except AlreadyExists:
                return False
            except (BadRequest, Forbidden, Invalid) as error:
                refused = Event(
                    type="Warning", reason="HyperJobRefused", action="Create", note=error.message
                )
                self._record(seen.trainjob, refused)
                raise
        if decided.suspend is not None:
            body = {"metadata": {"uid": uid}, "spec": {"suspend": decided.suspend}}
            try:
                await self._kube.patch(
                    HYPERJOBS, name, body, kind=PatchType.MERGE, namespace=namespace
                )
            except (NotFound, Conflict):
                return False
        if decided.delete:
            try:
                await self._kube.delete(HYPERJOBS, name, namespace=namespace, uid=uid)
            except (NotFound, Conflict):
                return False
        return True

    async def _write_status(self, trainjob: Object, status: Object) -> None:
        """Write the status of a TrainJob of this version; nothing if it has changed or is gone."""
        metadata = trainjob["metadata"]
        # For the status the API server ignores the UID.
        body = {
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "status": status,
        }
        try:
            self._written.note(
                await self._kube.patch(
                    TRAINJOBS,
                    metadata["name"],
                    body,
                    kind=PatchType.MERGE,
                    namespace=metadata["namespace"],
                    subresource="status",
                )
            )
        except (NotFound, Conflict):
            return  # the event of the change, or of another TrainJob of the name, causes a pass


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
        self._followed: Informer | None = None
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
            return self._followed is not None
        self._forbidden = False
        return True

    async def _follow(self) -> None:
        handlers = {
            TRAINJOBS: self._trainjob_changed,
            TRAINING_RUNTIMES: self._runtime_changed,
            CLUSTER_TRAINING_RUNTIMES: self._runtime_changed,
            NAMESPACES: self._namespace_changed,
        }
        own = {resource: self._informer(resource) for resource in handlers}
        caches = {**own, HYPERJOBS: self._hyperjobs}
        passes = Passes(self._kube, caches, self._recorder, now=self._now, in_turn=self._in_turn)
        for resource, handler in handlers.items():
            own[resource].add_handler(handler)
        self._followed = own[TRAINJOBS]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(each.run()) for each in own.values()]
                tasks.append(group.create_task(self._work(own.values(), passes.reconcile)))
                while await self._can_follow():  # noqa: ASYNC110 - the server sends no event
                    await asyncio.sleep(self._look_again)
                for task in tasks:
                    task.cancel()
        finally:
            self._followed = None

    async def _work(
        self, own: Iterable[Informer], reconcile: Callable[[str], Awaitable[timedelta | None]]
    ) -> None:
        for informer in own:
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

    def _trainjob_changed(self, _: EventType, old: Object | None, new: Object | None) -> None:
        self._queue.add(key_of(new or old or {}))

    def _hyperjob_changed(self, _: EventType, old: Object | None, new: Object | None) -> None:
        obj = new or old or {}
        # A HyperJob of another owner may make way for a TrainJob of its name.
        if self._followed is not None and self._followed.get(key_of(obj)) is not None:
            self._queue.add(key_of(obj))

    def _runtime_changed(self, _: EventType, old: Object | None, new: Object | None) -> None:
        obj = new or old or {}
        scope = string(at(obj, "metadata", "namespace"))
        wanted = RUNTIME_KIND if scope else CLUSTER_RUNTIME_KIND
        for trainjob in self._trainjobs(scope):
            reference = at(trainjob, "spec", "runtimeRef")
            kind_of = string(at(reference, "kind")) or CLUSTER_RUNTIME_KIND
            if (kind_of, at(reference, "name")) == (wanted, obj["metadata"]["name"]):
                self._queue.add(key_of(trainjob))

    def _namespace_changed(self, _: EventType, old: Object | None, new: Object | None) -> None:
        for trainjob in self._trainjobs((new or old or {})["metadata"]["name"]):
            self._queue.add(key_of(trainjob))

    def _trainjobs(self, namespace: str) -> list[Object]:
        """Return the TrainJobs of a namespace; of all with an empty name."""
        items = () if self._followed is None else self._followed.items()
        return [
            each for each in items if namespace in ("", string(at(each, "metadata", "namespace")))
        ]
