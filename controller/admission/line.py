"""What the queue engine answers in one pass: may this HyperJob go, and what is kept for others.

Reading it changes nothing: what a HyperJob says is learnt in one step of its pass, before it is
read. It only queues keys.
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
    """What a HyperJob may have now, beside the others that wait.

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
        """Learn what a HyperJob says now; the order of all may be another then."""
        self._admission.learn(seen)

    def forget(self, key: str, remains: Sequence[tuple[Object, Binding]]) -> None:
        """Learn that a HyperJob is gone, and which of its vcjobs are not."""
        self._waiting.drop(key)
        self._admission.forget(key, remains)

    def turn(self, observed: Observed) -> Turn:
        """Say what a HyperJob may have now, as far as it has been learnt."""
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
        """Learn what a plan could not place, or that it waits for no capacity."""
        if plan.waits_for_capacity:
            self._waiting.put(observed.hyperjob.key, needs=plan.needs)
        else:
            self._waiting.drop(observed.hyperjob.key)

    def status_written(self, observed: Observed) -> None:
        """Learn that the status of a HyperJob says what it was observed to wait for."""
        if observed.verdict is not None:
            self._admission.message_written(observed.hyperjob.key, observed.verdict)

    def passed(self, observed: Observed, learn: Callable[[], Observed | None]) -> None:
        """Take back, after a pass, what was granted before it and was not made by it."""
        self._admission.passed(observed, learn)

    def freed(self, clusters: Iterable[str]) -> None:
        """Look again at the HyperJobs that can use what clusters have free now."""
        for cluster in clusters:
            self._admission.wake()
            room = self._capacity.room(cluster)
            if room is not None:
                self._waiting.wake(room)

    def shrunk(self) -> None:
        """Look again, in a while, at what waiting HyperJobs say: a cluster has less room."""
        self._waiting.refresh()
        self._admission.wake()

    def priorities_changed(self) -> None:
        """Look again at all that wait, whose order may be another now."""
        self._admission.priorities_changed()

    @property
    def message_seconds(self) -> float:
        """Give the least time between two writes of a message alone."""
        return self._waiting.message_seconds
