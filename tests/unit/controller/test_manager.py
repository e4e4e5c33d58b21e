"""The process around the passes, on a client that has its API server in memory."""

import asyncio
from typing import Any

import pytest

from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, LEASES, MUTATING_WEBHOOKS, QUEUES
from tests.support.apiserver import ApiServer, refusal
from tests.unit.controller.test_pass import member, named, reason, running, until
from tests.unit.engine.builders import group
from tests.unit.install.observations import volcano_global


async def test_it_is_ready_once_every_cache_is_complete() -> None:
    server = ApiServer()
    missing = Manager(server.kube, Options()).ready()
    assert missing.startswith("waiting for ")
    assert "hyperjobs.training.volcano.sh" in missing
    async with running(server) as manager:
        assert manager.ready() is None


async def test_it_says_that_the_api_server_refuses_its_token() -> None:
    server = ApiServer()
    async with running(server) as manager:
        assert manager.refused() is None
    server.fails = lambda *_: refusal(401, "Unauthorized", "the token has expired")
    manager = Manager(server.kube, Options())
    task = asyncio.create_task(manager.run())
    try:
        await until(manager.refused)
        assert manager.refused() == (
            "the API server answers 401 (the token has expired): the token has expired or its"
            " account was deleted; run hyperjob credentials renew, or the renewal's Job"
        )
        server.fails = lambda *_: None
        await until(lambda: manager.refused() is None)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_change_of_the_queue_admission_begins_anew_and_is_told_at_the_lease() -> None:
    server = ApiServer()
    server.put(CLUSTERS, member("a", 16))
    server.put(QUEUES, {"metadata": {"name": "default"}, "status": {"state": "Open"}})
    async with running(server, None) as manager:
        server.put(HYPERJOBS, named("before", group(replicas=1)))
        await until(lambda: reason(server, "before"))
        webhook = server.put(MUTATING_WEBHOOKS, volcano_global())
        await until(lambda: notes(server) == ["volcano-global"])
        await until(manager.caches.deployments.synced.is_set)
        assert [str(manager.mode.current)] == notes(server)
        server.remove(MUTATING_WEBHOOKS, webhook["metadata"]["name"])
        await until(lambda: len(notes(server)) == 2)
        assert notes(server)[1] == str(manager.mode.current) == "builtin"
        server.put(HYPERJOBS, named("hj", group(replicas=1)))
        await until(lambda: reason(server))


def notes(server: ApiServer) -> list[str]:
    """Give the queue admissions that Events of the Lease name, the first one first."""
    return [
        each["note"].removeprefix("Queue admission is ").partition(" ")[0]
        for each in server.events
        if each["reason"] == "QueueAdmissionChanged" and each["regarding"]["kind"] == "Lease"
    ]


async def test_it_works_while_it_holds_the_lease_and_gives_it_up_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ApiServer()

    def holder() -> Any:
        return server.get(LEASES, "karmada-system/hyperjob-controller")["spec"]["holderIdentity"]

    async with running(server, leader_elect=True) as manager:
        assert holder() == manager.identity
    assert not manager.working.is_set()
    assert holder() == ""
    assert "The namespace of the Lease does not exist" in caplog.text
