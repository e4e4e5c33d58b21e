"""Volcano Global's dispatcher and webhook, quirks included."""

import base64
import json
from collections import Counter

import pytest

from hyperjob_core.kube.informer import Store
from hyperjob_sandbox.karmada import webhooks
from hyperjob_sandbox.karmada.volcano_global import Candidate, candidate_of, dispatch

GPU = "nvidia.com/gpu"
TOTAL = {GPU: 16}


def candidate(key, gpus=0, *, queue="default", priority=0, suspended=True, created="1"):
    request = Counter({GPU: gpus})
    return Candidate(key, queue, priority, created, request, suspended)


def queue(priority=0, capability=None):
    spec = {"priority": priority}
    if capability is not None:
        spec["capability"] = {GPU: f"{capability}n"}
    return {"spec": spec}


@pytest.mark.parametrize(
    ("candidates", "queues", "released"),
    [
        ([], {"default": queue()}, []),
        ([candidate("a")], {"default": queue()}, ["a"]),
        ([candidate("a", suspended=False)], {"default": queue()}, []),
        ([candidate("a", queue="none")], {"default": queue()}, []),
        (
            [candidate("late", created="2"), candidate("early")],
            {"default": queue()},
            ["early", "late"],
        ),
        (
            [candidate("low"), candidate("high", priority=9, created="2")],
            {"default": queue()},
            ["high", "low"],
        ),
        (
            [candidate("a", queue="x"), candidate("b", queue="y"), candidate("c", queue="x")],
            {"x": queue(), "y": queue(priority=5)},
            ["b", "a", "c"],
        ),
    ],
)
def test_queues_take_turns_by_priority_and_jobs_by_priority_and_age(candidates, queues, released):
    assert dispatch(candidates, queues, TOTAL) == released


def test_what_is_released_counts_against_the_capability_and_smaller_jobs_pass():
    queues = {"default": queue(capability=8)}
    held = candidate("held", 4, suspended=False)
    waiting = [candidate("big", 6), candidate("small", 4, created="2")]
    assert dispatch([held, *waiting], queues, TOTAL) == ["small"]


def test_the_clusters_together_are_the_limit_without_a_capability():
    queues = {"default": queue()}
    assert dispatch([candidate("a", 16), candidate("b", 1)], queues, TOTAL) == ["a"]


def binding(**spec):
    resource = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "j",
        "namespace": "default",
    }
    return {
        "metadata": {"name": "j-job", "namespace": "default", "creationTimestamp": "1"},
        "spec": {"resource": resource, **spec},
    }


def test_only_replicas_count_components_are_nothing():
    job = {"spec": {"queue": "q"}}
    counted = candidate_of(
        binding(replicas=4, replicaRequirements={"resourceRequest": {GPU: "1500m"}}),
        job=job,
        priority=3,
    )
    assert counted.request == {GPU: 6 * 10**9}
    assert (counted.queue, counted.priority, counted.suspended) == ("q", 3, False)
    blind = candidate_of(
        binding(components=[{"name": "w", "replicas": 4}], suspension={"scheduling": True}),
        job={"spec": {}},
        priority=0,
    )
    assert not blind.request
    assert (blind.queue, blind.suspended) == ("default", True)


def operations(response):
    assert response["allowed"]
    patch = response.get("patch")
    return json.loads(base64.b64decode(patch)) if patch else []


REPLACED = [{"op": "add", "path": "/spec/suspension", "value": {"scheduling": True}}]


@pytest.mark.parametrize(
    ("suspension", "patch"),
    [
        ({}, REPLACED),
        ({"suspension": {"dispatching": True}}, REPLACED),
        ({"suspension": {"scheduling": False}}, REPLACED),
        ({"suspension": {"dispatching": True, "scheduling": True}}, []),
    ],
)
def test_the_webhook_replaces_the_whole_suspension_unless_scheduling_is_suspended(
    suspension, patch
):
    assert operations(webhooks.mutate_binding({"object": binding(**suspension)})) == patch


def test_the_webhook_leaves_what_is_no_workload_alone():
    request = {"object": binding()}
    request["object"]["spec"]["resource"]["kind"] = "ConfigMap"
    assert operations(webhooks.mutate_binding(request)) == []


def test_a_review_is_answered_under_its_uid():
    review = {"request": {"uid": "u", "object": binding()}}
    answered = webhooks.answer(review, webhooks.mutate_binding)
    assert answered["response"]["uid"] == "u"
    assert answered["kind"] == "AdmissionReview"


def test_a_refused_job_is_told_why():
    decide = webhooks.validate_job(Store())
    request = {"operation": "CREATE", "object": {"metadata": {"name": "j"}, "spec": {}}}
    assert decide(request) == {
        "allowed": False,
        "status": {"message": "No task specified in job spec"},
    }
