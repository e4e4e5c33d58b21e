"""What Volcano's webhooks make of a vcjob, and the words in which they refuse it."""

from copy import deepcopy

import pytest

from hyperjob_sandbox.member.jobadmission import default_job, validate_create, validate_update
from tests.support.karmadarecording import RECORDED

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


def test_a_job_without_tasks_is_refused():
    assert validate_create(job(tasks=[]), queue=OPEN) == "No task specified in job spec"


def test_a_sound_job_is_admitted():
    assert validate_create(job(), queue=OPEN) == ""
    assert validate_create(RECORDED["pytorch"]["job"], queue=OPEN) == ""


@pytest.mark.parametrize(
    ("queue", "why"),
    [
        (None, 'unable to find job queue: queue.scheduling.volcano.sh "default" not found;'),
        (
            {"status": {}},
            "can only submit job to queue with state `Open`, queue `default` status is ``;",
        ),
        (
            {"status": {"state": "Closed"}},
            "can only submit job to queue with state `Open`, queue `default` status is `Closed`;",
        ),
    ],
)
def test_the_queue_must_be_open(queue, why):
    assert validate_create(job(), queue=queue) == why


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
        ({"tasks": [task(), task(name="b")]}, IMMUTABLE),
    ],
)
def test_only_sizes_and_priority_may_change(change, why):
    assert validate_update(job(**change), job()) == why
