"""What one pass reads of the queue engine: its HyperJob's admission, and reserved room.

A pass updates the queue cache in its first step, `learn`; reading changes nothing. This module
only queues keys.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from controller.admission.engine import Admission
from controller.admission.unplaced import Unplaced
from controller.memory.capacity import Capacity
from controller.model.observed import Binding, Observed, QueueVerdict
from controller.model.planned import Plan
from controller.model.request import Request
from hyperjob.api.meta import Object

_SOON: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the queue engine decided about one HyperJob, and what it reserves for others.

    `promised` are sub-jobs of others that room is kept for, by cluster; `changes_in` is when
    capacity changes by time alone. `passed_over` are sub-jobs that Volcano Global has no quota for,
    `unanswered` those that it should have released for long, `forgotten` those of them that it
    leaves out while it releases others.
    """

    verdict: QueueVerdict
    contended: bool = False
    promised: Mapping[str, Sequence[Request]] = field(default_factory=dict)
    changes_in: timedelta | None = None
    passed_over: frozenset[str] = frozenset()
    unanswered: frozenset[str] = frozenset()
    forgotten: frozenset[str] = frozenset()


class Line:
    """The HyperJobs that wait, in order."""

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
        """Take in the present state of a HyperJob, which may change the order of all."""
        self._admission.learn(seen)

    def forget(self, key: str, remains: Sequence[tuple[Object, Binding]]) -> None:
        """Drop a deleted HyperJob; its vcjobs that a member still runs keep their share."""
        self._waiting.drop(key)
        self._admission.forget(key, remains)

    def turn(self, observed: Observed) -> Turn:
        """Return what the queue engine decided about a HyperJob that was taken in."""
        key, admission = observed.hyperjob.key, self._admission
        verdict = admission.verdict(key)
        if verdict.undecided:
            return Turn(verdict=verdict)  # nothing is decided before the next round
        wait = self._capacity.changes_in(now=observed.now)
        return Turn(
            verdict=verdict,
            contended=admission.is_contended(key),
            promised=admission.promised(key),
            changes_in=None if wait is None else max(wait, _SOON),
            passed_over=admission.passed_over(observed),
            unanswered=admission.unanswered(observed),
            forgotten=admission.forgotten(observed),
        )

    def decided(self, observed: Observed, plan: Plan) -> None:
        """Note which sub-jobs a plan could not place, or that none waits for capacity."""
        if plan.waits_for_capacity:
            self._waiting.put(observed.hyperjob.key, needs=plan.needs)
        else:
            self._waiting.drop(observed.hyperjob.key)

    def status_written(self, observed: Observed) -> None:
        """Note that the status of a HyperJob has the message of its verdict."""
        if observed.verdict is not None:
            self._admission.message_written(observed.hyperjob.key, observed.verdict)

    def passed(self, observed: Observed, learn: Callable[[], Observed | None]) -> None:
        """Take back admissions of a HyperJob for which its pass has created no sub-job."""
        self._admission.passed(observed, learn)

    def freed(self, clusters: Iterable[str]) -> None:
        """Make a pass of the HyperJobs that can use what the clusters have free now."""
        for cluster in clusters:
            self._admission.wake()
            room = self._capacity.room(cluster)
            if room is not None:
                self._waiting.wake(room)

    def shrunk(self) -> None:
        """Refresh the messages of waiting HyperJobs in a while: a cluster has less room."""
        self._waiting.refresh()
        self._admission.wake()

    def priorities_changed(self) -> None:
        """Make a pass of every waiting HyperJob: their order may have changed."""
        self._admission.priorities_changed()

    @property
    def message_seconds(self) -> float:
        """Give the least time between two writes of a message alone."""
        return self._waiting.message_seconds
