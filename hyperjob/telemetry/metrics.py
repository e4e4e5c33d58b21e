"""All metrics of a process, under controller-runtime's and client-go's own names.

Dashboards and alerts made for Go controllers work unchanged; what is ours begins with `hyperjob_`.
No label ever holds the name of an object. `Metrics` fits the protocols of
`hyperjob.kube.instruments` by its shape and is handed in at the start of the process.
"""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from time import perf_counter
from typing import Protocol

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    ProcessCollector,
    disable_created_metrics,
)

import hyperjob
from hyperjob.telemetry.families import Families
from hyperjob.telemetry.reviews import Reviews

_RECONCILE_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8),
    *(0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30),
    *(40, 50, 60),
)
_QUEUE_BUCKETS = tuple(1e-8 * 10**power for power in range(12))


class ReconcileResult(StrEnum):
    """How a reconciliation ended."""

    SUCCESS = "success"
    ERROR = "error"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"


class Queue(Protocol):
    """A work queue as the gauges see it."""

    def depth(self) -> int:
        """Count the items that wait."""
        ...

    def unfinished_seconds(self) -> float:
        """Sum the time of all items in work."""
        ...

    def longest_running_seconds(self) -> float:
        """Return the time of the item that is longest in work."""
        ...


class Metrics:
    """One registry and everything in it; a process has one of these."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        # Go exposes no creation times, and they would double the number of series.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs has no types
        self.registry = registry or CollectorRegistry()
        self.families = Families(self.registry)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._controller_metrics()
        self._webhook_metrics()
        self._queue_metrics()
        self._client_metrics()
        build = self.families.gauge(
            "hyperjob_build_info", "Version of HyperJob and Python", "version", "python"
        )
        build.labels(hyperjob.__version__, platform.python_version()).set(1)

    def _controller_metrics(self) -> None:
        one = "controller_runtime_"
        self._reconciles = self.families.counter(
            f"{one}reconcile_total", "Reconciliations by result", "controller", "result"
        )
        self._reconcile_errors = self.families.counter(
            f"{one}reconcile_errors_total", "Reconciliations that failed", "controller"
        )
        self._terminal_errors = self.families.counter(
            f"{one}terminal_reconcile_errors_total",
            "Reconciliations that failed and are not tried again",
            "controller",
        )
        self._reconcile_time = self.families.histogram(
            f"{one}reconcile_time_seconds",
            "Length of a reconciliation",
            "controller",
            buckets=_RECONCILE_BUCKETS,
        )
        self._active_workers = self.families.gauge(
            f"{one}active_workers", "Workers in a reconciliation", "controller"
        )
        self._max_workers = self.families.gauge(
            f"{one}max_concurrent_reconciles", "Most reconciliations at once", "controller"
        )

    def _webhook_metrics(self) -> None:
        self._reviews = Reviews(self.families)
        self._certificate_reads = self.families.counter(
            "certwatcher_read_certificate_total", "Certificate reads"
        )
        self._certificate_errors = self.families.counter(
            "certwatcher_read_certificate_errors_total", "Certificate reads that failed"
        )

    def _queue_metrics(self) -> None:
        labels = ("name", "controller")
        self._queue_depth = self.families.gauge("workqueue_depth", "Items that wait", *labels)
        self._queue_adds = self.families.counter("workqueue_adds_total", "Items added", *labels)
        self._queue_retries = self.families.counter(
            "workqueue_retries_total", "Items put off", *labels
        )
        self._queue_wait = self.families.histogram(
            "workqueue_queue_duration_seconds",
            "How long items wait",
            *labels,
            buckets=_QUEUE_BUCKETS,
        )
        self._queue_work = self.families.histogram(
            "workqueue_work_duration_seconds",
            "How long items are in work",
            *labels,
            buckets=_QUEUE_BUCKETS,
        )
        self._queue_unfinished = self.families.gauge(
            "workqueue_unfinished_work_seconds", "Time of all items now in work", *labels
        )
        self._queue_longest = self.families.gauge(
            "workqueue_longest_running_processor_seconds",
            "Time of the item that is longest in work",
            *labels,
        )

    def _client_metrics(self) -> None:
        self._requests = self.families.counter(
            "rest_client_requests_total", "API calls by status", "code", "method", "host"
        )
        self._leader = self.families.gauge(
            "leader_election_master_status", "1 while leading", "name"
        )
        self._lists = self.families.counter(
            "hyperjob_informer_lists_total", "Full lists by informers", "resource"
        )
        self._watches = self.families.counter(
            "hyperjob_informer_watches_total", "Watches that ended", "resource"
        )
        self._short_watches = self.families.counter(
            "hyperjob_informer_short_watches_total",
            "Watches that ended at once and brought nothing",
            "resource",
        )
        self._events_dropped = self.families.counter(
            "hyperjob_events_dropped_total", "Kubernetes Events that were not recorded", "reason"
        )

    def controller_started(self, controller: str, *, workers: int) -> None:
        """Show a controller and its number of workers, with zeros for all that may come."""
        self._max_workers.labels(controller).set(workers)
        self._active_workers.labels(controller)
        self._reconcile_errors.labels(controller)
        self._terminal_errors.labels(controller)
        for result in ReconcileResult:
            self._reconciles.labels(controller, result.value)

    @contextmanager
    def reconciling(self, controller: str) -> Iterator[None]:
        """Count a worker as active and observe how long it was."""
        started = perf_counter()
        with self._active_workers.labels(controller).track_inprogress():
            try:
                yield
            finally:
                self._reconcile_time.labels(controller).observe(perf_counter() - started)

    def reconciled(
        self, controller: str, result: ReconcileResult, *, terminal: bool = False
    ) -> None:
        """Count a reconciliation; `terminal` for an error that is not tried again."""
        self._reconciles.labels(controller, result.value).inc()
        if result is ReconcileResult.ERROR:
            self._reconcile_errors.labels(controller).inc()
            if terminal:
                self._terminal_errors.labels(controller).inc()

    def webhook_started(self, webhook: str) -> None:
        """Count an admission request as being served."""
        self._reviews.started(webhook)

    def webhook_done(self, webhook: str, *, code: int, seconds: float) -> None:
        """Count an admission request as answered with an HTTP status."""
        self._reviews.done(webhook, code=code, seconds=seconds)

    def certificate_read(self, *, failed: bool = False) -> None:
        """Count one read of the serving certificate."""
        self._certificate_reads.inc()
        if failed:
            self._certificate_errors.inc()

    def show_certificate(self, expiry: Callable[[], float]) -> None:
        """Show when the served certificate ends, in seconds since 1970, as `expiry` says."""
        self.families.computed(
            "hyperjob_certificate_expiry_timestamp_seconds",
            "When the served certificate ends, in seconds since 1970",
            samples=lambda: [((), expiry())],
        )

    def request_done(self, *, code: str, method: str, host: str) -> None:
        """Count one API call."""
        self._requests.labels(code, method, host).inc()

    def informer_list(self, resource: str) -> None:
        """Count one full list."""
        self._lists.labels(resource).inc()

    def informer_watch(self, resource: str, *, short: bool) -> None:
        """Count one watch that ended."""
        self._watches.labels(resource).inc()
        if short:
            self._short_watches.labels(resource).inc()

    def queue_started(self, name: str, stats: Queue) -> None:
        """Ask this queue for its gauges whenever they are read."""
        self._queue_depth.labels(name, name).set_function(stats.depth)
        self._queue_unfinished.labels(name, name).set_function(stats.unfinished_seconds)
        self._queue_longest.labels(name, name).set_function(stats.longest_running_seconds)
        self._queue_adds.labels(name, name)
        self._queue_retries.labels(name, name)

    def queue_added(self, name: str) -> None:
        """Count one item that was taken in."""
        self._queue_adds.labels(name, name).inc()

    def queue_retried(self, name: str) -> None:
        """Count one item that was put off."""
        self._queue_retries.labels(name, name).inc()

    def queue_waited(self, name: str, seconds: float) -> None:
        """Observe how long an item waited."""
        self._queue_wait.labels(name, name).observe(seconds)

    def queue_worked(self, name: str, seconds: float) -> None:
        """Observe how long an item was in work."""
        self._queue_work.labels(name, name).observe(seconds)

    def leader_changed(self, name: str, *, leading: bool) -> None:
        """Show whether this process leads."""
        self._leader.labels(name).set(1 if leading else 0)

    def event_dropped(self, reason: str) -> None:
        """Count one Kubernetes Event that was not recorded."""
        self._events_dropped.labels(reason).inc()
