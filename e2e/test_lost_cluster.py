"""A member becomes unreachable while sub-jobs run, and reachable again."""

import time

from e2e.support.manifests import group, hyperjob
from e2e.support.unreachable import unreachable, until_ready
from hyperjob_core.kube.resources import HYPERJOBS, VCJOBS

SPARE = 20.0  # real kubelets on a busy machine took 6 s; the default of the controller is 300
JOB = "survivor-trainer-0"


async def test_what_a_lost_cluster_had_runs_elsewhere_in_time_and_once_only(scenario):
    world = scenario.world
    lost, other = world.pair
    trainer = group(world, "trainer", accelerators=1, seconds=600, first_on=[lost, other])
    policy = {"maxRestarts": 1, "rules": [{"action": "MigrateJob", "onClusterLost": True}]}
    await scenario.apply(hyperjob("survivor", trainer, failurePolicy=policy))
    started = await scenario.until_phase("survivor", "Running")
    assert [job["cluster"] for job in started["status"]["jobs"]] == [lost]

    async with unreachable(scenario, lost):
        await until_ready(scenario, lost, ready=False)
        known = time.monotonic()
        await scenario.until(
            VCJOBS,
            JOB,
            lambda found: ((found or {}).get("status") or {}).get("running") == 1,
            what=f"Running on {other}",
            kube=scenario.members[other],
        )
        took = time.monotonic() - known
        assert took < world.lost_timeout + SPARE, f"it took {took:.1f} s"
        moved = await scenario.until_phase("survivor", "Running")
        assert moved["status"]["restarts"] == 1
        (entry,) = moved["status"]["jobs"]
        assert (entry["cluster"], entry["attempt"]) == (other, 1)
        assert entry["excludedClusters"] == [lost]
        still = await scenario.members[lost].get(VCJOBS, JOB, namespace=scenario.namespace)
        assert still["metadata"]["name"] == JOB, "no controller can reach the old copy"

    await scenario.until(
        VCJOBS, JOB, lambda found: found is None, what="gone", kube=scenario.members[lost]
    )
    (entry,) = (await scenario.until_phase("survivor", "Running"))["status"]["jobs"]
    assert (entry["cluster"], entry["attempt"]) == (other, 1)
    await scenario.kubectl("delete", "hyperjob", "survivor")
    await scenario.until_members_have(0)
    await scenario.until_free()


async def test_an_elastic_hyperjob_goes_on_at_once_with_what_a_lost_cluster_leaves(scenario):
    world = scenario.world
    lost, other = world.pair
    pods = world.sizes[lost] // 2 + 1  # a cluster has no room for two sub-jobs
    trainer = group(
        world,
        "trainer",
        replicas=2,
        pods=pods,
        accelerators=world.per_pod,
        seconds=600,
        only_on=[lost, other],
    )
    checkpoint = {"directory": "/checkpoints", "gracePeriodSeconds": 1}
    elastic = hyperjob("elastic", {**trainer, "minReplicas": 1}, checkpoint=checkpoint)
    await scenario.apply(elastic)
    started = await scenario.until_phase("elastic", "Running")
    assert {job["cluster"] for job in started["status"]["jobs"]} == {lost, other}
    assert started["status"]["alternatives"][0]["name"] == "2"

    async with unreachable(scenario, lost):
        left = await scenario.until(
            HYPERJOBS,
            "elastic",
            lambda found: found["status"]["jobsReady"] == "1/1",
            what="Running with one sub-job",
        )
        (entry,) = left["status"]["jobs"]
        assert (entry["cluster"], entry["attempt"]) == (other, 1)
        (size,) = left["status"]["alternatives"]
        assert (size["name"], size["reason"]) == ("1", "LargestThatIsLeft")
        assert not left["status"].get("restarts"), "no program has failed"
    await scenario.kubectl("delete", "hyperjob", "elastic")
    await scenario.until_members_have(0)
    await scenario.until_free()


async def test_an_elastic_hyperjob_starts_in_the_room_that_there_is(scenario):
    world = scenario.world
    one, other = world.pair
    pods = world.sizes[one] // 2 + 1
    filler = group(
        world, "filler", pods=pods, accelerators=world.per_pod, seconds=600, only_on=[one]
    )
    await scenario.apply(hyperjob("filler", filler))
    await scenario.until_phase("filler", "Running")
    trainer = group(
        world,
        "trainer",
        replicas=2,
        pods=pods,
        accelerators=world.per_pod,
        seconds=600,
        only_on=[one, other],
    )
    await scenario.apply(hyperjob("elastic", {**trainer, "minReplicas": 1}))
    started = await scenario.until_phase("elastic", "Running")
    (entry,) = started["status"]["jobs"]
    assert entry["cluster"] == other
    (size,) = started["status"]["alternatives"]
    assert (size["name"], size["reason"]) == ("1", "LargestWithRoom")
    for name in ("elastic", "filler"):
        await scenario.kubectl("delete", "hyperjob", name)
    await scenario.until_free()
