"""Which cluster a sub-job goes to."""

import pytest

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import clusters_of, phase_of
from hyperjob.kube.resources import CLUSTER_PROPAGATION_POLICIES, HYPERJOBS, VCJOBS


async def test_two_sub_jobs_that_one_cluster_cannot_hold_run_on_two(scenario):
    world = scenario.world
    first, second = world.pair
    pods = world.sizes[second]
    if 2 * pods <= world.sizes[first]:
        pytest.skip(f"{first} holds two jobs of the size of {second}")
    await scenario.apply(
        hyperjob("split", group(world, "half", replicas=2, pods=pods, accelerators=world.per_pod))
    )
    running = await scenario.until_phase("split", "Running", "Completed", "Failed")
    assert set(clusters_of(running)) == {"split-half-0", "split-half-1"}
    assert len(set(clusters_of(running).values())) == 2
    assert {each["name"] for each in running["status"]["clusters"]} == set(
        clusters_of(running).values()
    )
    await scenario.until_phase("split", "Completed")


async def test_a_job_overflows_from_a_full_cluster_that_it_prefers(scenario):
    world = scenario.world
    first, second = world.pair
    whole = world.per_pod
    await scenario.apply(
        hyperjob(
            "filler",
            group(
                world,
                "all",
                pods=world.sizes[first],
                accelerators=whole,
                seconds=30,
                only_on=[first],
            ),
        )
    )
    await scenario.until_phase("filler", "Running")
    await scenario.apply(
        hyperjob("late", group(world, "one", accelerators=whole, first_on=[first, second]))
    )
    running = await scenario.until_phase("late", "Running", "Completed")
    assert clusters_of(running) == {"late-one-0": second}
    assert phase_of(await scenario.kube.get(HYPERJOBS, "filler", namespace=scenario.namespace)) == (
        "Running"
    )
    await scenario.until_phase("late", "Completed")


async def test_a_preferred_cluster_with_room_is_taken(scenario):
    world = scenario.world
    await scenario.until_free()
    for name in world.pair:
        one = group(world, "one", accelerators=world.per_pod, first_on=[name])
        await scenario.apply(hyperjob(f"on-{name}", one))
    for name in world.pair:
        running = await scenario.until_phase(f"on-{name}", "Running", "Completed")
        assert clusters_of(running) == {f"on-{name}-one-0": name}


async def test_one_domain_keeps_all_sub_jobs_on_one_cluster(scenario):
    world = scenario.world
    await scenario.until_free()
    pods = max(1, world.sizes[world.pair[1]] // 2)
    half = group(world, "half", replicas=2, pods=pods, accelerators=world.per_pod)
    await scenario.apply(hyperjob("near", half, maxDomains=1))
    ended = await scenario.until_phase("near", "Completed", "Failed")
    assert len(set(clusters_of(ended).values())) == 1
    assert ended["status"]["state"]["phase"] == "Completed"


async def test_a_static_split_shares_out_exactly_what_was_asked_for(scenario):
    world = scenario.world
    split = {"mode": "static", "accelerators": 5, "acceleratorType": world.accelerator}
    one = group(world, "part", replicas=2, pods=4, accelerators=1, split=split)
    await scenario.apply(hyperjob("split", one))
    ended = await scenario.until_phase("split", "Completed", "Failed")
    children = await scenario.children("split")
    pods = [child["spec"]["tasks"][0]["replicas"] for _, child in sorted(children.items())]
    assert pods == [3, 2]
    assert [child["spec"]["minAvailable"] for _, child in sorted(children.items())] == [3, 2]
    assert [job["accelerators"] for job in ended["status"]["jobs"]] == [3, 2]
    assert ended["status"]["state"]["phase"] == "Completed"


async def test_a_job_that_fits_nowhere_waits_and_says_what_is_missing(scenario):
    world = scenario.world
    pods = world.sizes[world.largest] + 1
    await scenario.apply(
        hyperjob("huge", group(world, "all", pods=pods, accelerators=world.per_pod))
    )
    waiting = await scenario.until_phase("huge", "Pending")
    assert waiting["status"]["state"]["reason"] == "InsufficientCapacity"
    assert world.accelerator in waiting["status"]["state"]["message"]
    assert await scenario.children("huge") == {}


async def test_a_cluster_that_does_not_exist_is_named_in_the_reason(scenario):
    only = group(scenario.world, "one", only_on=["no-such-cluster"])
    await scenario.apply(hyperjob("lost", only))
    waiting = await scenario.until_phase("lost", "Pending")
    assert "no-such-cluster" in waiting["status"]["state"]["message"]
    assert await scenario.children("lost") == {}


async def test_a_broader_policy_of_the_site_takes_no_sub_job(scenario):
    world = scenario.world
    site = {
        "apiVersion": CLUSTER_PROPAGATION_POLICIES.api_version,
        "kind": CLUSTER_PROPAGATION_POLICIES.kind,
        "metadata": {"name": scenario.namespace},
        "spec": {
            "resourceSelectors": [
                {
                    "apiVersion": VCJOBS.api_version,
                    "kind": VCJOBS.kind,
                    "namespace": scenario.namespace,
                }
            ],
            "placement": {"clusterAffinity": {"clusterNames": list(world.members)}},
        },
    }
    await scenario.kube.create(CLUSTER_PROPAGATION_POLICIES, site)
    try:
        async with scenario.sightings() as sightings:
            await scenario.apply(hyperjob("ours", group(world, "one", replicas=3, accelerators=1)))
            ended = await scenario.until_phase("ours", "Completed", "Failed")
    finally:
        await scenario.kube.delete(CLUSTER_PROPAGATION_POLICIES, scenario.namespace)
    assert ended["status"]["state"]["phase"] == "Completed"
    assert {(each.job, each.member) for each in sightings.seen} == set(clusters_of(ended).items())
