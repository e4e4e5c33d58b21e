"""The copy of a PersistentVolumeClaim in a member outlives every stop of a HyperJob.

It goes with the claim in the Karmada API server, and with nothing else.
"""

import pytest
import yaml

from e2e.support.manifests import both, group, hyperjob
from e2e.support.unreachable import unreachable, until_ready
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
)
from hyperjob_engine.model.claimcopies import claim_policy_name
from hyperjob_install.interpreters import interpreters

POLICY = claim_policy_name("saves")


def claim(name="saves"):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def saving(world, name, member, *, seconds=600, exit_code=0, **spec):
    """Return a HyperJob of one sub-job on a member, whose checkpoints are in the claim."""
    parts = group(world, "one", accelerators=1, seconds=seconds, exit_code=exit_code)
    parts |= {"clusterNames": [member], "clusterPolicy": "Required"}
    checkpoint = {"persistentVolumeClaim": "saves", "path": "/saves"}
    return hyperjob(name, parts, checkpoint=checkpoint, **spec)


class Copies:
    """The copies of the claim in the members."""

    def __init__(self, scenario):
        self.scenario = scenario

    async def kept(self, member, name="saves"):
        """Wait until Karmada keeps the copy in a member; return the UID of the copy."""
        scenario = self.scenario
        await scenario.until(
            RESOURCE_BINDINGS,
            claim_policy_name(name),
            lambda found: found and member in clusters_of(found),
            what=f"kept in {member}",
        )
        found = await scenario.until(
            PERSISTENT_VOLUME_CLAIMS,
            name,
            lambda found: found and not found["metadata"].get("deletionTimestamp"),
            what=f"in {member}",
            kube=scenario.members[member],
        )
        return found["metadata"]["uid"]

    async def is_still(self, member, uid):
        """Fail unless the copy is the same, and is not being deleted."""
        found = await self.scenario.members[member].get(
            PERSISTENT_VOLUME_CLAIMS, "saves", namespace=self.scenario.namespace
        )
        assert found["metadata"]["uid"] == uid
        assert "deletionTimestamp" not in found["metadata"]


def clusters_of(binding):
    spec = binding["spec"]
    parts = [spec, *(each for each in spec.get("requiredBy") or () if each["name"] == "hyperjob")]
    return {each["name"] for part in parts for each in part.get("clusters") or ()}


async def attempt(scenario, name, number):
    await scenario.until(
        HYPERJOBS,
        name,
        lambda found: (
            found
            and [(job["phase"], job.get("attempt", 0)) for job in found["status"]["jobs"]]
            == [("Running", number)]
        ),
        what=f"running in attempt {number}",
    )


@pytest.fixture
async def copies(scenario):
    if scenario.world.settings.embedded:  # elsewhere `hyperjob install` has created them
        scripts = yaml.safe_dump_all([item.object for item in interpreters()])
        await scenario.kubectl("apply", "--server-side", "-f", "-", stdin=scripts)
    await scenario.apply(claim())
    yield Copies(scenario)
    await scenario.clear()
    await scenario.kube.delete(PERSISTENT_VOLUME_CLAIMS, "saves", namespace=scenario.namespace)


async def test_a_claim_outlives_suspend_restart_and_deletion_of_its_hyperjob(scenario, copies):
    member = scenario.world.largest
    job = saving(scenario.world, "saver", member, failurePolicy={"maxRestarts": 3})
    await scenario.apply(job)
    await scenario.until_phase("saver", "Running")
    uid = await copies.kept(member)

    await scenario.hyperjob("suspend", "saver")
    await scenario.until_phase("saver", "Suspended")
    await scenario.until_gone(RESOURCE_BINDINGS, "saver-one-0-job")
    await copies.is_still(member, uid)

    await scenario.hyperjob("resume", "saver")
    await attempt(scenario, "saver", 1)
    await scenario.hyperjob("restart", "saver")
    await attempt(scenario, "saver", 2)
    await copies.is_still(member, uid)

    await scenario.kubectl("delete", "hyperjob", "saver", "--timeout=60s")
    await scenario.until_gone(VCJOBS, "saver-one-0")
    await scenario.until_gone(RESOURCE_BINDINGS, "saver-one-0-job")
    await copies.is_still(member, uid)

    await scenario.apply(job)
    await scenario.until_phase("saver", "Running")
    await copies.is_still(member, uid)


async def test_the_status_names_every_cluster_that_has_a_copy_and_a_move_leaves_the_old_one(
    scenario, copies
):
    first, second = scenario.world.pair
    job = saving(scenario.world, "mover", first, failurePolicy={"maxRestarts": 3})
    job["spec"]["replicatedJobs"][0] |= {"clusterNames": [first, second]}
    await scenario.apply(job)
    await scenario.until_phase("mover", "Running")
    uid = await copies.kept(first)
    await scenario.hyperjob("migrate", "mover", "mover-one-0")
    await attempt(scenario, "mover", 1)
    await copies.kept(second)
    found = await scenario.until(
        HYPERJOBS,
        "mover",
        lambda found: (
            found["status"].get("persistentVolumeClaims")
            == [{"name": "saves", "clusters": sorted((first, second))}]
        ),
        what="with both copies in its status",
    )
    assert found["status"]["clusterNames"] == second
    await copies.is_still(first, uid)


