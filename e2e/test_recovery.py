"""Sub-jobs fail, move, are suspended, and start in order; a HyperJob ends early and is deleted."""

import time

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import condition_of
from hyperjob_core.api.names import LABEL_ATTEMPT, MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.resources import HYPERJOBS, PROPAGATION_POLICIES, VCJOBS


def jobs_of(found):
    """Return the entries of a HyperJob's sub-jobs by name."""
    return {job["name"]: job for job in ((found.get("status") or {}).get("jobs") or ())}


async def change(scenario, name, body):
    """Apply a merge patch to a HyperJob."""
    await scenario.kube.patch(
        HYPERJOBS, name, body, kind=PatchType.MERGE, namespace=scenario.namespace
    )


async def test_a_failing_sub_job_is_restarted_until_the_budget_is_spent(scenario):
    world = scenario.world
    await scenario.apply(
        hyperjob(
            "crash",
            group(world, "failing", seconds=1, exit_code=3, maxRetry=1),
            group(world, "good", seconds=300),
            failurePolicy={"maxRestarts": 1, "rules": [{"action": "RestartJob"}]},
        )
    )
    ended = await scenario.until_phase("crash", "Failed", "Completed")
    assert condition_of(ended, "Failed").get("reason") == "MaxRestartsExceeded", ended["status"]
    assert "crash-failing-0 is Failed" in ended["status"]["state"]["message"]
    assert ended["status"]["restarts"] == 1
    jobs = jobs_of(ended)
    assert (jobs["crash-failing-0"]["phase"], jobs["crash-failing-0"]["attempt"]) == ("Failed", 1)
    assert jobs["crash-good-0"]["phase"] == "Terminated", "it burns nothing any longer"
    await scenario.until_gone(VCJOBS, "crash-good-0")
    kept = await scenario.children("crash")
    assert set(kept) == {"crash-failing-0"}
    assert kept["crash-failing-0"]["metadata"]["labels"][LABEL_ATTEMPT] == "1"


async def test_a_failing_sub_job_is_moved_to_another_cluster(scenario):
    world = scenario.world
    first, second = world.pair
    failing = group(
        world,
        "failing",
        accelerators=1,
        seconds=1,
        exit_code=3,
        only_on=[first, second],
        maxRetry=1,
    )
    policy = {"maxRestarts": 1, "rules": [{"action": "MigrateJob"}]}
    async with scenario.sightings() as sightings:
        await scenario.apply(hyperjob("moves", failing, failurePolicy=policy))
        ended = await scenario.until_phase("moves", "Failed", "Completed")
        members = {each.member for each in sightings.seen}
    assert members == {first, second}, (ended["status"], sightings.seen)
    (job,) = ended["status"]["jobs"]
    assert job["cluster"] not in job["excludedClusters"]
    assert {job["cluster"], *job["excludedClusters"]} == {first, second}
    assert all(len(alive) <= 1 for alive in sightings.together())


async def test_a_suspended_hyperjob_gives_everything_back_and_runs_again(scenario):
    world = scenario.world
    await scenario.apply(
        hyperjob(
            "naps",
            group(world, "short", seconds=1),
            group(world, "long", replicas=2, accelerators=1, seconds=300),
        )
    )
    running = await scenario.until(
        HYPERJOBS,
        "naps",
        lambda found: (
            [job["phase"] for job in jobs_of(found).values()] == ["Completed", "Running", "Running"]
        ),
        what="running with one completed",
    )
    before = await scenario.children("naps")
    for _ in range(2):
        await change(scenario, "naps", {"spec": {"suspend": True}})
        asleep = await scenario.until_phase("naps", "Suspended")
        assert asleep["status"]["observedGeneration"] > running["metadata"]["generation"]
        for index in range(2):
            await scenario.until_gone(VCJOBS, f"naps-long-{index}")
            await scenario.until_gone(PROPAGATION_POLICIES, f"naps-long-{index}")
        await scenario.until_members_have(2)  # the completed vcjob and its pod
        await change(scenario, "naps", {"spec": {"suspend": None}})
        awake = await scenario.until_phase("naps", "Running")
    assert awake["status"]["restarts"] == 0
    assert [job.get("attempt", 0) for job in awake["status"]["jobs"]] == [0, 2, 2]
    after = await scenario.children("naps")
    uids = {name: job["metadata"]["uid"] for name, job in after.items()}
    assert uids["naps-short-0"] == before["naps-short-0"]["metadata"]["uid"]
    assert uids["naps-long-0"] != before["naps-long-0"]["metadata"]["uid"]


