"""What pages show of known objects, without a server."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp.test_utils import make_mocked_request

from hyperjob.client.logs.choosing import ContainerLog
from hyperjob.client.summary import read
from hyperjob_core.api.duration import utc_now
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS
from hyperjob_page.pages import actions, logs
from hyperjob_page.render import expected, render
from hyperjob_page.rows import Row, row_of
from tests.support.fleet import hyperjob
from tests.unit.cli.objects import cluster


def row(number: int, **more: Any) -> Row:
    return row_of(hyperjob(number, clusters=4, **more))


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
