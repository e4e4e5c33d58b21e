"""The rows of HyperJobs, the table's filters and orders, and the blocks of a timeline."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperjob_page.listing import Listing, Query
from hyperjob_page.rows import Row, order_of, row_of
from hyperjob_page.timeline import Span, timeline
from hyperjob_page.visitor import EVERYTHING
from tests.support.fleet import GPU, hyperjob

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def row(number: int = 0, *, phase: str = "Running", reason: str = "", **status: Any) -> Row:
    raw = hyperjob(number, clusters=4, phase=phase)
    raw["spec"].update(status.pop("spec", {}))
    raw["metadata"].update(status.pop("metadata", {}))
    raw["status"].update(status)
    if reason:
        raw["status"]["state"]["reason"] = reason
    return row_of(raw)


def test_a_row_has_what_the_table_shows_and_searches() -> None:
    found = row(3, reason="JobsRunning")
    assert found.key == "team-3/train-3"
    assert found.queues == ("queue-3",)
    assert found.accelerators == {GPU: 64}
    assert found.version == "uid-of-3/1"
    for word in ("team-3/train-3", "jobsrunning", "cluster-003", "team=team-3", "model=model-3"):
        assert word in found.search
    assert found.waits_in == ""
    assert row(0, phase="Queued", jobs=[]).accelerators == {GPU: 64}
    (group,) = hyperjob(0, clusters=4)["spec"]["replicatedJobs"]
    two = {"replicatedJobs": [group, {**group, "name": "later"}]}
    assert row(0, spec=two).accelerators == {GPU: 128}, "64 of a group without sub-jobs yet"


ROWS = [
    row(0, phase="Running"),
    row(1, phase="Queued"),
    row(2, phase="Completed", restarts=3),
    row(3, phase="Queued", jobs=[]),
]


def shown(**query: Any) -> list[int]:
    asked = Query(**query)
    found = Listing(asked, EVERYTHING, ROWS, lambda each: order_of(each, {}))
    keys = found.page(1, 50, descending=asked.descending)
    return [int(key.rpartition("-")[2]) for key in keys]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({}, [3, 2, 1, 0]),
        ({"descending": True}, [0, 1, 2, 3]),
        ({"sort": "name"}, [0, 1, 2, 3]),
        ({"sort": "phase"}, [1, 3, 0, 2]),
        ({"sort": "ready"}, [0, 1, 2, 3]),
        ({"sort": "accelerators"}, [0, 1, 2, 3]),
        ({"sort": "queue"}, [0, 1, 2, 3]),
        ({"sort": "place"}, [1, 3, 0, 2]),
        ({"namespace": "team-1"}, [1]),
        ({"queue": "queue-2"}, [2]),
        ({"cluster": "cluster-002"}, [2, 0]),
        ({"label": "team=team-3"}, [3]),
        ({"label": "team"}, [3, 2, 1, 0]),
        ({"label": "team=team"}, []),
        ({"label": "other"}, []),
        ({"phases": ("Queued",)}, [3, 1]),
        ({"search": "TRAIN-1 team"}, [1]),
        ({"search": "train-1 train-2"}, []),
    ],
)
def test_the_table_filters_and_sorts(query: dict[str, Any], numbers: list[int]) -> None:
    found = shown(**query)
    if "cluster" in query:
        assert set(found) >= {0, 2}
    else:
        assert found == numbers


def span(
    phase: str,
    begin: float = 0,
    end: float | None = 10,
    *,
    job: str = "train-0-trainer-0",
    **more: Any,
) -> Span:
    return Span(
        job=job,
        phase=phase,
        **{"cluster": "", "reason": "", **more},
        begin=NOW + timedelta(seconds=begin),
        end=None if end is None else NOW + timedelta(seconds=end),
    )


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (span("Suspended", job=""), "suspended"),
        (span("Pending", job="", reason="Suspended"), "suspended"),
        (span("Running", cluster="a"), "running"),
        (span("Completing", cluster="a"), "running"),
        (span("Degraded", job=""), "degraded"),
        (span("Restarting", job=""), "restarting"),
        (span("Aborting", cluster="a"), "restarting"),
        (span("Terminating", cluster="a"), "restarting"),
        (span("Queued"), "waiting"),
        (span("Pending", job="", cluster="a"), "waiting"),
        (span("Pending", cluster="a"), "starting"),
        (span("Placed"), "starting"),
        (span("Starting", job=""), "starting"),
        (span("Unknown"), "starting"),
        (span("Other", cluster="a"), "starting"),
        (span("Other"), "waiting"),
    ],
)
def test_the_kind_of_a_block(found: Span, kind: str) -> None:
    (lane,) = timeline(row().summary, [found], NOW + timedelta(seconds=20)).lanes
    assert [block.kind for block in lane.blocks] == [kind]


def test_a_timeline_ends_with_its_hyperjob_and_has_60_lanes() -> None:
    summary = row().summary
    spans = [span("Running", job=f"job-{number:02}", cluster="a") for number in range(70)]
    running = timeline(summary, [*spans, span("", job="empty")], NOW + timedelta(hours=1))
    assert running.end == NOW + timedelta(hours=1)
    assert (len(running.lanes), running.hidden) == (60, 10)
    ended = replace(summary, phase="Completed")
    over = timeline(ended, spans, NOW + timedelta(hours=1))
    assert (over.begin, over.end) == (NOW, NOW + timedelta(seconds=10))
    short = timeline(ended, [replace(spans[0], end=NOW)], NOW)
    assert short.end == NOW + timedelta(seconds=1)


def test_a_timeline_draws_waiting_attempts_moves_and_failures() -> None:
    spans = [
        span("Queued", 0, 20, job=""),
        span("Running", 20, None, job=""),
        span("Queued", 0, 20),
        span("Running", 20, 60, cluster="east"),
        span("Failed", 60, 60, cluster="east", reason="JobFailed", message="exit code 137"),
        span("", 60, 70),
        span("Running", 70, None, cluster="west", attempt=2),
    ]
    line = timeline(row().summary, spans, NOW + timedelta(seconds=100))
    whole, lane = line.lanes
    assert [block.kind for block in whole.blocks] == ["waiting", "running"]
    assert [block.kind for block in lane.blocks] == ["waiting", "running", "running"]
    assert [block.label for block in lane.blocks] == ["Queued", "east", "west · try 2"]
    assert [(block.start, block.width) for block in lane.blocks] == [(0, 20), (20, 40), (70, 30)]
    (mark,) = lane.marks
    assert mark.start == 60
    assert "exit code 137" in mark.title
    assert lane.label == "trainer-0"
    assert line.runs[0].end is None
    assert any(run.reason == "JobFailed" and "137" in run.message for run in line.runs)
    assert all(0 <= tick.at <= 100 for tick in line.ticks)
