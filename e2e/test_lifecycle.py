"""The lifecycle of a HyperJob: failure, scaling, deletion, and no writes without a change."""

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import condition_of
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
    WORKS,
)


async def test_a_failing_sub_job_fails_the_hyperjob_once_all_have_ended(scenario):
    world = scenario.world
    await scenario.apply(
        hyperjob(
            "mixed",
            group(world, "failing", seconds=1, exit_code=3, maxRetry=1),
            group(world, "good", seconds=8),
        )
    )
    ended = await scenario.until_phase("mixed", "Failed", "Completed")
    failed = condition_of(ended, "Failed")
    assert failed.get("status") == "True", ended["status"]
    assert not condition_of(ended, "Completed")
    phases = {job["name"]: job["phase"] for job in ended["status"]["jobs"]}
    assert phases["mixed-good-0"] == "Completed", "the other sub-job is left to end"
    assert phases["mixed-failing-0"] == "Failed"
    assert "mixed-failing-0" in ended["status"]["state"]["message"]


async def test_a_hyperjob_at_its_deadline_is_stopped_and_fails(scenario):
    world = scenario.world
    late = hyperjob("late", group(world, "one", replicas=2, accelerators=1, seconds=600))
    late["spec"]["activeDeadlineSeconds"] = 5
    await scenario.apply(late)
    ended = await scenario.until_phase("late", "Failed", "Completed")
    failed = condition_of(ended, "Failed")
    assert (failed.get("status"), failed.get("reason")) == ("True", "DeadlineExceeded")
    assert "activeDeadlineSeconds" in ended["status"]["state"]["message"]
    await scenario.until_members_have(0)


async def test_deleting_a_running_hyperjob_leaves_nothing_anywhere(scenario):
    world = scenario.world
    await scenario.apply(
        hyperjob("gone", group(world, "one", replicas=2, pods=2, accelerators=1, seconds=300))
    )
    await scenario.until_phase("gone", "Running")
    assert len(await scenario.remains()) == 6, "two vcjobs of two pods"
    await scenario.kubectl("delete", "hyperjob", "gone", "--timeout=60s")
    await scenario.until_members_have(0)
    for job in ("gone-one-0", "gone-one-1"):
        for kind in (VCJOBS, PROPAGATION_POLICIES):
            await scenario.until_gone(kind, job)
        await scenario.until_gone(RESOURCE_BINDINGS, f"{job}-job")
    works = await scenario.kube.list(WORKS)
    assert not [
        work["metadata"]["name"]
        for work in works.items
        for manifest in work["spec"]["workload"]["manifests"]
        if manifest["metadata"].get("namespace") == scenario.namespace
    ]


async def test_scaling_makes_and_removes_sub_jobs_and_touches_no_other(scenario):
    world = scenario.world
    await scenario.apply(
        hyperjob("scale", group(world, "one", replicas=2, accelerators=1, seconds=300))
    )
    await scenario.until_phase("scale", "Running")
    before = await scenario.children("scale")

    async def scale(replicas):
        await scenario.kube.patch(
            HYPERJOBS,
            "scale",
            [{"op": "replace", "path": "/spec/replicatedJobs/0/replicas", "value": replicas}],
            kind=PatchType.JSON,
            namespace=scenario.namespace,
        )
        return await scenario.until(
            HYPERJOBS,
            "scale",
            lambda found: (
                [job["phase"] for job in found["status"]["jobs"]] == ["Running"] * replicas
            ),
            what=f"running with {replicas} sub-jobs",
        )

    grown = await scale(4)
    assert grown["status"]["observedGeneration"] == grown["metadata"]["generation"]
    after = await scenario.children("scale")
    assert set(after) == {f"scale-one-{index}" for index in range(4)}
    for name, job in before.items():
        assert after[name]["metadata"]["uid"] == job["metadata"]["uid"]

    await scale(1)
    for index in (1, 2, 3):
        await scenario.until_gone(VCJOBS, f"scale-one-{index}")
        await scenario.until_gone(PROPAGATION_POLICIES, f"scale-one-{index}")
    kept = await scenario.children("scale")
    assert kept["scale-one-0"]["metadata"]["uid"] == before["scale-one-0"]["metadata"]["uid"]

    await scenario.until_members_have(2)


async def test_nothing_is_written_while_nothing_happens(scenario):
    world = scenario.world
    await scenario.apply(
        hyperjob("runs", group(world, "one", replicas=2, accelerators=1, seconds=300)),
        hyperjob("ended", group(world, "one", replicas=2, accelerators=1, seconds=1)),
        hyperjob("waits", group(world, "one", only_on=["no-such-cluster"])),
    )
    await scenario.until_phase("runs", "Running")
    await scenario.until_phase("ended", "Completed")
    await scenario.until_phase("waits", "Pending", "Queued")
    still = await scenario.settled()
    for _ in range(2):
        await scenario.passed_through()
        assert await scenario.versions() == still


async def test_applying_the_same_manifest_again_changes_nothing(scenario):
    world = scenario.world
    given = hyperjob("same", group(world, "one", replicas=2, accelerators=1, seconds=300))
    await scenario.apply(given)
    await scenario.until_phase("same", "Running")
    still = await scenario.settled()
    before = await scenario.kube.get(HYPERJOBS, "same", namespace=scenario.namespace)
    for _ in range(2):
        await scenario.apply(given)
    await scenario.passed_through()
    after = await scenario.kube.get(HYPERJOBS, "same", namespace=scenario.namespace)
    # kubectl's apply does not own the webhook's defaults.
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    now = await scenario.versions()
    hyperjobs = {key for key in still if key.startswith("HyperJob ")}
    assert {key: now[key] for key in still.keys() - hyperjobs} == {
        key: still[key] for key in still.keys() - hyperjobs
    }
