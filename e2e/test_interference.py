"""Other clients delete objects of HyperJobs, or use their names."""

import asyncio
import contextlib

import pytest

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import clusters_of
from hyperjob_core.api.names import work_name, works_namespace
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.reflector import states
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    NAMESPACES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
    WORKS,
    Resource,
)


async def test_a_child_that_somebody_deletes_is_made_again(scenario):
    world = scenario.world
    one = group(world, "one", replicas=2, accelerators=1, seconds=300)
    await scenario.apply(hyperjob("whole", one))
    await scenario.until_phase("whole", "Running")
    before = await scenario.children("whole")
    lost = before["whole-one-0"]["metadata"]["uid"]
    await scenario.kube.delete(VCJOBS, "whole-one-0", namespace=scenario.namespace)
    await scenario.until(
        VCJOBS,
        "whole-one-0",
        lambda found: (
            found is not None
            and found["metadata"]["uid"] != lost
            and ((found.get("status") or {}).get("state") or {}).get("phase") == "Running"
        ),
        what="running again",
    )
    await scenario.until_phase("whole", "Running")
    after = await scenario.children("whole")
    assert set(after) == set(before)
    assert after["whole-one-1"]["metadata"]["uid"] == before["whole-one-1"]["metadata"]["uid"]


async def test_a_work_that_karmada_forgets_goes_with_its_pods_and_the_job_runs_again(scenario):
    world = scenario.world
    one = group(world, "one", replicas=2, accelerators=1, seconds=300)
    await scenario.apply(hyperjob("whole", one, suspend=False))
    running = await scenario.until_phase("whole", "Running")
    where = works_namespace(clusters_of(running)["whole-one-0"])
    name = work_name("whole-one-0", scenario.namespace)
    work = await scenario.kube.get(WORKS, name, namespace=where)
    await suspend(scenario, on=True)
    await scenario.until_phase("whole", "Suspended")
    await gone(scenario, WORKS, name, where)
    await scenario.until_gone(RESOURCE_BINDINGS, "whole-one-0-job")
    made = {"labels": work["metadata"]["labels"], "annotations": work["metadata"]["annotations"]}
    metadata = made | {
        "name": name,
        "namespace": where,
        "finalizers": work["metadata"]["finalizers"],
    }
    left = {key: work[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata}
    await scenario.kube.create(WORKS, left)
    await scenario.until_members_have(2)
    await suspend(scenario, on=False)
    events = await scenario.kubectl("get", "events")
    assert "WorkDeleted" not in events
    again = await scenario.until_phase("whole", "Running")
    assert again["status"]["jobsReady"] == "2/2"
    assert "WorkDeleted" in await scenario.kubectl("get", "events")
    await scenario.until_members_have(4)


async def gone(scenario, resource: Resource, name: str, namespace: str) -> None:
    """Wait until an object of another namespace is deleted."""
    stream = states(scenario.kube, resource, name, namespace=namespace)
    async with asyncio.timeout(60), contextlib.aclosing(stream) as found:
        async for each in found:
            if each is None:
                return


async def suspend(scenario, *, on: bool) -> None:
    """Suspend or resume the HyperJob."""
    body, kind = {"spec": {"suspend": on}}, PatchType.MERGE
    await scenario.kube.patch(HYPERJOBS, "whole", body, kind=kind, namespace=scenario.namespace)


async def test_a_policy_that_somebody_deletes_is_made_again_and_the_job_runs_on(scenario):
    world = scenario.world
    await scenario.apply(hyperjob("whole", group(world, "one", accelerators=1, seconds=300)))
    running = await scenario.until_phase("whole", "Running")
    async with scenario.sightings() as sightings:
        policies = await scenario.children("whole", PROPAGATION_POLICIES)
        lost = policies["whole-one-0"]["metadata"]["uid"]
        await scenario.kube.delete(
            PROPAGATION_POLICIES, "whole-one-0", namespace=scenario.namespace
        )
        made = await scenario.until(
            PROPAGATION_POLICIES,
            "whole-one-0",
            lambda found: found is not None and found["metadata"]["uid"] != lost,
            what="there again",
        )
        await scenario.settled()
    affinity = made["spec"]["placement"]["clusterAffinities"][0]
    assert affinity["clusterNames"] == [clusters_of(running)["whole-one-0"]]
    assert "suspension" not in made["spec"], "what runs is not held again"
    alive = [each.is_alive for each in sightings.seen if each.job == "whole-one-0"]
    assert alive
    assert all(alive), "the member's job was not touched"
    found = await scenario.kube.get(HYPERJOBS, "whole", namespace=scenario.namespace)
    assert found["status"]["state"]["phase"] == "Running"


async def test_a_name_that_is_taken_in_the_member_is_told_and_then_made_good(scenario):
    world = scenario.world
    member = world.largest
    kube = scenario.members[member]
    await scenario.until(
        NAMESPACES, scenario.namespace, lambda found: found is not None, what="there", kube=kube
    )
    template = group(world, "one", seconds=300)["templateSpec"]
    stranger = {
        **VCJOBS.head,
        "metadata": {"name": "taken-one-0", "namespace": scenario.namespace},
        "spec": {**template, "schedulerName": "volcano", "queue": "default", "minAvailable": 1},
    }
    await kube.create(VCJOBS, stranger)
    try:
        one = group(world, "one", accelerators=1, seconds=1, only_on=[member])
        await scenario.apply(hyperjob("taken", one))
        told = await scenario.until(
            HYPERJOBS,
            "taken",
            lambda found: (
                [job.get("reason") for job in found.get("status", {}).get("jobs", ())]
                == ["ApplyFailed"]
            ),
            what="told that its name is taken",
        )
        assert member in told["status"]["state"]["message"]
        assert "taken-one-0" in told["status"]["state"]["message"]
    finally:
        with contextlib.suppress(NotFound):
            await kube.delete(
                VCJOBS, "taken-one-0", namespace=scenario.namespace, propagation="Background"
            )
    await scenario.until_phase("taken", "Completed")


async def test_a_gang_whose_queue_others_use_in_one_member_leaves_with_volcanos_words(scenario):
    world = scenario.world
    if world.settings.embedded:
        pytest.skip("the Volcano of an embedded member knows no capability of a queue")
    first, other = world.pair
    kube = scenario.members[first]
    async with scenario.queue(capability={world.accelerator: 2}) as queue:
        await scenario.until(QUEUES, queue, is_open, what="Open in the member", kube=kube)
        await scenario.until(
            NAMESPACES, scenario.namespace, lambda found: found is not None, what="there", kube=kube
        )
        template = group(world, "one", accelerators=2, seconds=600)["templateSpec"]
        stranger = {
            **VCJOBS.head,
            "metadata": {"name": "stranger", "namespace": scenario.namespace},
            "spec": {**template, "schedulerName": "volcano", "queue": queue, "minAvailable": 1},
        }
        await kube.create(VCJOBS, stranger)
        try:
            await scenario.until(VCJOBS, "stranger", is_running, what="Running", kube=kube)
            one = group(world, "one", accelerators=1, seconds=30, first_on=[first], queue=queue)
            await scenario.apply(hyperjob("outside", one))
            await scenario.until(
                HYPERJOBS,
                "outside",
                lambda found: any(
                    f"Volcano on {first} " in job.get("message", "")
                    for job in ((found or {}).get("status") or {}).get("jobs", ())
                ),
                what="told in Volcano's words",
            )
            running = await scenario.until_phase("outside", "Running")
            assert clusters_of(running) == {"outside-one-0": other}
        finally:
            await kube.delete(
                VCJOBS, "stranger", namespace=scenario.namespace, propagation="Background"
            )


def is_open(queue):
    return (((queue or {}).get("status") or {}).get("state")) == "Open"


def is_running(job):
    return (((job or {}).get("status") or {}).get("state") or {}).get("phase") == "Running"
