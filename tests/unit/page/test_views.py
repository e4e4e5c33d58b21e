"""What pages show of known objects, without a server."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp.test_utils import make_mocked_request

from hyperjob.client import usage
from hyperjob.client.logs.choosing import ContainerLog
from hyperjob.client.summary import read
from hyperjob.client.usage import Tally
from hyperjob_core.api.duration import utc_now
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS
from hyperjob_page.pages import actions, fleet, logs, queues
from hyperjob_page.render import expected, render
from hyperjob_page.rows import Holdings, QueueLines, Row, row_of
from hyperjob_page.timeline import Span, timeline
from hyperjob_page.visitor import EVERYTHING, Scope
from tests.support.fleet import GPU, hyperjob

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def cluster(name: str, *, total: int = 64, used: int = 0, ready: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "resourceVersion": "1"},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True" if ready else "False", "message": "no answer"}
            ],
            "resourceSummary": {"allocatable": {GPU: str(total)}, "allocated": {GPU: str(used)}},
        },
    }


def row(number: int, **more: Any) -> Row:
    raw = hyperjob(number, clusters=4, **more)
    raw["metadata"]["resourceVersion"] = "1"
    return row_of(raw)


def card(raw: dict[str, Any], rows: list[Row], scope: Scope = EVERYTHING) -> fleet.ClusterCard:
    holdings = Holdings()
    for each in rows:
        holdings.change(each.key, each)
    uses = usage.clusters([raw], Tally.of(each.summary for each in rows))
    name = raw["metadata"]["name"]
    return fleet.card_of(
        raw, uses, lambda accelerator: holdings.at((name, accelerator), scope), lambda _: 0
    )


def test_a_visitor_sees_hyperjobs_of_their_namespaces_alone() -> None:
    rows = [row(0, phase="Running"), row(1, phase="Running")]
    found = card(cluster("cluster-000", used=32), rows, Scope(frozenset({"team-0"})))
    assert [each.key for each in found.hyperjobs] == ["team-0/train-0"]
    assert found.bars[0].other == 16, "what they may not see is other work"


def span(job: str, phase: str, begin: int, end: int | None, **more: Any) -> Span:
    return Span(
        job=job,
        attempt=more.get("attempt", 1),
        cluster=more.get("cluster", ""),
        phase=phase,
        reason=more.get("reason", ""),
        message=more.get("message", ""),
        begin=NOW + timedelta(seconds=begin),
        end=None if end is None else NOW + timedelta(seconds=end),
    )


def test_a_timeline_draws_waiting_attempts_moves_and_failures() -> None:
    job = "train-0-trainer-0"
    spans = [
        span("", "Queued", 0, 20),
        span("", "Running", 20, None),
        span(job, "Queued", 0, 20),
        span(job, "Running", 20, 60, cluster="east"),
        span(job, "Failed", 60, 60, cluster="east", reason="JobFailed", message="exit code 137"),
        span(job, "", 60, 70),
        span(job, "Running", 70, None, cluster="west", attempt=2),
    ]
    line = timeline(row(0, phase="Running").summary, spans, NOW + timedelta(seconds=100))
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


def queue(name: str, parent: str = "", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"weight": 1, **({"parent": parent} if parent else {}), **spec},
        "status": {"state": "Open"},
    }


def test_queues_come_as_a_tree_with_what_is_borrowed_and_the_line() -> None:
    found = [
        queue("queue-0", "research", guarantee={"resource": {GPU: "8"}}),
        queue("research"),
        queue("other"),
    ]
    rows = [row(0, phase="Running"), row(12, phase="Queued"), row(24, phase="Queued")]
    lines = QueueLines()
    for each in rows:
        lines.change(each.key, each)
    nodes = _nodes(found, rows, lines, EVERYTHING)
    assert [(node.name, node.depth) for node in nodes] == [
        ("other", 0),
        ("research", 0),
        ("queue-0", 1),
    ]
    leaf = nodes[-1]
    (bar,) = leaf.bars
    assert (bar.use.used, bar.use.share, bar.borrowed, bar.guarantee) == (64, 32, 32, 8)
    assert bar.use.waiting == 128
    assert [(place, each.key) for place, each in leaf.line] == [
        (1, "team-12/train-12"),
        (2, "team-24/train-24"),
    ]
    mine = _nodes(found, rows, lines, Scope(frozenset({"team-24"})))[-1]
    assert [(place, each.key) for place, each in mine.line] == [(2, "team-24/train-24")]
    assert mine.hidden == 1


def _nodes(
    found: list[dict[str, Any]], rows: list[Row], lines: QueueLines, scope: Scope
) -> list[queues.QueueNode]:
    totals = {GPU: 64}
    return queues.nodes(
        usage.tree_of(found, totals),
        usage.queues(found, Tally.of(each.summary for each in rows), totals=totals),
        {each.key: each for each in rows},
        lines,
        Counter({(queue, each.summary.phase): 1 for each in rows for queue in each.queues}),
        scope,
        lambda _: 0,
    )


@pytest.mark.parametrize(
    ("phase", "offered"),
    [
        ("Running", ["suspend", "restart", "migrate", "delete"]),
        ("Queued", ["suspend", "restart", "delete"]),
        ("Completed", ["delete"]),
        ("Failed", ["delete"]),
    ],
)
def test_only_what_can_be_done_is_offered(phase: str, offered: list[str]) -> None:
    assert actions.available(row(0, phase=phase).summary) == offered


def test_control_characters_are_shown_and_html_is_escaped() -> None:
    text = render("parts/refused.html", text="<b>\x1b[31m\u202eabc</b>")
    assert "&lt;b&gt;\\u001b[31m\\u202eabc&lt;/b&gt;" in text


def test_the_page_says_when_a_hyperjob_is_expected_to_start_and_after_which() -> None:
    raw = hyperjob(1, clusters=4)
    assert expected(read(raw)) == ""
    soon = (datetime.now(UTC) + timedelta(hours=2, minutes=11)).strftime("%Y-%m-%dT%H:%M:%SZ")
    namespace = raw["metadata"]["namespace"]
    raw["status"]["expectedStart"] = {"time": soon, "after": f"{namespace}/base"}
    assert expected(read(raw)) == (
        "Expected to start in about 2 h 10 min, when base ends (its estimate)"
    )


def test_the_page_shows_what_a_program_does_instead_of_steps_and_for_which_pod_others_wait() -> (
    None
):
    raw = hyperjob(0, clusters=4, phase="Running")
    slow = {"cluster": "west", "pod": "j-0-worker-0", "part": "0.45", "seconds": "0.9"}
    raw["status"]["training"] = {
        "step": 7,
        "updateTime": "2026-01-02T00:00:00Z",
        "startTime": "2026-01-02T00:00:00Z",
        "phase": "evaluate",
        "straggler": slow,
    }
    row = row_of(raw)
    parts = {"row": row, "summary": row.summary, "place": None, "length": 0, "path": ""}
    shown = render("parts/job_head.html", colour=lambda queue: 0, **parts)
    assert "<dd>evaluate</dd>" in shown
    assert "the others wait for pod j-0-worker-0 in west 45% of the time, 0.9 s of" in shown


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("2026-01-02 ERROR the disk is full", "error"),
        ("ValueError: no labels", "error"),
        ("Traceback (most recent call last):", "error"),
        ("[WARNING] slow", "warning"),
        ("UserWarning: old", "warning"),
        ("DEBUG x", "debug"),
        ("the error is 0.3, no warning", ""),
        ("step 3 INFO", ""),
    ],
)
def test_a_line_of_a_log_has_its_level(text: str, level: str) -> None:
    source = ContainerLog(cluster="east", pod="p-0", container="main")
    raw = f"2026-01-02T03:04:05.000000000Z {text}".encode()
    assert logs.Choice().line(source, raw) == ("03:04:05 east/p-0", text, level)
    assert logs.Choice(search="nowhere").line(source, raw) is None


@pytest.mark.parametrize(
    ("given", "ranks", "shown"),
    [
        ("", None, ""),
        ("0", {0}, "0"),
        (" 3, 1 7", {1, 3, 7}, "3, 1, 7"),
        ("a,-1,1.5", None, ""),
        ("9" * 400, None, ""),
    ],
)
def test_logs_are_chosen_by_ranks(given: str, ranks: set[int] | None, shown: str) -> None:
    choice = logs.Choice.of(make_mocked_request("GET", f"/logs?rank={quote(given)}"))
    assert (choice.wanted.ranks, choice.rank) == (ranks, shown)
    source = ContainerLog(cluster="east", pod="p-0", container="main", rank=3)
    assert choice.line(source, b"x") == ("east/p-0 rank 3", "x", "")


async def test_the_plan_on_the_page_warns_of_objects_that_pods_lack() -> None:
    server = MemoryServer(now=utc_now)
    made = hyperjob(0, clusters=1)
    del made["status"]
    for group in made["spec"]["replicatedJobs"]:
        for task in group["templateSpec"]["tasks"]:
            (container, *_) = task["template"]["spec"]["containers"]
            container["envFrom"] = [{"secretRef": {"name": "gone"}}]
    server.put(HYPERJOBS, made)
    server.put(CLUSTERS, cluster("east"))
    context: Any = SimpleNamespace(planning=asyncio.Lock())
    metadata = made["metadata"]
    text = await actions.plan(context, Kube(server), metadata["namespace"], metadata["name"])
    assert "gone" in text
