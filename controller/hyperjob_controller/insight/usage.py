"""The accelerator seconds of the pods of HyperJobs, counted by the leader while it leads.

It looks at the pods that the members show every few seconds and counts the time since its last
look. Prometheus keeps the sums, and nothing of a deleted HyperJob is needed again. The only state
beside it is in the Lease: until when a scrape has read what was counted. The next leader counts
from there on, so that no time is lost or counted twice. `increase()` does not know what a series
had before its first scrape: a series begins at 0, and its first seconds follow with the next one.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from prometheus_client import Counter

from hyperjob_controller.watchdog import Place
from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import at, integer, mapping, string, timestamp
from hyperjob_core.registry import REGISTRY
from hyperjob_engine.model.members import PodHeld
from hyperjob_engine.model.subjobs import queue_of
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.resources import is_counted

Held = Callable[[datetime], Iterable[tuple[str, Iterable[PodHeld]]]]
"""Returns the members that are known now, and the pods of vcjobs that hold a node of each."""

_EVERY: Final = 5.0
_LONGEST_GAP: Final = timedelta(hours=1)
_STARTS_WITHIN: Final = timedelta(minutes=2)
_MOST_SERIES: Final = 20_000
STOPPING: Final = "stopping"
_USES: Final[Mapping[str, str]] = {
    TimeUse.PRODUCTIVE: "productive",
    TimeUse.FINISHING: "productive",
    TimeUse.STALLED: "stalled",
    TimeUse.DEGRADED: "lost",
    TimeUse.LOST_TO_FAILURES: "lost",
    TimeUse.LOST_TO_PLANNED_STOPS: "lost",
    TimeUse.SUSPENDED: STOPPING,
    TimeUse.STARTING: "starting",
    TimeUse.WAITING_FOR_QUEUE: "starting",
    TimeUse.WAITING_FOR_CAPACITY: "starting",
    TimeUse.BLOCKED: "starting",
}
"""What pods are used for, by the use of the time of their HyperJob."""

_SECONDS: Final = Counter(
    "hyperjob_accelerator_seconds",
    "Seconds times the accelerators that pods of HyperJobs held on nodes, by use: productive,"
    " starting, stalled, lost (repeated steps, and pods that wait for others), stopping",
    ("queue", "namespace", "cluster", "accelerator", "use"),
    registry=REGISTRY,
)


class Usage:
    """Counts what pods hold; the caller runs `run()` while this process leads."""

    place: Final = Place.USAGE

    def __init__(
        self,
        held: Held,
        *,
        job: Callable[[str], Object | None],
        hyperjob: Callable[[str], Object | None],
        now: Callable[[], datetime],
        most_series: int = _MOST_SERIES,
    ) -> None:
        """`job` and `hyperjob` return the object of a key from the caches."""
        self._most = most_series
        self._held = held
        self._job = job
        self._hyperjob = hyperjob
        self._now = now
        self._left: datetime | None = None  # when the leader before counted last
        self._began: datetime | None = None
        self._counted: datetime | None = None
        self._shown: datetime | None = None  # until when the counters have all
        self._read: datetime | None = None  # until when a scrape has read all
        self._pending: defaultdict[tuple[str, ...], float] = defaultdict(float)
        self._last: dict[str, datetime] = {}  # by cluster
        self._queues: dict[str, str] = {}  # of the vcjobs with pods, also without the vcjob
        self._series: set[tuple[str, ...]] = set()

    def restore(self, counted: str) -> None:
        """Count on from the time at which the last leader counted, as it recorded it."""
        self._left = timestamp(counted)

    def record(self) -> str:
        """Return until when scrapes have read what was counted, for the next leader."""
        until = self._read or self._left
        return "" if until is None else micro_time(until)

    def scraped(self) -> None:
        """Show what was counted since the last scrape to the next one; this one has read all."""
        self._read = self._shown or self._read
        begun = self._series.copy()
        for labels in list(self._pending):
            shown = self._bounded(labels)
            _SECONDS.labels(*shown).inc(self._pending.pop(labels) if shown in begun else 0)
        if not self._pending:
            self._shown = self._counted

    async def run(self) -> None:
        """Count every few seconds, until cancelled."""
        while True:
            self.count()
            await asyncio.sleep(_EVERY)

    def count(self) -> None:
        """Count the time since the last look for all pods that hold accelerators now."""
        now = self._now()
        self._began = self._began or now
        found: dict[str, tuple[str, str] | None] = {}
        for cluster, pods in self._held(now):
            seconds = self._elapsed(cluster, now).total_seconds()
            for pod in pods:
                name = f"{pod.namespace}/{pod.job}"
                if name not in found:
                    found[name] = self._use_of(name)
                known = found[name]
                if known is None:
                    continue
                queue, use = known
                for resource, amount in pod.request.items():
                    if is_counted(resource):
                        holds = STOPPING if pod.ending else use
                        labels = (queue, pod.namespace, cluster, resource, holds)
                        self._pending[labels] += amount / NANO * seconds
        self._queues = {name: known[0] for name, known in found.items() if known is not None}
        self._counted = now

    def _elapsed(self, cluster: str, now: datetime) -> timedelta:
        """Return the time since the last look at a cluster.

        The first look of a leader counts from the last one of the leader before.
        """
        before = self._last.get(cluster)
        if before is None and self._began is not None and now - self._began < _STARTS_WITHIN:
            before = self._left
        self._last[cluster] = now
        return min(max(now - (before or now), timedelta()), _LONGEST_GAP)

    def _use_of(self, name: str) -> tuple[str, str] | None:
        """Return queue and use of the pods of a vcjob; None for one of no HyperJob."""
        job = self._job(name)
        if job is None:
            queue = self._queues.get(name)
            return None if queue is None else (queue, STOPPING)
        metadata = mapping(job["metadata"])
        owner = string(at(metadata, "labels", LABEL_HYPERJOB))
        hyperjob = self._hyperjob(f"{string(metadata.get('namespace'))}/{owner}")
        queue = queue_of(mapping(job.get("spec")))
        if hyperjob is None or metadata.get("deletionTimestamp") is not None:
            return queue, STOPPING
        return queue, _use(mapping(hyperjob.get("status")))

    def _bounded(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Return the labels of a series; beyond the bound without the namespace."""
        if labels not in self._series and len(self._series) >= self._most:
            labels = (labels[0], "", *labels[2:])
        self._series.add(labels)
        return labels


def _use(status: Object) -> str:
    """Return what the pods of a HyperJob are used for; steps before the last stop are repeated."""
    use = string(at(status, "goodput", "state"))
    if use == TimeUse.DEGRADED and at(status, "state", "reason") == Reason.QUORUM_MET:
        return _USES[TimeUse.PRODUCTIVE]
    step = integer(at(status, "training", "step"))
    stopped = integer(at(status, "checkpoint", "stoppedStep"))
    if use == TimeUse.PRODUCTIVE and step is not None and stopped is not None and step < stopped:
        return _USES[TimeUse.LOST_TO_FAILURES]
    return STOPPING if status.get("completionTime") else _USES.get(use, "starting")
