"""Families of time series: made in one registry, and remembered for the reference page.

Knows nothing of what is measured.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

Samples = Callable[[], Iterable[tuple[tuple[str, ...], float]]]


@dataclass(frozen=True, slots=True)
class Family:
    """What is told about one metric."""

    name: str
    type: str
    text: str
    labels: tuple[str, ...]


class Families:
    """Makes metrics in a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.known: list[Family] = []

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Make a metric that only grows."""
        self.known.append(Family(name, "counter", text, labels))
        return Counter(name, text, labels, registry=self.registry)

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        """Make a metric that is set."""
        self.known.append(Family(name, "gauge", text, labels))
        return Gauge(name, text, labels, registry=self.registry)

    def histogram(
        self, name: str, text: str, *labels: str, buckets: tuple[float, ...]
    ) -> Histogram:
        """Make a metric of how long, or how large, things are."""
        self.known.append(Family(name, "histogram", text, labels))
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

    def computed(self, name: str, text: str, *labels: str, samples: Samples) -> None:
        """Make a gauge whose series are found when they are asked for, and no sooner."""
        self.known.append(Family(name, "gauge", text, labels))
        self.registry.register(_Computed(self.known[-1], samples))


class _Computed(Collector):
    def __init__(self, family: Family, samples: Samples) -> None:
        self._family = family
        self._samples = samples

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield self._empty()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = self._empty()
        for labels, value in self._samples():
            family.add_metric(labels, value)
        yield family

    def _empty(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(self._family.name, self._family.text, labels=self._family.labels)
