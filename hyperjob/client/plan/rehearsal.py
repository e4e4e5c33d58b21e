"""The controller's own code on copies of a control plane's objects: in memory, in virtual time.

A rehearsal runs the controller's manager on the API server in memory. Passes reconcile the planned
HyperJobs and those that the queue engine admits meanwhile. No request leaves the process.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from hyperjob.client.plan.snapshot import Snapshot
from hyperjob_controller.caches import hyperjob_keys
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Tuning
from hyperjob_controller.wake.handlers import Reconcile
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import mapping, rfc3339
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import HYPERJOBS, QUEUES, VCJOBS, Resource, key_of
from hyperjob_core.kube.transport import Response
from hyperjob_core.tasks import cancel
from hyperjob_engine.model.observed import Observed, Ownership
from hyperjob_engine.model.planned import CreateChild
from hyperjob_engine.plan import ExplainedPlan, decide
from hyperjob_queueing.state import QueueState

_QUIET: Final = 1.0
"""Virtual seconds without a request after which the controller has decided."""
_MOST_SECONDS: Final = 30
"""Virtual seconds after which a plan takes the decisions as they are."""
_ONE_AT_A_TIME: Final = threading.Lock()
_PATIENCE: Final = 11.0
"""Virtual seconds after which the controller decides without knowing the Queues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The controller's decision about a HyperJob, with the observation from which it was made.

    `created` are the sub-jobs of the decision that exist since then, by name.
    """

    observed: Observed
    decision: ExplainedPlan
    created: dict[str, CreateChild]


class Rehearsal:
    """The manager over the objects of a snapshot; use `rehearsing`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._server = _Server(snapshot)
        self._planned: dict[str, list[tuple[Observed, ExplainedPlan]]] = {}
        options = replace(snapshot.options, leader_elect=False, workers=1)
        self._manager = Manager(
            Kube(self._server),
            options,
            now=lambda: snapshot.now,
            clock=asyncio.get_running_loop().time,
            views=snapshot.views,
            tuning=Tuning(failure_causes=False),
            through=self._through,
        )

    def get(self, resource: Resource, key: str) -> Object | None:
        """Return an object of the present snapshot."""
        return self._server.get(resource, key)

    def items(self, resource: Resource) -> list[Object]:
        """Return the objects of a resource in the present snapshot."""
        return self._server.items(resource)

    def observe(self, key: str) -> Observed | None:
        """Return the controller's observation of a HyperJob; None if it does not exist."""
        observer = self._manager.observer
        seen = observer.objects_of(key)
        return None if seen is None else observer.observe(seen)

    @property
    def queues(self) -> QueueState:
        """Return the state of the queue engine."""
        return self._manager.admission.state

    async def submit(self, hyperjob: Object) -> Answer:
        """Create a HyperJob, or change its spec, as a user does; return the controller's decision.

        A new HyperJob is a second younger than the one before.
        """
        key = key_of(hyperjob)
        created = rfc3339(self._snapshot.now + timedelta(seconds=len(self._planned)))
        old = self.get(HYPERJOBS, key)
        self._server.first.pop(key, None)
        self._server.stopped.clear()
        decisions = self._planned[key] = []
        self.queues.forecast_at = None  # the next round computes the expected starts again
        if old is None:
            metadata = {**hyperjob["metadata"], "creationTimestamp": created}
            self._server.put(HYPERJOBS, {**hyperjob, "metadata": metadata, "status": {}})
        else:
            self._server.put(HYPERJOBS, {**old, "spec": hyperjob["spec"]})
        await self.settled()
        observed = self.observe(key)
        assert observed is not None, "the rehearsal deletes no HyperJob"
        mine = _own(observed)
        waited: list[tuple[Observed, ExplainedPlan]] = []
        decided: tuple[Observed, ExplainedPlan] | None = None
        for before, decision in decisions:
            made = {each.name: each for each in decision.plan.actions if type(each) is CreateChild}
            if not made or not made.keys() <= mine:
                waited.append((before, decision))
            elif waited and self._server.stopped - {key}:
                # Others made way at once: their pods, which must end first, are not here.
                decided = waited[-1]
                break
            else:
                return Answer(observed=before, decision=decision, created=made)
        observed, decision = decided or (observed, decide(observed))
        if (status := self._server.first.get(key)) is not None:
            decision = replace(decision, plan=replace(decision.plan, status=status))
        return Answer(observed=observed, decision=decision, created={})

    async def settled(self) -> None:
        """Wait until the controller makes no request for a second, at most 30 seconds."""
        for _ in range(int(_MOST_SECONDS / _QUIET)):
            before = self._server.requests
            await asyncio.sleep(_QUIET)
            if self._server.requests == before:
                return

    async def run(self) -> None:
        """Run the manager until cancelled."""
        await self._manager.run()

    async def started(self) -> None:
        """Wait until the controller has decided about the HyperJobs of the snapshot."""
        await self._manager.working.wait()
        if QUEUES in self._snapshot.unreadable:
            await asyncio.sleep(_PATIENCE)
        await self.settled()

    def _through(self, reconcile: Reconcile) -> Reconcile:
        """Record the decisions about planned HyperJobs, and skip passes that change nothing."""

        async def through(key: str) -> timedelta | None:
            observed = self.observe(key)
            if observed is not None and key in self._planned:
                self._planned[key].append((observed, decide(observed)))
            elif observed is not None and not _is_admitted(observed):
                return None
            return await reconcile(key)

        return through


