"""The pods and PodGroups of a vcjob."""

from copy import deepcopy

import pytest

from hyperjob_sandbox.member import jobpods, resources
from tests.support.karmadarecording import RECORDED

TORCH = RECORDED["pytorch"]["job"]


def variables(job, task, index):
    pod = jobpods.build_pod(job, job["spec"]["tasks"][task], index)
    return {each["name"]: each["value"] for each in pod["spec"]["containers"][0].get("env", [])}


def test_a_pod_carries_volcanos_marks_and_belongs_to_its_job():
    pod = jobpods.build_pod(TORCH, TORCH["spec"]["tasks"][1], 1)
    meta = pod["metadata"]
    assert meta["name"] == "hetero-trainer-a-0-worker-1"
    assert meta["labels"] == {
        "volcano.sh/job-name": "hetero-trainer-a-0",
        "volcano.sh/job-namespace": "default",
        "volcano.sh/queue-name": "default",
        "volcano.sh/task-index": "1",
        "volcano.sh/task-spec": "worker",
    }
    uid = TORCH["metadata"]["uid"]
    assert meta["annotations"]["scheduling.k8s.io/group-name"] == f"hetero-trainer-a-0-{uid}"
    assert meta["annotations"]["volcano.sh/job-version"] == "0"
    assert meta["ownerReferences"][0]["uid"] == uid
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["spec"]["hostname"] == meta["name"]
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("task", "index", "rank"), [(0, 0, "0"), (1, 0, "1"), (1, 1, "2")], ids=str
)
def test_the_pytorch_plugin_numbers_all_pods_behind_the_master(task, index, rank):
    assert variables(TORCH, task, index) == {
        "MASTER_ADDR": "hetero-trainer-a-0-master-0.hetero-trainer-a-0",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "3",
        "RANK": rank,
    }


def test_the_mpi_plugin_tells_the_master_its_hosts():
    job = deepcopy(TORCH)
    job["spec"]["plugins"] = {"mpi": ["--master=master", "--worker=worker"], "svc": []}
    hosts = [f"hetero-trainer-a-0-worker-{index}.hetero-trainer-a-0" for index in range(2)]
    assert variables(job, 0, 0) == {"MPI_HOST": ",".join(hosts)}
    assert variables(job, 1, 0) == {}


def test_a_variable_of_the_template_wins_over_a_plugins():
    job = deepcopy(TORCH)
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "RANK", "value": "mine"}
    ]
    assert variables(job, 0, 0)["RANK"] == "mine"


def test_a_pod_group_asks_for_the_smallest_gang():
    group = jobpods.build_pod_group(RECORDED["gated"]["template"])
    assert group["spec"] == {
        "minMember": 24,
        "minResources": {"cpu": "2", "nvidia.com/gpu": "24"},
        "minTaskMember": {"master": 1, "worker": 23},
        "queue": "default",
    }


def test_a_gang_smaller_than_its_tasks_counts_the_first_pods():
    job = deepcopy(RECORDED["gated"]["template"])
    job["spec"]["minAvailable"] = 5
    assert resources.wire(jobpods.min_resources(job)) == {"cpu": "2", "nvidia.com/gpu": "5"}


def test_the_svc_plugin_names_the_hosts_of_pods():
    pod = jobpods.build_pod(TORCH, TORCH["spec"]["tasks"][0], 0)
    name = pod["metadata"]["name"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == (name, "hetero-trainer-a-0")
    plain = RECORDED["completes"]["job"]
    assert "subdomain" not in jobpods.build_pod(plain, plain["spec"]["tasks"][0], 0)["spec"]
