"""The step before each pass: it brings the memory of the controller up to date.

All that a pass changes in memory before it decides is changed here, so observing changes nothing.
"""

from controller.admission.line import Line
from controller.memory.reservations import Reservations
from controller.memory.tombstones import Tombstones
from controller.model.observed import Observed
from controller.observe import Observer, not_applied


class Learner:
    """Updates the memory of the controller from the caches, for one HyperJob at a time."""

    def __init__(
        self, observer: Observer, line: Line, *, reservations: Reservations, tombstones: Tombstones
    ) -> None:
        self._observer = observer
        self._line = line
        self._reservations = reservations
        self._tombstones = tombstones

    def learn(self, key: str) -> Observed | None:
        """Update the memory, then observe the HyperJob; forget it and return None if it is gone."""
        seen = self.take_in(key)
        return None if seen is None else self._observer.judge(seen)

    def take_in(self, key: str) -> Observed | None:
        """Update the memory without the queue's decision; None where the HyperJob is gone."""
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
