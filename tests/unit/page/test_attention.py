"""The list of HyperJobs that need a person follows their changes, the time, and preflight."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS
from hyperjob_core.tasks import cancel
from hyperjob_install.preflight import Finding, PreflightReport
from hyperjob_install.preflight.finding import failed, ok, warning
from hyperjob_page import attention as module
from hyperjob_page.attention import Attention
from hyperjob_page.world import LiveState
from tests.support.apiserver import ApiServer
from tests.unit.cli.objects import cluster, hyperjob, sub_job

FAILED = hyperjob("Failed", sub_job(phase="Failed", cluster="east", message="why"))


@asynccontextmanager
async def listed(server: ApiServer, *, examine: bool = False) -> AsyncIterator[Attention]:
    """Run the list of an API server until it knows all HyperJobs."""
    live = LiveState(server.kube)
    found = Attention(live, server.kube, examine=examine)
    async with live.running() as world:
        await world.synced()
        running = asyncio.create_task(found.run())
        try:
            yield found
        finally:
            await cancel([running])


async def until(found: Attention, keys: set[str]) -> None:
    async with asyncio.timeout(30):
        while set(found.troubles) != keys:  # noqa: ASYNC110 - the list has no event for a test
            await asyncio.sleep(0.01)


@pytest.fixture
def server() -> ApiServer:
    made = ApiServer()
    made.put(CLUSTERS, cluster("east"))
    return made


def stored(name: str, obj: Any) -> Any:
    return {**obj, "metadata": {**obj["metadata"], "name": name, "uid": name}}


async def test_a_hyperjob_is_listed_while_it_needs_a_person(server: ApiServer) -> None:
    server.put(HYPERJOBS, stored("failed", FAILED))
    server.put(HYPERJOBS, stored("done", hyperjob("Completed")))
    server.put(HYPERJOBS, stored("held", hyperjob("Suspended", spec={"suspend": True})))
    async with listed(server) as found:
        await until(found, {"ml/failed"})
        item = found.troubles["ml/failed"]
        assert (item.key, item.headline) == ("ml/failed", "is Failed")
        assert item.causes[0].message == "llm-trainer-0 is Failed on east: why"
        server.put(HYPERJOBS, stored("done", FAILED))
        await until(found, {"ml/failed", "ml/done"})
        server.remove(HYPERJOBS, "ml/failed")
        await until(found, {"ml/done"})
        server.put(HYPERJOBS, stored("done", hyperjob("Completed")))
        await until(found, set())


async def test_a_change_of_the_list_is_a_change_of_its_page(server: ApiServer) -> None:
    server.put(HYPERJOBS, stored("failed", FAILED))
    live = LiveState(server.kube)
    found = Attention(live, server.kube, examine=False)
    async with live.running() as world:
        await world.synced()
        before = world.version("attention")
        found._judge("ml/failed")
        assert world.version("attention") != before
        known = world.version("attention")
        found._judge("ml/failed")
        found._judge("ml/none")
        assert world.version("attention") == known, "an equal list is no change"


async def test_waiting_hyperjobs_are_explained_again_and_settled_ones_are_not(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    phases = ("Running", "Queued", "Completed", "Failed", "Suspended")
    for phase in phases:
        server.put(HYPERJOBS, stored(phase.lower(), hyperjob(phase)))
    async with listed(server) as found:
        await found._idle.wait()
        asked: list[str] = []
        monkeypatch.setattr(module, "_AGAIN_SECONDS", 0.0)
        monkeypatch.setattr(found, "_request", asked.append)
        again = asyncio.create_task(found._again())
        async with asyncio.timeout(30):
            while not asked:  # noqa: ASYNC110 - a list has no event
                await asyncio.sleep(0)
        await cancel([again])
        assert set(asked) == {"ml/running", "ml/queued"}


async def test_preflight_gives_its_failures_and_warnings_and_may_fail_itself(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad = Finding("karmada", failed("old", remedy="x"))
    late = Finding("webhook-ca", warning("ends", remedy="x"))
    answers: list[Any] = [PreflightReport((Finding("api-server", ok("fine")), bad, late))]

    async def looked(_kube: Any, *, now: Any) -> PreflightReport:
        if not answers:
            raise RuntimeError("a bug")
        return answers.pop()  # type: ignore[no-any-return]

    monkeypatch.setattr(module, "preflight", looked)
    async with listed(server, examine=True) as found:
        async with asyncio.timeout(30):
            await found.settled()
        assert found.findings == [bad, late]
        assert found.examined is not None
    async with listed(server, examine=True) as broken:
        async with asyncio.timeout(30):
            await broken.settled()
        assert (broken.findings, broken.examined) == ((), None)
    assert "Preflight failed" in caplog.text
