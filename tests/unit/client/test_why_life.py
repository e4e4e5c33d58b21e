"""The causes of `why` from the life of a HyperJob: requests, silence, leaders, pods, the unseen."""

from datetime import datetime
from typing import Any

import pytest

from hyperjob.client.summary import read
from hyperjob.client.training import training_of
from hyperjob.client.why import life, pods
from hyperjob.client.why.evidence import Evidence, Outcome
from hyperjob.client.why.explain import _unseen, explain
from hyperjob_core.api.names import MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.kube.errors import from_status
from tests.unit.cli.objects import GPU, NOW, cluster, hyperjob, sub_job

AT = datetime.fromisoformat(NOW)
FORBIDDEN = from_status({"code": 403, "reason": "Forbidden", "message": "you may not"}, "GET")
BROKEN = from_status({"code": 500, "reason": "InternalError", "message": "broken"}, "GET")
GONE = from_status({"code": 404, "reason": "NotFound", "message": "gone"}, "GET")


def evidence(obj: Any, **more: Any) -> Evidence:
    given = {"lease": [], "lease_name": "ns/name", "queues": [], "clusters": [], **more}
    return Evidence(now=AT, summary=read(obj), **given)


def requested(phase: str, annotation: str, value: str, **status: Any) -> Evidence:
    return evidence(hyperjob(phase, metadata={"annotations": {annotation: value}}, **status))


ASKED = {
    "no request": (requested("Running", RESTART_REQUEST, ""), []),
    "an accepted restart": (
        requested("Running", RESTART_REQUEST, "t1 a b", requests={"restart": "t1"}),
        [],
    ),
    "a restart of another token": (
        requested("Running", RESTART_REQUEST, "t2 a", requests={"restart": "t1"}),
        [
            (
                "RequestNotTaken",
                "the controller has not accepted the requested restart (t2) yet",
                "kubectl hyperjob describe llm -n ml",
            )
        ],
    ),
    "a move after the end": (
        requested("Completed", MIGRATE_REQUEST, "t1 a"),
        [
            (
                "RequestRefused",
                "a migrate was requested, but a HyperJob that has ended never runs again",
                f"kubectl annotate hj llm -n ml {MIGRATE_REQUEST}-",
            )
        ],
    ),
}


@pytest.mark.parametrize(("found", "causes"), ASKED.values(), ids=ASKED.keys())
def test_a_request_that_is_not_accepted_is_a_cause(found: Evidence, causes: Any) -> None:
    assert [(each.reason, each.message, each.next) for each in life.asked(found)] == causes


FAILED = {
    "a sub-job with a message": (
        hyperjob("Degraded", sub_job(phase="Failed", cluster="east", reason="X", message="why")),
        [("X", "llm-trainer-0 is Failed on east: why", True)],
    ),
    "a sub-job with a reason alone": (
        hyperjob("Running", sub_job(phase="Failed", reason="X")),
        [("X", "llm-trainer-0 is Failed on no cluster: X", False)],
    ),
    "a sub-job without a reason": (
        hyperjob("Failed", sub_job(phase="Failed", cluster="east")),
        [
            (
                "JobsFailed",
                "llm-trainer-0 is Failed on east: its cluster gives no message",
                True,
            )
        ],
    ),
    "a HyperJob without a failed sub-job": (
        hyperjob("Failed", reason="Gone", message="it is gone"),
        [("Gone", "it is gone", True)],
    ),
    "a HyperJob without a message": (hyperjob("Failed"), [("Failed", "it has failed", True)]),
    "a sub-job that ended with the HyperJob": (
        hyperjob("Running", sub_job(phase="Failed", reason="EndedWithHyperJob")),
        [],
    ),
}


@pytest.mark.parametrize(("obj", "causes"), FAILED.values(), ids=FAILED.keys())
def test_each_failure_is_a_cause(obj: Any, causes: Any) -> None:
    found = life.failed(evidence(obj))
    assert [(each.reason, each.message, each.needs_help) for each in found] == causes


def training(updated: str, speed: str = "1") -> Any:
    return training_of({"step": 7, "updateTime": updated, "stepsPerSecond": speed})


@pytest.mark.parametrize(
    ("found", "silent"),
    [
        (training("2026-01-01T00:45:00Z"), False),
        (training("2026-01-01T00:44:59Z"), True),
        (training("2026-01-01T00:00:00Z", "0.01"), False),
        (training("2025-12-31T22:00:00Z", "0.01"), True),
        (training("2026-01-01T00:00:00Z", "0"), False),
        (None, False),
    ],
    ids=["15 minutes", "more", "75 steps", "more than 75 steps", "no speed", "no training"],
)
def test_a_training_is_silent_after_15_minutes_or_75_steps(found: Any, silent: bool) -> None:
    text = life._silence(found, AT)
    assert bool(text) is silent
    assert not silent or "it was at step 7" in text


