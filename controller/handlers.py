"""Which HyperJobs a change concerns, and when they are to be looked at.

Only queues keys; never reads what a HyperJob says.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from controller.caches import Caches, hyperjob_keys, job_key_of_binding
from controller.firstinline import FirstInLine
from controller.ledger import Ledger
from controller.model.parse import condition
from controller.model.planned import Plan
from controller.model.resources import Resources, parse_resources, subtract, total
from controller.model.wire import at, mapping, objects, string
from controller.queueing.units import OrderInQueue
from controller.waiting import SETTLE_SECONDS, Waiting
from hyperjob.api.meta import Object
from hyperjob.api.names import GATE, MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob.kube.client import EventType
from hyperjob.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
    key_of,
)
from hyperjob.kube.workqueue import WorkQueue

# What a pass reads of each kind: other changes make no pass.
_METADATA: Final = (
    ("metadata", "deletionTimestamp"),
    ("metadata", "labels"),
    ("metadata", "ownerReferences"),
)
_LIVES: Final = (("metadata", "uid"), ("metadata", "deletionTimestamp"))
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
    ("spec", "replicaRequirements"),
    ("spec", "suspension"),
    ("status", "conditions"),
    ("status", "aggregatedStatus"),
)
_CANDIDACY: Final = (
    ("metadata", "deletionTimestamp"),
    ("spec",),
    ("status", "conditions"),
    ("status", "apiEnablements"),
)
_CLUSTER: Final = (*_CANDIDACY, ("status", "resourceSummary"))


class Handlers:
    """Connects the caches to the queue."""

    def __init__(
        self, caches: Caches, queue: WorkQueue[str], *, now: Callable[[], datetime]
    ) -> None:
        self._caches = caches
        self._queue = queue
        self._now = now
        self._waiting = Waiting(queue.add_after)
        self.line = FirstInLine(self._waiting)
        self._room: Callable[[str], Resources | None] = _unknown
        self._ledger: Ledger | None = None
        self._also: Callable[[], None] | None = None
        self._settle: Callable[[str], float] = _soon

    def pace(self, settle_seconds: Callable[[str], float]) -> None:
        """Have somebody else say how soon changes of a HyperJob's sub-jobs are looked at."""
        self._settle = settle_seconds

    def tell_too(self, wake: Callable[[], None]) -> None:
        """Have somebody else told as well whenever capacity may have become free."""
        self._also = wake

    def connect(self, ledger: Ledger, room: Callable[[str], Resources | None]) -> None:
        """Start to listen; what the caches hold already is told at once.

        `room` gives what a cluster has free, None for one that is no candidate.
        """
        self._ledger = ledger
        self._room = room
        self._caches.add_handler(HYPERJOBS, self._hyperjob)
        self._caches.add_handler(VCJOBS, self._child)
        self._caches.add_handler(PROPAGATION_POLICIES, self._child)
        self._caches.add_handler(RESOURCE_BINDINGS, self._binding)
        self._caches.clusters.add_handler(self._cluster)

    @property
    def waiting(self) -> Waiting:
        """Give the HyperJobs that wait for capacity."""
        return self._waiting

    def waits(self, order: OrderInQueue, decided: Plan) -> None:
        """Remember what a HyperJob could not place, or that it waits for no capacity."""
        key = order[2]
        if decided.waits_for_capacity:
            changed = self._waiting.put(order, needs=decided.needs, claim=decided.claim)
            changed = changed or self._waiting.keeps_time(key)
        else:
            changed = self._waiting.drop(key)
        if changed:
            self.line.look_again()

    def priorities_changed(self) -> None:
        """Look again at all that wait, whose order may be another now."""
        for order, _ in self._waiting.claims():
            self._queue.add(order[2])

    def freed(self, cluster: str) -> None:
        """Look again at the HyperJobs that can use what a cluster has free now."""
        if self._also is not None:
            self._also()
        self.line.changed()
        room = self._room(cluster)
        if room is not None:
            self.line.wake(cluster, room)

    def _hyperjob(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        key, status = key_of(obj), at(obj, "status")
        if kind is not EventType.MODIFIED or not _same(old, new, _LIVES):
            for job in self._caches.jobs_of(key):
                self._update(key_of(job))
        if (
            kind is EventType.MODIFIED
            and _same(old, new, _HYPERJOB)
            and (at(old, "status") == status or self._caches.is_expected(key, status))
        ):
            return
        self._queue.add(key)

    def _child(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        if obj is None or (kind is EventType.MODIFIED and _same(old, new, _CHILD)):
            return
        self._update(key_of(obj))
        urgent = kind is not EventType.MODIFIED
        for key in sorted({*hyperjob_keys(obj), *(hyperjob_keys(old) if old else ())}):
            self._queue.add_after(key, 0 if urgent else self._settle(key))

    def _binding(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        job_key = job_key_of_binding(obj) if obj is not None else None
        if job_key is None or (kind is EventType.MODIFIED and _same(old, new, _BINDING)):
            return
        self._update(job_key)
        job = self._caches.job(job_key)
        keys = hyperjob_keys(job) if job is not None else self._namesakes(job_key)
        for key in sorted(keys):
            self._queue.add_after(key, self._settle(key))

    def _namesakes(self, job_key: str) -> list[str]:
        """Give the HyperJobs whose sub-job a vcjob that is gone may have been, by its name."""
        ends = (number for number, letter in enumerate(job_key) if letter == "-")
        return [job_key[:end] for end in ends if self._caches.hyperjob(job_key[:end]) is not None]

    def _cluster(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        name = string(at(new if new is not None else old, "metadata", "name"))
        if kind is not EventType.MODIFIED or not _same(old, new, _CLUSTER):
            if kind is EventType.DELETED or _only_shrank(old, new):
                self._waiting.refresh()
                self.line.look_again()
                if self._also is not None:
                    self._also()
            else:
                self.freed(name)
        if kind is EventType.DELETED or _readiness(old) != _readiness(new):
            self._concern(name)

    def _concern(self, cluster: str) -> None:
        """Look again at the HyperJobs that have sub-jobs on a cluster that goes or comes back."""
        for obj in self._caches.hyperjobs.items():
            jobs = objects(at(obj, "status", "jobs"))
            if any(job.get("cluster") == cluster for job in jobs):
                self._queue.add(key_of(obj))

    def _update(self, job_key: str) -> None:
        if self._ledger is not None:
            self._ledger.update(job_key, now=self._now())


def _soon(_key: str) -> float:
    return SETTLE_SECONDS


def _unknown(cluster: str) -> Resources | None:
    raise AssertionError(f"asked for the room of {cluster} before it was connected")


def _only_shrank(old: Object | None, new: Object | None) -> bool:
    """Tell whether a cluster stayed as it was and no resource of it became more free."""
    if old is None or not _same(old, new, _CANDIDACY):
        return False
    before, after = _free(old), _free(new)
    return all(amount <= before.get(name, 0) for name, amount in after.items())


def _free(cluster: Object | None) -> dict[str, int]:
    summary = mapping(at(cluster, "status", "resourceSummary"))
    taken = [parse_resources(summary.get(part)) for part in ("allocated", "allocating")]
    return subtract(parse_resources(summary.get("allocatable")), total(taken))


def _readiness(cluster: Object | None) -> object:
    return condition(mapping(at(cluster, "status")), "Ready").get("status")


def _same(old: Object | None, new: Object | None, paths: Iterable[tuple[str, ...]]) -> bool:
    """Tell whether nothing changed that anything depends on."""
    return all(at(old, *path) == at(new, *path) for path in paths)
