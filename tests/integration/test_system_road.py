"""The whole road: kubectl, webhook over TLS, controller, Karmada, members, and back as status."""

import asyncio
import itertools
import json

import yaml

from hyperjob_core.kube.client import EventType, Kube
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import HYPERJOBS
from tests.support.stack import ROOT, kubectl
from tests.support.system import phase_of


def hyperjob(name, *, replicas=2, pods=2, gpus=1, seconds=1, group="trainer", **spec):
    """Make a HyperJob whose containers give requests only, as the design document's do."""
    container = {"name": "main", "image": "i", "resources": {"requests": {"nvidia.com/gpu": gpus}}}
    template = {
        "metadata": {"annotations": {"sandbox.hyperjob.volcano.sh/seconds": str(seconds)}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    tasks = [{"name": "worker", "replicas": pods, "template": template}]
    made = {"name": group, "replicas": replicas, "templateSpec": {"tasks": tasks}}
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": [made], **spec},
    }


def elsewhere(name):
    """Make a HyperJob that may only run on a cluster that is not there."""
    made = hyperjob(name)
    made["spec"]["replicatedJobs"][0] |= {"clusterNames": ["nowhere"], "clusterPolicy": "Required"}
    return made


def use_case_one(pods):
    """Read the document's first use case, with fewer workers."""
    made = yaml.safe_load((ROOT / "examples/llm-training.yaml").read_text())
    made["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["replicas"] = pods
    return made


def test_a_missing_crd_was_waited_for_and_named(system):
    assert "hyperjobs.training.volcano.sh" in system.without_crd
    assert system.controller.is_ready()


def test_use_case_one_runs_on_two_clusters_and_kubectl_tells_it(system, project):
    before = webhook_answers(system)
    system.apply(project, use_case_one(pods=24))
    ended = system.until_phase(project, "llm-training", "Completed", "Failed")
    assert true_conditions(ended) == ["Completed"]
    assert {job["cluster"] for job in ended["status"]["jobs"]} == {"east", "west"}
    template = ended["spec"]["replicatedJobs"][0]["templateSpec"]
    resources = template["tasks"][0]["template"]["spec"]["containers"][0]["resources"]
    assert set(resources) == {"requests"}, "it is stored as its author wrote it"
    jobs = json.loads(
        system.plane.kubectl("get", "jobs.batch.volcano.sh", "-n", project, "-o", "json").stdout
    )
    for job in jobs["items"]:
        (container,) = job["spec"]["tasks"][0]["template"]["spec"]["containers"]
        limits = container["resources"]["limits"]
        assert int(limits["nvidia.com/gpu"]) == 1, "a default of what runs"
    assert len(jobs["items"]) == 2
    wide = system.plane.kubectl("get", "hj", "-n", project, "-o", "wide").stdout
    assert "east,west" in wide
    assert "Completed" in wide
    described = system.plane.kubectl("describe", "hj", "llm-training", "-n", project).stdout
    for job in ("llm-training-trainer-0", "llm-training-trainer-1"):
        assert job in described
    answered = {
        path: count - before.get(path, 0) for path, count in webhook_answers(system).items()
    }
    for path in ("mutate-training", "validate-training", "mutate-work-karmada"):
        assert any(path in each and count for each, count in answered.items()), answered


def test_each_sub_job_stands_in_the_member_that_the_status_names(system, project):
    system.apply(project, hyperjob("where", replicas=3, seconds=60))
    running = system.until_phase(project, "where", "Running")
    told = {job["name"]: job["cluster"] for job in running["status"]["jobs"]}
    found = {}
    for member, kubeconfig in system.members.items():
        done = kubectl(
            kubeconfig, "get", "jobs.batch.volcano.sh", f"--namespace={project}", "-o", "json"
        )
        found |= {job["metadata"]["name"]: member for job in json.loads(done.stdout)["items"]}
    assert told == found


async def test_n_sub_jobs_cost_2n_creates_and_no_status_write_is_idle(system, project):
    before = await asyncio.to_thread(system.until_quiet, project)
    changes = []
    async with Kube.connect(kubeconfig=system.plane.kubeconfig) as kube:
        informer = Informer(kube, HYPERJOBS, namespace=project)
        informer.add_handler(lambda kind, _old, new: changes.append((kind, new)))
        following = asyncio.create_task(informer.run())
        await informer.synced.wait()
        await asyncio.to_thread(system.apply, project, hyperjob("count", replicas=6, pods=1))
        await asyncio.to_thread(system.until_phase, project, "count", "Completed")
        cost = await asyncio.to_thread(system.until_quiet, project) - before
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    assert cost["POST", "jobs", ""] == 6
    assert cost["POST", "propagationpolicies", ""] == 6
    states = [
        new["status"]
        for kind, new in changes
        if kind is EventType.MODIFIED and new["metadata"]["name"] == "count"
    ]
    assert cost["PATCH", "hyperjobs", "status"] == len(states), "each write changes something"
    assert all(old != new for old, new in itertools.pairwise(states))
    others = {key for key in cost if key[1] == "hyperjobs"} - {("PATCH", "hyperjobs", "status")}
    assert others == {("POST", "hyperjobs", "")}, "ours is only the status"


def test_at_rest_and_after_a_restart_nothing_is_written(system, project):
    system.apply(
        project,
        hyperjob("runs", seconds=300),
        hyperjob("ended", pods=1),
        elsewhere("waits"),
    )
    system.until_phase(project, "runs", "Running")
    system.until_phase(project, "ended", "Completed")
    system.until(
        project,
        "waits",
        lambda found: "in no line until a cluster" in found["status"]["state"]["message"],
        what="a message that no cluster can take it",
    )
    still = system.until_quiet(project)
    assert not system.writes_beside_a_later_one(project)
    system.controller.kill()
    system.controller.start()
    assert not system.writes_beside_a_later_one(project)
    assert system.writes() == still
    assert phase_of(system.hyperjob(project, "runs")) == "Running"


def test_a_failed_sub_job_ends_as_the_failed_condition(system, project):
    system.apply(project, hyperjob("bad", group="failing", replicas=1, pods=1))
    ended = system.until_phase(project, "bad", "Failed", "Completed")
    assert true_conditions(ended) == ["Failed", "Stalled"]
    assert "bad-failing-0" in ended["status"]["state"]["message"]


def true_conditions(ended):
    return [each["type"] for each in ended["status"]["conditions"] if each["status"] == "True"]


def webhook_answers(system):
    """Count the webhook's answers by path."""
    counts = {}
    for line in system.webhook.metrics().splitlines():
        if line.startswith("controller_runtime_webhook_requests_total{"):
            labels, _, value = line.rpartition(" ")
            counts[labels] = float(value)
    return counts