async def test_created_suspended_it_waits_for_whoever_admits_it(scenario):
    world = scenario.world
    async with scenario.sightings() as sightings:
        await scenario.apply(hyperjob("waits", group(world, "one", seconds=1), suspend=True))
        await scenario.until_phase("waits", "Suspended")
        assert await scenario.children("waits") == {}
        assert sightings.jobs == set()
        await change(scenario, "waits", {"spec": {"suspend": False}})
        await scenario.until_phase("waits", "Completed")


async def test_groups_start_in_the_order_that_they_ask_for(scenario):
    world = scenario.world
    last = group(world, "last", seconds=1) | {"dependsOn": [{"name": "data", "status": "Complete"}]}
    async with scenario.sightings() as sightings:
        await scenario.apply(hyperjob("order", group(world, "data", seconds=3), last))
        waiting = await scenario.until_phase("order", "Running")
        entry = jobs_of(waiting)["order-last-0"]
        assert entry["reason"] == "WaitingForDependency"
        assert entry["message"] == (
            "waits for replicatedJob data to be Complete: 0 of 1 sub-jobs completed"
        )
        await scenario.until_phase("order", "Completed")
    assert sightings.jobs == {"order-data-0", "order-last-0"}
    assert frozenset({"order-data-0", "order-last-0"}) not in sightings.together()


async def test_one_success_ends_the_others_and_the_hyperjob_goes_in_time(scenario):
    world = scenario.world
    await scenario.apply(
        hyperjob(
            "brief",
            group(world, "fast", seconds=1),
            group(world, "slow", seconds=300),
            successPolicy={"operator": "Any"},
            ttlSecondsAfterFinished=3,
        )
    )
    ended = await scenario.until_phase("brief", "Completed", "Failed")
    assert condition_of(ended, "Completed").get("reason") == "SuccessPolicySatisfied"
    phases = {name: job["phase"] for name, job in jobs_of(ended).items()}
    assert phases == {"brief-fast-0": "Completed", "brief-slow-0": "Terminated"}
    await scenario.until_gone(HYPERJOBS, "brief")
    await scenario.until_members_have(0)


async def test_what_is_asked_for_by_annotation_is_done_once(scenario):
    world = scenario.world
    first, second = world.pair
    await scenario.apply(
        hyperjob(
            "asked",
            group(world, "one", replicas=2, accelerators=1, seconds=300, first_on=[first, second]),
        )
    )
    await scenario.until_phase("asked", "Running")
    before = await scenario.children("asked")
    where = jobs_of(await scenario.until_phase("asked", "Running"))["asked-one-1"]["cluster"]
    token = str(time.time_ns())
    for annotation, words in (
        (RESTART_REQUEST, f"{token} asked-one-0"),
        (MIGRATE_REQUEST, f"{token} asked-one-1"),
    ):
        await change(scenario, "asked", {"metadata": {"annotations": {annotation: words}}})
    done = await scenario.until(
        HYPERJOBS,
        "asked",
        lambda found: (
            found["status"].get("requests") == {"restart": token, "migrate": token}
            and [job["phase"] for job in jobs_of(found).values()] == ["Running", "Running"]
        ),
        what="restarted and moved",
    )
    jobs = jobs_of(done)
    assert [job["attempt"] for job in jobs.values()] == [1, 1]
    assert done["status"]["restarts"] == 0
    assert jobs["asked-one-1"]["excludedClusters"] == [where]
    assert jobs["asked-one-1"]["cluster"] != where
    after = await scenario.children("asked")
    assert all(after[name]["metadata"]["uid"] != before[name]["metadata"]["uid"] for name in before)
