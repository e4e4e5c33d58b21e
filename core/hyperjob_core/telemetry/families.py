"""Families of time series: registered in a registry, and listed for the reference page.

Other modules define the metrics.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Generic, TypeAlias, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

T = TypeVar("T")
Labels: TypeAlias = tuple[str, ...]
Sample: TypeAlias = tuple[Labels, float]
Samples: TypeAlias = Callable[[], Iterable[Sample]]


@dataclass(frozen=True, slots=True)
class Family:
    """The description of one metric."""

    name: str
    type: str
    text: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """The counts of values within each bound, the last for +Inf; `total` is the sum of values."""

    bounds: Sequence[float]
    within: Sequence[int]
    total: float


Distributions: TypeAlias = Callable[[], Iterable[tuple[Labels, Distribution]]]
Maker: TypeAlias = Callable[[Family, Iterable[T]], Metric]


class Families:
    """Registers metrics in a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.known: list[Family] = []

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Register a counter."""
        self.known.append(Family(name, "counter", text, labels))
        return Counter(name, text, labels, registry=self.registry)

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        """Register a gauge."""
        self.known.append(Family(name, "gauge", text, labels))
        return Gauge(name, text, labels, registry=self.registry)

    def histogram(
        self, name: str, text: str, *labels: str, buckets: tuple[float, ...]
    ) -> Histogram:
        """Register a histogram with these buckets."""
        self.known.append(Family(name, "histogram", text, labels))
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

    def computed(self, name: str, text: str, *labels: str, samples: Samples) -> None:
        """Register a gauge whose series are computed at each scrape."""
        self._collect(
            Family(name, "gauge", text, labels), samples, partial(_numbers, GaugeMetricFamily)
        )

    def counted(self, name: str, text: str, *labels: str, samples: Samples) -> None:
        """Register a counter whose series are computed at each scrape."""
        self._collect(
            Family(name, "counter", text, labels), samples, partial(_numbers, CounterMetricFamily)
        )

    def distributed(self, name: str, text: str, *labels: str, samples: Distributions) -> None:
        """Register a histogram whose series are computed at each scrape."""
        self._collect(Family(name, "histogram", text, labels), samples, _histogram)

    def _collect(self, family: Family, samples: Callable[[], Iterable[T]], made: Maker[T]) -> None:
        self.known.append(family)
        self.registry.register(_Collected(family, samples, made))


class _Collected(Collector, Generic[T]):
    def __init__(self, family: Family, samples: Callable[[], Iterable[T]], made: Maker[T]) -> None:
        self._family = family
        self._samples = samples
        self._made = made

    def describe(self) -> Iterator[Metric]:
        yield self._made(self._family, ())

    def collect(self) -> Iterator[Metric]:
        yield self._made(self._family, self._samples())


def _numbers(
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily],
    family: Family,
    samples: Iterable[Sample],
) -> Metric:
    """Return a gauge or a counter with these series."""
    made = kind(family.name, family.text, labels=family.labels)
    for labels, value in samples:
        made.add_metric(labels, value)
    return made


def _histogram(family: Family, samples: Iterable[tuple[Labels, Distribution]]) -> Metric:
    """Return a histogram; Prometheus counts each bucket with all smaller ones."""
    made = HistogramMetricFamily(family.name, family.text, labels=family.labels)
    for labels, found in samples:
        names = [*(str(float(bound)) for bound in found.bounds), "+Inf"]
        made.add_metric(
            labels, list(zip(names, accumulate(found.within), strict=True)), found.total
        )
    return made
