"""The questions to Prometheus about accelerator seconds, bounded in size and time."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite
from typing import Final

from hyperjob.client.errors import ClientError
from hyperjob_core.api.wire import at, decoded, mapping, objects, string, string_map
from hyperjob_core.kube.errors import KubeError, Unavailable
from hyperjob_core.kube.transport import Transport

LABELS: Final = ("queue", "namespace", "cluster", "accelerator", "use")
METRIC: Final = "hyperjob_accelerator_seconds_total"
RECORD: Final = "hyperjob:accelerator_seconds:increase5m"
_SECONDS: Final = 120.0
_LOOKS: Final = 720  # each hour of 30 days
_ADDRESS: Final = "; give the address of Prometheus itself with --prometheus-url"
_REMEDIES: Final[Mapping[int, str]] = {
    **dict.fromkeys((401, 403), "; give a token that may ask Prometheus with --token-file"),
    **dict.fromkeys((301, 302, 307, 308, 404, 405), _ADDRESS),
}


@dataclass(frozen=True, slots=True)
class Used:
    """The accelerator hours of one combination of labels."""

    labels: Mapping[str, str]
    hours: float


class Prometheus:
    """The past of a Prometheus server: so many seconds until a time; its API is below `path`."""

    def __init__(self, transport: Transport, *, path: str, until: datetime, seconds: int) -> None:
        self._transport = transport
        self._path = f"{path}/api/v1/query"
        self._until = until
        self._seconds = seconds

    async def used(
        self, by: Sequence[str], *, queue: str = "", recorded: bool = False
    ) -> list[Used]:
        """Return what all queues, or one queue, used by labels; raises ClientError.

        `recorded`: add up the record of the chart, not the counter.
        """
        chosen = f"{{queue={json.dumps(queue, ensure_ascii=False)}}}" if queue else ""
        function, series = ("sum_over_time", RECORD) if recorded else ("increase", METRIC)
        increase = f"{function}({series}{chosen}[{self._seconds}s])"
        used = [
            Used({each: labels.get(each, "") for each in by}, seconds / 3600)
            for labels, seconds in await self._ask(f"sum by ({', '.join(by)}) ({increase})")
            if seconds > 0
        ]
        return sorted(used, key=lambda each: tuple(each.labels.values()))

    async def first(self) -> datetime | None:
        """Return since when there are metrics of HyperJob; None if never; raises ClientError."""
        step = max(60, self._seconds // _LOOKS)
        looks = f"timestamp(hyperjob_build_info)[{self._seconds}s:{step}s]"
        found = await self._ask(f"min(min_over_time({looks}))")
        since = self._until - timedelta(seconds=self._seconds)
        if not found:
            return None
        later = found[0][1] - since.timestamp()
        return since + timedelta(seconds=later if 2 * step < later <= self._seconds else 0)

    async def _ask(self, query: str) -> list[tuple[Mapping[str, str], float]]:
        """Return labels and value of each series at the end; raises ClientError."""
        moment = f"{self._until.timestamp():.3f}"
        params = {"query": query, "time": moment, "timeout": f"{_SECONDS:g}s"}
        try:
            answer = await self._transport.request(
                "GET", self._path, params=params, time_limit=_SECONDS
            )
        except KubeError as error:
            raise ClientError(_words(error, self._transport.host)) from error
        document: object = None
        with suppress(ValueError):
            document = decoded(answer.body)
        if at(document, "data", "resultType") != "vector":
            raise ClientError(f"{self._transport.host} does not answer as Prometheus{_ADDRESS}")
        series = objects(at(document, "data", "result"))
        samples = ((string_map(each.get("metric")), _number(each.get("value"))) for each in series)
        return [(labels, number) for labels, number in samples if number is not None]


def _number(value: object) -> float | None:
    """Return the number of a sample, a time and a text; None for any other value."""
    with suppress(ValueError, TypeError):
        if isinstance(value, list) and isfinite(number := float(value[-1] if value else "")):
            return number
    return None


def _words(error: KubeError, host: str) -> str:
    if isinstance(error, Unavailable) and not error.answered:
        return f"Prometheus does not answer: {error.message}{_ADDRESS}"
    said, remedy = error.message, _REMEDIES.get(error.http_code, "")
    with suppress(ValueError):
        said = string(mapping(decoded(said)).get("error")) or said
    if "timed out" in said or "too many samples" in said:
        remedy = "; ask about a shorter time with --since and --until, or add up --recorded"
    return f"Prometheus at {host} refuses with status {error.http_code}: {said}{remedy}"
