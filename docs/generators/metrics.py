"""Generate the reference page of the metrics from the code that registers them.

`python -m docs.generators.metrics docs/reference/metrics.md` writes the page; a test
compares it.
"""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client import Metric
from prometheus_client.registry import Collector

import hyperjob_controller.__main__  # noqa: F401 - its modules register metrics
import hyperjob_page.serve  # noqa: F401 - its modules register metrics
import hyperjob_webhook.__main__  # noqa: F401 - its modules register metrics
from docs.generators.markdown import row, table
from hyperjob_controller.insight.measures import Meter, Renewals, Scrape
from hyperjob_core.registry import REGISTRY
from hyperjob_webhook.server import RequestLog

INTRO: Final = """\
# Metrics

Controller, webhook and web page serve metrics in Prometheus' format at `/metrics` of
`--metrics-bind-address`.
`python -m docs.generators.metrics docs/reference/metrics.md` generates this page; do not
edit it.

Metrics that Go controllers also have use the names of controller-runtime and client-go: their
dashboards and alerts work unchanged. Labels have no names of objects, except those of clusters,
namespaces and queues. A histogram has `_bucket`, `_sum` and `_count`. Every replica of the
controller counts HyperJobs and accelerators, and only the leader acts: use the `max` of gauges and
the `sum` of counters.

The chart has [alerts](../runbooks.md) and a dashboard (`metrics.prometheusRule`,
`metrics.dashboard`). The Prometheus client adds `process_*` and `python_gc_*`.
"""

_SECTIONS: Final = (
    ("HyperJobs, by the controller", ("hyperjob_",)),
    ("Admission and certificates, by the webhook", ("controller_runtime_webhook_", "certwatcher_")),
    ("Reconciling and its queue, by the controller", ("controller_runtime_", "workqueue_")),
    ("Access to the API server, by the controller", ("rest_client_", "leader_election_")),
)
_OF_THE_LIBRARY: Final = ("process_", "python_")
_EVERYWHERE: Final = (
    "hyperjob_build_info",
    "hyperjob_certificate",
    "hyperjob_informer",
    "hyperjob_events",
    "hyperjob_credential",
)


class Family(NamedTuple):
    """The description of one metric."""

    name: str
    type: str
    text: str
    labels: tuple[str, ...]


def computed() -> list[Collector]:
    """Return the collectors that the processes register when they start."""
    scrape = Scrape(lambda _: ((), {}), meter=Meter(), mode=str, now=lambda: datetime.now(UTC))
    return [RequestLog(), scrape, Renewals(Path())]


def families() -> list[Family]:
    """Return the families of all processes."""
    return [
        _family(metric, collector)
        for collector in (*REGISTRY._collector_to_names, *computed())  # noqa: SLF001 - no public list
        for metric in collector.collect()
        if not metric.name.startswith(_OF_THE_LIBRARY)
    ]


def _family(metric: Metric, collector: Collector) -> Family:
    """Describe a metric; the library has no public label names of one without series."""
    name = metric.name + ("_total" if metric.type == "counter" else "")
    labels = getattr(collector, "_labelnames", None) or getattr(metric, "_labelnames", None)
    return Family(name, metric.type, metric.documentation, tuple(labels or ()))


def render() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield INTRO
    left = sorted(families(), key=lambda family: family.name)
    own = [family for family in left if family.name.startswith(_EVERYWHERE)]
    left = [family for family in left if family not in own]
    page = [family for family in left if family.name.startswith("hyperjob_page_")]
    left = [family for family in left if family not in page]
    for title, prefixes in _SECTIONS:
        found = [family for family in left if family.name.startswith(prefixes)]
        left = [family for family in left if family not in found]
        yield from _section(title, found)
    yield from _section("The web page", page)
    yield from _section("The processes themselves", own + left)


def _section(title: str, found: list[Family]) -> Iterator[str]:
    yield f"## {title}\n"
    yield from table("metric", "type", "labels", "meaning")
    for family in found:
        labels = ", ".join(f"`{label}`" for label in family.labels)
        yield row(f"`{family.name}`", family.type, labels, family.text)
    yield ""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
