"""The debug document of a HyperJob: everything a pass depends on, and nothing of its templates."""

from dataclasses import replace
from datetime import timedelta

import orjson

from hyperjob_controller.insight.explain import QueueState, explain
from hyperjob_engine.model.line import Wait
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.observed import QueueAdmission, QueueVerdict, Refusal
from hyperjob_engine.plan import plan
from hyperjob_engine.resources import parse_resources
from tests.unit.engine.builders import (
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


def test_a_gated_sub_job_shows_its_objects_and_the_opening_of_its_gate() -> None:
    look = observed(
        hyperjob(group(replicas=1), minAvailable=1, maxDomains=2),
        job("hj-trainer-0"),
        policy("hj-trainer-0", suspended=True),
        binding("hj-trainer-0", cluster="a", suspension={"dispatching": True}, gate="Closed"),
        clusters=(cluster("a", settling=parse_resources({"cpu": "2", GPU: "1", "pods": "0"})),),
        admission=QueueAdmission.VOLCANO_GLOBAL,
        queues={"default": "Open"},
    )
    made = document(look)
    assert made["hyperjob"] == {
        "namespace": "default",
        "name": "hj",
        "uid": "hj-uid",
        "generation": 1,
        "resourceVersion": "",
        "suspend": False,
        "minAvailable": 1,
        "maxDomains": 2,
        "state": None,
        "gang": None,
    }
    assert (made["now"], made["queueAdmission"], made["queues"], made["verdict"]) == (
        "2026-01-02T03:04:05Z",
        "volcano-global",
        {"default": "Open"},
        None,
    )
    assert made["jobs"] == [
        {
            "name": "hj-trainer-0",
            "cluster": "a",
            "phase": "Unknown",
            "attempt": 0,
            "told": {"phase": "Placed", "reason": "Dispatching", "message": "is being dispatched"},
            "job": {
                "uid": "uid-hj-trainer-0",
                "ownership": "Ours",
                "owner": "",
                "attempt": 0,
                "queue": "",
                "deleting": False,
            },
            "policy": {
                "clusters": ["a"],
                "ownership": "Ours",
                "attempt": 0,
                "suspended": True,
                "deleting": False,
            },
            "binding": {
                "name": "hj-trainer-0-job",
                "cluster": "a",
                "gate": "Closed",
                "schedulingSuspended": False,
                "dispatchingSuspended": True,
                "applied": False,
                "applyError": "",
                "unscheduled": "",
            },
        }
    ]
    assert made["clusters"][0]["settling"] == [f"1 {GPU}", "2 cpu"]
    assert made["plan"]["actions"] == [
        {
            "action": "OpenGate",
            "name": "hj-trainer-0",
            "binding": "hj-trainer-0-job",
            "binding_uid": None,
            "policy_uid": "pp-hj-trainer-0",
            "release_scheduling": False,
        }
    ]
    assert made["plan"]["waitsForCapacity"] is False
    assert made["plan"]["lookAgainAfterSeconds"] is None
    assert made["capacityChangesInSeconds"] is None


def test_an_admitted_hyperjob_shows_its_verdict_and_the_time_of_the_nodes() -> None:
    wait = Wait(queue="q", place=1, length=2, message="why")
    verdict = QueueVerdict(admitted=frozenset({"b", "a"}), reason="QueueLimitReached", wait=wait)
    nodes = MemberView(version=1, as_of=NOW, nodes=())
    look = replace(
        observed(hyperjob(group(replicas=1)), clusters=(cluster("a", view=nodes),)),
        verdict=verdict,
    )
    made = document(look)
    assert made["verdict"] == {
        "admitted": ["a", "b"],
        "reason": "QueueLimitReached",
        "message": "why",
    }
    assert made["clusters"][0]["nodesAsOf"] == "2026-01-02T03:04:05Z"
