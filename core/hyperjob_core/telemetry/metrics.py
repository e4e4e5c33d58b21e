"""All metrics of a process, with the names of controller-runtime and client-go.

Dashboards and alerts for Go controllers work unchanged; HyperJob's own metrics begin with
`hyperjob_`. No label has the name of an object. `Metrics` implements the protocols of
`hyperjob_core.kube.instruments`; the process passes it to them at its start.
"""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import lru_cache
from time import perf_counter
from typing import Protocol, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

import hyperjob_core
from hyperjob_core.telemetry.families import Families
from hyperjob_core.telemetry.reviews import Reviews

_RECONCILE_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8),
    *(0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30),
    *(40, 50, 60),
)
_QUEUE_BUCKETS = tuple(1e-8 * 10**power for power in range(12))
_KEPT = 256
"""The series of frequent metrics that need no look-up in the library."""

M = TypeVar("M", Counter, Gauge, Histogram)


def _series_of(metric: M, *values: str) -> M:
    return metric.labels(*values)


class ReconcileResult(StrEnum):
    """The result of a reconciliation."""

    SUCCESS = "success"
    ERROR = "error"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"


class Place(StrEnum):
    """Where in the controller an unexpected exception was caught, or a turn took too long."""

    RECONCILE = "pass"
    ROUND = "round"
    EVENT = "event"
    FORECAST = "forecast"
    MESSAGES = "messages"
    PROGRESS = "progress"
    CAUSES = "causes"
    MEMBERS = "members"
    SPLITTER = "splitter"
    INFORMER = "informer"
    EVENTS = "events"
    TRAINJOBS = "trainjobs"
    LEASE = "lease"
    LOOP = "loop"


class Queue(Protocol):
    """The statistics of a workqueue for its gauges."""

    def depth(self) -> int:
        """Return the number of waiting items."""
        ...

    def unfinished_seconds(self) -> float:
        """Return the total processing time so far of items in process, in seconds."""
        ...

    def longest_running_seconds(self) -> float:
        """Return the processing time so far of the oldest item in process, in seconds."""
        ...


