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


def more_than_half(world, name, *clusters, replicas=1):
    """A replicatedJob of sub-jobs of which a cluster holds one alone."""
    return group(
        world,
        name,
        replicas=replicas,
        pods=world.sizes[clusters[0]] // 2 + 1,
        accelerators=world.per_pod,
        seconds=600,
        only_on=list(clusters),
    )


def one_or_two(world):
    return {**more_than_half(world, "trainer", *world.pair, replicas=2), "minReplicas": 1}


def runs(number, reason):
    """Whether a HyperJob runs with so many sub-jobs for a reason."""

    def holds(found):
        status = (found or {}).get("status") or {}
        size = (status.get("alternatives") or [{}])[0]
        return status.get("jobsReady") == f"{number}/{number}" and size.get("reason") == reason

    return holds


async def test_an_elastic_hyperjob_goes_on_with_what_a_lost_cluster_leaves_until_it_is_back(
    scenario,
):
    world = scenario.world
    lost, other = world.pair
    checkpoint = {"directory": "/checkpoints", "gracePeriodSeconds": 1, "intervalSeconds": 1}
    trainer = one_or_two(world)
    trainer["templateSpec"]["runningEstimate"] = "10h"  # else it grows once it has run for longer
    await scenario.apply(hyperjob("elastic", trainer, checkpoint=checkpoint))
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
    grown = await scenario.until(HYPERJOBS, "elastic", runs(2, "Grew"), what="Running with both")
    assert {job["cluster"] for job in grown["status"]["jobs"]} == {lost, other}
    assert sorted(job.get("attempt", 0) for job in grown["status"]["jobs"]) == [0, 2]
    assert not grown["status"].get("restarts"), "no program has failed"
    await scenario.kubectl("delete", "hyperjob", "elastic")
    await scenario.until_members_have(0)
    await scenario.until_free()


async def test_an_elastic_split_goes_on_with_the_accelerators_that_a_lost_cluster_leaves(scenario):
    world = scenario.world
    lost, other = world.pair
    pods = max(world.sizes[lost], world.sizes[other]) + 1
    split = {"mode": "auto", "acceleratorType": world.accelerator, "minAccelerators": world.per_pod}
    split["accelerators"] = pods * world.per_pod
    trainer = group(
        world,
        "trainer",
        accelerators=world.per_pod,
        seconds=600,
        only_on=world.pair,
        split=split,
        runningEstimate="10h",
    )
    checkpoint = {"directory": "/checkpoints", "gracePeriodSeconds": 1, "intervalSeconds": 1}
    await scenario.apply(hyperjob("split", trainer, checkpoint=checkpoint))
    started = await scenario.until_phase("split", "Running")
    assert shares(started).keys() == {lost, other}
    assert sum(shares(started).values()) == split["accelerators"]

    async with unreachable(scenario, lost):
        left = await scenario.until(
            HYPERJOBS, "split", runs(1, "LargestThatIsLeft"), what="Running with one sub-job"
        )
        assert shares(left) == {other: int(left["status"]["alternatives"][0]["name"])}
        assert split["accelerators"] > shares(left)[other] >= world.per_pod
    grown = await scenario.until(HYPERJOBS, "split", runs(2, "Grew"), what="Running with both")
    assert shares(grown).keys() == {lost, other}
    assert sum(shares(grown).values()) == split["accelerators"]
    assert not grown["status"].get("restarts"), "no program has failed"
    await scenario.kubectl("delete", "hyperjob", "split")
    await scenario.until_members_have(0)
    await scenario.until_free()


def shares(found):
    """Return the accelerators by cluster."""
    return {job["cluster"]: job["accelerators"] for job in found["status"]["jobs"]}


async def test_an_elastic_hyperjob_starts_in_the_room_that_there_is_and_takes_more_later(scenario):
    world = scenario.world
    one, other = world.pair
    await scenario.apply(hyperjob("filler", more_than_half(world, "filler", one)))
    await scenario.until_phase("filler", "Running")
    await scenario.apply(hyperjob("elastic", one_or_two(world), quorum=1))
    started = await scenario.until_phase("elastic", "Running")
    (entry,) = started["status"]["jobs"]
    assert entry["cluster"] == other
    (size,) = started["status"]["alternatives"]
    assert (size["name"], size["reason"]) == ("1", "LargestWithRoom")
    await scenario.kubectl("delete", "hyperjob", "filler")
    grown = await scenario.until(HYPERJOBS, "elastic", runs(2, "Grew"), what="Running with both")
    assert {job["cluster"] for job in grown["status"]["jobs"]} == {one, other}
    assert {job.get("attempt", 0) for job in grown["status"]["jobs"]} == {0}, "none starts again"
    await scenario.kubectl("delete", "hyperjob", "elastic")
    await scenario.until_free()
