"""The Queues that some clusters have closed, as their ClusterResourceBindings report."""

from collections.abc import Callable, Iterable, Mapping

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Informer
from hyperjob_engine.model.observed import HyperJob
from hyperjob_engine.model.request import ClosedQueue
from hyperjob_engine.model.subjobs import queue_of
from hyperjob_engine.queueing.queues import closed_queue


class ClosedQueues:
    """Follows ClusterResourceBindings of Queues."""

    def __init__(self, informer: Informer, *, changed: Callable[[str], None]) -> None:
        """Call `changed` with the name of a Queue that other clusters than before have closed."""
        self._closed: dict[str, ClosedQueue] = {}
        self._report = changed
        informer.add_handler(self._changed)

    def of(self, hyperjob: HyperJob) -> Mapping[str, ClosedQueue]:
        """Return the queues of a HyperJob that some clusters have closed, by name."""
        if not self._closed:
            return {}
        names = {queue_of(group.template) for group in hyperjob.replicated_jobs}
        return {name: self._closed[name] for name in names if name in self._closed}

    def _changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Follow a ClusterResourceBinding; report a Queue that other clusters close now."""
        before, now = (None if each is None else closed_queue(each) for each in (old, new))
        if before == now:
            return
        for closed in _known(before):
            self._closed.pop(closed.name, None)
        for closed in _known(now):
            self._closed[closed.name] = closed
        for name in {closed.name for closed in _known(before, now)}:
            self._report(name)


def _known(*found: ClosedQueue | None) -> Iterable[ClosedQueue]:
    return (each for each in found if each is not None)
