"""The first step of a pass: it updates the controller's memory from the caches.

The later steps, observe and plan, only read.
"""

from hyperjob_controller.memory.memory import Memory
from hyperjob_controller.observe import Observer
from hyperjob_engine.model.observed import Observed


class Updater:
    """Updates the memory with one HyperJob at a time."""

    def __init__(self, observer: Observer, memory: Memory) -> None:
        self._observer = observer
        self._memory = memory

    def update(self, key: str) -> Observed | None:
        """Take over a HyperJob with its objects and return them; None for a deleted HyperJob."""
        seen = self._observer.objects_of(key)
        if seen is None:
            remains = self._observer.remains(key)
            self._observer.forget(key)
            self._memory.forget(key, remains)
            return None
        self._memory.update(seen)
        return seen
