"""The registry of a process: each module that counts registers its metrics here.

A metric that controller-runtime or client-go has too has its name: dashboards and alerts for Go
controllers work unchanged. HyperJob's own metrics begin with `hyperjob_`. No label has the name of
an object, except of clusters, queues and namespaces, of which there are few.
"""

import platform
from collections.abc import Iterable
from typing import Final, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    GCCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

import hyperjob_core

# Go clients expose no creation times, which would double the number of series.
disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs has no types

REGISTRY: Final = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)
Gauge(
    "hyperjob_build_info",
    "Version of HyperJob and Python",
    ("version", "python"),
    registry=REGISTRY,
).labels(hyperjob_core.__version__, platform.python_version()).set(1)

Sample = tuple[tuple[str, ...], float]
"""The values of the labels, and the number."""
F = TypeVar("F", CounterMetricFamily, GaugeMetricFamily)


def filled(family: F, samples: Iterable[Sample]) -> F:
    """Return a family that is computed at a scrape with its samples."""
    for labels, value in samples:
        family.add_metric(labels, value)
    return family
