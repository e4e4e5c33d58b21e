"""The placement of sub-jobs on clusters."""

import asyncio
import json
import sys

import pytest
import yaml

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import clusters_of, phase_of
from e2e.support.world import document
from hyperjob_core.kube.resources import CLUSTER_PROPAGATION_POLICIES, HYPERJOBS, VCJOBS


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


def auto(world, name, pods, **fields):
    """Return a replicated job with an automatic split into pods of a whole node's accelerators."""
    split = {
        "mode": "auto",
        "accelerators": pods * world.per_pod,
        "acceleratorType": world.accelerator,
    }
    return group(world, name, pods=2, accelerators=world.per_pod, split=split, **fields)


def shares(obj):
    """Return the accelerators by cluster."""
    return {each["cluster"]: each["accelerators"] for each in obj["status"]["jobs"]}


async def test_a_job_is_split_over_what_is_free_on_two_clusters(scenario):
    world = scenario.world
    await scenario.until_free()
    pods = world.sizes[world.largest] + max(1, min(world.sizes[name] for name in world.pair) // 2)
    async with scenario.sightings() as sightings:
        await scenario.apply(hyperjob("wide", auto(world, "part", pods)))
        ended = await scenario.until_phase("wide", "Completed", "Failed")
    assert ended["status"]["state"]["phase"] == "Completed"
    assert len(shares(ended)) == 2
    assert set(shares(ended)) <= set(world.sizes)
    assert sum(shares(ended).values()) == pods * world.per_pod
    children = await scenario.children("wide")
    sizes = [child["spec"]["tasks"][0]["replicas"] for child in children.values()]
    assert sum(sizes) == pods
    assert [child["spec"]["minAvailable"] for child in children.values()] == sizes
    assert {each.member for each in sightings.seen} == set(shares(ended))


async def test_one_domain_waits_although_two_clusters_could_hold_the_split(scenario):
    world = scenario.world
    await scenario.until_free()
    pods = world.sizes[world.largest] + 1
    await scenario.apply(hyperjob("narrow", auto(world, "part", pods), maxDomains=1))
    waiting = await scenario.until_phase("narrow", "Pending", "Queued")
    state = waiting["status"]["state"]
    assert state["reason"] == "ExceedsClusters"
    assert "with maxDomains 1" in state["message"]
    assert f"needs {pods * world.per_pod} {world.accelerator}" in state["message"]
    assert await scenario.children("narrow") == {}


async def test_a_split_fills_the_cluster_it_prefers_and_says_that_it_overflows(scenario):
    world = scenario.world
    await scenario.until_free()
    preferred = world.pair[1]
    pods = world.sizes[world.largest] + 1
    await scenario.apply(hyperjob("spill", auto(world, "part", pods, first_on=[preferred])))
    running = await scenario.until_phase("spill", "Running", "Completed", "Failed")
    assert shares(running)[preferred] == world.sizes[preferred] * world.per_pod
    assert sum(shares(running).values()) == pods * world.per_pod
    events = await scenario.kubectl("get", "events", "--field-selector=reason=Overflowed")
    assert f"{preferred} has room for {shares(running)[preferred]}" in events
    await scenario.until_phase("spill", "Completed")


async def test_a_plan_tells_beforehand_where_a_job_will_stand(scenario, tmp_path):
    world = scenario.world
    await scenario.until_free()
    wanted = hyperjob("told", auto(world, "part", world.sizes[world.largest] + 1))
    path = tmp_path / "told.yaml"
    path.write_text(yaml.safe_dump(wanted))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hyperjob", "plan", "-f", str(path), "-o", "json"),
        *("--kubeconfig", str(world.kubeconfig), "-n", scenario.namespace),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    (item,) = json.loads(said)["items"]
    await scenario.apply(wanted)
    running = await scenario.until_phase("told", "Running", "Completed", "Failed")
    assert {job["name"]: job["cluster"] for job in item["jobs"]} == clusters_of(running)
    assert {job["cluster"]: job["accelerators"] for job in item["jobs"]} == shares(running)
    await scenario.until_phase("told", "Completed")


async def test_the_example_of_a_split_runs_to_its_end(scenario):
    if not scenario.world.settings.embedded:
        pytest.skip("the example names the clusters of the demo")
    await scenario.until_free()
    await scenario.apply(document("auto-split"))
    ended = await scenario.until_phase("auto-split", "Completed", "Failed")
    assert ended["status"]["state"]["phase"] == "Completed"
    assert shares(ended) == {"gpu-west": 144, "gpu-east": 56}


async def test_a_job_that_fits_nowhere_waits_and_says_what_is_missing(scenario):
    world = scenario.world
    pods = world.sizes[world.largest] + 1
    await scenario.apply(
        hyperjob("huge", group(world, "all", pods=pods, accelerators=world.per_pod))
    )
    waiting = await scenario.until_phase("huge", "Pending", "Queued")
    assert waiting["status"]["state"]["reason"] == "ExceedsClusters"
    assert world.accelerator in waiting["status"]["state"]["message"]
    assert await scenario.children("huge") == {}


async def test_a_cluster_that_does_not_exist_is_named_in_the_reason(scenario):
    only = group(scenario.world, "one", only_on=["no-such-cluster"])
    await scenario.apply(hyperjob("lost", only))
    waiting = await scenario.until_phase("lost", "Pending", "Queued")
    assert "no-such-cluster" in waiting["status"]["state"]["message"]
    assert await scenario.children("lost") == {}


async def test_a_broader_policy_of_the_site_takes_no_sub_job(scenario):
    world = scenario.world
    site = {
        **CLUSTER_PROPAGATION_POLICIES.head,
        "metadata": {"name": scenario.namespace},
        "spec": {
            "resourceSelectors": [
                {
                    **VCJOBS.head,
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
