"""The metrics of the tokens of all components, from the record beside the controller's token."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from hyperjob_core.kube.renewals import LONGEST, parse
from hyperjob_core.registry import filled


class Renewals(Collector):
    """Reads the record at each scrape: the kubelet replaces the file when the Secret changes."""

    def __init__(self, file: Path) -> None:
        """`file` need not exist: there are no samples then."""
        self._file = file

    def collect(self) -> Iterator[Metric]:
        """Yield the expiry and the last renewal of each token."""
        try:
            with self._file.open("rb") as file:
                renewals = parse(file.read(LONGEST))
        except OSError:
            renewals = {}
        text = "Expiry of a ServiceAccount's token, in seconds since 1970"
        ends = (((name,), renewal.expires) for name, renewal in renewals.items())
        labels = ("account",)
        yield filled(
            Gauge("hyperjob_credential_expiry_timestamp_seconds", text, labels=labels), ends
        )
        text = "Last renewal of a ServiceAccount's token, in seconds since 1970"
        last = (((name,), renewal.renewed) for name, renewal in renewals.items())
        yield filled(
            Gauge("hyperjob_credential_renewed_timestamp_seconds", text, labels=labels), last
        )
