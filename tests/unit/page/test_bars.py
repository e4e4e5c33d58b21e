"""The bars of accelerators on the pages of clusters and queues, with exact numbers."""

from collections import Counter
from typing import Any

import pytest

from hyperjob.client.usage import ClusterUse, QueueUse, Tally, tree_of
from hyperjob_page.pages.fleet import CardCache, ClusterCard, card_of
from hyperjob_page.pages.queues import nodes
from hyperjob_page.rows import Holding, Holdings, QueueLines, Row, parts_of, row_of
from hyperjob_page.visitor import EVERYTHING, Scope
from tests.support.fleet import GPU, hyperjob

COLOURS = {"a": 1, "b": 2}


def cluster(*, ready: bool = True, **spec: str) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True" if ready else "False", "message": "no answer"}
    return {
        "metadata": {"name": "east", "resourceVersion": "1"},
        "spec": spec,
        "status": {"conditions": [condition]},
    }


def use(accelerator: str = GPU, *, total: int | None = 100, used: int | None = 0) -> ClusterUse:
    return ClusterUse(
        cluster="east",
        ready=True,
        accelerator=accelerator,
        allocatable=total,
        used=used,
        free=0,
        hyperjobs=0,
    )


def holding(key: str, running: int, *, queue: str = "a", reserved: int = 0) -> Holding:
    return Holding(key=key, queue=queue, running=running, reserved=reserved)


def card(
    uses: list[ClusterUse], taken: dict[str, list[Holding]], *, ready: bool = True, **spec: str
) -> ClusterCard:
    return card_of(
        cluster(ready=ready, **spec),
        uses,
        lambda accelerator: taken.get(accelerator, ()),
        lambda queue: COLOURS.get(queue, -1),
    )


def drawn(segments: Any) -> list[tuple[str, str, int]]:
    return [(each.kind, each.label, each.number) for each in segments]


def test_a_bar_shows_running_reserved_other_and_free_in_this_order() -> None:
    parts = [holding("n/x", 10, queue="b"), holding("n/y", 20, reserved=5), holding("n/z", 30)]
    found = card([use(used=70)], {GPU: parts})
    (bar,) = found.bars
    assert drawn(bar.segments) == [
        ("used", "n/z", 30),
        ("used", "n/y", 20),
        ("used", "n/x", 10),
        ("reserved", "reserved for HyperJobs that start", 5),
        ("other", "other work", 10),
        ("free", "free", 25),
    ]
    assert [(each.start, each.width) for each in bar.segments] == [
        (0, 30),
        (30, 20),
        (50, 10),
        (60, 5),
        (65, 10),
        (75, 25),
    ]
    assert [(each.key, each.queue, each.colour) for each in bar.segments[:3]] == [
        ("n/z", "a", 1),
        ("n/y", "a", 1),
        ("n/x", "b", 2),
    ]
    assert (bar.accelerator, bar.total, bar.busy) == (GPU, 100, 75)
    assert ({each.key for each in found.hyperjobs}, found.count) == ({"n/x", "n/y", "n/z"}, 3)


@pytest.mark.parametrize(
    ("total", "used", "ready", "kinds", "busy"),
    [
        (100, 100, True, [("used", 60), ("other", 40)], 100),
        (100, 0, True, [("used", 60), ("free", 40)], 60),
        (50, 0, True, [("used", 60)], 120),
        (100, 60, False, [("used", 60), ("lost", 40)], 60),
        (60, 60, False, [("used", 60)], 100),
        (None, None, True, [("used", 60)], 0),
    ],
    ids=["full", "a late status", "fewer than run", "not Ready", "full, not Ready", "unknown"],
)
def test_a_bar_of(
    total: int | None, used: int | None, ready: bool, kinds: list[tuple[str, int]], busy: int
) -> None:
    found = card([use(total=total, used=used)], {GPU: [holding("n/x", 60)]}, ready=ready)
    (bar,) = found.bars
    assert [(each.kind, each.number) for each in bar.segments] == kinds
    assert (bar.total, bar.busy) == (total, busy)
    assert (found.ready, found.trouble) == (ready, "" if ready else "no answer")


def test_a_card_is_made_again_for_another_version_and_drawn_again_for_another_content() -> None:
    cache, made = CardCache(), []

    def make(total: int) -> ClusterCard:
        made.append(total)
        return card([use(total=total)], {})

    key = (EVERYTHING, "east")
    first = cache.card(key, 1, lambda: make(8))
    assert cache.card(key, 1, lambda: make(9)) is first
    again = cache.card(key, 2, lambda: make(8))
    assert made == [8, 8]
    assert again.html is first.html
    other = cache.card(key, 3, lambda: make(9))
    assert other.html != first.html
    assert cache.card((Scope(frozenset({"n"})), "east"), 3, lambda: make(1)).card != other.card


def row(number: int = 0, *, phase: str = "Running", **job: Any) -> Row:
    raw = hyperjob(number, clusters=1, phase=phase)
    for index, values in job.items():
        raw["status"]["jobs"][int(index[1:])].update(values)
    return row_of(raw)


