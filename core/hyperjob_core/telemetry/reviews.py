"""Counts of admission requests, with the names of controller-runtime.

The counts are plain numbers, and each scrape makes series of them: prometheus_client's counters
would take a tenth of the time of a small review. All calls must come from one thread.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from hyperjob_core.telemetry.families import Distribution, Families

_NAME: Final = "controller_runtime_webhook_"
_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


@dataclass(slots=True)
class _Counts:
    """The counts of a webhook; `within` counts by bucket, the last for +Inf."""

    in_flight: int = 0
    by_status: dict[int, int] = field(default_factory=dict)
    within: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    seconds: float = 0.0


class Reviews:
    """The admission requests of a process, by webhook."""

    def __init__(self, families: Families) -> None:
        self._webhooks: dict[str, _Counts] = {}
        families.counted(
            f"{_NAME}requests_total",
            "Admission requests by HTTP status",
            "webhook",
            "code",
            samples=self._requests,
        )
        families.distributed(
            f"{_NAME}latency_seconds",
            "Latency of admission requests",
            "webhook",
            samples=self._latencies,
        )
        families.computed(
            f"{_NAME}requests_in_flight",
            "Admission requests being served",
            "webhook",
            samples=self._in_flight,
        )

    def started(self, webhook: str) -> None:
        """Count a request as being served."""
        self._of(webhook).in_flight += 1

    def done(self, webhook: str, *, code: int, seconds: float) -> None:
        """Count a request as answered with an HTTP status."""
        counts = self._of(webhook)
        counts.in_flight -= 1
        counts.by_status[code] = counts.by_status.get(code, 0) + 1
        counts.within[bisect_left(_BOUNDS, seconds)] += 1
        counts.seconds += seconds

    def _of(self, webhook: str) -> _Counts:
        counts = self._webhooks.get(webhook)
        if counts is None:
            counts = self._webhooks[webhook] = _Counts()
        return counts

    def _requests(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for webhook, counts in self._webhooks.items():
            for code, number in counts.by_status.items():
                yield (webhook, str(code)), number

    def _latencies(self) -> Iterator[tuple[tuple[str, ...], Distribution]]:
        for webhook, counts in self._webhooks.items():
            yield (webhook,), Distribution(_BOUNDS, counts.within, counts.seconds)

    def _in_flight(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for webhook, counts in self._webhooks.items():
            yield (webhook,), counts.in_flight
