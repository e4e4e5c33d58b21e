"""What Volcano's webhooks make of a vcjob, and the words in which they refuse it."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from hyperjob_sandbox.member.jobadmission import default_job, validate_create, validate_update

RECORDED = json.loads((Path(__file__).parent / "data" / "karmada.json").read_text())
OPEN = {"metadata": {"name": "default"}, "status": {"state": "Open"}}


def job(**spec):
    container = {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    task = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    return {"metadata": {"name": "j"}, "spec": {"queue": "default", "tasks": [task], **spec}}


def task(**more):
    return {**deepcopy(job()["spec"]["tasks"][0]), **more}


def test_defaulting_gives_the_recorded_job():
    recorded = RECORDED["gated"]["template"]
    raw = deepcopy(recorded)
    for field in ("maxRetry", "minAvailable", "queue", "schedulerName"):
        raw["spec"].pop(field)
    for each in raw["spec"]["tasks"]:
        each.pop("maxRetry")
        each.pop("minAvailable")
    defaulted = default_job(raw)
    assert defaulted == recorded
    assert default_job(defaulted) == defaulted


@pytest.mark.parametrize(
    ("plugins", "completed"),
    [
        (None, None),
        ({"env": []}, {"env": []}),
        ({"pytorch": ["--port=1"]}, {"pytorch": ["--port=1"], "svc": []}),
        ({"mpi": []}, {"mpi": [], "svc": [], "ssh": []}),
        ({"mpi": [], "svc": ["--x"]}, {"mpi": [], "svc": ["--x"], "ssh": []}),
    ],
)
def test_plugins_bring_the_plugins_they_need(plugins, completed):
    spec = {} if plugins is None else {"plugins": plugins}
    assert default_job(job(**spec))["spec"].get("plugins") == completed


def test_unnamed_tasks_partitions_and_host_networks_are_defaulted():
    tasks = [
        {"replicas": 1, "template": {"spec": {"hostNetwork": True}}},
        {
            "replicas": 8,
            "partitionPolicy": {"minPartitions": 2, "partitionSize": 2, "totalPartitions": 4},
        },
    ]
    spec = default_job(job(tasks=tasks))["spec"]
    assert [each["name"] for each in spec["tasks"]] == ["default0", "default1"]
    assert spec["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert [each["minAvailable"] for each in spec["tasks"]] == [1, 4]
    assert spec["minAvailable"] == 5


def container(requests=None, limits=None, **more):
    resources = {"requests": requests or {}, "limits": limits or {}}
    pod = {"containers": [{"name": "c", "image": "x", "resources": resources, **more}]}
    return [task(template={"spec": pod})]


LIMITS = "spec.task[0].template.spec.containers[0].resources."
REFUSALS = {
    "no task": (job(tasks=[]), "No task specified in job spec"),
    "a GPU request without limit": (
        job(tasks=container(requests={"nvidia.com/gpu": 1})),
        f"{LIMITS}limits: Required value: Limit must be set for non overcommitable resources.",
    ),
    "a GPU limit above its request": (
        job(tasks=container(requests={"nvidia.com/gpu": 1}, limits={"nvidia.com/gpu": 2})),
        f'{LIMITS}requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2.',
    ),
    "more cpu than its limit": (
        job(tasks=container(requests={"cpu": "2"}, limits={"cpu": "1"})),
        f'{LIMITS}requests: Invalid value: "2": must be less than or equal to cpu limit of 1.',
    ),
    "a task twice": (job(tasks=[task(), task()]), "duplicated task name worker;"),
    "a task's minimum above its size": (
        job(tasks=[task(minAvailable=3)]),
        "'minAvailable' is greater than 'replicas' in task: worker, job: j;",
    ),
    "the job's minimum above its size": (
        job(minAvailable=3),
        "job 'minAvailable' should not be greater than total replicas in tasks;",
    ),
    "an unknown plugin": (job(plugins={"magic": []}), "unable to find job plugin: magic;"),
}


@pytest.mark.parametrize("case", sorted(REFUSALS))
def test_a_refusal_uses_volcanos_words(case):
    refused, why = REFUSALS[case]
    assert validate_create(refused, queue=OPEN) == why


def test_a_sound_job_is_admitted():
    assert validate_create(job(), queue=OPEN) == ""
    assert validate_create(RECORDED["pytorch"]["job"], queue=OPEN) == ""


@pytest.mark.parametrize(
    ("queue", "children", "why"),
    [
        (None, 0, 'unable to find job queue: queue.scheduling.volcano.sh "default" not found;'),
        (
            {"status": {}},
            0,
            "can only submit job to queue with state `Open`, queue `default` status is ``;",
        ),
        (
            {"status": {"state": "Closed"}},
            0,
            "can only submit job to queue with state `Open`, queue `default` status is `Closed`;",
        ),
        (OPEN, 2, "can only submit job to leaf queue, queue `default` has 2 child queues;"),
    ],
)
def test_the_queue_must_be_an_open_leaf(queue, children, why):
    assert validate_create(job(), queue=queue, child_queues=children) == why


IMMUTABLE = (
    "job updates may not change fields other than `minAvailable`, "
    "`tasks[*].replicas under spec` and `PriorityClassName`"
)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"minAvailable": 1}, ""),
        ({"priorityClassName": "high"}, ""),
        ({"tasks": [task(replicas=5, minAvailable=1)]}, ""),
        ({"queue": "other"}, IMMUTABLE),
        ({"maxRetry": 5}, IMMUTABLE),
        ({"tasks": [task(name="other")]}, IMMUTABLE),
        ({"tasks": [task(), task(name="b")]}, "job updates may not add or remove tasks"),
        ({"minAvailable": 9}, "job 'minAvailable' must not be greater than total replicas"),
        (
            {"tasks": [task(minAvailable=3)]},
            "'minAvailable' must be <= 'replicas' in task: worker",
        ),
    ],
)
def test_only_sizes_and_priority_may_change(change, why):
    assert validate_update(job(**change), job()) == why
