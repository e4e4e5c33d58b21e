"""The priorities of HyperJobs, by the PriorityClasses in the informer cache."""

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Informer
from hyperjob_engine.model.observed import HyperJob
from hyperjob_engine.queueing.priority import preempts, priority_of


class Priorities:
    """Follows PriorityClasses."""

    def __init__(self, informer: Informer) -> None:
        self._classes: dict[str, Object] = {}
        informer.add_handler(self._changed)

    def of(self, hyperjob: HyperJob) -> int:
        """Return the priority of a HyperJob now."""
        return priority_of(hyperjob, self._classes)

    def preempts(self, hyperjob: HyperJob) -> bool:
        """Return whether a HyperJob's PriorityClasses let it stop others of lower priority."""
        return preempts(hyperjob, self._classes)

    def _changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._classes.pop(string(at(old, "metadata", "name")), None)
        else:
            self._classes[string(at(new, "metadata", "name"))] = new
