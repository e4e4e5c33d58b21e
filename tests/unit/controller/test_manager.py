"""The process around the passes, on a client that has its API server in memory."""

from typing import Any

import pytest

from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options
from hyperjob_core.kube.resources import (
    CLUSTERS,
    EVENTS,
    HYPERJOBS,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    QUEUES,
)
from tests.support.fakekube import FakeKube, refusal
from tests.unit.controller.builders import group
from tests.unit.controller.test_pass import member, named, reason, running, until
from tests.unit.install.observations import volcano_global


def manager_of(kube: FakeKube, **options: Any) -> Manager:
    return Manager(kube, Options(**options))  # type: ignore[arg-type]  # has the verbs that are used


async def test_it_is_ready_once_every_cache_is_complete() -> None:
    kube = FakeKube()
    missing = manager_of(kube).ready()
    assert missing is not None
    assert missing.startswith("waiting for ")
    assert "hyperjobs.training.volcano.sh" in missing
    async with running(kube) as manager:
        assert manager.ready() is None


async def test_a_change_of_the_queue_admission_begins_anew_and_is_told_at_the_lease() -> None:
    kube = FakeKube()
    kube.put(CLUSTERS, member("a", 16))
    kube.put(QUEUES, {"metadata": {"name": "default"}, "status": {"state": "Open"}})
    async with running(kube, None) as manager:
        kube.put(HYPERJOBS, named("before", group(replicas=1)))
        await until(lambda: reason(kube, "before"))
        webhook = kube.put(MUTATING_WEBHOOKS, volcano_global())
        await until(lambda: notes(kube) == ["volcano-global"])
        await until(lambda: all(c.synced.is_set() for c in manager.caches.beside_volcano_global))
        assert [str(manager.mode.current)] == notes(kube)
        kube.remove(MUTATING_WEBHOOKS, webhook["metadata"]["name"])
        await until(lambda: len(notes(kube)) == 2)
        assert notes(kube)[1] == str(manager.mode.current) == "builtin"
        kube.put(HYPERJOBS, named("hj", group(replicas=1)))
        await until(lambda: reason(kube))


def notes(kube: FakeKube) -> list[str]:
    """Give the queue admissions that Events of the Lease name, the first one first."""
    return [
        each["note"].removeprefix("Queue admission is ").partition(" ")[0]
        for each in kube.objects.get(EVENTS, {}).values()
        if each["reason"] == "QueueAdmissionChanged" and each["regarding"]["kind"] == "Lease"
    ]


@pytest.mark.parametrize(
    ("error", "level", "said"),
    [
        (refusal(404, "NotFound"), "ERROR", "The namespace of the Lease does not exist"),
        (refusal(403, "Forbidden"), "INFO", "Cannot look for the namespace of the Lease"),
        (None, "", ""),
    ],
)
async def test_a_lease_without_a_namespace_is_named(
    caplog: pytest.LogCaptureFixture, error: Any, level: str, said: str
) -> None:
    caplog.set_level("INFO")
    kube = FakeKube()
    kube.put(NAMESPACES, {"metadata": {"name": "leases"}})
    kube.fails = lambda _verb, resource, _name: error if resource == NAMESPACES else None
    await manager_of(kube, leader_elect_namespace="leases")._look_for_namespace()
    told = [(each.levelname, each.getMessage()) for each in caplog.records]
    assert [(was, text.partition(";")[0]) for was, text in told] == (
        [(level, said)] if said else []
    )


async def test_it_works_while_it_holds_the_lease_and_gives_it_up_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kube = FakeKube()

    def holder() -> Any:
        return kube.objects[LEASES]["leases/lease"]["spec"]["holderIdentity"]

    options: Any = {
        "leader_elect": True,
        "leader_elect_namespace": "leases",
        "leader_elect_name": "lease",
    }
    async with running(kube, **options) as manager:
        assert holder() == manager.identity
    assert not manager.working.is_set()
    assert holder() == ""
    assert "The namespace of the Lease does not exist" in caplog.text
