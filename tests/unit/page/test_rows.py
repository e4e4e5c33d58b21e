"""The rows of HyperJobs, the table's filters and orders, and the blocks of a timeline."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from hyperjob_page.charts.timeline import timeline
from hyperjob_page.listing import DEFAULT, Listing, Query, parse
from hyperjob_page.places import StreamPlaces
from hyperjob_page.render import ago, clock, device, goodput, hue
from hyperjob_page.rows import Row, order_of, row_of
from hyperjob_page.spans import Span
from hyperjob_page.visitor import EVERYTHING
from tests.support.fleet import GPU, hyperjob

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def row(number: int = 0, *, phase: str = "Running", reason: str = "", **status: Any) -> Row:
    raw = hyperjob(number, clusters=4, phase=phase)
    raw["metadata"]["resourceVersion"] = "7"
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
    assert found.version == "uid-of-3/7"
    for word in ("team-3/train-3", "jobsrunning", "cluster-003", "team=team-3", "model=model-3"):
        assert word in found.search
    assert found.waits_in == ""
    assert row(0, phase="Queued", jobs=[]).accelerators == {GPU: 64}
    (group,) = hyperjob(0, clusters=4)["spec"]["replicatedJobs"]
    two = {"replicatedJobs": [group, {**group, "name": "later"}]}
    assert row(0, spec=two).accelerators == {GPU: 128}, "64 of a group without sub-jobs yet"


RUNNING_JOB = {"name": "train-0-trainer-0", "replicatedJob": "trainer", "phase": "Running"}
QUEUED_JOB = {**RUNNING_JOB, "phase": "Queued", "cluster": ""}
LINES = {
    "a HyperJob that waits": (row(phase="Queued"), "queue-0"),
    "a HyperJob before its first sub-job": (row(phase="Pending", jobs=[]), "queue-0"),
    "a HyperJob without groups": (
        row(phase="Pending", jobs=[], spec={"replicatedJobs": []}),
        "",
    ),
    "a HyperJob that runs": (row(phase="Running"), ""),
    "a HyperJob that has ended": (row(phase="Completed"), ""),
    "a suspended HyperJob": (row(phase="Queued", spec={"suspend": True}), ""),
    "a HyperJob that is being deleted": (
        row(phase="Queued", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        "",
    ),
    "a HyperJob that waits for another": (row(phase="Queued", reason="WaitingForDependency"), ""),
    "a HyperJob of which all sub-jobs are placed": (
        row(phase="Queued", jobs=[{**RUNNING_JOB, "cluster": "c", "phase": "Placed"}]),
        "",
    ),
    "a HyperJob of which a sub-job waits": (
        row(phase="Queued", jobs=[{**RUNNING_JOB, "cluster": "c"}, QUEUED_JOB]),
        "queue-0",
    ),
    "a sub-job that waits for something else": (
        row(phase="Queued", jobs=[{**QUEUED_JOB, "reason": "WaitingForDependency"}]),
        "",
    ),
    "a sub-job of an unknown replicated job": (
        row(phase="Queued", jobs=[{**QUEUED_JOB, "replicatedJob": "gone"}]),
        "default",
    ),
}


@pytest.mark.parametrize(("found", "queue"), LINES.values(), ids=LINES.keys())
def test_the_queue_in_which_a_hyperjob_waits(found: Row, queue: str) -> None:
    assert found.waits_in == queue


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


def test_phases_are_counted_without_their_filter() -> None:
    query = Query(phases=("Queued",))
    listing = Listing(query, EVERYTHING, ROWS, lambda each: order_of(each, {}))
    assert (len(listing), listing.phases["Running"], listing.phases["Queued"]) == (2, 1, 2)
    assert (listing.pages(1), listing.pages(2), listing.pages(50)) == (2, 1, 1)
    assert listing.page(9, 1, descending=False) == listing.page(2, 1, descending=False)
    listing.change(ROWS[1], None)
    assert (len(listing), listing.phases["Queued"]) == (1, 1)
    listing.change(None, ROWS[1])
    listing.change(ROWS[0], replace(ROWS[0], queues=()))
    assert (len(listing), listing.phases["Running"]) == (2, 1)


def test_an_address_has_only_what_differs_from_the_default() -> None:
    assert Query().address == "/hyperjobs"
    assert not Query(sort="name", page=3).is_filtered
    assert Query(cluster="a").is_filtered
    asked = Query(search="a b", phases=("Running",), page=4, descending=True, columns=("name",))
    assert asked.address == "/hyperjobs?q=a+b&page=4&phase=Running&desc=1&col=name"
    assert asked.but(search="") == "/hyperjobs?phase=Running&desc=1&col=name"
    assert parse([("col", "nonsense")]).columns == DEFAULT
    assert parse([("col", "age")]).columns == ("name", "age")
    assert [parse([("size", size)]).size for size in ("1", "40", "9999", "x")] == [25, 50, 200, 50]
    assert [parse([("page", page)]).page for page in ("0", "7", "99999999", "-1")] == [
        *(1, 7, 100_000, 1)
    ]
    assert parse([("sort", "bad"), ("desc", "0")]) == Query()
    assert parse([("q", "first"), ("q", "second")]).search == "first"


def span(
    phase: str,
    begin: float = 0,
    end: float | None = 10,
    *,
    job: str = "j",
    cluster: str = "",
    reason: str = "",
) -> Span:
    return Span(
        job=job,
        cluster=cluster,
        phase=phase,
        reason=reason,
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


@pytest.mark.parametrize(
    ("second", "blocks"),
    [
        (span("Running", 10.2, 20.2, cluster="a"), [(0, 20.2)]),
        (span("Running", 10.25, 20.25, cluster="a"), [(0, 10), (10.25, 10)]),
        (span("Aborting", 10, 20, cluster="a"), [(0, 10), (10, 10)]),
        (span("Running", 10, 20, cluster="b"), [(0, 10), (10, 10)]),
    ],
)
def test_blocks_that_look_alike_and_touch_are_one(
    second: Span, blocks: list[tuple[float, float]]
) -> None:
    spans = [span("Running", 0, 10, cluster="a"), second, span("Running", 0, None, job="other")]
    lane, _ = timeline(row().summary, spans, NOW + timedelta(seconds=100)).lanes
    assert [(each.start, round(each.width, 3)) for each in lane.blocks] == blocks


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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nvidia.com/gpu", "NVIDIA GPU"),
        ("amd.com/gpu", "AMD GPU"),
        ("huawei.com/npu", "NPU"),
        ("google.com/tpu", "Google TPU"),
        ("nvidia.com/mig-1g", "NVIDIA mig-1g"),
        ("example.com/gpu", "example.com/gpu"),
    ],
)
def test_accelerators_have_a_name_for_people(name: str, text: str) -> None:
    assert device(name) == text


def test_colours_repeat_with_a_pattern() -> None:
    assert [hue(number) for number in (-1, 0, 7, 8, 15, 16, 24)] == [
        *("q-none", "q-0", "q-7", "q-0 q-p1", "q-7 q-p1", "q-0 q-p2", "q-0 q-p0")
    ]


def test_times_are_utc_and_an_absent_time_is_a_dash() -> None:
    assert clock("2026-01-02T05:04:05+02:00") == "2026-01-02 03:04:05"
    assert clock(NOW) == "2026-01-02 00:00:00"
    assert (clock(""), clock(None)) == ("", "")
    assert "&ndash;" in ago(None)
    text = ago(datetime.now(UTC) - timedelta(minutes=3, seconds=1))
    assert '">3m' in text
    assert goodput(row().summary) == ""


def test_a_user_has_some_places_and_all_users_have_more() -> None:
    places = StreamPlaces(limit=3, per_user=2)
    with places.taken("ann"), places.taken("ann"):
        with pytest.raises(web.HTTPServiceUnavailable) as refused, places.taken("ann"):
            pass
        assert "you have 2 streams already: close another tab" in str(refused.value.text)
        assert refused.value.headers["Retry-After"] == "30"
        with places.taken("bob"):
            with pytest.raises(web.HTTPServiceUnavailable) as full, places.taken("eve"):
                pass
            assert full.value.text == "the page has too many viewers"
    with places.taken(""), places.taken(""), places.taken(""):
        pass
    with places.taken("ann"):
        pass
