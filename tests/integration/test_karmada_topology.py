"""A whole sandbox: jobs travel to members, run there, and report back."""

import os
from collections import Counter
from copy import deepcopy
from pathlib import Path

import pytest
import pytest_asyncio

from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import (
    CLUSTERS,
    PODS,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
    WORKS,
)
from hyperjob_sandbox.apiserver.server import ApiServer
from hyperjob_sandbox.karmada import names
from hyperjob_sandbox.topology import Topology
from tests.support.envtest import kube_apiserver
from tests.support.karmadarecording import RECORDED
from tests.support.sandbox import (
    cluster_statuses,
    condition,
    config,
    following,
    phase,
    placed_on,
    reported,
    submit,
    work_key,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def topology(tmp_path_factory):
    """Start one sandbox for all tests that leave it as it was; jobs called long-* never end."""
    async with Topology(config(), tmp_path_factory.mktemp("sandbox")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kube(topology):
    async with Kube.connect(kubeconfig=topology.kubeconfig, user_agent="test") as client:
        yield client


def shape(value):
    """Return keys and types of a value, lists by their first item: names and times do not count."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in sorted(value.items()) if key != "managedFields"}
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return type(value).__name__


async def test_a_job_travels_to_its_member_runs_there_and_reports_back(topology, kube):
    async with following(kube, VCJOBS, RESOURCE_BINDINGS, WORKS) as (jobs, bindings, works):
        created = await submit(kube, "travels", "member2")
        assert created["spec"]["minAvailable"] == 2, "Volcano Global's webhook defaults it"
        await jobs.until("default/travels", lambda obj: phase(obj) == "Running")
        done = await jobs.until("default/travels", lambda obj: phase(obj) == "Completed")
        assert (done["metadata"]["annotations"])[names.POLICY_NAME] == "travels"
        binding = await bindings.now("default/travels-job", lambda obj: phase(reported(obj)))
        states = bindings.history["default/travels-job"]
        assert states[0]["spec"]["suspension"] == {"scheduling": True}
        assert "status" not in states[0]
        assert placed_on(binding) == ["member2"]
        assert binding["spec"]["suspension"] == {"scheduling": False}
        assert condition(binding, "Scheduled") == ("True", "Success")
        assert condition(binding, "FullyApplied") == ("True", "FullyAppliedSuccess")
        assert reported(binding)["clusterName"] == "member2"
        work = works.get(work_key("member2", "travels"))
        assert condition(work, "Dispatching") == ("True", "Dispatching")
    selector = "volcano.sh/job-name=travels"
    pods = (await topology.clusters["member2"].kube.list(PODS, label_selector=selector)).items
    assert sorted(pod["metadata"]["name"] for pod in pods) == [
        "travels-worker-0",
        "travels-worker-1",
    ]
    assert {pod["status"]["phase"] for pod in pods} == {"Succeeded"}
    elsewhere = topology.clusters["member1"].kube
    assert (await elsewhere.list(PODS, label_selector=selector)).items == []


async def test_finished_objects_have_the_recorded_shape(kube):
    recorded = deepcopy(RECORDED["plain"])
    async with following(kube, VCJOBS, RESOURCE_BINDINGS, WORKS) as (jobs, bindings, works):
        await submit(kube, "shaped", "member1", pods=16)
        await jobs.until("default/shaped", lambda obj: phase(obj) == "Completed")
        binding = await bindings.now(
            "default/shaped-job",
            lambda obj: phase(reported(obj)) == "Completed",
        )
        work = works.get(work_key("member1", "shaped"))
    wanted = recorded["binding"]["completed"]
    # the recording's policy was of another kind
    for each in (binding, wanted):
        each["spec"].pop("placement")
        each["status"].pop("schedulerObservingAffinityName", None)
    assert shape(binding) == shape(wanted)
    wanted = recorded["work"]["completed"]
    for each in (work, wanted):
        manifest = each["spec"]["workload"]["manifests"][0]
        for label in ("hyperjob-name", "replicatedjob-name", "vcjob-template-spec-hash"):
            manifest["metadata"]["labels"].pop(f"volcano.sh/{label}", None)
        manifest["spec"].pop("tasks")
    assert shape(work) == shape(wanted)


async def test_a_job_that_the_member_refuses_is_not_applied_until_it_can_be(topology, kube):
    member = topology.clusters["member1"].kube
    closed = {"status": {"state": "Closed"}}
    await member.patch(QUEUES, "default", closed, kind=PatchType.MERGE, subresource="status")
    async with following(kube, RESOURCE_BINDINGS, VCJOBS) as (bindings, jobs):
        await submit(kube, "closed", "member1")
        failed = await bindings.until(
            "default/closed-job", lambda obj: reported(obj).get("appliedMessage")
        )
        assert "queue `default` status is `Closed`" in reported(failed)["appliedMessage"]
        assert condition(failed, "FullyApplied") == ("False", "FullyAppliedFailed")
        assert jobs.get("default/closed").get("status") is None
        opened = {"status": {"state": "Open"}}
        await member.patch(QUEUES, "default", opened, kind=PatchType.MERGE, subresource="status")
        await jobs.until("default/closed", lambda obj: phase(obj) == "Completed")


async def test_queues_are_open_and_the_members_own_default_queue_is_taken_over(topology, kube):
    queue = await kube.get(QUEUES, "default")
    assert queue["status"]["state"] == "Open"
    assert names.CLUSTER_POLICY_ID in queue["metadata"]["labels"]
    member = await topology.clusters["member1"].kube.get(QUEUES, "default")
    assert member["metadata"]["labels"][names.MANAGED] == "true"


async def test_clusters_report_what_runs_and_at_rest_nothing_is_written(tmp_path):
    async with (
        Topology(config(), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, CLUSTERS, QUEUES) as (clusters, queues),
    ):
        before = await clusters.now("member1", gpus("allocatable"))
        assert gpus("allocatable")(before) == "32"
        assert before["metadata"]["labels"] == {"accelerator": "gpu-1"}
        assert before["spec"]["region"] == "east"
        assert "batch.volcano.sh/v1alpha1" in {
            each["groupVersion"] for each in before["status"]["apiEnablements"]
        }
        recorded = RECORDED["clusters"]["member1"]["status"]
        assert set(before["status"]) - {"apiEnablements"} == set(recorded)
        await submit(kube, "j", "member1", pods=3, gpus=2)
        await clusters.until("member1", lambda obj: gpus("allocated")(obj) == "6")
        await clusters.now("member1", lambda obj: gpus("allocated")(obj) is None)
        await queues.now("default", lambda obj: "nvidia.com/gpu" not in obj["status"]["allocated"])
        await comes_to_rest(topology)


def writes(topology):
    return Counter(
        {
            key: number
            for key, number in topology.server.metrics.by_verb.items()
            if key[0] in ("create", "update", "patch", "delete")
        }
    )


def gpus(field):
    return lambda obj: obj["status"]["resourceSummary"].get(field, {}).get("nvidia.com/gpu")


async def comes_to_rest(topology):
    """Wait until several rounds of cluster status pass without a write."""
    for _ in range(20):
        before = writes(topology)
        await cluster_statuses(12)
        if writes(topology) == before:
            return
    raise AssertionError(f"still writing: {writes(topology) - before}")


@pytest.mark.parametrize("api", ["bare", "real"])
async def test_the_controllers_drive_any_api_server(tmp_path, api):
    if api == "bare":
        async with ApiServer(name="external") as server:
            kubeconfig = server.kubeconfig(tmp_path / "external.kubeconfig")
            await runs_a_job(kubeconfig, tmp_path / "sandbox")
            assert server.metrics.by_verb["delete", "mutatingwebhookconfigurations", ""] == 3
        return
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets:
        pytest.skip("KUBEBUILDER_ASSETS is not set")
    with kube_apiserver(Path(assets), tmp_path) as kubeconfig:
        await runs_a_job(kubeconfig, tmp_path / "sandbox")


async def runs_a_job(kubeconfig, directory):
    async with (
        Topology(config(), directory, api=kubeconfig) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
        following(kube, VCJOBS) as (jobs,),
    ):
        await submit(kube, "j", "member1")
        await jobs.until("default/j", lambda obj: phase(obj) == "Completed")
