"""One log line for each request, and controller-runtime's webhook metrics.

A line has the name of the object and none of its fields. The line of an allowed mutation has the
level debug: the line of the validation that follows says that a HyperJob was written, and a
sub-job has many reviews of its ResourceBinding.
"""

import logging
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from hyperjob_core.registry import filled
from hyperjob_rules.configuration import MUTATE_HYPERJOB, MUTATE_RESOURCEBINDING
from hyperjob_rules.validation.rules import Decision
from hyperjob_webhook.admission import Reply
from hyperjob_webhook.review import AdmissionRequest

_log: Final = logging.getLogger("hyperjob_webhook")
_NAME: Final = "controller_runtime_webhook_"
_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_MUTATIONS: Final = frozenset({MUTATE_HYPERJOB, MUTATE_RESOURCEBINDING})


class RequestLog(Collector):
    """Logs and counts requests.

    The counts are plain numbers, of which a scrape makes series: counters of the Prometheus client
    would take 4 % of the time of a small review.
    """

    def __init__(self) -> None:
        self._in_flight: Counter[str] = Counter()
        self._answers: Counter[tuple[str, int]] = Counter()
        self._seconds: dict[str, float] = defaultdict(float)
        self._within: dict[str, list[int]] = defaultdict(lambda: [0] * (len(_BOUNDS) + 1))

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all requests, by webhook."""
        name, text = f"{_NAME}requests_total", "Admission requests by HTTP status"
        answers = (((webhook, str(code)), n) for (webhook, code), n in self._answers.items())
        yield filled(CounterMetricFamily(name, text, labels=("webhook", "code")), answers)
        name, text = f"{_NAME}requests_in_flight", "Admission requests being served"
        flights = (((webhook,), n) for webhook, n in self._in_flight.items())
        yield filled(GaugeMetricFamily(name, text, labels=("webhook",)), flights)
        name, text = f"{_NAME}latency_seconds", "Latency of admission requests"
        latencies = HistogramMetricFamily(name, text, labels=("webhook",))
        bounds = [*(str(float(bound)) for bound in _BOUNDS), "+Inf"]
        for webhook, within in self._within.items():
            buckets = list(zip(bounds, accumulate(within), strict=True))
            latencies.add_metric((webhook,), buckets, self._seconds[webhook])
        yield latencies

    def started(self, webhook: str) -> None:
        """Count an arrived request."""
        self._in_flight[webhook] += 1

    def done(self, webhook: str, reply: Reply, seconds: float) -> None:
        """Count and log an answered request: its decision, or the error."""
        self._in_flight[webhook] -= 1
        self._answers[webhook, reply.status] += 1
        self._within[webhook][bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[webhook] += seconds
        request, decision = reply.request, reply.decision
        if request is not None and decision is not None:
            is_routine = decision.allowed and webhook in _MUTATIONS
            level = logging.DEBUG if is_routine else logging.INFO
            if _log.isEnabledFor(level):
                fields = _decided(webhook, request, decision, seconds)
                _log.log(level, "admission decision", extra=fields)
            return
        fields = {"webhook": webhook, "code": reply.status, "reason": reply.problem}
        fields["duration"] = round(seconds, 6)
        if request is not None:
            fields |= _named(request)
        if reply.bug is not None:
            _log.error("the webhook failed", extra=fields, exc_info=reply.bug)
        else:
            _log.warning("request refused", extra=fields)


def _decided(
    webhook: str, request: AdmissionRequest, decision: Decision, seconds: float
) -> dict[str, object]:
    fields = _named(request)
    fields["webhook"] = webhook
    fields["allowed"] = decision.allowed
    fields["duration"] = round(seconds, 6)
    if decision.patch:
        fields["patched"] = len(decision.patch)
    if decision.warnings:
        fields["warnings"] = len(decision.warnings)
    if decision.errors:
        fields["errors"] = len(decision.errors)
        fields["reason"] = str(decision.errors[0])[:512]
    return fields


def _named(request: AdmissionRequest) -> dict[str, object]:
    fields: dict[str, object] = {
        request.kind or "object": {"namespace": request.namespace, "name": request.name},
        "operation": request.operation,
        "user": request.user,
        "requestID": request.uid,
    }
    if request.dry_run:
        fields["dryRun"] = True
    return fields
