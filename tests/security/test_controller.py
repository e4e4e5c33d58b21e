"""What somebody with rights in one namespace could have the controller do for them."""

from pathlib import Path
from typing import Any

import pytest

from hyperjob_core.api.limits import MAX_REPLICATED_JOBS, MAX_SUB_JOBS
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.errors import Forbidden, Invalid
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    VCJOBS,
)
from hyperjob_engine.model.observed import QueueAdmission
from tests.integration.test_controller import hyperjob, phase_is
from tests.security.conftest import People
from tests.support.controller import clusters, queue, running_controller, settled

Object = dict[str, Any]
NAME = "hj-trainer-0"
FINALIZER = "example.com/stays"


def strangers_vcjob(namespace: str, *, gpus: int = 1, **metadata: Any) -> Object:
    spec: Object = hyperjob(namespace, gpus=gpus)["spec"]["replicatedJobs"][0]["templateSpec"]
    return {
        **VCJOBS.head,
        "metadata": {"name": NAME, "namespace": namespace, **metadata},
        "spec": spec,
    }


@pytest.mark.parametrize("admission", [QueueAdmission.NONE, QueueAdmission.VOLCANO_GLOBAL])
async def test_a_hyperjob_takes_no_vcjob_of_another_owner_to_a_cluster(
    people: People, controller: Path, namespace: str, admission: QueueAdmission
) -> None:
    """mallory may touch neither vcjobs nor policies; the controller must not do it for her."""
    with pytest.raises(Forbidden):
        await people.mallory.list(VCJOBS, namespace=namespace)
    await people.kdev.create(VCJOBS, strangers_vcjob(namespace))
    made: list[Object] = []
    async with (
        clusters(people.root, one=8),
        queue(people.root, "default"),
        running_controller(controller, namespace, admission=admission) as manager,
    ):
        manager.caches.policies.add_handler(lambda _kind, _old, new: made.append(new or {}))
        await people.mallory.create(HYPERJOBS, hyperjob(namespace, replicas=1))
        status = await phase_is(people.root, namespace, "Pending")
        assert status["state"]["reason"] == "NameConflict"
        await settled(manager, people.root, namespace)
    assert made == [], "a policy took the vcjob, if only for a moment"


async def test_a_hyperjob_that_is_deleted_cannot_grow_beyond_what_the_schema_allows(
    people: People, namespace: str
) -> None:
    """With a finalizer it stays, and the webhook validates it no more."""
    mallory = people.mallory
    raw = hyperjob(namespace, replicas=1)
    raw["metadata"]["finalizers"] = [FINALIZER]
    made = await mallory.create(HYPERJOBS, raw)
    await mallory.delete(HYPERJOBS, "hj", namespace=namespace, uid=made["metadata"]["uid"])
    grown = [{"op": "replace", "path": "/spec/replicatedJobs/0/replicas", "value": 2**31 - 1}]
    try:
        with pytest.raises(Invalid):
            await mallory.patch(HYPERJOBS, "hj", grown, kind=PatchType.JSON, namespace=namespace)
    finally:
        bare = {"metadata": {"finalizers": None}}
        await mallory.patch(HYPERJOBS, "hj", bare, kind=PatchType.MERGE, namespace=namespace)


@pytest.mark.parametrize("deleted", [True, False])
async def test_the_largest_hyperjob_of_the_schema_costs_the_controller_nothing(
    people: People, controller: Path, namespace: str, deleted: bool
) -> None:
    """Stored while the webhook was away: 1,000 replicatedJobs of 5,000 sub-jobs each."""
    mallory = people.mallory
    raw = hyperjob(namespace, replicas=MAX_SUB_JOBS)
    (group,) = raw["spec"]["replicatedJobs"]
    raw["spec"]["replicatedJobs"] = [
        {**group, "name": f"g{number}"} for number in range(MAX_REPLICATED_JOBS)
    ]
    raw["metadata"]["finalizers"] = [FINALIZER]
    made = await mallory.create(HYPERJOBS, raw)
    if deleted:
        await mallory.delete(HYPERJOBS, "hj", namespace=namespace, uid=made["metadata"]["uid"])
    try:
        async with (
            clusters(people.root, one=8),
            running_controller(controller, namespace) as manager,
        ):
            await mallory.create(HYPERJOBS, hyperjob(namespace, "next", replicas=1))
            await phase_is(people.root, namespace, "Starting", "next")
            await settled(manager, people.root, namespace)
            if not deleted:
                status = await phase_is(people.root, namespace, "Pending")
                assert status["state"]["reason"] == "InvalidSpec"
                assert "may have at most 5000" in status["state"]["message"]
    finally:
        bare = {"metadata": {"finalizers": None}}
        await mallory.patch(HYPERJOBS, "hj", bare, kind=PatchType.MERGE, namespace=namespace)


async def test_vcjobs_that_only_bear_our_labels_take_no_room_from_anybody(
    people: People, controller: Path, namespace: str
) -> None:
    """kdev's policies suspend them, so they never run; they cost a POST each."""
    labels = {
        "volcano.sh/hyperjob-name": "ghost",
        "volcano.sh/replicatedjob-name": "trainer",
    }
    ghost = strangers_vcjob(namespace, gpus=10**9, name="ghost-trainer-0", labels=labels)
    await people.kdev.create(VCJOBS, ghost)
    pinned = {
        **PROPAGATION_POLICIES.head,
        "metadata": {"name": "ghost-trainer-0", "namespace": namespace, "labels": labels},
        "spec": {
            "resourceSelectors": [
                {"apiVersion": VCJOBS.api_version, "kind": "Job", "name": "ghost-trainer-0"}
            ],
            "placement": {"clusterAffinity": {"clusterNames": ["one"]}},
            "suspension": {"dispatching": True},
        },
    }
    await people.kdev.create(PROPAGATION_POLICIES, pinned)
    async with (
        clusters(people.root, one=8),
        running_controller(controller, namespace) as manager,
    ):
        await people.mallory.create(HYPERJOBS, hyperjob(namespace, replicas=1))
        await phase_is(people.root, namespace, "Starting")
        await settled(manager, people.root, namespace)
