"""The first step of a pass: it updates the controller's memory from the caches.

The later steps, observe and plan, only read.
"""

from hyperjob_controller.admission.line import Line
from hyperjob_controller.memory.reservations import Reservations
from hyperjob_controller.memory.tombstones import Tombstones
from hyperjob_controller.observe import Observer, not_applied
from hyperjob_engine.model.observed import Observed


class Learner:
    """Updates the controller's memory from the caches, for one HyperJob at a time."""

    def __init__(
        self, observer: Observer, line: Line, *, reservations: Reservations, tombstones: Tombstones
    ) -> None:
        self._observer = observer
        self._line = line
        self._reservations = reservations
        self._tombstones = tombstones

    def learn(self, key: str) -> Observed | None:
        """Update the memory and return the observation; drop a deleted HyperJob and return None."""
        seen = self.take_in(key)
        return None if seen is None else self._observer.judge(seen)

    def take_in(self, key: str) -> Observed | None:
        """Update the memory and return the observation without the queue's decision.

        The result is None for a deleted HyperJob.
        """
        seen = self._observer.see(key)
        if seen is None:
            self._observer.forget(key)
            self._line.forget(key, self._observer.remains(key))
            return None
        self._reservations.expire(now=seen.now)
        self._line.freed(self._reservations.take_freed())
        for uid in not_applied(seen.bindings.values()):
            self._tombstones.not_applied(uid)
        self._line.learn(seen)
        return seen