def test_resources_that_cannot_be_read_are_named_once() -> None:
    obj = hyperjob("Queued")
    assert _unseen(evidence(obj, queues=GONE)) == []
    assert _unseen(evidence(obj, queues=FORBIDDEN, clusters=BROKEN)) == [
        "queues: you may not",
        "clusters: broken",
    ]
    both = evidence(obj, queues=FORBIDDEN, clusters=FORBIDDEN, events=BROKEN)
    assert _unseen(both) == [
        "queues, clusters: you have no right to read them (see docs/reference/cli.md#rights)",
        "events: broken",
    ]
    pod = evidence(obj, pod_errors={"llm-trainer-0": BROKEN})
    assert _unseen(pod) == ["pods of llm-trainer-0: broken"]


def running_pod(name: str, **state: Any) -> Any:
    return {
        "metadata": {"name": name},
        "status": {"phase": "Running", "containerStatuses": [{"state": state}]},
    }


def pod(name: str, phase: str, reason: str, message: str = "") -> Any:
    waiting = {"reason": reason, "message": message}
    made = running_pod(name, waiting=waiting)
    made["status"]["phase"] = phase
    return made


def troubles(*found: Any, **more: Any) -> list[tuple[str, str, str, bool]]:
    job = sub_job(phase="Running", cluster="east")
    given = evidence(hyperjob("Running", job), pods={"llm-trainer-0": list(found)}, **more)
    return [
        (str(each.reason), each.message, each.next, each.needs_help)
        for each in pods.troubled(given)
    ]


LOGS = "kubectl hyperjob logs llm -n ml --job llm-trainer-0"


def test_pods_that_do_not_start_or_fail_are_counted_by_reason() -> None:
    assert troubles(pod("a", "Pending", "ErrImagePull"), pod("b", "Pending", "ErrImagePull")) == [
        (
            "PodsPending",
            "pod east/a (and 1 more pods): ErrImagePull",
            "kubectl hyperjob tree llm -n ml --pods",
            True,
        )
    ]
    assert troubles(pod("a", "Running", "CrashLoopBackOff", "back-off")) == [
        (
            "PodsFailing",
            "pod east/a: CrashLoopBackOff: back-off",
            f"{LOGS} --previous --tail 50",
            True,
        )
    ]
    ended = running_pod("a", terminated={"exitCode": 1, "reason": "Error"})
    ended["status"]["phase"] = "Failed"
    assert troubles(ended) == [
        ("PodsFailing", "pod east/a: Error: exit code 1", f"{LOGS} --tail 50", False)
    ]
    assert troubles(pod("a", "Succeeded", "ErrImagePull"), running_pod("b", running={})) == []
    many = [pod(str(number), "Pending", f"R{number}") for number in range(5)]
    assert [each[1] for each in troubles(*many)] == [
        "pod east/0: R0",
        "pod east/1: R1",
        "pod east/2: R2",
    ]


def unschedulable(message: str) -> Any:
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    return {"metadata": {"name": "a"}, "status": {"phase": "Pending", "conditions": [condition]}}


@pytest.mark.parametrize(
    ("free", "message", "large"),
    [
        (8, f"Insufficient {GPU}", True),
        (7, f"Insufficient {GPU}", False),
        (8, "Insufficient cpu", False),
    ],
)
def test_a_pod_that_fits_on_no_node_of_a_cluster_with_room_is_too_large(
    free: int, message: str, large: bool
) -> None:
    ((_, text, _, help_),) = troubles(
        unschedulable(message), clusters=[cluster("west"), cluster("east", gpus=free)]
    )
    assert help_ is large
    note = f"; {free} {GPU} are free in the cluster, and probably no node has the 4 of one pod"
    assert (note in text) is large


@pytest.mark.parametrize(
    ("phase", "outcome"),
    [
        ("Running", Outcome.FINE),
        ("Completed", Outcome.FINE),
        ("Queued", Outcome.WAITS),
        ("Failed", Outcome.NEEDS_HELP),
    ],
)
def test_the_outcome_follows_phase_and_causes(phase: str, outcome: Outcome) -> None:
    assert explain(evidence(hyperjob(phase))).outcome is outcome
    deleting = {"deletionTimestamp": NOW}
    gone = explain(evidence(hyperjob("Running", metadata=deleting)))
    assert (gone.outcome, gone.headline) == (Outcome.WAITS, "is being deleted")
    new = explain(evidence(hyperjob()))
    assert new.headline == "has no status yet"
