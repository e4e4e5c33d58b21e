"""The controller's memory: what passes leave for later passes, and what a restart may lose.

One value holds all of it; `str` prints it. The step `update` of a pass writes it, and so do the
event handlers of Clusters and vcjobs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from hyperjob_controller.admission.engine import Admission
from hyperjob_controller.memory.capacity import Capacity
from hyperjob_controller.memory.closedqueues import ClosedQueues
from hyperjob_controller.memory.priorities import Priorities
from hyperjob_controller.memory.refusals import Refusals
from hyperjob_controller.memory.reservations import Reservations
from hyperjob_controller.memory.tombstones import Tombstones
from hyperjob_controller.memory.unplaced import Unplaced
from hyperjob_core.api.meta import Object
from hyperjob_engine.model.observed import Binding, Observed
from hyperjob_engine.model.planned import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """All state between passes.

    `unplaced` are the HyperJobs without room for a sub-job, and `written` the times of the last
    status writes by key of the HyperJob. `unwritten` has since when a status waits to be written.
    """

    reservations: Reservations
    capacity: Capacity
    admission: Admission
    unplaced: Unplaced
    refusals: Refusals
    tombstones: Tombstones
    priorities: Priorities
    closed_queues: ClosedQueues
    written: dict[str, datetime] = field(default_factory=dict)
    unwritten: dict[str, datetime] = field(default_factory=dict)

    def update(self, seen: Observed) -> None:
        """Take over the present objects of a HyperJob, which may change the order of its queue."""
        self.reservations.expire(now=seen.now)
        self.wake_freed()
        uids = {job.uid for job in seen.jobs.values()}
        for binding in seen.bindings.values():
            if binding.apply_error and binding.job_uid in uids:
                self.tombstones.not_applied(binding.job_uid)
        self.admission.update(seen)

    def forget(self, key: str, remains: Sequence[tuple[Object, Binding]]) -> None:
        """Drop a deleted HyperJob; its vcjobs that a member still runs keep their share."""
        self.unplaced.drop(key)
        self.refusals.forget(key)
        self.written.pop(key, None)
        self.unwritten.pop(key, None)
        self.admission.forget(key, remains)

    def decided(self, key: str, plan: Plan) -> None:
        """Record the sub-jobs that a plan could not place, or that none waits for capacity."""
        if plan.waits_for_capacity:
            self.unplaced.put(key, needs=plan.needs)
        else:
            self.unplaced.drop(key)

    def wake_freed(self, clusters: Iterable[str] = ()) -> None:
        """Request a pass of the HyperJobs that fit into the free room of clusters.

        These are the clusters whose reservations have ended since the last call, and `clusters`.
        """
        for cluster in (*clusters, *self.reservations.take_freed()):
            self.admission.wake()
            room = self.capacity.room(cluster)
            if room is not None:
                self.unplaced.wake(room)

    def shrunk(self) -> None:
        """Request a later pass of waiting HyperJobs for their messages: a cluster has less room."""
        self.unplaced.refresh()
        self.admission.wake()

    def __str__(self) -> str:
        """Return a line for each part; the other parts follow from API objects alone."""
        parts = (self.reservations, self.admission, self.unplaced, self.refusals, self.tombstones)
        return "\n".join(f"{type(each).__name__}: {each}" for each in parts)
