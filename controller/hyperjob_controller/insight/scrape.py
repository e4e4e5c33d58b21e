"""The metrics that are computed at a scrape, from the HyperJobs, the clusters and the mode."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from hyperjob_controller.insight.measures import Meter
from hyperjob_controller.insight.queues import queue_metrics
from hyperjob_core.api.quantity import NANO
from hyperjob_core.registry import filled
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.queueing.state import QueueState
from hyperjob_engine.resources import Resources, is_counted

Accelerators = Callable[[datetime], tuple[Iterable[Cluster], Mapping[str, Resources]]]
"""Returns the clusters, and by name what sub-jobs hold of them that they do not report yet."""


class Scrape(Collector):
    """Computes the metrics of one controller."""

    def __init__(
        self,
        accelerators: Accelerators,
        *,
        meter: Meter,
        mode: Callable[[], str],
        now: Callable[[], datetime],
        scraped: Callable[[], None] = lambda: None,
        queues: Callable[[], QueueState | None] = lambda: None,
    ) -> None:
        """Compute from `accelerators`, `mode`, and the changes that `meter` saw."""
        self._accelerators = accelerators
        self._meter = meter
        self._mode = mode
        self._now = now
        self._scraped = scraped
        self._queues = queues

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with its present samples."""
        self._scraped()  # after the counters of modules, which are registered first
        text = "HyperJobs whose programs have reported progress"
        yield filled(
            Gauge("hyperjob_training_reporting", text, labels=()), [((), self._meter.reporting)]
        )
        text = "The present queue admission has the value 1"
        yield filled(
            Gauge("hyperjob_queue_admission", text, labels=("mode",)), [((self._mode(),), 1.0)]
        )
        for name, kind, phases in (
            ("hyperjob_hyperjobs", "HyperJobs", self._meter.phases),
            ("hyperjob_jobs", "Sub-jobs", self._meter.job_phases),
        ):
            family = Gauge(name, f"{kind} by phase", labels=("phase",))
            yield filled(family, (((phase,), number) for phase, number in phases.items()))
        yield from queue_metrics(self._queues())
        yield from self._devices(self._now())

    def _devices(self, now: datetime) -> Iterator[Metric]:
        """Yield the accelerators by cluster and type."""
        allocatable, free, reserved = (
            Gauge(f"hyperjob_accelerators_{state}", text, labels=("cluster", "type"))
            for state, text in (
                ("allocatable", "Allocatable devices of a cluster"),
                ("free", "Devices that are free for placement"),
                (
                    "reserved",
                    "Devices of placed sub-jobs that the Cluster's status does not include yet",
                ),
            )
        )
        clusters, held = self._accelerators(now)
        for cluster in clusters:
            for name in filter(is_counted, sorted(cluster.allocatable)):
                labels, taken = (cluster.name, name), held.get(cluster.name, {}).get(name, 0)
                allocatable.add_metric(labels, cluster.allocatable[name] / NANO)
                reserved.add_metric(labels, taken / NANO)
            for name in filter(is_counted, sorted(cluster.free)):
                # A reservation and a late summary may count the same pods; no device is negative.
                free.add_metric((cluster.name, name), max(0, cluster.free[name]) / NANO)
        yield from (allocatable, free, reserved)
