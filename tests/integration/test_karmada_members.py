"""What goes wrong in members, as the clusters file says, and how the control plane shows it."""

import asyncio

from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import (
    CONFIG_MAPS,
    CORE_EVENTS,
    MUTATING_WEBHOOKS,
    PODS,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    SECRETS,
    VCJOBS,
)
from hyperjob_sandbox.objects import new_object
from hyperjob_sandbox.topology import Topology
from tests.support.sandbox import config, following, job, phase, policy, reported, submit


async def test_pods_wait_for_objects_that_their_member_lacks(tmp_path):
    mounts, reads, ranked = job("mounts", pods=1), job("reads", pods=1), job("ranked", pods=1)
    named = {"serviceAccountName": "runner", "runtimeClassName": "nvidia"}
    named_jobs = [job(f"named-{index}", pods=1) for index in range(len(named))]
    for each, field in zip(named_jobs, named.items(), strict=True):
        each["spec"]["tasks"][0]["template"]["spec"] |= dict([field])
    spec = mounts["spec"]["tasks"][0]["template"]["spec"]
    spec["volumes"] = [{"name": "v", "configMap": {"name": "conf"}}]
    spec = reads["spec"]["tasks"][0]["template"]["spec"]
    spec["containers"][0]["envFrom"] = [{"secretRef": {"name": "token"}}]
    ranked["spec"]["tasks"][0]["template"]["spec"]["priorityClassName"] = "high"
    async with (
        Topology(config(), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, VCJOBS) as (jobs,),
        following(topology.clusters["member1"].kube, PODS, CORE_EVENTS) as (pods, events),
    ):
        for each in (mounts, reads, ranked, *named_jobs):
            await kube.create(PROPAGATION_POLICIES, policy(each["metadata"]["name"], "member1"))
            await kube.create(VCJOBS, each)
        held = await pods.until(
            "default/reads-worker-0", lambda obj: obj["status"].get("containerStatuses")
        )
        assert held["status"]["phase"] == "Pending"
        assert held["status"]["containerStatuses"][0]["state"]["waiting"] == {
            "reason": "CreateContainerConfigError",
            "message": 'secret "token" not found',
        }
        words = [
            'for volume "v" : configmap "conf" not found',
            "no PriorityClass with name high was found",
            'serviceaccount \\"runner\\" not found',
            'RuntimeClass \\"nvidia\\" not found',
        ]

        def knows() -> bool:
            told = [each["message"] for each in events.items()]
            return all(any(text in each for each in told) for text in words)

        await events.some(knows)
        member = topology.clusters["member1"].kube
        await member.create(CONFIG_MAPS, new_object(CONFIG_MAPS, "conf"), namespace="default")
        await member.create(SECRETS, new_object(SECRETS, "token"), namespace="default")
        await member.create(PRIORITY_CLASSES, new_object(PRIORITY_CLASSES, "high", value=7))
        for name in ("mounts", "reads", "ranked"):
            await jobs.until(f"default/{name}", lambda obj: phase(obj) == "Completed")
        assert pods.get("default/ranked-worker-0")["spec"]["priority"] == 7


async def test_a_failed_apply_wipes_the_status_while_the_job_runs_on(tmp_path):
    without_webhooks = config()
    off = without_webhooks.volcano_global.model_copy(update={"enabled": False})
    async with (
        Topology(without_webhooks.model_copy(update={"volcano_global": off}), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, RESOURCE_BINDINGS, VCJOBS) as (bindings, jobs),
    ):
        await submit(kube, "long-run", "member1")
        await jobs.until("default/long-run", lambda obj: phase(obj) == "Running")
        # no webhook of the control plane stops this, the member's does
        change = {"spec": {"maxRetry": 7}}
        await kube.patch(VCJOBS, "long-run", change, kind=PatchType.MERGE, namespace="default")
        failed = await bindings.until(
            "default/long-run-job", lambda obj: reported(obj).get("appliedMessage")
        )
        assert "job updates may not change fields" in reported(failed)["appliedMessage"]
        assert "status" not in reported(failed)
        await jobs.now("default/long-run", lambda obj: not obj.get("status"))
        running = await topology.clusters["member1"].kube.get(
            VCJOBS, "long-run", namespace="default"
        )
        assert phase(running) == "Running"


async def test_a_sandbox_ends_cleanly(tmp_path):
    before = asyncio.all_tasks()
    async with Topology(config(), tmp_path) as topology:
        assert {each.kubeconfig.name for each in topology.clusters.values()} == {
            "member1.kubeconfig",
            "member2.kubeconfig",
        }
        assert (await topology.clusters["member1"].kube.list(MUTATING_WEBHOOKS)).items
    for _ in range(10):  # connections that were closed end in the next turns of the loop
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


def state(queue):
    return (queue.get("status") or {}).get("state")
