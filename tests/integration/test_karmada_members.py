"""What goes wrong in members, as the clusters file says, and how the control plane shows it."""

import asyncio

import pytest

from hyperjob.client import queues
from hyperjob.client.members import views_of
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import (
    CLUSTERS,
    COMMANDS,
    CONFIG_MAPS,
    CORE_EVENTS,
    MUTATING_WEBHOOKS,
    PODS,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    SECRETS,
    VCJOBS,
    WORKS,
    Resource,
)
from hyperjob_engine.reasons.pods import words_of
from hyperjob_sandbox.clusters import parse
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.objects import new_object
from hyperjob_sandbox.topology import Topology
from tests.support.sandbox import condition, config, following, job, phase, policy, reported

RESTART = [{"event": "PodFailed", "action": "RestartJob"}]


async def submit(kube, name, cluster, **spec):
    await kube.create(PROPAGATION_POLICIES, policy(name, cluster))
    await kube.create(VCJOBS, job(name, **spec))


async def test_failures_end_or_restart_jobs_as_their_policies_say(tmp_path):
    failing = config(
        """
failures:
- {job: fails, exitCode: 3}
- {job: retries, attempt: 0, pod: 1, exitCode: 137}
"""
    )
    async with (
        Topology(failing, tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, VCJOBS) as (jobs,),
    ):
        await submit(kube, "fails", "member1")
        await submit(kube, "retries", "member2", policies=RESTART)
        failed = await jobs.until("default/fails", lambda obj: phase(obj) == "Failed")
        assert failed["status"]["version"] == 1
        done = await jobs.until("default/retries", lambda obj: phase(obj) == "Completed")
        assert done["status"]["retryCount"] == 1
        pods = (await topology.clusters["member1"].kube.list(PODS)).items
        codes = {
            pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in pods
        }
        assert codes == {3}


async def test_a_vcjob_whose_minimum_is_below_its_tasks_starts_with_the_pods_that_fit(tmp_path):
    big = job("long-tasks", gpus=8, minAvailable=1)
    worker = big["spec"]["tasks"][0]
    worker["replicas"] = 1
    big["spec"]["tasks"] = [{**worker, "name": f"t{index}"} for index in range(6)]
    async with (
        Topology(config(), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, VCJOBS) as (jobs,),
    ):
        await kube.create(PROPAGATION_POLICIES, policy("long-tasks", "member1"))
        await kube.create(VCJOBS, big)
        runs = await jobs.until(
            "default/long-tasks", lambda obj: obj.get("status", {}).get("running") == 4
        )
        assert (phase(runs), runs["status"]["pending"]) == ("Running", 2)


async def test_pods_behind_a_gate_or_of_another_clusters_node_do_not_run(tmp_path):
    gated, here, away = job("gated", pods=1), job("here", pods=1), job("away", pods=1)
    for each, extra in (
        (gated, {"schedulingGates": [{"name": "example.com/wait"}]}),
        (here, {"nodeName": "member1-node-1"}),
        (away, {"nodeName": "member2-node-1"}),
    ):
        each["spec"]["tasks"][0]["template"]["spec"] |= extra
    async with (
        Topology(config(), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, VCJOBS) as (jobs,),
        following(topology.clusters["member1"].kube, PODS) as (pods,),
    ):
        for each in (gated, away, here):
            await kube.create(PROPAGATION_POLICIES, policy(each["metadata"]["name"], "member1"))
            await kube.create(VCJOBS, each)
        await jobs.until("default/here", lambda obj: phase(obj) == "Completed")
        waiting = await pods.until(
            "default/gated-worker-0", lambda obj: condition(obj, "PodScheduled")
        )
        assert condition(waiting, "PodScheduled") == ("False", "SchedulingGated")
        stays = await pods.until("default/away-worker-0", lambda obj: obj["spec"]["nodeName"])
        assert stays["status"]["phase"] == "Pending"
        member = topology.clusters["member1"].kube
        gates = {"spec": {"schedulingGates": None}}
        await member.patch(PODS, "gated-worker-0", gates, namespace="default", kind=PatchType.MERGE)
        await jobs.until("default/gated", lambda obj: phase(obj) == "Completed")
        assert phase(jobs.get("default/away")) == "Pending"


