"""The use of clusters comes from Prometheus' HTTP API, whatever answers at its address."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from hyperjob_page import prometheus
from hyperjob_page.prometheus import POINTS, Prometheus, PrometheusError, query
from hyperjob_page.use import Series

GPU = "nvidia.com/gpu"
HOUR = timedelta(hours=1)
STEP = 30


class Answering:
    """A Prometheus: `values` gives the value of a gauge at the n-th step, None without one."""

    def __init__(self) -> None:
        self.queries: list[Mapping[str, str]] = []
        self.raw: web.Response | None = None
        self.silent = asyncio.Event()
        self.silent.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.queries.append(dict(request.query))
        await self.silent.wait()
        if self.raw is not None:
            return self.raw
        begin, step = int(request.query["start"]), int(request.query["step"])
        result = [
            {
                "metric": {"cluster": "east", "type": GPU, "of": gauge},
                "values": [[begin + step * n, value] for n in range(POINTS - 20, POINTS)],
            }
            for gauge, value in (("free", "3"), ("allocatable", "8"))
        ]
        return web.json_response(
            {"status": "success", "data": {"resultType": "matrix", "result": result}}
        )


@asynccontextmanager
async def serving(answering: Answering, path: str = "") -> AsyncIterator[Prometheus]:
    app = web.Application()
    app.router.add_get(f"{path}/api/v1/query_range", answering.answer)
    async with TestServer(app) as server, Prometheus(str(server.make_url(path or "/"))) as found:
        yield found
        answering.silent.set()


async def asked(raw: web.Response) -> str:
    """Return the error for an answer."""
    answering = Answering()
    answering.raw = raw
    async with serving(answering) as found:
        with pytest.raises(PrometheusError) as refused:
            await found.clusters(HOUR)
    return str(refused.value)


async def test_used_is_what_is_not_free_and_a_time_without_the_controller_is_unknown() -> None:
    answering = Answering()
    async with serving(answering, "/prefix") as found:
        use = await found.clusters(HOUR)
    assert use.series == [Series("east", GPU, [None] * (POINTS - 20) + [(5.0, 8.0)] * 20)]
    assert len(use.times) == POINTS + 1
    assert use.times[-1] - use.times[0] == HOUR
    (sent,) = answering.queries
    assert sent["query"] == query(STEP)
    assert (sent["step"], int(sent["end"]) - int(sent["start"])) == ("30", 119 * STEP)


async def test_visitors_share_an_answer() -> None:
    answering = Answering()
    async with serving(answering) as found:
        await asyncio.gather(*(found.clusters(HOUR) for _ in range(20)))
        assert len(answering.queries) == 1
        await found.clusters(2 * HOUR)
        assert len(answering.queries) == 2


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"status": 503, "text": "starting"}, "HTTP 503: the answer is not of its HTTP API"),
        (
            {"status": 422, "text": '{"status": "error", "error": "too many samples"}'},
            "HTTP 422: too many samples",
        ),
        ({"text": "<html>"}, "HTTP 200: the answer is not of its HTTP API"),
        ({"text": "[1]"}, "HTTP 200: the answer is not of its HTTP API"),
        ({"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}}, "HTTP 302"),
        ({"body": b" " * (17 * 2**20)}, "the answer has more than 16 MiB"),
    ],
)
async def test_another_answer_is_an_error_that_names_it(raw: Any, words: str) -> None:
    error = await asked(web.Response(**raw))
    assert error.startswith("Prometheus at 127.0.0.1:")
    assert "(--prometheus-url): " in error
    assert words in error


@pytest.mark.parametrize(
    "values",
    ['[["1e999", "1"], ["NaN", "1"]]', "5", "[[1]]", '[["x", "1"], [1, "NaN"], [1, {}]]', "null"],
)
async def test_values_of_another_form_are_left_out(values: str) -> None:
    answering = Answering()
    text = (
        '{"status": "success", "data": {"result": [{"metric": {"cluster": "a", "type": "x"},'
        f' "values": {values}}}, 7]}}}}'
    )
    answering.raw = web.Response(text=text)
    async with serving(answering) as found:
        (series,) = (await found.clusters(HOUR)).series
    assert set(series.points) == {None}


async def test_a_prometheus_that_does_not_answer_holds_up_no_visitor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prometheus, "_SECONDS", 0.2)
    answering = Answering()
    answering.silent.clear()
    async with serving(answering) as found:
        with pytest.raises(PrometheusError, match=r"does not answer: no answer within 0\.2s"):
            await found.clusters(HOUR)


async def test_a_password_of_the_url_is_in_no_error() -> None:
    async with Prometheus("http://ann:secret@127.0.0.1:1/") as found:
        with pytest.raises(PrometheusError, match=r"Prometheus at 127\.0\.0\.1:1 ") as refused:
            await found.clusters(HOUR)
    assert "secret" not in str(refused.value)
