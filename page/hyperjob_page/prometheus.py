"""Read the use of clusters from Prometheus, which scrapes the controller's metrics.

Each answer is bounded in size and time, and read again after a minute at the earliest.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Final, Self

import aiohttp
from yarl import URL

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, decoded, mapping, objects, string, string_map
from hyperjob_core.kube.bodies import read_body
from hyperjob_core.kube.cached import Cached
from hyperjob_core.text import shortened
from hyperjob_page.use import Amounts, Key, Series, UseOverTime

POINTS: Final = 120
_SECONDS: Final = 10.0
_BYTES: Final = 16 * 2**20
_SERIES: Final = 5_000
_AGAIN_SECONDS: Final = 60.0
_TEXT: Final = 300
_GAUGES: Final = ("allocatable", "free")


class PrometheusError(Exception):
    """Prometheus gives no usable answer; the text is for visitors."""


class Prometheus:
    """The Prometheus at an http or https URL; use with `async with`."""

    def __init__(self, url: str) -> None:
        self._url = URL(url)
        self._session: aiohttp.ClientSession | None = None
        self._answers: Cached[timedelta, UseOverTime] | None = None

    async def __aenter__(self) -> Self:
        clock = asyncio.get_running_loop().time
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS))
        self._answers = Cached(self._read, seconds=_AGAIN_SECONDS, size=8, clock=clock)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._answers is not None:
            await self._answers.close()
        if self._session is not None:
            await self._session.close()

    async def clusters(self, back: timedelta) -> UseOverTime:
        """Return the use of clusters in the last `back`, as 120 means; raise PrometheusError."""
        assert self._answers is not None, "the block is entered"
        return await self._answers.get(back)

    async def _read(self, back: timedelta) -> UseOverTime:
        step = max(1, round(back.total_seconds() / POINTS))
        end = int(datetime.now(UTC).timestamp())
        begin = end - POINTS * step
        found: dict[Key, dict[str, dict[int, float]]] = {}
        for one in objects(at(await self._query(begin, step), "data", "result"))[:_SERIES]:
            labels = string_map(one.get("metric"))
            key = labels.get("cluster", ""), labels.get("type", "")
            means = {round((time - begin) / step) - 1: value for time, value in _values(one)}
            found.setdefault(key, {})[labels.get("of", "")] = means
        times = [datetime.fromtimestamp(begin + step * n, UTC) for n in range(POINTS + 1)]
        return UseOverTime(times, [_series(key, means) for key, means in sorted(found.items())])

    async def _query(self, begin: int, step: int) -> Object:
        """Return the answer about the means of spans of `step` seconds from `begin` on."""
        assert self._session is not None, "the block is entered"
        parameters = {
            "query": query(step),
            "start": str(begin + step),
            "end": str(begin + POINTS * step),
            "step": str(step),
        }
        address = self._url / "api/v1/query_range"
        try:
            async with self._session.get(
                address, params=parameters, allow_redirects=False
            ) as answer:
                return _document(await read_body(answer, most=_BYTES), answer.status)
        except (aiohttp.ClientError, TimeoutError) as error:
            why = f"no answer within {_SECONDS:g}s" if isinstance(error, TimeoutError) else error
            raise PrometheusError(f"{self._named()} does not answer: {why}") from None
        except ValueError as error:
            raise PrometheusError(f"{self._named()}: {error}") from None

    def _named(self) -> str:
        """Name Prometheus without user and password of its URL."""
        return f"Prometheus at {self._url.host}:{self._url.port} (--prometheus-url)"


def query(step: int) -> str:
    """Return the query for both gauges; the label `of` names them in the answer.

    All replicas of the controller have the gauges.
    """
    means = {each: f"avg_over_time(hyperjob_accelerators_{each}[{step}s])" for each in _GAUGES}
    return " or ".join(
        f'label_replace(max by (cluster, type) ({mean}), "of", "{gauge}", "", "")'
        for gauge, mean in means.items()
    )


def _document(body: bytes | None, status: int) -> Object:
    """Return the answer of a query; raise ValueError with the reason for any other answer."""
    if body is None:
        raise ValueError(f"the answer has more than {_BYTES // 2**20} MiB")
    try:
        document = mapping(decoded(body))
    except ValueError:
        document = {}
    if status != 200 or document.get("status") != "success":
        why = string(document.get("error")) or "the answer is not of its HTTP API"
        raise ValueError(f"HTTP {status}: {shortened(why, _TEXT)}")
    return document


def _values(one: Object) -> Iterator[tuple[float, float]]:
    """Yield the times and the finite values of a series."""
    values = one.get("values")
    for pair in values if isinstance(values, list) else ():
        try:
            time, value = float(pair[0]), float(pair[1])
        except (TypeError, ValueError, LookupError):
            continue
        if isfinite(time) and isfinite(value):
            yield time, value


def _series(key: Key, means: Mapping[str, Mapping[int, float]]) -> Series:
    total, free = (means.get(gauge, {}) for gauge in _GAUGES)
    points: Iterable[Amounts | None] = (
        (max(0.0, total[n] - free[n]), total[n]) if n in total and n in free else None
        for n in range(POINTS)
    )
    return Series(*key, list(points))
