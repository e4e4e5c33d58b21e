"""Families of time series: made in one registry, and remembered for the reference page.

Knows nothing of what is measured.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    """How often a value was within each bound, the last count without one; `total` is the sum."""

    bounds: Sequence[float]
    within: Sequence[int]
    total: float


Distributions: TypeAlias = Callable[[], Iterable[tuple[Labels, Distribution]]]
Maker: TypeAlias = Callable[[Family, Iterable[T]], Metric]


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
        self._collect(Family(name, "gauge", text, labels), samples, _gauge)

    def counted(self, name: str, text: str, *labels: str, samples: Samples) -> None:
        """Make a counter whose series are found when they are asked for."""
        self._collect(Family(name, "counter", text, labels), samples, _counter)

    def distributed(self, name: str, text: str, *labels: str, samples: Distributions) -> None:
        """Make a histogram whose series are found when they are asked for."""
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


def _gauge(family: Family, samples: Iterable[Sample]) -> Metric:
    made = GaugeMetricFamily(family.name, family.text, labels=family.labels)
    for labels, value in samples:
        made.add_metric(labels, value)
    return made


def _counter(family: Family, samples: Iterable[Sample]) -> Metric:
    made = CounterMetricFamily(family.name, family.text, labels=family.labels)
    for labels, value in samples:
        made.add_metric(labels, value)
    return made


def _histogram(family: Family, samples: Iterable[tuple[Labels, Distribution]]) -> Metric:
    made = HistogramMetricFamily(family.name, family.text, labels=family.labels)
    for labels, found in samples:
        names = [*(str(float(bound)) for bound in found.bounds), "+Inf"]
        made.add_metric(
            labels, list(zip(names, accumulate(found.within), strict=True)), found.total
        )
    return made