async def test_pods_wait_for_objects_that_their_member_lacks(tmp_path):
    mounts, reads, ranked = job("mounts", pods=1), job("reads", pods=1), job("ranked", pods=1)
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
        for each in (mounts, reads, ranked):
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
        told = {}

        def knows() -> bool:
            told.update((each["reason"], each["message"]) for each in events.items())
            return {"FailedMount", "FailedCreate"} <= told.keys()

        await events.some(knows)
        assert told["FailedMount"].endswith('for volume "v" : configmap "conf" not found')
        assert "no PriorityClass with name high was found" in told["FailedCreate"]
        member = topology.clusters["member1"].kube
        await member.create(CONFIG_MAPS, new_object(CONFIG_MAPS, "conf"), namespace="default")
        await member.create(SECRETS, new_object(SECRETS, "token"), namespace="default")
        await member.create(PRIORITY_CLASSES, new_object(PRIORITY_CLASSES, "high", value=7))
        for name in ("mounts", "reads", "ranked"):
            await jobs.until(f"default/{name}", lambda obj: phase(obj) == "Completed")
        assert pods.get("default/ranked-worker-0")["spec"]["priority"] == 7


async def test_pods_that_are_always_restarted_never_complete(tmp_path):
    always = job("always", pods=1)
    always["spec"]["tasks"][0]["template"]["spec"]["restartPolicy"] = "Always"
    async with (
        Topology(config(speed=100.0), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(topology.clusters["member1"].kube, PODS) as (pods,),
    ):
        await kube.create(PROPAGATION_POLICIES, policy("always", "member1"))
        await kube.create(VCJOBS, always)
        for state in ("waiting", "running"):  # in the pause after its end, and started again

            def is_again(obj, state=state):
                [container] = obj["status"].get("containerStatuses") or [{}]
                return container.get("restartCount") and state in container["state"]

            again = await pods.until("default/always-worker-0", is_again)
            [container] = again["status"]["containerStatuses"]
            assert container["lastState"]["terminated"]["exitCode"] == 0
            assert again["status"]["phase"] == "Running"


async def test_gangs_wait_for_room_and_get_it_when_others_end(tmp_path):
    async with (
        Topology(config(), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, VCJOBS) as (jobs,),
        following(topology.clusters["member1"].kube, PODS) as (pods,),
    ):
        # together they would need 48 of 32 GPUs
        await submit(kube, "long-big", "member1", pods=24)
        await jobs.until("default/long-big", lambda obj: phase(obj) == "Running")
        await submit(kube, "waits", "member1", pods=24)
        waiting = await jobs.until("default/waits", lambda obj: phase(obj) == "Pending")
        assert waiting["status"].get("running") is None
        assert not any(
            pod["metadata"]["name"].startswith("waits") and pod["spec"].get("nodeName")
            for pod in pods.items()
        )
        await kube.delete(VCJOBS, "long-big", namespace="default")
        await jobs.until("default/waits", lambda obj: phase(obj) == "Completed")


async def test_a_lost_cluster_is_tainted_holds_its_works_and_comes_back(tmp_path):
    async with (
        Topology(config(), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, CLUSTERS, RESOURCE_BINDINGS, VCJOBS, WORKS) as (
            clusters,
            bindings,
            jobs,
            works,
        ),
    ):
        await submit(kube, "long-lost", "member1")
        await jobs.until("default/long-lost", lambda obj: phase(obj) == "Running")
        member = topology.clusters["member1"]
        await member.server.stop_listening()
        lost = await clusters.until(
            "member1", lambda obj: condition(obj, "Ready") == ("False", "ClusterNotReachable")
        )
        assert lost["status"]["resourceSummary"], "what was known stays"
        await clusters.now("member1", lambda obj: obj["spec"].get("taints"))
        taint = clusters.get("member1")["spec"]["taints"][0]
        assert (taint["key"], taint["effect"]) == (names.TAINT_NOT_READY, "NoSchedule")
        # the job keeps its cluster and its last status; a new one finds no cluster
        assert phase(jobs.get("default/long-lost")) == "Running"
        assert reported(bindings.get("default/long-lost-job"))["clusterName"] == "member1"
        await submit(kube, "late", "member1")
        refused = await bindings.until("default/late-job", lambda obj: condition(obj, "Scheduled"))
        assert condition(refused, "Scheduled") == ("False", "NoClusterFit")
        await kube.delete(VCJOBS, "long-lost", namespace="default")
        key = f"karmada-es-member1/{names.work_name('Job', 'long-lost', 'default')}"
        await works.until(key, lambda obj: obj["metadata"].get("deletionTimestamp"))

        await member.server.start_listening()
        await clusters.now("member1", lambda obj: condition(obj, "Ready")[0] == "True")
        await clusters.now("member1", lambda obj: not obj["spec"].get("taints"))
        await works.gone(key)
        await jobs.until("default/late", lambda obj: phase(obj) == "Completed")


async def test_clusters_are_lost_and_come_back_at_the_times_in_the_file(tmp_path):
    timed = config("lostClusters: [{cluster: member2, at: 0.2, backAt: 1.5}]\n")
    async with (
        Topology(timed, tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, CLUSTERS) as (clusters,),
    ):
        await clusters.until("member2", lambda obj: condition(obj, "Ready")[0] == "False")
        await clusters.now("member2", lambda obj: condition(obj, "Ready")[0] == "True")
        assert condition(clusters.get("member1"), "Ready")[0] == "True"


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


async def test_a_vcjob_whose_pods_a_quota_refuses_is_terminated_after_events(tmp_path):
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"}}
    body |= {"spec": {"hard": {"pods": "0"}}}
    quotas = Resource("", "v1", "resourcequotas", "ResourceQuota")
    async with (
        Topology(config(), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, VCJOBS) as (jobs,),
    ):
        member = topology.clusters["member1"].kube
        await member.create(quotas, body, namespace="default")
        await submit(kube, "refused", "member1")
        ended = await jobs.until(
            "default/refused", lambda obj: phase(obj) == "Terminated", seconds=180
        )
        assert not ended["status"].get("running")
        assert (await member.list(PODS)).items == []
        events = (await member.list(CORE_EVENTS, namespace="default")).items
        words = 'pods "refused-worker-0" is forbidden: exceeded quota: full, requested: pods=1'
        assert {words in words_of(each["message"]) for each in events} == {True}
        await member.delete(quotas, "full", namespace="default")
        await submit(kube, "allowed", "member1")
        await jobs.until("default/allowed", lambda obj: phase(obj) == "Running")


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


async def test_a_queue_is_closed_and_opened_in_every_cluster(tmp_path):
    async with (
        Topology(config("queues:\n- {name: research}\n"), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(topology.clusters["member1"].kube, QUEUES) as (first,),
        following(topology.clusters["member2"].kube, QUEUES) as (second,),
    ):
        for members in (first, second):
            await members.until("research", lambda obj: state(obj) == "Open")
        closed = await queues.change(kube, "research", opens=False, seconds=10)
        assert [each.cluster for each in closed] == ["member1", "member2"]
        assert not [each for each in closed if each.error]
        for members in (first, second):
            await members.until("research", lambda obj: state(obj) == "Closed")
        assert not (await topology.clusters["member1"].kube.list(COMMANDS)).items
        again = await queues.change(kube, "research", opens=False, seconds=10)
        assert [each.state for each in again] == ["Closed", "Closed"]
        opened = await queues.change(kube, "research", opens=True, seconds=10)
        assert [each.state for each in opened] == ["Open", "Open"]
        with pytest.raises(NotFound):
            await queues.change(kube, "reserch", opens=False, seconds=10)


def state(queue):
    return (queue.get("status") or {}).get("state")


NETWORK = """
clusters:
- name: member1
  nodes:
  - {name: gpu, count: 4, labels: {gpu: H100}, others: {nvidia.com/gpu: 2},
     allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 8}}
  hyperNodes:
  - {name: left, tier: 1, nodes: [member1-gpu-1, member1-gpu-2]}
  - {name: right, tier: 1, nodes: ["*-gpu-3", "*-gpu-4"]}
  - {name: spine, tier: 2, hyperNodes: ["*t"]}
runTimes: {defaultSeconds: 0.3}
karmada: {clusterStatusSeconds: 0.3}
"""


async def test_nodes_other_workloads_and_hypernodes_are_read_through_the_proxy(tmp_path):
    async with (
        Topology(parse(NETWORK), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, VCJOBS) as (jobs,),
    ):
        views, errors = await views_of(kube, ["member1"])
        assert not errors
        shown = views["member1"]
        assert [node.free["nvidia.com/gpu"] // 10**9 for node in shown.nodes] == [6] * 4
        assert {each.name: (each.tier, sorted(each.nodes)) for each in shown.hypernodes} == {
            "left": (1, ["member1-gpu-1", "member1-gpu-2"]),
            "right": (1, ["member1-gpu-3", "member1-gpu-4"]),
            "spine": (2, [f"member1-gpu-{number}" for number in (1, 2, 3, 4)]),
        }
        hard = {"mode": "hard", "highestTierAllowed": 1}
        await submit(kube, "wide", "member1", pods=3, gpus=6, networkTopology=hard)
        await submit(kube, "near", "member1", pods=2, gpus=6, networkTopology=hard)
        await jobs.until("default/near", lambda obj: phase(obj) == "Completed")
        assert phase(jobs.get("default/wide")) == "Pending", "no HyperNode of tier 1 has 3 nodes"
        pods = (await topology.clusters["member1"].kube.list(PODS)).items
        where = {
            pod["spec"].get("nodeName")
            for pod in pods
            if pod["metadata"]["name"].startswith("near")
        }
        assert where in ({"member1-gpu-1", "member1-gpu-2"}, {"member1-gpu-3", "member1-gpu-4"})
