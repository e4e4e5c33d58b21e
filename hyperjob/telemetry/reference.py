"""The reference of the metrics in the docs, made from the code that makes them.

`python -m hyperjob.telemetry.reference docs/reference/metrics.md` writes it; a test keeps it
current.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hyperjob.markdown import row, table
from hyperjob.telemetry.families import Family
from hyperjob.telemetry.metrics import Metrics
from hyperjob.telemetry.training import TIME_USE, TrainingMetrics, show_accelerators, show_time_use

INTRO: Final = """\
# Metrics

Both processes serve them as Prometheus reads them, at `/metrics` of `--metrics-bind-address`. This
page is made from the code (`python -m hyperjob.telemetry.reference docs/reference/metrics.md`); do
not edit it.

What Go controllers have too bears the names of controller-runtime and client-go, so dashboards and
alerts made for those work. No label holds the name of an object, but for those of clusters and
queues. A histogram has `_bucket`, `_sum` and `_count`. Each controller replica counts HyperJobs and
accelerators, the leader alone acts: take the `max` of gauges and the `sum` of counters.

The chart has [alerts](../runbooks.md) and a dashboard (`metrics.prometheusRule`,
`metrics.dashboard`). Beside these there are `process_*` and `python_gc_*` of the Prometheus client.
"""

_SECTIONS: Final = (
    ("HyperJobs, by the controller", ("hyperjob_",)),
    ("Admission and certificates, by the webhook", ("controller_runtime_webhook_", "certwatcher_")),
    ("Reconciling and its queue, by the controller", ("controller_runtime_", "workqueue_")),
    ("Access to the API server, by the controller", ("rest_client_", "leader_election_")),
)
_EVERYWHERE: Final = (
    "hyperjob_build_info",
    "hyperjob_certificate",
    "hyperjob_informer",
    "hyperjob_events",
)


def families() -> list[Family]:
    """Return everything that either process can show."""
    metrics = Metrics()
    metrics.show_certificate(lambda: 0.0)
    TrainingMetrics(metrics.families)
    kinds = ("allocatable", "free", "reserved")
    show_accelerators(metrics.families, {kind: lambda: () for kind in kinds})
    show_time_use(metrics.families, {name: lambda: () for name in TIME_USE})
    return metrics.families.known


def render() -> str:
    """Return the page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield INTRO
    left = sorted(families(), key=lambda family: family.name)
    own = [family for family in left if family.name.startswith(_EVERYWHERE)]
    left = [family for family in left if family not in own]
    for title, prefixes in _SECTIONS:
        found = [family for family in left if family.name.startswith(prefixes)]
        left = [family for family in left if family not in found]
        yield from _section(title, found)
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
