"""Who may go now, and what is kept for whom: one answer for the pass, whoever keeps the order.

Reading it changes nothing: what a HyperJob says is learnt in one step of its pass, before it is
read. It only queues keys.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from controller.admission import Admission
from controller.firstinline import FirstInLine
from controller.memory.capacity import Capacity
from controller.model.observed import Kept, Observed, Verdict
from controller.model.planned import Plan
from controller.model.request import Request
from controller.queueing.units import OrderInQueue
from controller.waiting import Waiting

_SOON: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a HyperJob may have now, beside the others that wait.

    `promised` are sub-jobs of others that room is kept for, by cluster; `changes_in` is when
    capacity changes by time alone, for the HyperJob that keeps the time for all.
    """

    verdict: Verdict | None = None
    contended: bool = False
    kept: Kept | None = None
    promised: Mapping[str, Sequence[Request]] = field(default_factory=dict)
    changes_in: timedelta | None = None


class Line:
    """The HyperJobs that wait, in order; while our own queues are at work, they keep it."""

    def __init__(
        self,
        capacity: Capacity,
        own: Admission,
        *,
        add_after: Callable[[str, float], None],
    ) -> None:
        self._capacity = capacity
        self._own = own
        self._waiting = Waiting(add_after)
        self._first = FirstInLine(self._waiting)
        self._add_after = add_after
        self._first.connect(capacity.eventual, keeps=lambda: not own.at_work)

    def learn(self, seen: Observed) -> None:
        """Learn what a HyperJob says now; the order of all may be another then."""
        self._first.settle()
        if self._own.at_work:
            self._own.learn(seen)

    def forget(self, key: str) -> None:
        """Learn that a HyperJob is gone."""
        self._waits((0, "", key), Plan())
        self._own.forget(key)

    def turn(self, observed: Observed) -> Turn:
        """Say what a HyperJob may have now, as far as it has been learnt."""
        key, now = observed.hyperjob.key, observed.now
        own = self._own if self._own.at_work else None
        return Turn(
            verdict=own.verdict(key) if own is not None else None,
            contended=self._first.is_contended(key) or (own is not None and own.is_contended(key)),
            kept=self._first.kept_from(_order(observed)),
            promised=own.promised(key) if own is not None else {},
            changes_in=self._changes_in(key, now=now),
        )

    def decided(self, observed: Observed, plan: Plan) -> None:
        """Learn what a plan could not place, or that it waits for no capacity."""
        self._waits(_order(observed), plan)

    def told(self, observed: Observed) -> None:
        """Learn that the status of a HyperJob says what it was observed to wait for."""
        if observed.verdict is not None:
            self._own.told(observed.hyperjob.key, observed.verdict)

    def passed(self, observed: Observed, learn: Callable[[], Observed | None]) -> None:
        """Take back, after a pass, what was granted before it and was not made by it."""
        self._own.passed(observed, learn)

    def freed(self, clusters: Iterable[str]) -> None:
        """Look again at the HyperJobs that can use what clusters have free now."""
        for cluster in clusters:
            self._own.wake()
            self._first.changed()
            room = self._capacity.room(cluster)
            if room is not None:
                self._first.wake(cluster, room)

    def shrunk(self) -> None:
        """Look again, in a while, at what waiting HyperJobs say: a cluster has less room."""
        self._waiting.refresh()
        self._first.look_again()
        self._own.wake()

    def priorities_changed(self) -> None:
        """Look again at all that wait, whose order may be another now."""
        for order, _ in self._waiting.claims():
            self._add_after(order[2], 0)
        self._own.priorities_changed()

    @property
    def message_seconds(self) -> float:
        """Give the least time between two writes of a message alone."""
        return self._waiting.message_seconds

    def _waits(self, order: OrderInQueue, plan: Plan) -> None:
        key = order[2]
        if plan.waits_for_capacity:
            changed = self._waiting.put(order, needs=plan.needs, claim=plan.claim)
            changed = changed or self._waiting.keeps_time(key)
        else:
            changed = self._waiting.drop(key)
        if changed:
            self._first.look_again()

    def _changes_in(self, key: str, *, now: datetime) -> timedelta | None:
        """Tell the one that keeps the time for all when capacity changes by time alone."""
        if not self._waiting.keeps_time(key):
            return None
        wait = self._capacity.changes_in(now=now)
        return None if wait is None else max(wait, _SOON)


def _order(observed: Observed) -> OrderInQueue:
    hyperjob = observed.hyperjob
    return -observed.priority, hyperjob.created, hyperjob.key
