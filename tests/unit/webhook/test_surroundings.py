"""What the webhook knows of other objects: informers that hold given ones."""

import asyncio
from typing import Any

from hyperjob.kube.informer import Informer
from hyperjob.kube.resources import CLUSTERS, PRIORITY_CLASSES, QUEUES
from tests.support.fakekube import FakeKube
from webhook.surroundings import Surroundings
from webhook.validation.context import NOTHING_KNOWN, Context


def around(kube: Any) -> tuple[Surroundings, list[Informer]]:
    informers = [Informer(kube, each) for each in (CLUSTERS, QUEUES, PRIORITY_CLASSES)]
    return Surroundings(kube, *informers), informers


def test_empty_lists_are_known_once_they_were_read() -> None:
    found, informers = around(FakeKube())
    assert found.context() == NOTHING_KNOWN
    for each in informers:
        each.synced.set()
    assert found.context() == Context(clusters={}, queues={}, priority_classes=frozenset())


async def test_a_cluster_is_ready_only_where_its_condition_says_so() -> None:
    kube = FakeKube()
    for name, status in (
        ("none", {}),
        ("empty", {"conditions": None}),
        ("other", {"conditions": [{"type": "CompleteAPIEnablements", "status": "True"}]}),
        ("unready", {"conditions": [{"type": "Ready", "status": "False"}]}),
        ("ready", {"conditions": [{"type": "Ready", "status": "True"}]}),
    ):
        kube.put(CLUSTERS, {"metadata": {"name": name}, "status": status})
    kube.put(CLUSTERS, {"metadata": {"name": "new"}})
    found, informers = around(kube)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each.run()) for each in informers]
        for each in informers:
            await each.synced.wait()
        for task in tasks:
            task.cancel()
    known = found.context().clusters
    assert known is not None
    assert [name for name, each in known.items() if each.ready] == ["ready"]
    assert len(known) == 6
