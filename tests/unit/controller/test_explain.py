"""The debug document of a HyperJob: everything a pass depends on, and nothing of its templates."""

from datetime import timedelta

import orjson

from hyperjob_controller.insight.explain import QueueState, explain
from hyperjob_engine.model.observed import QueueAdmission, Refusal
from hyperjob_engine.plan import plan
from tests.unit.controller.builders import (
    GPU,
    NOW,
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    observed,
    policy,
)

QUEUE = QueueState(failures=2, due_in=1.5)


def document(look: object) -> Object:
    made = explain(look, plan(look), queue=QUEUE, reserved={"a": {GPU: 8 * 10**9}})  # type: ignore[arg-type] # an Observed
    read: Object = orjson.loads(orjson.dumps(made))
    return read


def test_a_waiting_hyperjob_shows_why_and_for_what_it_waits() -> None:
    look = observed(
        hyperjob(group(replicas=2, gpus=8)),
        clusters=(cluster("a", 8), cluster("b", unusable="is not Ready")),
        refusals={
            "hj-trainer-0": Refusal(
                reason="Invalid", message="no", retry_at=NOW + timedelta(seconds=5)
            )
        },
        capacity_changes_in=timedelta(seconds=30),
    )
    told = document(look)
    assert told["hyperjob"]["name"] == "hj"
    assert told["plan"]["waitsForCapacity"] is True
    assert told["plan"]["status"]["state"]["phase"] == "Pending"
    assert told["plan"]["actions"] == []
    assert told["clusters"][0]["free"][0] == f"8 {GPU}"
    assert told["clusters"][0]["reserved"] == [f"8 {GPU}"]
    assert told["clusters"][1] | {"free": [], "allocatable": []} == {
        "name": "b",
        "usable": False,
        "reason": "is not Ready",
        "free": [],
        "allocatable": [],
        "reserved": [],
        "settling": [],
    }
    assert told["refusals"]["hj-trainer-0"]["retryAt"] == "2026-01-02T03:04:10Z"
    assert told["capacityChangesInSeconds"] == 30
    assert told["workQueue"] == {"failures": 2, "dueInSeconds": 1.5}


def test_planned_actions_are_named_without_what_they_carry() -> None:
    raw = hyperjob(group(replicas=1))
    task = raw["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]
    container = task["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "TOKEN", "value": "hush"}]
    told = document(observed(raw, clusters=(cluster("a"),)))
    action = told["plan"]["actions"][0]
    assert (action["action"], action["name"], action["cluster"]) == (
        "CreateChild",
        "hj-trainer-0",
        "a",
    )
    assert "hush" not in orjson.dumps(told).decode()


def test_a_gated_sub_job_shows_its_objects() -> None:
    look = observed(
        hyperjob(group(replicas=1)),
        job("hj-trainer-0"),
        policy("hj-trainer-0"),
        binding("hj-trainer-0"),
        clusters=(cluster("a"),),
        admission=QueueAdmission.VOLCANO_GLOBAL,
    )
    told = document(look)["jobs"][0]
    assert told["name"] == "hj-trainer-0"
    assert told["job"]["ownership"] == "Ours"
    assert told["binding"]["name"] == "hj-trainer-0-job"
    assert told["told"]["phase"]
