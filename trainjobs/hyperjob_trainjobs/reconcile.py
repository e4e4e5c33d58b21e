"""One pass of a TrainJob: read the caches, decide, write the HyperJob and then the status."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from hyperjob_core.api.meta import Object
from hyperjob_core.api.trainer import RUNTIME_KIND
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
)
from hyperjob_core.kube.events import EventRecorder
from hyperjob_core.kube.informer import Informer, InTurn, untimed
from hyperjob_core.kube.mutationcache import MutationCache
from hyperjob_core.kube.resources import HYPERJOBS, TRAINJOBS, split_key
from hyperjob_engine.model.planned import Event
from hyperjob_trainjobs.decide import Decided, Seen, decide


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """The caches that a pass of a TrainJob reads."""

    trainjobs: Informer
    runtimes: Informer
    cluster_runtimes: Informer
    namespaces: Informer
    hyperjobs: Informer

    @property
    def all(self) -> tuple[Informer, ...]:
        """Return the informers that only TrainJobs need."""
        return self.trainjobs, self.runtimes, self.cluster_runtimes, self.namespaces


class Passes:
    """Makes passes of TrainJobs."""

    def __init__(
        self,
        kube: Kube,
        objects: Objects,
        recorder: EventRecorder,
        *,
        now: Callable[[], datetime],
        in_turn: InTurn = untimed,
    ) -> None:
        self._kube = kube
        self._objects = objects
        self._written = MutationCache(objects.trainjobs)
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
        regarding = {**trainjob, "apiVersion": TRAINJOBS.api_version, "kind": TRAINJOBS.kind}
        self._recorder.event(regarding, event.type, event.reason, event.action, event.note)

    def _seen(self, key: str, trainjob: Object) -> Seen:
        namespace, _ = split_key(key)
        reference = at(trainjob, "spec", "runtimeRef")
        name = string(at(reference, "name"))
        if at(reference, "kind") == RUNTIME_KIND:
            runtime = self._objects.runtimes.get(f"{namespace}/{name}")
        else:
            runtime = self._objects.cluster_runtimes.get(name)
        return Seen(
            trainjob=trainjob,
            runtime=runtime,
            namespace=self._objects.namespaces.get(namespace or ""),
            hyperjob=self._objects.hyperjobs.get(key),
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
