"""The metrics of requests and informers, from the counts of `exchange` and `reflector`.

A process that shows metrics imports this module. The counts are plain numbers: commands that count
nothing must not import the Prometheus client.
"""

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from hyperjob_core.kube.reflector import SHORT_WATCHES
from hyperjob_core.kube.transport import DURATIONS, REQUESTS, SECONDS
from hyperjob_core.registry import REGISTRY, filled


class _Counts(Collector):
    def collect(self) -> Iterator[Metric]:
        text, labels = "Requests to the API server by status code", ("code", "method", "host")
        requests = CounterMetricFamily("rest_client_requests_total", text, labels=labels)
        yield filled(requests, REQUESTS.items())
        yield _durations()
        text = "Watches that ended at once without an event"
        short = CounterMetricFamily(
            "hyperjob_informer_short_watches_total", text, labels=("resource",)
        )
        yield filled(short, (((resource,), count) for resource, count in SHORT_WATCHES.items()))


def _durations() -> Metric:
    text = "Time of a request to the API server until its answer"
    family = HistogramMetricFamily(
        "rest_client_request_duration_seconds", text, labels=("verb", "host")
    )
    bounds = [*map(str, SECONDS), "+Inf"]
    for labels, (*counts, seconds) in list(DURATIONS.items()):
        buckets = list(zip(bounds, accumulate(counts), strict=True))
        family.add_metric(labels, buckets=buckets, sum_value=seconds)
    return family


REGISTRY.register(_Counts())
