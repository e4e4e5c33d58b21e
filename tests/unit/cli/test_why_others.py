"""Why a HyperJob is not running when others than HyperJob are the cause: webhooks, people, time."""

from datetime import datetime, timedelta

import pytest

from hyperjob.client.why.explain import explain
from tests.unit.cli.objects import CREATED, NOW, Object, binding, hyperjob, pod, sub_job
from tests.unit.cli.test_why import FINE, HELD, HELP, WAITS, Case, evidence, waiting

NO_IMAGE = {
    "name": "fetch",
    "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}},
}
REFUSED = binding(
    "llm-trainer-0",
    cluster="east",
    conditions=[{"type": "FullyApplied", "status": "False", "reason": "FullyAppliedFailed"}],
    aggregatedStatus=[
        {
            "clusterName": "east",
            "applied": False,
            "appliedMessage": 'admission webhook "v.volcano.sh" denied the request: limit',
        }
    ],
)
CHANGED = [
    {"time": CREATED},
    {"time": "2026-01-01T00:59:58Z"},
    {"time": NOW, "subresource": "status"},
]

CASES = {
    "a deletion that waits for its sub-jobs": Case(
        hyperjob(
            "Running",
            metadata={
                "deletionTimestamp": "2026-01-01T00:50:00Z",
                "finalizers": ["foregroundDeletion"],
            },
        ),
        WAITS,
        "BeingDeleted",
        "held by finalizer foregroundDeletion: its sub-jobs go first",
        "kubectl hyperjob tree llm -n ml",
    ),
    "the spec was changed a moment ago": Case(
        hyperjob("Running", generation=3, metadata={"managedFields": CHANGED}),
        WAITS,
        "NotObserved",
        "the status is about generation 1 (changed 2s ago)",
        "preflight",
        {"lease": []},
    ),
    "its binding is suspended by somebody else": Case(
        hyperjob("Starting", waiting("Dispatching", phase="Placed", cluster="east")),
        HELP,
        "SchedulingSuspended",
        "ResourceBinding llm-trainer-0-job has spec.suspension.scheduling",
        "preflight",
        {"bindings": [HELD]},
    ),
    "its policy is suspended by somebody else": Case(
        hyperjob("Starting", waiting("DispatchingSuspended", "suspends", phase="Placed")),
        HELP,
        "DispatchingSuspended",
        "llm-trainer-0: suspends",
        "kubectl get propagationpolicy llm-trainer-0 -n ml -o yaml",
    ),
    "a member refuses what was stored without the webhook": Case(
        hyperjob("Starting", waiting("RefusedByCluster", phase="Placed", cluster="east")),
        HELP,
        "RefusedByCluster",
        "stored without defaults",
        "kubectl hyperjob preflight",
        {"bindings": [REFUSED], "lacks_defaults": True},
    ),
    "a member refuses what the webhook has seen": Case(
        hyperjob("Starting", waiting("RefusedByCluster", phase="Placed", cluster="east")),
        HELP,
        "RefusedByCluster",
        "llm-trainer-0 on east: cluster east refuses it: admission",
        "kubectl get works -n karmada-es-east",
        {"bindings": [REFUSED]},
    ),
    "an image of an init container cannot be had": Case(
        hyperjob("Starting", waiting("PodsPending", phase="Pending", cluster="east")),
        HELP,
        "PodsPending",
        "pod east/p-0: ErrImagePull: no such image",
        "--pods",
        {"pods": {"llm-trainer-0": [pod("p-0", initContainerStatuses=[NO_IMAGE])]}},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_first_cause_is_the_answer(case: Case) -> None:
    answer = explain(evidence(case.obj, **case.more))
    first = answer.causes[0]
    assert (first.reason, answer.outcome) == (case.reason, case.outcome)
    assert case.message in first.message
    assert case.next in first.next


@pytest.mark.parametrize("reason", ["WaitingForQueue", "DispatcherSilent"])
def test_what_volcano_global_holds_in_its_queue_is_nobodys_suspension(reason: str) -> None:
    job = waiting(reason, phase="Queued")
    causes = explain(evidence(hyperjob("Queued", job), bindings=[HELD])).causes
    assert "SchedulingSuspended" not in {cause.reason for cause in causes}


def test_a_deletion_is_not_blamed_on_a_controller_that_need_not_look() -> None:
    metadata = {"deletionTimestamp": "2026-01-01T00:50:00Z", "finalizers": ["example.com/quota"]}
    obj = hyperjob("Running", generation=2, metadata=metadata)
    causes = explain(evidence(obj, lease=[])).causes
    assert [cause.reason for cause in causes] == ["BeingDeleted"]


def test_what_lacks_defaults_and_runs_is_fine() -> None:
    assert explain(evidence(hyperjob("Running"), lacks_defaults=True)).outcome is FINE


STALL = {"since": "2026-01-01T00:59:00Z", "step": 7, "message": "llm-trainer-0 made no step"}


@pytest.mark.parametrize(
    ("minutes", "stall", "message"),
    [
        (14, {}, ""),
        (16, {}, "the program has reported no progress for 16m: it was at step 7"),
        (1, STALL, "llm-trainer-0 made no step"),
    ],
    ids=["a silence that may be usual", "a very long silence", "steps that the controller misses"],
)
def test_programs_without_steps_are_a_reason_while_it_runs(
    minutes: int, stall: Object, message: str
) -> None:
    updated = (datetime.fromisoformat(NOW) - timedelta(minutes=minutes)).isoformat()
    training = {"step": 7, "stepsPerSecond": "2", "updateTime": updated}
    job = sub_job(phase="Running", cluster="east")
    answer = explain(evidence(hyperjob("Running", job, training=training, stall=stall)))
    assert [cause.reason for cause in answer.causes] == (["NoProgress"] if message else [])
    assert answer.outcome == (HELP if message else FINE)
    assert all(message in cause.message for cause in answer.causes)