class Metrics:
    """The registry of a process and its metrics."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        # Go clients expose no creation times, which would double the number of series.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs has no types
        self.registry = registry or CollectorRegistry()
        self.families = Families(self.registry)
        # The library looks for a series under a lock, with a new tuple of texts.
        self._series = lru_cache(maxsize=_KEPT)(_series_of)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._controller_metrics()
        self._webhook_metrics()
        self._queue_metrics()
        self._client_metrics()
        build = self.families.gauge(
            "hyperjob_build_info", "Version of HyperJob and Python", "version", "python"
        )
        build.labels(hyperjob_core.__version__, platform.python_version()).set(1)

    def _controller_metrics(self) -> None:
        """Register controller-runtime's metrics, and those of internal errors."""
        one = "controller_runtime_"
        self._reconciles = self.families.counter(
            f"{one}reconcile_total", "Reconciliations by result", "controller", "result"
        )
        self._reconcile_errors = self.families.counter(
            f"{one}reconcile_errors_total", "Reconciliations that failed", "controller"
        )
        self._terminal_errors = self.families.counter(
            f"{one}terminal_reconcile_errors_total",
            "Reconciliations that failed and are not retried",
            "controller",
        )
        self._reconcile_time = self.families.histogram(
            f"{one}reconcile_time_seconds",
            "Duration of a reconciliation",
            "controller",
            buckets=_RECONCILE_BUCKETS,
        )
        self._active_workers = self.families.gauge(
            f"{one}active_workers", "Active workers", "controller"
        )
        self._internal_errors = self.families.counter(
            "hyperjob_internal_errors_total",
            "Unexpected exceptions, by the part of the controller in which it caught them; the"
            " HyperJob or the feature is set aside and tried again later",
            "place",
        )
        self._slow_turns = self.families.counter(
            "hyperjob_slow_turns_total",
            "Times that the event loop stood still for more than a second, by the part of the"
            " controller that worked for one object meanwhile; `loop`: no single object",
            "place",
        )
        for place in Place:
            self._internal_errors.labels(place)
            self._slow_turns.labels(place)
        self._degraded = self.families.gauge(
            "hyperjob_feature_degraded",
            "1 while a part of the controller has stopped after an unexpected exception, else 0",
            "place",
        )
        self._max_workers = self.families.gauge(
            f"{one}max_concurrent_reconciles",
            "Maximum number of concurrent reconciliations",
            "controller",
        )

    def _webhook_metrics(self) -> None:
        """Register the metrics of reviews and certificates."""
        self._reviews = Reviews(self.families)
        self._certificate_reads = self.families.counter(
            "certwatcher_read_certificate_total", "Certificate reads"
        )
        self._certificate_errors = self.families.counter(
            "certwatcher_read_certificate_errors_total", "Certificate reads that failed"
        )

    def _queue_metrics(self) -> None:
        """Register client-go's metrics of workqueues."""
        labels = ("name", "controller")
        self._queue_depth = self.families.gauge(
            "workqueue_depth", "Items that wait in the workqueue", *labels
        )
        self._queue_adds = self.families.counter(
            "workqueue_adds_total", "Items added to the workqueue", *labels
        )
        self._queue_retries = self.families.counter(
            "workqueue_retries_total", "Items requeued with a delay", *labels
        )
        self._queue_wait = self.families.histogram(
            "workqueue_queue_duration_seconds",
            "Time that items wait in the workqueue",
            *labels,
            buckets=_QUEUE_BUCKETS,
        )
        self._queue_work = self.families.histogram(
            "workqueue_work_duration_seconds",
            "Processing time of items",
            *labels,
            buckets=_QUEUE_BUCKETS,
        )
        self._queue_unfinished = self.families.gauge(
            "workqueue_unfinished_work_seconds",
            "Total processing time so far of items in process",
            *labels,
        )
        self._queue_longest = self.families.gauge(
            "workqueue_longest_running_processor_seconds",
            "Processing time so far of the oldest item in process",
            *labels,
        )

    def _client_metrics(self) -> None:
        """Register the metrics of requests, informers, the Lease and Events."""
        self._requests = self.families.counter(
            "rest_client_requests_total",
            "Requests to the API server by status code",
            "code",
            "method",
            "host",
        )
        self._leader = self.families.gauge(
            "leader_election_master_status", "1 while this process leads, else 0", "name"
        )
        self._lists = self.families.counter(
            "hyperjob_informer_lists_total", "Lists by informers", "resource"
        )
        self._watches = self.families.counter(
            "hyperjob_informer_watches_total", "Watches that ended", "resource"
        )
        self._short_watches = self.families.counter(
            "hyperjob_informer_short_watches_total",
            "Watches that ended at once without an event",
            "resource",
        )
        self._events_dropped = self.families.counter(
            "hyperjob_events_dropped_total",
            "Kubernetes Events that could not be recorded",
            "reason",
        )
        for reason in ("spam", "full", "failed"):
            self._events_dropped.labels(reason)

    def controller_started(self, controller: str, *, workers: int) -> None:
        """Set the number of workers of a controller, and its other series to zero."""
        self._max_workers.labels(controller).set(workers)
        self._active_workers.labels(controller)
        self._reconcile_errors.labels(controller)
        self._terminal_errors.labels(controller)
        for place in Place:
            self._degraded.labels(place)
        for result in ReconcileResult:
            self._reconciles.labels(controller, result.value)

    @contextmanager
    def reconciling(self, controller: str) -> Iterator[None]:
        """Count an active worker, and observe the duration of the block."""
        started = perf_counter()
        with self._series(self._active_workers, controller).track_inprogress():
            try:
                yield
            finally:
                self._series(self._reconcile_time, controller).observe(perf_counter() - started)

    def reconciled(
        self, controller: str, result: ReconcileResult, *, terminal: bool = False
    ) -> None:
        """Count a reconciliation; `terminal` for an error that is not retried."""
        self._series(self._reconciles, controller, result.value).inc()
        if result is ReconcileResult.ERROR:
            self._reconcile_errors.labels(controller).inc()
            if terminal:
                self._terminal_errors.labels(controller).inc()

    def internal_error(self, place: Place) -> None:
        """Count an unexpected exception."""
        self._internal_errors.labels(place).inc()

    def slow_turn(self, place: Place) -> None:
        """Count a turn of the event loop that took too long."""
        self._slow_turns.labels(place).inc()

    def degraded(self, place: Place, *, stopped: bool) -> None:
        """Show whether a part of the controller has stopped."""
        self._degraded.labels(place).set(1 if stopped else 0)

    def webhook_started(self, webhook: str) -> None:
        """Count an admission request as being served."""
        self._reviews.started(webhook)

    def webhook_done(self, webhook: str, *, code: int, seconds: float) -> None:
        """Count an admission request as answered with an HTTP status."""
        self._reviews.done(webhook, code=code, seconds=seconds)

    def certificate_read(self, *, failed: bool = False) -> None:
        """Count a read of the serving certificate."""
        self._certificate_reads.inc()
        if failed:
            self._certificate_errors.inc()

    def show_certificate(self, expiry: Callable[[], float]) -> None:
        """Show the expiry of the serving certificate, in seconds since 1970, from `expiry`."""
        self.families.computed(
            "hyperjob_certificate_expiry_timestamp_seconds",
            "Expiry of the serving certificate, in seconds since 1970",
            samples=lambda: [((), expiry())],
        )

    def request_done(self, *, code: str, method: str, host: str) -> None:
        """Count a request to the API server."""
        self._series(self._requests, code, method, host).inc()

    def informer_list(self, resource: str) -> None:
        """Count a list by an informer."""
        self._lists.labels(resource).inc()
        self._short_watches.labels(resource)  # an alert needs the series before its first count

    def informer_watch(self, resource: str, *, short: bool) -> None:
        """Count a watch that has ended."""
        self._watches.labels(resource).inc()
        if short:
            self._short_watches.labels(resource).inc()

    def queue_started(self, name: str, stats: Queue) -> None:
        """Show the gauges of a workqueue, read from `stats` at each scrape."""
        self._queue_depth.labels(name, name).set_function(stats.depth)
        self._queue_unfinished.labels(name, name).set_function(stats.unfinished_seconds)
        self._queue_longest.labels(name, name).set_function(stats.longest_running_seconds)
        self._queue_adds.labels(name, name)
        self._queue_retries.labels(name, name)

    def queue_added(self, name: str) -> None:
        """Count an added item."""
        self._series(self._queue_adds, name, name).inc()

    def queue_retried(self, name: str) -> None:
        """Count an item requeued with a delay."""
        self._series(self._queue_retries, name, name).inc()

    def queue_waited(self, name: str, seconds: float) -> None:
        """Observe the waiting time of an item."""
        self._series(self._queue_wait, name, name).observe(seconds)

    def queue_worked(self, name: str, seconds: float) -> None:
        """Observe the processing time of an item."""
        self._series(self._queue_work, name, name).observe(seconds)

    def leader_changed(self, name: str, *, leading: bool) -> None:
        """Show whether this process leads."""
        self._leader.labels(name).set(1 if leading else 0)

    def event_dropped(self, reason: str) -> None:
        """Count a Kubernetes Event that could not be recorded."""
        self._events_dropped.labels(reason).inc()
