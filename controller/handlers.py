"""Which HyperJobs a change concerns, and when they are to be looked at.

Only queues keys; never reads what a HyperJob says.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from controller.caches import Caches, hyperjob_keys, job_key_of_binding
from controller.ledger import Ledger
from controller.model.parse import condition
from controller.model.wire import at, mapping, objects, string
from hyperjob.api.meta import Object
from hyperjob.api.names import GATE, MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob.kube.client import EventType
from hyperjob.kube.resources import key_of
from hyperjob.kube.workqueue import WorkQueue

# Pods of a job change together; a pass for each of them would write a status for each.
SETTLE_SECONDS: Final = 0.1

# What a pass reads of each kind: other changes, such as those of a status that only we write, make
# no pass.
_METADATA: Final = (
    ("metadata", "deletionTimestamp"),
    ("metadata", "labels"),
    ("metadata", "ownerReferences"),
)
_HYPERJOB: Final = (
    ("metadata", "generation"),
    ("metadata", "annotations", RESTART_REQUEST),
    ("metadata", "annotations", MIGRATE_REQUEST),
    *_METADATA,
)
_CHILD: Final = (*_METADATA, ("spec",), ("status",))
_BINDING: Final = (
    *_METADATA,
    ("metadata", "annotations", GATE),
    ("spec", "clusters"),
    ("spec", "placement"),
    ("spec", "suspension"),
    ("status", "conditions"),
    ("status", "aggregatedStatus"),
)
_CLUSTER: Final = (
    ("metadata", "deletionTimestamp"),
    ("spec",),
    ("status", "conditions"),
    ("status", "resourceSummary"),
    ("status", "apiEnablements"),
)


class Handlers:
    """Connects the caches to the queue."""

    def __init__(
        self, caches: Caches, queue: WorkQueue[str], *, now: Callable[[], datetime]
    ) -> None:
        self._caches = caches
        self._queue = queue
        self._now = now
        self._waiting: dict[str, None] = {}
        self._ledger: Ledger | None = None
        self._also: Callable[[], None] | None = None

    def tell_too(self, wake: Callable[[], None]) -> None:
        """Have somebody else told as well whenever capacity may have become free."""
        self._also = wake

    def connect(self, ledger: Ledger) -> None:
        """Start to listen; what the caches hold already is told at once."""
        self._ledger = ledger
        self._caches.hyperjobs.add_handler(self._hyperjob)
        self._caches.jobs.add_handler(self._child)
        self._caches.policies.add_handler(self._child)
        self._caches.bindings.add_handler(self._binding)
        self._caches.clusters.add_handler(self._cluster)

    def waits(self, key: str, waiting: bool) -> None:
        """Remember whether a HyperJob waits for capacity."""
        if waiting:
            self._waiting[key] = None
        else:
            self._waiting.pop(key, None)

    def contended(self, key: str) -> bool:
        """Tell whether another HyperJob waits for capacity."""
        return len(self._waiting) > (key in self._waiting)

    def freed(self) -> None:
        """Look again at every HyperJob that waits for capacity, the longest waiting first."""
        if self._also is not None:
            self._also()
        for key in self._waiting:
            self._queue.add_after(key, SETTLE_SECONDS)

    def _hyperjob(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        if obj is None or (kind is EventType.MODIFIED and _same(old, new, _HYPERJOB)):
            return
        self._queue.add(key_of(obj))

    def _child(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        if obj is None or (kind is EventType.MODIFIED and _same(old, new, _CHILD)):
            return
        self._update(key_of(obj))
        urgent = kind is not EventType.MODIFIED
        for key in sorted({*hyperjob_keys(obj), *(hyperjob_keys(old) if old else ())}):
            self._queue.add_after(key, 0 if urgent else SETTLE_SECONDS)

    def _binding(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        job_key = job_key_of_binding(obj) if obj is not None else None
        if job_key is None or (kind is EventType.MODIFIED and _same(old, new, _BINDING)):
            return
        self._update(job_key)
        job = self._caches.job(job_key)
        for key in sorted(hyperjob_keys(job) if job is not None else ()):
            self._queue.add_after(key, SETTLE_SECONDS)

    def _cluster(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        if kind is not EventType.MODIFIED or not _same(old, new, _CLUSTER):
            self.freed()
        if kind is EventType.DELETED or _readiness(old) != _readiness(new):
            self._concern(string(at(new if new is not None else old, "metadata", "name")))

    def _concern(self, cluster: str) -> None:
        """Look again at the HyperJobs that have sub-jobs on a cluster that goes or comes back."""
        for obj in self._caches.hyperjobs.items():
            jobs = objects(at(obj, "status", "jobs"))
            if any(job.get("cluster") == cluster for job in jobs):
                self._queue.add(key_of(obj))

    def _update(self, job_key: str) -> None:
        if self._ledger is not None:
            self._ledger.update(job_key, now=self._now())


def _readiness(cluster: Object | None) -> object:
    return condition(mapping(at(cluster, "status")), "Ready").get("status")


def _same(old: Object | None, new: Object | None, paths: Iterable[tuple[str, ...]]) -> bool:
    """Tell whether nothing changed that anything depends on."""
    return all(at(old, *path) == at(new, *path) for path in paths)