async def test_a_claim_outlives_a_failed_run_its_ttl_and_goes_with_the_claim_in_karmada(
    scenario, copies
):
    member = scenario.world.largest
    await scenario.apply(
        saving(scenario.world, "ender", member, seconds=3, ttlSecondsAfterFinished=1)
    )
    uid = await copies.kept(member)
    await scenario.until_gone(HYPERJOBS, "ender")
    await scenario.until_gone(RESOURCE_BINDINGS, "ender-one-0-job")
    await copies.is_still(member, uid)
    await scenario.kubectl("delete", "pvc", "saves", "--timeout=60s")
    await scenario.until_gone(PROPAGATION_POLICIES, POLICY)
    await scenario.until(
        PERSISTENT_VOLUME_CLAIMS,
        "saves",
        lambda found: found is None or found["metadata"].get("deletionTimestamp"),
        what="deleted in the member",
        kube=scenario.members[member],
    )
    await scenario.apply(claim())


async def test_a_claim_outlives_the_preemption_of_its_hyperjob(scenario, copies):
    world = scenario.world
    await scenario.until_free()
    async with scenario.priority(1000) as urgent, scenario.queue() as queue:
        low = both(world, "low", queue=queue, seconds=600)
        low["spec"]["checkpoint"] = {"persistentVolumeClaim": "saves", "path": "/saves"}
        await scenario.apply(low)
        await scenario.until_phase("low", "Running")
        uids = {member: await copies.kept(member) for member in world.pair}
        await scenario.apply(both(world, "high", queue=queue, priorityClassName=urgent))
        await scenario.until_phase("high", "Completed")
        await scenario.until_phase("low", "Running")
        for member, uid in uids.items():
            await copies.is_still(member, uid)


async def test_a_claim_outlives_the_loss_of_its_cluster_and_its_return(scenario, copies):
    lost, other = scenario.world.pair
    policy = {"maxRestarts": 1, "rules": [{"action": "MigrateJob", "onClusterLost": True}]}
    job = saving(scenario.world, "survivor", lost, failurePolicy=policy)
    job["spec"]["replicatedJobs"][0]["clusterNames"] = [lost, other]
    await scenario.apply(job)
    await scenario.until_phase("survivor", "Running")
    uid = await copies.kept(lost)
    async with unreachable(scenario, lost):
        await until_ready(scenario, lost, ready=False)
        await attempt(scenario, "survivor", 1)
        await copies.kept(other)
    await scenario.until(
        VCJOBS,
        "survivor-one-0",
        lambda found: found is None,
        what="gone",
        kube=scenario.members[lost],
    )
    await copies.is_still(lost, uid)


async def test_two_hyperjobs_with_one_claim_keep_it_in_the_clusters_of_both(scenario, copies):
    first, second = scenario.world.pair
    await scenario.apply(
        saving(scenario.world, "left", first), saving(scenario.world, "right", second)
    )
    for name in ("left", "right"):
        await scenario.until_phase(name, "Running")
    uids = {member: await copies.kept(member) for member in (first, second)}
    for name in ("left", "right"):
        await scenario.kubectl("delete", "hyperjob", name, "--timeout=60s")
        await scenario.until_gone(RESOURCE_BINDINGS, f"{name}-one-0-job")
    for member, uid in uids.items():
        await copies.is_still(member, uid)


async def test_a_claim_that_a_users_policy_propagates_elsewhere_is_kept_and_the_policy_stays(
    scenario, copies
):
    first, second = scenario.world.pair
    await scenario.apply(
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "mine"},
            "spec": {
                "resourceSelectors": [
                    {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "saves"}
                ],
                "placement": {"clusterAffinity": {"clusterNames": [second]}},
            },
        }
    )
    await copies.kept(second)
    await scenario.apply(saving(scenario.world, "theirs", first))
    await scenario.until_phase("theirs", "Running")
    uid = await copies.kept(first)
    await scenario.hyperjob("suspend", "theirs")
    await scenario.until_phase("theirs", "Suspended")
    await scenario.until_gone(RESOURCE_BINDINGS, "theirs-one-0-job")
    await copies.is_still(first, uid)
    binding = await scenario.kube.get(RESOURCE_BINDINGS, POLICY, namespace=scenario.namespace)
    assert [each["name"] for each in binding["spec"]["clusters"]] == [second]
    await scenario.until_gone(PROPAGATION_POLICIES, POLICY)


async def test_a_copy_without_a_policy_is_kept_before_a_running_sub_job_is_stopped(
    scenario, copies
):
    """As of a HyperJob that ran before the controller kept claims: its policy is not there."""
    member = scenario.world.largest
    await scenario.apply(saving(scenario.world, "older", member))
    await scenario.until_phase("older", "Running")
    uid = await copies.kept(member)
    await scenario.kube.delete(PROPAGATION_POLICIES, POLICY, namespace=scenario.namespace)
    await scenario.until_gone(PROPAGATION_POLICIES, POLICY)
    await scenario.kube.patch(
        RESOURCE_BINDINGS,
        POLICY,
        {"spec": {"clusters": None, "placement": None}},
        kind=PatchType.MERGE,
        namespace=scenario.namespace,
    )
    await scenario.hyperjob("suspend", "older")
    await scenario.until_phase("older", "Suspended")
    await scenario.until_gone(RESOURCE_BINDINGS, "older-one-0-job")
    await copies.is_still(member, uid)