def test_a_hyperjob_holds_what_its_unfinished_sub_jobs_have_on_a_cluster() -> None:
    found = row(j1={"phase": "Placed"}, j2={"phase": "Completed"}, j3={"cluster": ""})
    assert parts_of(found) == {
        ("cluster-000", GPU): holding("team-0/train-0", 16, queue="queue-0", reserved=16)
    }
    assert parts_of(row(phase="Completed")) == {}
    raw = hyperjob(0, clusters=1, phase="Running")
    for job in raw["status"]["jobs"]:
        del job["accelerators"]
    for group in raw["spec"]["replicatedJobs"]:
        del group["templateSpec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]
    assert parts_of(row_of(raw)) == {}


def test_a_sub_job_with_a_part_of_its_pods_holds_their_accelerators_alone_as_in_top() -> None:
    part = row(j0={"pods": 4, "running": 3})
    ((where, held),) = parts_of(part).items()
    assert held.running == Tally.of([part.summary]).taken[where] == 60


def test_holdings_count_a_version_for_each_cluster_that_a_hyperjob_leaves_or_enters() -> None:
    holdings = Holdings()
    holdings.change("team-0/train-0", row())
    assert holdings.versions == {"cluster-000": 1}
    moved = row(**{f"j{index}": {"cluster": "west"} for index in range(4)})
    holdings.change("team-0/train-0", moved)
    assert holdings.versions == {"cluster-000": 2, "west": 1}
    assert holdings.at(("cluster-000", GPU), EVERYTHING) == []
    there = holdings.at(("west", GPU), EVERYTHING)
    assert there == [holding("team-0/train-0", 64, queue="queue-0")]
    assert holdings.at(("west", GPU), Scope(frozenset({"team-1"}))) == []
    holdings.change("team-0/train-0", None)
    assert holdings.versions["west"] == 2
    holdings.change("team-0/train-0", None)
    assert holdings.versions["west"] == 2
    assert holdings.at(("west", GPU), EVERYTHING) == []


def queue_use(queue: str = "a", **numbers: Any) -> QueueUse:
    given = {"used": 0, "waiting": 0, "share": None, "deserved": None, "capability": None}
    return QueueUse(
        queue=queue,
        **{
            "state": "Open",
            "accelerator": GPU,
            "ended": None,
            "running_hyperjobs": 0,
            "waiting_hyperjobs": 0,
            **given,
            **numbers,
        },
    )


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}}


def shown(uses: list[QueueUse], *found: dict[str, Any], **more: Any) -> Any:
    lines, rows = QueueLines(), more.get("rows", [])
    for each in rows:
        lines.change(each.key, each)
    return nodes(
        tree_of(found, {}),
        uses,
        {each.key: each for each in rows},
        lines,
        more.get("phases", Counter()),
        more.get("scope", EVERYTHING),
        lambda name: COLOURS.get(name, -1),
    )


@pytest.mark.parametrize(
    ("numbers", "guarantee", "expected"),
    [
        ({"used": 30, "share": 40}, None, (0, 75.0, 0.0, 100.0, None)),
        ({"used": 50, "share": 40, "capability": 100}, "20", (10, 40.0, 10.0, 40.0, 20.0)),
        ({"used": 50, "share": 0}, None, (50, 0.0, 100.0, 0.0, None)),
        ({"used": 50}, None, (0, 100.0, 0.0, None, None)),
        ({"used": 5, "share": 4}, "20", (1, 20.0, 5.0, 20.0, 100.0)),
        ({"waiting": 4, "share": 0}, None, (0, 0.0, 0.0, 0.0, None)),
        ({"used": 1, "share": 3}, None, (0, 33.33, 0.0, 100.0, None)),
    ],
    ids=[
        "below its share",
        "beyond its share",
        "without a share",
        "of an unknown share",
        "with a guarantee above all",
        "that only waits",
        "in hundredths of a percent",
    ],
)
def test_the_bar_of_a_queue(numbers: dict[str, int], guarantee: str | None, expected: Any) -> None:
    spec = {} if guarantee is None else {"guarantee": {"resource": {GPU: guarantee}}}
    (node,) = shown([queue_use(deserved=3, **numbers)], queue("a", **spec))
    (bar,) = node.bars
    places = (bar.own_width, bar.borrowed_width, bar.share_at, bar.guarantee_at)
    assert (bar.borrowed, *places) == expected
    assert (bar.use.accelerator, bar.use.deserved) == (GPU, 3)
    assert bar.guarantee == (None if guarantee is None else int(guarantee))


def test_the_line_of_a_queue_shows_twenty_and_counts_the_hidden_before_them() -> None:
    rows = [row(12 * number, phase="Queued") for number in range(30)]
    (node,) = shown([], queue("queue-0"), rows=rows)
    assert [place for place, _ in node.line] == list(range(1, 21))
    assert (node.length, node.hidden) == (30, 0)
    mine = frozenset(each.summary.namespace for each in rows) - {rows[2].summary.namespace}
    (node,) = shown([], queue("queue-0"), rows=rows, scope=Scope(mine))
    assert [place for place, _ in node.line] == [*range(1, 3), *range(4, 13), *range(14, 23)]
    assert [each.key for _, each in node.line[:3]] == [rows[0].key, rows[1].key, rows[3].key]
    assert (node.length, node.hidden) == (30, 2)


def test_queues_come_as_a_tree() -> None:
    found = shown([], queue("queue-0", parent="research"), queue("research"), queue("other"))
    assert [(node.name, node.depth) for node in found] == [
        ("other", 0),
        ("research", 0),
        ("queue-0", 1),
    ]
