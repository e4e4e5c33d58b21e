"""All sub-jobs of a HyperJob start together, or no sub-job starts."""

import asyncio

import pytest

from e2e.support.closedqueues import goes_elsewhere
from e2e.support.manifests import both, group, hyperjob
from e2e.support.scenario import clusters_of
from hyperjob_core.api.names import (
    GATE,
    GATE_OPEN,
    binding_name,
)
from hyperjob_core.kube.resources import HYPERJOBS, RESOURCE_BINDINGS


async def test_two_that_need_both_clusters_run_one_after_the_other(scenario):
    async with scenario.sightings() as sightings:
        await scenario.apply(both(scenario.world, "a"), both(scenario.world, "b"))
        for name in ("a", "b"):
            ended = await scenario.until_phase(name, "Completed", "Failed")
            assert ended["status"]["state"]["phase"] == "Completed"
            assert len(set(clusters_of(ended).values())) == 2
            if (
                scenario.world.volcano_global
            ):  # Volcano Global counts ended vcjobs until their deletion
                await scenario.kubectl("delete", HYPERJOBS.group_resource, name)
    assert sightings.jobs == {"a-left-0", "a-right-0", "b-left-0", "b-right-0"}
    for alive in sightings.together():
        assert len({job.partition("-")[0] for job in alive}) <= 1, "two gangs at a time"


async def test_no_member_sees_a_job_before_all_are_admitted(scenario):
    world = scenario.world
    if not world.volcano_global:
        pytest.skip("without Volcano Global no component admits single sub-jobs")
    ready = group(world, "ready", accelerators=1)
    late = group(world, "late", accelerators=1, queue=scenario.namespace)
    async with scenario.sightings() as sightings:
        await scenario.apply(hyperjob("gang", ready, late))
        with pytest.raises(TimeoutError):  # no event shows the absence of a start
            await asyncio.wait_for(sightings.changed.wait(), 4)
        assert await scenario.remains() == []
        assert await scenario.children("gang") == {}, "no half of it holds a quota"
        waiting = await scenario.until_phase("gang", "Pending", "Queued")
        assert scenario.namespace in waiting["status"]["state"]["message"]
        async with scenario.queue():
            ended = await scenario.until_phase("gang", "Completed", "Failed")
    assert ended["status"]["state"]["phase"] == "Completed"
    assert sightings.jobs == {"gang-ready-0", "gang-late-0"}


async def test_a_priority_class_that_is_missing_is_waited_for(scenario):
    world, name = scenario.world, f"{scenario.namespace}-1000"
    if not world.volcano_global:
        pytest.skip("without Volcano Global the members judge a PriorityClass")
    one = group(world, "one", accelerators=1, seconds=1, priorityClassName=name)
    await scenario.apply(hyperjob("early", one))
    waiting = await scenario.until_phase("early", "Pending", "Queued")
    message = waiting["status"]["state"]["message"]
    assert f"PriorityClass {name} does not exist in the control plane" in message
    async with scenario.priority(1000):
        await scenario.until_phase("early", "Completed")


async def test_a_queue_that_one_member_has_closed_sends_hyperjobs_elsewhere(scenario):
    await goes_elsewhere(scenario)


async def test_the_gate_is_open_once_the_gang_runs(scenario):
    world = scenario.world
    one = group(world, "one", replicas=3, accelerators=1, seconds=60)
    await scenario.apply(hyperjob("gang", one))
    await scenario.until_phase("gang", "Running")
    for job in await scenario.children("gang"):
        binding = await scenario.kube.get(
            RESOURCE_BINDINGS, binding_name(job), namespace=scenario.namespace
        )
        gate = (binding["metadata"].get("annotations") or {}).get(GATE)
        assert gate == (GATE_OPEN if world.volcano_global else None)
        assert not (binding["spec"].get("suspension") or {}).get("dispatching")


async def test_as_many_as_min_available_start_without_the_rest(scenario):
    world = scenario.world
    if not world.volcano_global:
        pytest.skip("without Volcano Global no component admits single sub-jobs")
    ready = group(world, "ready", replicas=2, accelerators=1, seconds=120)
    late = group(world, "late", accelerators=1, queue=scenario.namespace)
    await scenario.apply(hyperjob("gang", ready, late, minAvailable=2))
    running = await scenario.until_phase("gang", "Running")
    phases = {job["name"]: job["phase"] for job in running["status"]["jobs"]}
    assert phases["gang-ready-0"] == phases["gang-ready-1"] == "Running"
    assert phases["gang-late-0"] not in {"Running", "Pending"}
    async with scenario.queue():
        await scenario.until(
            HYPERJOBS,
            "gang",
            lambda found: "Completed" in [job["phase"] for job in found["status"]["jobs"]],
            what="complete in its late part",
        )


async def test_two_of_one_second_that_no_cluster_holds_both_stand_on_two(scenario):
    """Each sub-job takes three quarters of a cluster; the Clusters' status includes neither yet."""
    world = scenario.world
    first, second = world.pair
    pods = -(-world.sizes[second] * 3 // 4)
    assert 2 * pods > world.sizes[first], f"{first} is so much larger that it holds both"
    wanted = group(world, "part", pods=pods, accelerators=world.per_pod, seconds=60)
    await scenario.apply(hyperjob("a", wanted), hyperjob("b", wanted))
    stand = {}
    for name in ("a", "b"):
        running = await scenario.until_phase(name, "Running")
        stand[name] = clusters_of(running)[f"{name}-part-0"]
    assert set(stand.values()) == {first, second}