@asynccontextmanager
async def rehearsing(snapshot: Snapshot) -> AsyncIterator[Rehearsal]:
    """Run the controller on a snapshot, in an event loop in virtual time."""
    rehearsal = Rehearsal(snapshot)
    with _without_log():
        running = asyncio.create_task(rehearsal.run())
        started = asyncio.create_task(rehearsal.started())
        try:
            await asyncio.wait({running, started}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            yield rehearsal
        finally:
            await cancel([running, started])


class _Server(MemoryServer):
    """The objects of a snapshot; a list of an unreadable resource has no end."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(now=lambda: snapshot.now)
        self._unreadable = {each.path() for each in snapshot.unreadable}
        self.first: dict[str, Object] = {}
        """The first status that the controller writes for each HyperJob, by key."""
        self.stopped: set[str] = set()
        """The HyperJobs of which a vcjob was deleted since the last HyperJob was submitted."""
        for resource, found in snapshot.objects.items():
            for obj in found:
                self.put(resource, obj)
        self.listen(self._written)

    def _written(self, kind: str, old: Object | None, new: Object | None) -> None:
        if kind == VCJOBS.kind and old is not None and new is None:
            self.stopped.update(hyperjob_keys(old))
        if kind != HYPERJOBS.kind or old is None or new is None:
            return
        if mapping(new.get("status")) != mapping(old.get("status")):
            self.first.setdefault(key_of(new), new["status"])

    async def request(self, method: str, path: str, **more: object) -> Response:
        if path in self._unreadable:
            await asyncio.Event().wait()
        return await super().request(method, path, **more)  # type: ignore[arg-type]  # passed on


def _is_admitted(observed: Observed) -> bool:
    """Return whether the queue engine has admitted a sub-job that does not exist yet."""
    verdict = observed.verdict
    return verdict is not None and not verdict.admitted <= _own(observed)


def _own(observed: Observed) -> set[str]:
    """Return the names of the vcjobs that have no other owner."""
    foreign = Ownership.FOREIGN
    return {name for name, job in observed.jobs.items() if job.ownership is not foreign}


@contextmanager
def _without_log() -> Iterator[None]:
    """Suppress the controller's log within the block: nothing that it reports happens."""
    log = logging.getLogger("hyperjob_controller")
    with _ONE_AT_A_TIME:  # else a block could restore the level that another one has set
        before = log.level
        log.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            log.setLevel(before)
