"""Progress over time: kept in the history within its bounds, and drawn as curves."""

import math
import re
import sqlite3
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob.client.summary import Summary, read
from hyperjob.ui.charts.curves import HEIGHT, WIDTH, Axis, Run, charts
from hyperjob.ui.history import points
from hyperjob.ui.history.points import DRAWN, POINTS, ProgressPoint
from hyperjob.ui.history.recorder import History
from hyperjob.ui.history.store import HistoryFile, Retention
from hyperjob.ui.pages.metrics import RUNS, MetricsPage, asked
from hyperjob.ui.visitor import EVERYTHING

BEGIN = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=10)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def point(step: int, seconds: float | None = None, **metrics: float) -> ProgressPoint:
    return ProgressPoint(at(step if seconds is None else seconds), step, metrics)


def trained(step: int, *, uid: str = "u1", **metrics: str) -> Summary:
    """A HyperJob whose status has a step."""
    training = {
        "step": step,
        "updateTime": at(step).isoformat(),
        "startStep": 0,
        "startTime": at(0).isoformat(),
        "progress": f"step {step}",
        "metrics": metrics,
    }
    metadata = {"namespace": "team", "name": "llm", "uid": uid, "creationTimestamp": None}
    return read({"metadata": metadata, "status": {"training": training}})


async def test_the_page_of_a_sweep_follows_the_logs_of_its_hyperjobs() -> None:
    world = SimpleNamespace(version=lambda *_: 1, rows={})
    async with History(None) as history:
        page = MetricsPage(world, history, EVERYTHING, asked([("sweep", "s1")]))
        before = page.version()
        assert page.version() == before
        history.progressed(at(1), "u1", [point(1)])
        assert page.version() != before


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


async def test_each_progress_of_the_status_is_a_point_also_after_a_restart(path: Path) -> None:
    async with History(path) as history:
        for step in (1, 2, 2, 3):
            history.record(at(60 + step), trained(step, loss=str(4 - step)))
        found = await history.points("u1")
        assert [(each.step, each.metrics) for each in found] == [
            (1, {"loss": 3.0}),
            (2, {"loss": 2.0}),
            (3, {"loss": 1.0}),
        ]
    async with History(path) as history:
        history.record(at(70), trained(4, loss="0.5"))
        assert [each.step for each in await history.points("u1")] == [1, 2, 3, 4]
        assert await history.points("u2") == []


def test_the_points_of_a_hyperjob_are_thinned_and_its_ends_stay(path: Path) -> None:
    store = HistoryFile(path, limits=Retention())
    for begin in range(0, 3 * POINTS, 500):
        new = [("u1", point(step, loss=1.0)) for step in range(begin, begin + 500)]
        store.write((), (), (), new, now=at(begin).timestamp())
    store.write((), (), (), [("u2", point(1)), ("u2", point(2))], now=at(begin).timestamp())
    database = sqlite3.connect(path)
    counts = dict(database.execute("SELECT uid, count(*) FROM points GROUP BY uid"))
    assert POINTS / 2 <= counts["u1"] <= POINTS
    assert counts["u2"] == 2
    kept = points.read(database, "u1", most=10 * POINTS)
    assert (kept[0].step, kept[-1].step) == (0, 3 * POINTS - 1)
    gaps = [after.step - before.step for before, after in pairwise(kept)]
    assert max(gaps) <= 16, "the whole training is covered"
    drawn = store.points("u1")
    assert len(drawn) <= 2 * DRAWN + 1
    assert (drawn[0].step, drawn[-1].step) == (0, 3 * POINTS - 1)
    store.trim(now=at(40 * 86400).timestamp())
    assert store.points("u1") == []
    database.close()
    store.close()


def test_a_file_of_the_release_before_gets_the_points(path: Path) -> None:
    HistoryFile(path, limits=Retention()).close()
    database = sqlite3.connect(path)
    database.executescript("DROP TABLE points; PRAGMA user_version = 1;")
    database.close()
    store = HistoryFile(path, limits=Retention())
    store.write((), (), (), [("u1", point(1))], now=at(0).timestamp())
    assert len(store.points("u1")) == 1
    store.close()


FLOATS = st.floats() | st.floats(-10, 10)
RUN = st.builds(
    lambda found: [
        ProgressPoint(at(10 * n), step, {"loss": value}) for n, (step, value) in enumerate(found)
    ],
    st.lists(st.tuples(st.integers(0, 10**9), FLOATS), max_size=30),
)


@given(st.lists(RUN, max_size=4), st.sampled_from(["step", "time"]))
def test_curves_of_any_values_stay_in_their_box(found: list[list[ProgressPoint]], by: Axis) -> None:
    runs = [Run(f"ns/{n}", n, each) for n, each in enumerate(found)]
    finite = [p for each in found for p in each if math.isfinite(p.metrics["loss"])]
    drawn = charts(runs, by)
    assert bool(drawn) == bool(finite)
    for chart in drawn:
        assert all(0 <= tick.at <= 100 for tick in chart.ticks)
        assert len(chart.ticks) <= 16
        for curve in chart.curves:
            assert re.fullmatch(r"M[\d.]+ [\d.]+(L[\d.]+ [\d.]+)+", curve.path)
            places = [float(each) for each in re.findall(r"[\d.]+", curve.path)]
            assert all(0 <= each <= WIDTH for each in places[::2])
            assert all(0 <= each <= HEIGHT for each in places[1::2])


def test_runs_share_the_scales_of_each_metric() -> None:
    one = Run("ns/one", 0, [point(0, loss=4.0, lr=1.0), point(100, loss=2.0, lr=0.5)])
    two = Run("ns/two", 1, [point(0, 900, loss=0.0), point(50, 950, loss=1.0)])
    loss, lr = charts([one, two], "step")
    assert (loss.metric, loss.top, loss.bottom) == ("loss", "4", "0")
    assert [(each.name, each.path, each.last) for each in loss.curves] == [
        ("ns/one", "M0.0 0.0L600.0 50.0", "2"),
        ("ns/two", "M0.0 100.0L300.0 75.0", "1"),
    ]
    assert [tick.text for tick in loss.ticks] == ["0", "20", "40", "60", "80", "100"]
    assert [each.name for each in lr.curves] == ["ns/one"]
    late, _ = charts([one, two], "time")
    assert late.curves[1].path == "M0.0 100.0L300.0 75.0", "from the first progress of each run"


def test_the_address_names_runs_a_sweep_and_the_axis() -> None:
    found = asked([("run", "a/b, a/c"), ("run", "a/b"), ("axis", "time"), ("sweep", "s-1")])
    assert (found.runs, found.sweep, found.axis) == (("a/b", "a/c"), "s-1", "time")
    assert found.address("step") == "/metrics?run=a%2Fb&run=a%2Fc&sweep=s-1"
    many = asked([("run", f"a/{n}") for n in range(100)] + [("axis", "other")])
    assert (len(many.runs), many.axis) == (RUNS, "step")
