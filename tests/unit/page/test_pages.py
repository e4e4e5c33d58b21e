"""The web page over HTTP, on an API server in memory: pages, actions, and their errors."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest

from hyperjob.client.errors import ClientError
from hyperjob_core.api.names import MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS
from hyperjob_page.pages import jobs
from hyperjob_page.pages.actions import _event_rows, act, confirmation
from hyperjob_page.rows import Row, row_of
from tests.support.apiserver import ApiServer, refusal
from tests.support.fleet import fill, hyperjob
from tests.support.uiworld import Ui, open_ui

RUNNING = "/hyperjobs/team-0/train-0"
QUEUED = "/hyperjobs/team-6/train-6"
FAILED = "/hyperjobs/team-11/train-11"


@dataclass
class World:
    server: ApiServer
    ui: Ui

    def stored(self, key: str) -> dict[str, Any]:
        found = self.server.get(HYPERJOBS, key)
        assert found is not None
        return found


async def opened(stack: AsyncExitStack, **more: Any) -> World:
    server = ApiServer()
    fill(server, hyperjobs=13, clusters=3)
    server.put(
        CLUSTERS,
        {
            "metadata": {"name": "lost"},
            "status": {"conditions": [{"type": "Ready", "status": "False", "message": "no route"}]},
        },
    )
    return World(server, await open_ui(stack, server.kube, **more))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        yield await opened(stack)


PAGES = {
    "/": (200, ["Fleet", "cluster-000", "cluster-002", "lost", "3 /4 clusters ready"]),
    "/hyperjobs": (200, ["1\u201313 of 13", "train-0", "train-12"]),
    "/hyperjobs?phase=Queued": (200, ["1\u20132 of 2", "train-6", "train-7"]),
    "/queues": (200, ["queue-0", "queue-11"]),
    RUNNING: (200, ["train-0", "cluster-001", "Suspend", "Restart", "Move", "Delete"]),
    f"{RUNNING}?done=restart": (200, ["Restart"]),
    f"{RUNNING}/why": (200, ["train-0"]),
    f"{RUNNING}/events": (200, ["Events"]),
    f"{RUNNING}/yaml": (200, ["uid-of-0", "observedGeneration"]),
    f"{RUNNING}/metrics": (200, ["Curves", "No progress line with metrics is in these logs."]),
    f"{RUNNING}/logs": (200, ["train-0"]),
    f"{RUNNING}/suspend": (200, ["Suspend train-0?", "Cancel"]),
    f"{QUEUED}/migrate": (200, ["train-6 is Queued: this action is not possible now.", "Back"]),
    "/hyperjobs/team-0/gone": (404, ["There is no HyperJob team-0/gone, or you may not see it."]),
    "/hyperjobs/team-0/gone/why": (404, ["There is no HyperJob team-0/gone"]),
    "/hyperjobs/a/b/c/d": (404, ["There is no page /hyperjobs/a/b/c/d."]),
    "/nowhere": (404, ["There is no page /nowhere."]),
    "/static/other.css": (404, ["no such file"]),
    "/hyperjobs/": (200, ["1\u201313 of 13"]),
}


async def test_each_address_has_its_page(world: World) -> None:
    found = {path: await world.ui.get(path) for path in PAGES}
    for path, (status, texts) in PAGES.items():
        page = found[path]
        missing = [text for text in texts if text not in page.text]
        assert (page.status, missing) == (status, []), f"{path}: {page.text[:2000]}"
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert page.headers["Server"] == "hyperjob"
        assert page.headers["Cache-Control"] == "no-store"


async def test_files_are_cached_and_the_health_needs_no_visitor(world: World) -> None:
    sheet = await world.ui.get("/static/ui.css")
    assert sheet.headers["Content-Type"] == "text/css; charset=utf-8"
    assert sheet.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    health = await world.ui.get("/healthz")
    assert (health.status, health.html) == (200, "ok\n")


@pytest.mark.parametrize(
    ("action", "form", "where", "changed"),
    [
        ("suspend", {}, RUNNING, ("spec", {"suspend": True})),
        ("restart", {}, RUNNING, (RESTART_REQUEST, "")),
        ("restart", {"target": "train-0-trainer-2"}, RUNNING, (RESTART_REQUEST, "-trainer-2")),
        ("migrate", {"target": "cluster-001"}, RUNNING, (MIGRATE_REQUEST, "train-0-trainer-1")),
        ("delete", {"typed": " train-0 "}, "/hyperjobs", ("deleted", None)),
    ],
)
async def test_an_action_writes_one_request(
    world: World, action: str, form: dict[str, str], where: str, changed: tuple[str, Any]
) -> None:
    page = await world.ui.post(f"{RUNNING}/{action}", **form)
    assert (page.status, page.headers["Location"]) == (303, f"{where}?done={action}")
    assert len(world.server.calls) == 1
    kind, value = changed
    if kind == "deleted":
        assert world.server.get(HYPERJOBS, "team-0/train-0") is None
    elif kind == "spec":
        assert world.stored("team-0/train-0")["spec"]["suspend"] is value["suspend"]
    else:
        token, *jobs = world.stored("team-0/train-0")["metadata"]["annotations"][kind].split()
        assert token
        assert " ".join(jobs).endswith(value)
        assert bool(jobs) == bool(value)


@pytest.mark.parametrize(
    ("path", "form", "error", "status", "text"),
    [
        (f"{RUNNING}/delete", {"typed": "x"}, None, 409, "type train-0 into the field: nothing"),
        (f"{RUNNING}/migrate", {}, None, 409, "choose the cluster to move the sub-jobs away from"),
        (f"{FAILED}/suspend", {}, None, 409, "cannot be suspended or resumed"),
        (f"{RUNNING}/suspend", {}, refusal(403, "Forbidden"), 403, "Error from server (Forbidden)"),
        (f"{RUNNING}/suspend", {}, refusal(599, "Odd"), 599, "Error from server (Odd)"),
        (f"{RUNNING}/suspend", {}, refusal(400, "BadRequest"), 400, "BadRequest"),
        (f"{RUNNING}/suspend", {}, refusal(600, "Odd"), 502, "Error from server (Odd)"),
        (f"{RUNNING}/suspend", {}, refusal(302, "Odd"), 502, "Error from server (Odd)"),
    ],
)
async def test_an_action_that_fails_asks_again_with_the_reason(
    world: World,
    path: str,
    form: dict[str, str],
    error: KubeError | None,
    status: int,
    text: str,
) -> None:
    world.server.fails = lambda verb, _resource, _name: error if verb == "patch" else None
    page = await world.ui.post(path, **form)
    assert page.status == status
    assert text in page.text
    assert "?" in page.text
    assert len(world.server.calls) == (0 if error is None else 1)


async def test_a_read_only_page_offers_and_does_nothing() -> None:
    async with AsyncExitStack() as stack:
        world = await opened(stack, read_only=True)
        page = await world.ui.get(RUNNING)
        assert f'href="{RUNNING}/delete"' not in page.html
        for action, verb in (("suspend", "patch"), ("delete", "delete")):
            answer = await world.ui.post(f"{RUNNING}/{action}", typed="train-0")
            assert answer.status == 403
            assert f"You may not {verb} this HyperJob here." in answer.text
        assert world.server.calls == []


async def test_a_section_that_the_api_server_refuses_says_so_in_its_frame(world: World) -> None:
    world.server.fails = lambda verb, *_: refusal(403, "Forbidden") if verb == "get" else None
    for section in ("yaml", "events", "plan"):
        page = await world.ui.get(f"{RUNNING}/{section}")
        assert page.status == 200
        assert "Error from server (Forbidden): no" in page.text
        assert page.html.rstrip().endswith("</html>")
        assert "train-0" in page.text


async def test_a_fault_of_the_page_is_an_answer_without_its_cause(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("hyperjob_page.pages.answers.whole", None)
    page = await world.ui.get("/queues")
    assert page.status == 500
    assert "Rendering the page failed; the log of hyperjob ui has the error." in page.text
    assert "NoneType" not in page.text
    assert "Rendering a page failed" in caplog.text


async def test_a_form_has_at_most_64_kib(world: World) -> None:
    page = await world.ui.post(f"{RUNNING}/suspend", target="x" * 64 * 1024)
    assert page.status == 413
    assert world.server.calls == []
    assert (await world.ui.post(f"{RUNNING}/suspend", target="x" * 60 * 1024)).status == 303


def row(phase: str = "Running", *, number: int = 0, **spec: Any) -> Row:
    raw = hyperjob(number, clusters=3, phase=phase)
    raw["spec"].update(spec)
    raw["status"]["runningPods"] = 8
    return row_of(raw)


def test_a_question_says_what_the_action_stops_and_gives_back() -> None:
    asked = confirmation("suspend", row())
    assert asked.button == "Suspend train-0"
    assert asked.sentences == [
        (
            "The controller removes 4 sub-jobs from cluster-000, cluster-001, cluster-002; 8"
            " running pods are stopped and lose the work since their last checkpoint."
        ),
        (
            "Queue queue-0 gets 64 nvidia.com/gpu for other HyperJobs. The HyperJob stays in the"
            " API server until it is resumed."
        ),
    ]
    alone = row()
    one = replace(alone, summary=replace(alone.summary, jobs=alone.summary.jobs[:1]))
    assert "removes 1 sub-job from cluster-000; 8" in confirmation("delete", one).sentences[0]
    deletion = confirmation("delete", row("Queued"))
    assert deletion.button == "Delete train-0"
    assert "No sub-job is on a cluster." in deletion.sentences
    resumed = confirmation("resume", row("Queued"))
    assert resumed.button == "Resume train-0"
    assert "queue queue-0 again and starts as soon as the whole gang" in resumed.sentences[0]


def test_a_question_offers_the_sub_jobs_or_clusters_that_can_be_chosen() -> None:
    restart = confirmation("restart", row())
    assert restart.choices[0] == ("", "all sub-jobs")
    assert restart.choices[1] == ("train-0-trainer-0", "train-0-trainer-0, Running on cluster-000")
    assert len(restart.choices) == 5
    assert confirmation("restart", row("Queued")).choices[1] == (
        "train-0-trainer-0",
        "train-0-trainer-0, Queued",
    )
    assert (restart.label, restart.button) == ("Restart", "Restart train-0")
    move = confirmation("migrate", row())
    assert move.choices == [
        ("cluster-000", "away from cluster-000 (2 sub-jobs)"),
        ("cluster-001", "away from cluster-001 (1 sub-job)"),
        ("cluster-002", "away from cluster-002 (1 sub-job)"),
    ]
    assert (move.label, move.button) == ("Move", "Move sub-jobs of train-0")
    assert confirmation("restart", row("Completed")).choices == [("", "all sub-jobs")]
    assert confirmation("migrate", row("Completed")).choices == []


async def test_an_unknown_action_changes_nothing() -> None:
    server = ApiServer()
    with pytest.raises(ClientError, match="there is no action explode"):
        await act(server.kube, row(), "explode", target="", typed="")
    assert server.calls == []


async def test_a_browser_gets_a_page_again_only_after_a_change(world: World) -> None:
    first = await world.ui.get("/hyperjobs")
    known = first.headers["ETag"]
    same = await world.ui.get("/hyperjobs", **{"If-None-Match": known})
    assert (same.status, same.html, same.headers["ETag"]) == (304, "", known)
    assert (await world.ui.get("/queues", **{"If-None-Match": known})).status == 200
    world.server.put(HYPERJOBS, hyperjob(0, clusters=3, message="news of it"))
    assert "news of it" in (await world.ui.until("/hyperjobs", "news of it")).text
    assert (await world.ui.get("/hyperjobs", **{"If-None-Match": known})).status == 200


async def test_viewers_of_a_page_share_one_rendering(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0
    whole = jobs.JobsPage.parts

    async def counted(self: jobs.JobsPage) -> Any:
        nonlocal made
        made += 1
        return await whole(self)

    monkeypatch.setattr(jobs.JobsPage, "parts", counted)
    found = await asyncio.gather(*(world.ui.get("/hyperjobs") for _ in range(50)))
    assert len({page.headers["ETag"] for page in found}) == 1
    assert made == 1


def test_events_come_latest_first_with_their_number_and_source() -> None:
    old = {"type": "Warning", "reason": "A", "message": "m" * 3000, "count": 3}
    old |= {"lastTimestamp": "2026-01-01T00:00:00Z", "source": {"component": "kubelet"}}
    new = {"type": "Normal", "series": {"count": 7}, "reportingComponent": "controller"}
    new |= {"eventTime": "2026-01-02T00:00:00Z", "source": {"component": "other"}}
    first, second, third = _event_rows([old, new, {}])
    assert (first["warning"], first["times"], first["source"]) == (False, 7, "controller")
    assert (second["warning"], second["times"], second["source"]) == (True, 3, "kubelet")
    assert len(str(second["message"])) <= 2000
    assert (third["times"], third["source"], third["reason"]) == (1, "", "")
