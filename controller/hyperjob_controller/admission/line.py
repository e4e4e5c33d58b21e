"""The interface between a pass and the queue engine: admission of its HyperJob, reserved room.

A pass updates the queue engine in its first step, `learn`. The other methods read its state or put
HyperJobs into the workqueue.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from hyperjob_controller.admission.engine import Admission
from hyperjob_controller.admission.unplaced import Unplaced
from hyperjob_controller.memory.capacity import Capacity
from hyperjob_core.api.meta import Object
from hyperjob_engine.model.observed import Binding, Observed, QueueVerdict
from hyperjob_engine.model.planned import Plan
from hyperjob_engine.model.request import PlacementRequest

_SOON: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The decision of the queue engine about one HyperJob, and its reservations for others.

    `promised` are the sub-jobs of other HyperJobs with reserved room, by cluster. `changes_in` is
    the time until capacity changes without a change of an object. Volcano Global has no quota for
    `passed_over`; its release of `unanswered` is overdue; it leaves `forgotten` out while it
    releases others.
    """

    verdict: QueueVerdict
    contended: bool = False
    promised: Mapping[str, Sequence[PlacementRequest]] = field(default_factory=dict)
    changes_in: timedelta | None = None
    passed_over: frozenset[str] = frozenset()
    unanswered: frozenset[str] = frozenset()
    forgotten: frozenset[str] = frozenset()


class Line:
    """The queue engine for passes, and the HyperJobs without room for a sub-job."""

    def __init__(
        self,
        capacity: Capacity,
        admission: Admission,
        *,
        add_after: Callable[[str, float], None],
    ) -> None:
        self._capacity = capacity
        self._admission = admission
        self._waiting = Unplaced(add_after)

    def learn(self, seen: Observed) -> None:
        """Update the queue engine with a HyperJob, which may change the order of all."""
        self._admission.update(seen)

    def forget(self, key: str, remains: Sequence[tuple[Object, Binding]]) -> None:
        """Drop a deleted HyperJob; its vcjobs that a member still runs keep their share."""
        self._waiting.drop(key)
        self._admission.forget(key, remains)

    def turn(self, observed: Observed) -> Turn:
        """Return the decision of the queue engine about a HyperJob in its state."""
        key, admission = observed.hyperjob.key, self._admission
        verdict = admission.verdict(key)
        if verdict.undecided:
            return Turn(verdict=verdict)  # the next round decides
        wait = self._capacity.changes_in(now=observed.now)
        return Turn(
            verdict=verdict,
            contended=admission.is_contended(key),
            promised=admission.reserved(key),
            changes_in=None if wait is None else max(wait, _SOON),
            passed_over=admission.passed_over(observed),
            unanswered=admission.unanswered(observed),
            forgotten=admission.forgotten(observed),
        )

    def decided(self, observed: Observed, plan: Plan) -> None:
        """Record the sub-jobs that a plan could not place, or that none waits for capacity."""
        if plan.waits_for_capacity:
            self._waiting.put(observed.hyperjob.key, needs=plan.needs)
        else:
            self._waiting.drop(observed.hyperjob.key)

    def status_written(self, observed: Observed) -> None:
        """Record that the status of a HyperJob has the message of its verdict."""
        if observed.verdict is not None:
            self._admission.message_written(observed.hyperjob.key, observed.verdict)

    def passed(self, observed: Observed, learn: Callable[[], Observed | None]) -> None:
        """Revoke the admissions for which the pass of a HyperJob has created no sub-job."""
        self._admission.passed(observed, learn)

    def freed(self, clusters: Iterable[str]) -> None:
        """Request a pass of the HyperJobs that fit into the clusters' free room."""
        for cluster in clusters:
            self._admission.wake()
            room = self._capacity.room(cluster)
            if room is not None:
                self._waiting.wake(room)

    def shrunk(self) -> None:
        """Request a later pass of waiting HyperJobs for their messages: a cluster has less room."""
        self._waiting.refresh()
        self._admission.wake()

    def priorities_changed(self) -> None:
        """Request a pass of every waiting HyperJob: their order may have changed."""
        self._admission.priorities_changed()

    @property
    def message_seconds(self) -> float:
        """Return the least time, in seconds, between two status writes for a message alone."""
        return self._waiting.message_seconds
