"""Why a HyperJob is not running: its status with a command, and what only others know."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from hyperjob.client.summary import read
from hyperjob.client.why.evidence import Evidence, Outcome
from hyperjob.client.why.explain import explain
from hyperjob_core.api.field import make_status
from hyperjob_core.kube.errors import Forbidden, from_status
from hyperjob_engine.reasons.pods import PodsRefused
from hyperjob_engine.reasons.reason import NEVER_RUNS
from tests.unit.cli.objects import CREATED, NOW, Object, binding, hyperjob, pod, sub_job

FORBIDDEN = Forbidden(make_status(403, "you may not"))
BROKEN = from_status({"code": 500, "reason": "InternalError", "message": "broken"}, "GET")
GONE = from_status({"code": 404, "reason": "NotFound", "message": "gone"}, "GET")
FINE, WAITS, HELP = Outcome.FINE, Outcome.WAITS, Outcome.NEEDS_HELP
LOGS = "kubectl hyperjob logs llm -n ml --job llm-trainer-0 --tail 50"
SEE = "kubectl describe hj llm -n ml"
TREE = "kubectl hyperjob tree llm -n ml --pods"
PREFLIGHT = "kubectl hyperjob preflight"
RIGHTS = "docs/reference/cli.md#rights"


def lease(renewed: str = NOW, holder: str = "controller-0") -> Object:
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    return {"metadata": {"name": "hyperjob-controller"}, "spec": spec}


def evidence(obj: Object, **more: Any) -> Evidence:
    now = datetime.fromisoformat(NOW).astimezone(UTC)
    return Evidence(now=now, summary=read(obj), **{"lease": [lease()], **more})


def waiting(reason: str, message: str = "", *, phase: str = "Queued", **fields: Any) -> Object:
    return sub_job(phase=phase, reason=reason, message=message, **fields)


def starting(reason: str, message: str = "", **fields: Any) -> Object:
    job = waiting(reason, message, **{"phase": "Placed", "cluster": "east", **fields})
    return hyperjob("Starting", job, reason=reason, message=f"0 of 1 run; {message}")


def vcjob(created: str = NOW) -> Object:
    return {"metadata": {"name": "llm-trainer-0", "creationTimestamp": created}}


@dataclass(frozen=True)
class Case:
    obj: Object
    outcome: Outcome
    reason: str
    message: str
    next: str = ""
    more: dict[str, Any] = field(default_factory=dict)


OLD, LATE = "2026-01-01T00:50:00Z", datetime.fromisoformat("2026-01-01T00:51:00Z")
REFUSED = {"llm-trainer-0": PodsRefused("exceeded quota: team", LATE, LATE)}
CHANGED = [
    {"time": CREATED},
    {"time": "2026-01-01T00:59:58Z"},
    {"time": NOW, "subresource": "status"},
]
PENDING = starting("PodsPending", "0 of 2 pods run", phase="Pending")

STATUS = {
    "no cluster has room": Case(
        hyperjob(
            "Queued",
            waiting("WaitingForQueue", "waits for queue default: needs 64"),
            reason="InsufficientCapacity",
            message="first of 3 in queue default: llm-trainer-0 needs 64",
        ),
        WAITS,
        "InsufficientCapacity",
        "first of 3 in queue default: llm-trainer-0 needs 64",
        "kubectl hyperjob top",
    ),
    "its queue has others before it": Case(
        hyperjob("Queued", waiting("WaitingForQueue"), reason="WaitingForQueue", message="waits"),
        WAITS,
        "WaitingForQueue",
        "waits",
        "kubectl hyperjob top --by queue",
    ),
    "its queue is closed": Case(
        hyperjob("Queued", waiting("WaitingForQueue"), queue="a", reason="QueueNotOpen"),
        HELP,
        "QueueNotOpen",
        "it is Queued",
        "kubectl hyperjob queue open a",
    ),
    "a name is taken": Case(
        hyperjob(
            "Pending",
            waiting("NameConflict", "belongs to Deployment x", phase="Unplaced"),
            reason="NameConflict",
            message="llm-trainer-0 belongs to Deployment x",
        ),
        HELP,
        "NameConflict",
        "llm-trainer-0 belongs to Deployment x",
        "kubectl get jobs.batch.volcano.sh,propagationpolicies -n ml --show-labels",
    ),
    "somebody suspended it": Case(
        hyperjob("Suspended", spec={"suspend": True}, reason="Suspended", message="suspended"),
        HELP,
        "Suspended",
        "suspended",
        "kubectl hyperjob resume llm -n ml",
    ),
    "the controller failed at it, while its sub-jobs run": Case(
        hyperjob(
            "Running",
            sub_job(phase="Running", cluster="east"),
            reason="InternalError",
            message="the controller failed at this HyperJob",
        ),
        HELP,
        "InternalError",
        "the controller failed at this HyperJob",
        "kubectl --context host logs -n karmada-system deploy/hyperjob-controller | grep incident",
    ),
    "its programs make no steps": Case(
        hyperjob("Running", reason="NoProgress", message="1 of 1 runs; it reports no step"),
        HELP,
        "NoProgress",
        "1 of 1 runs; it reports no step",
        "kubectl hyperjob logs llm -n ml --since 15m",
    ),
    "the gang is incomplete": Case(
        starting("WaitingForGang", "admitted, waits for the rest of the gang"),
        WAITS,
        "WaitingForGang",
        "llm-trainer-0: admitted, waits for the rest of the gang",
        "kubectl hyperjob tree llm -n ml -w",
    ),
    "Karmada finds no cluster": Case(
        starting("NoClusterFit", "Karmada: none fits"),
        WAITS,
        "NoClusterFit",
        "llm-trainer-0: Karmada: none fits",
        "kubectl describe resourcebinding llm-trainer-0-job -n ml",
    ),
    "its member refuses it": Case(
        starting("RefusedByCluster", "cluster east refuses it: admission webhook says no"),
        HELP,
        "RefusedByCluster",
        "llm-trainer-0: cluster east refuses it: admission webhook says no",
        "kubectl get works -n karmada-es-east -o wide",
    ),
    "its policy is suspended by somebody else": Case(
        starting("DispatchingSuspended"),
        HELP,
        "DispatchingSuspended",
        "llm-trainer-0: DispatchingSuspended",
        "kubectl get propagationpolicy llm-trainer-0 -n ml -o yaml",
    ),
    "its cluster is lost while it runs": Case(
        hyperjob(
            "Running",
            waiting(
                "ClusterNotReady", "cluster east is not Ready", phase="Running", cluster="east"
            ),
            reason="ClusterNotReady",
        ),
        HELP,
        "ClusterNotReady",
        "llm-trainer-0: cluster east is not Ready",
        "kubectl describe cluster east",
    ),
    "a reason that no rule knows": Case(
        hyperjob("Restarting", reason="Backoff", message="waits 30s before attempt 2"),
        WAITS,
        "Backoff",
        "waits 30s before attempt 2",
        SEE,
    ),
    "a failed HyperJob without a failed sub-job": Case(
        hyperjob("Failed", reason="Gone", message="it is gone"), HELP, "Gone", "it is gone", SEE
    ),
}

AROUND = {
    "no controller has ever looked, and none is there": Case(
        hyperjob(),
        HELP,
        "NoController",
        "there is no Lease karmada-system/hyperjob-controller: no controller has led there; check"
        " in the host cluster that hyperjob-controller runs",
        "kubectl get lease -n karmada-system hyperjob-controller -o yaml",
        {"lease": []},
    ),
    "nobody has looked yet, while somebody leads": Case(
        hyperjob(),
        WAITS,
        "NotObserved",
        "no controller has observed it: it has no status (created 60m ago)",
        PREFLIGHT,
    ),
    "nobody has looked yet, and the Lease may not be read": Case(
        hyperjob(),
        HELP,
        "NotObserved",
        "no controller has observed it: it has no status (created 60m ago)",
        PREFLIGHT,
        {"lease": FORBIDDEN},
    ),
    "the status is about an older spec": Case(
        hyperjob("Running", generation=3),
        WAITS,
        "NotObserved",
        "no controller has observed generation 3; the status is about generation 1 (changed 60m"
        " ago)",
        PREFLIGHT,
    ),
    "the spec was changed a moment ago": Case(
        hyperjob("Running", generation=3, metadata={"managedFields": CHANGED}),
        WAITS,
        "NotObserved",
        "no controller has observed generation 3; the status is about generation 1 (changed 2s"
        " ago)",
        PREFLIGHT,
        {"lease": []},
    ),
    "the controller stopped renewing its Lease": Case(
        hyperjob("Running", generation=3),
        HELP,
        "NoController",
        "no controller renews Lease karmada-system/hyperjob-controller; controller-0 renewed it 30m"
        " ago: check in the host cluster that hyperjob-controller runs",
        "kubectl get lease -n karmada-system hyperjob-controller -o yaml",
        {"lease": [lease("2026-01-01T00:30:00Z")]},
    ),
    "a deletion that nobody finishes": Case(
        hyperjob(
            "Running",
            metadata={"deletionTimestamp": OLD, "finalizers": ["example.com/quota"]},
            generation=2,
        ),
        HELP,
        "BeingDeleted",
        "is being deleted since 10m, held by finalizer example.com/quota; the controller that set"
        " it has to remove it",
        "kubectl get hj llm -n ml -o yaml",
        {"lease": []},
    ),
    "a deletion that waits for its sub-jobs": Case(
        hyperjob(
            "Running", metadata={"deletionTimestamp": OLD, "finalizers": ["foregroundDeletion"]}
        ),
        WAITS,
        "BeingDeleted",
        "is being deleted since 10m, held by finalizer foregroundDeletion",
        "kubectl get hj llm -n ml -o yaml",
    ),
    "Karmada makes no binding for long, since a webhook may not answer": Case(
        starting("Dispatching", "waits for Karmada"),
        HELP,
        "NoBinding",
        "llm-trainer-0: Karmada has not created a ResourceBinding for its vcjob for 10m; check that"
        " Karmada's controller manager and HyperJob's webhook run",
        PREFLIGHT,
        {"vcjobs": [vcjob(OLD)]},
    ),
    "Karmada has not made a binding yet": Case(
        starting("Dispatching", "waits for Karmada"),
        WAITS,
        "Dispatching",
        "llm-trainer-0: waits for Karmada",
        "kubectl describe resourcebinding llm-trainer-0-job -n ml",
        {"vcjobs": [vcjob()]},
    ),
    "Karmada made a binding": Case(
        starting("Dispatching", "is being dispatched"),
        WAITS,
        "Dispatching",
        "llm-trainer-0: is being dispatched",
        "kubectl describe resourcebinding llm-trainer-0-job -n ml",
        {"vcjobs": [vcjob(OLD)], "bindings": [binding("llm-trainer-0")]},
    ),
    "the member refuses the pods, and the controller does not read its Events": Case(
        PENDING,
        HELP,
        "PodsRefused",
        "llm-trainer-0: cluster east refuses its pods: exceeded quota: team",
        SEE,
        {
            "vcjobs": [vcjob(OLD)],
            "bindings": [binding("llm-trainer-0")],
            "pods_refused": REFUSED,
        },
    ),
    "the member refused the pods of an earlier vcjob": Case(
        PENDING,
        WAITS,
        "PodsPending",
        "llm-trainer-0: 0 of 2 pods run",
        TREE,
        {"vcjobs": [vcjob()], "pods_refused": REFUSED},
    ),
    "a sub-job failed": Case(
        hyperjob("Failed", sub_job(phase="Failed", cluster="east", message="exit code 3")),
        HELP,
        "JobsFailed",
        "llm-trainer-0 is Failed on east: exit code 3",
        LOGS,
    ),
    "a sub-job failed that its cluster says nothing about": Case(
        hyperjob("Degraded", sub_job(phase="Failed")),
        HELP,
        "JobsFailed",
        "llm-trainer-0 is Failed on no cluster: its cluster gives no message",
        LOGS,
    ),
    "a sub-job failed without which it runs": Case(
        hyperjob("Running", sub_job(phase="Failed", reason="X", cluster="east")),
        FINE,
        "X",
        "llm-trainer-0 is Failed on east: X",
        LOGS,
    ),
}


@pytest.mark.parametrize("case", [*STATUS.values(), *AROUND.values()], ids=[*STATUS, *AROUND])
def test_the_first_cause_is_the_answer(case: Case) -> None:
    answer = explain(evidence(case.obj, **case.more))
    first = answer.causes[0]
    assert (first.reason, first.message, first.next) == (case.reason, case.message, case.next)
    assert answer.outcome == case.outcome


@pytest.mark.parametrize("reason", sorted(NEVER_RUNS))
def test_what_never_runs_needs_a_person(reason: str) -> None:
    obj = hyperjob("Pending", reason=reason, message="why")
    (cause,) = explain(evidence(obj)).causes
    assert (cause.message, cause.needs_help) == ("why", True)


def test_a_status_that_covers_its_sub_jobs_is_said_once_and_other_reasons_of_them_too() -> None:
    jobs = [
        waiting("InsufficientCapacity", "needs 8", phase="Unplaced"),
        waiting("Refused", "too long", phase="Unplaced") | {"name": "llm-trainer-1"},
        waiting("Refused", "too long", phase="Unplaced") | {"name": "llm-trainer-2"},
        waiting("WaitingForHost", "waits", phase="Unplaced") | {"name": "llm-trainer-3"},
    ]
    obj = hyperjob("Pending", *jobs, reason="WaitingForHost", message="waits; and 3 more")
    found = explain(evidence(obj)).causes
    assert [(each.reason, each.message) for each in found] == [
        ("Refused", "llm-trainer-1, llm-trainer-2: too long"),
        ("WaitingForHost", "waits; and 3 more"),
    ]


@pytest.mark.parametrize("phase", ["Running", "Completed"])
def test_what_runs_or_has_completed_needs_no_answer(phase: str) -> None:
    job = sub_job(phase=phase, cluster="east")
    answer = explain(evidence(hyperjob(phase, job, message="2 of 2 run")))
    assert (answer.outcome, answer.causes) == (FINE, [])
    assert answer.headline == f"is {phase}: 2 of 2 run"


@pytest.mark.parametrize(
    ("phase", "outcome"), [("Running", FINE), ("Completed", FINE), ("Queued", WAITS)]
)
def test_the_outcome_follows_phase_and_causes(phase: str, outcome: Outcome) -> None:
    assert explain(evidence(hyperjob(phase))).outcome is outcome
    gone = explain(evidence(hyperjob("Running", metadata={"deletionTimestamp": NOW})))
    assert (gone.outcome, gone.headline) == (WAITS, "is being deleted")
    assert explain(evidence(hyperjob())).headline == "has no status yet"


def test_a_deletion_is_not_blamed_on_a_controller_that_need_not_look() -> None:
    metadata = {"deletionTimestamp": OLD, "finalizers": ["example.com/quota"]}
    obj = hyperjob("Running", generation=2, metadata=metadata)
    causes = explain(evidence(obj, lease=[])).causes
    assert [cause.reason for cause in causes] == ["BeingDeleted"]


FAILURE = {"pod": "llm-trainer-0-worker-1", "container": "main", "exitCode": 137}
FAILED_RUN = {
    "attempt": 0,
    "cluster": "east",
    "endTime": "2026-01-01T00:58:00Z",
    "phase": "Failed",
    "reason": "JobFailed",
    "failure": FAILURE | {"reason": "OOMKilled", "message": "step 7\nMemoryError"},
}
PREEMPTED = {
    **FAILED_RUN,
    "phase": "Running",
    "reason": "Preempted",
    "failure": None,
    "message": "is preempted by team/urgent, which has a higher priority",
}


def test_the_container_that_failed_first_is_named() -> None:
    job = sub_job(phase="Failed", cluster="east", failure=FAILURE)
    (cause,) = explain(evidence(hyperjob("Failed", job))).causes
    assert cause.message == (
        "llm-trainer-0 is Failed on east: pod llm-trainer-0-worker-1, container main: exit code 137"
        " (SIGKILL, probably by the kernel for lack of memory)"
    )


@pytest.mark.parametrize("phase", ["Running", "Restarting"])
def test_why_the_run_before_failed_is_known_after_the_restart(phase: str) -> None:
    training = {"step": 7, "startTime": OLD, "updateTime": OLD}
    job = sub_job(phase=phase, cluster="west", attempt=1, history=[FAILED_RUN], training=training)
    answer = explain(evidence(hyperjob(phase, job, message="2 of 2 run")))
    told = answer.causes[-1]
    assert told.reason == "JobFailed"
    assert told.message == (
        "attempt 1 of llm-trainer-0 on east ended 2m ago: pod llm-trainer-0-worker-1, container"
        " main: exit code 137 (killed by the kernel for its memory), OOMKilled: MemoryError"
    )
    assert told.log == ("step 7", "MemoryError")
    assert answer.outcome is (FINE if phase == "Running" else WAITS)
    assert "2 of 2 run" in (answer.headline if phase == "Running" else answer.causes[0].message)


@pytest.mark.parametrize("reason", ["Preempted", "Resized"])
def test_for_whom_a_hyperjob_was_stopped_is_said_until_it_runs_again(reason: str) -> None:
    job = sub_job(phase="Queued", attempt=1, history=[PREEMPTED | {"reason": reason}])
    answer = explain(evidence(hyperjob("Queued", job, message="number 2 of 2")))
    assert [cause.message for cause in answer.causes] == [
        "number 2 of 2",
        f"attempt 1 of llm-trainer-0 on east ended 2m ago: {PREEMPTED['message']}",
    ]
    assert answer.outcome is WAITS
    runs = {**job, "phase": "Running", "cluster": "west"}
    assert explain(evidence(hyperjob("Running", runs))).causes == []


def test_after_the_loss_of_a_cluster_the_next_command_is_about_that_cluster() -> None:
    lost = {**FAILED_RUN, "phase": "Running", "reason": "ClusterLost", "failure": None}
    job = sub_job(phase="Running", cluster="west", attempt=1, history=[lost])
    (cause,) = explain(evidence(hyperjob("Running", job))).causes
    assert cause.next == "kubectl describe cluster east"


def test_a_run_that_a_person_ended_is_no_failure() -> None:
    asked = {**FAILED_RUN, "phase": "Running", "reason": "RestartRequested"}
    job = sub_job(phase="Running", cluster="west", attempt=1, history=[asked])
    assert explain(evidence(hyperjob("Running", job))).causes == []


def test_sub_jobs_that_only_ended_with_the_hyperjob_are_not_its_failures() -> None:
    failed = sub_job(phase="Failed", cluster="east", message="exit code 3")
    ended = sub_job(1, phase="Terminated", cluster="west", reason="EndedWithHyperJob")
    causes = explain(evidence(hyperjob("Failed", failed, ended))).causes
    assert [cause.message for cause in causes] == ["llm-trainer-0 is Failed on east: exit code 3"]


def container(state: str, **fields: Any) -> Object:
    return {"containerStatuses": [{"name": "main", "image": "any", "state": {state: fields}}]}


UNSCHEDULED = {"type": "PodScheduled", "status": "False", "message": "0/4 nodes"}


def troubles(*found: Object) -> list[tuple[str, str, str, bool]]:
    job = sub_job(phase="Running", cluster="east")
    given = evidence(hyperjob("Running", job), pods={"llm-trainer-0": list(found)})
    return [
        (str(each.reason), each.message, each.next, each.needs_help)
        for each in explain(given).causes
    ]


def test_pods_that_the_controller_does_not_read_are_counted_by_trouble() -> None:
    no_image = container("waiting", reason="ErrImagePull", message="no such image")
    text = "image any of container main cannot be pulled: no such image"
    assert troubles(pod("a", **no_image), pod("b", **no_image)) == [
        ("PodsBlocked", f"{text}: pod east/a and 1 more wait", TREE, True)
    ]
    crash = container("waiting", reason="CrashLoopBackOff")
    crash["containerStatuses"][0]["lastState"] = {"terminated": {"exitCode": 7}}
    again = "container main ended with exit code 7 and is started again and again"
    assert troubles(pod("a", "Running", **crash), pod("b", "Running")) == [
        ("CrashLoop", f"task worker: pod east/a: {again}", f"{LOGS} --previous", True)
    ]
    failed = container("terminated", exitCode=1, reason="Error")
    ended = "task worker: pod east/a ended with exit code 1; the other pods run on"
    assert troubles(pod("a", "Failed", **failed)) == [("TasksFailed", ended, LOGS, True)]
    assert troubles(pod("a", conditions=[UNSCHEDULED])) == [
        ("PodsPending", "no node for the pod: 0/4 nodes: pod east/a waits", TREE, False)
    ]
    assert troubles(pod("a", "Succeeded", **no_image), pod("b", "Running")) == []
    many = [pod(str(n), **container("waiting", reason=f"R{n}")) for n in range(5)]
    assert [each[1] for each in troubles(*many)] == [
        f"R{n} of container main: pod east/{n} waits" for n in range(3)
    ]


def test_the_message_of_a_pod_replaces_the_number_of_pods_that_run() -> None:
    pods = {"llm-trainer-0": [pod("a", conditions=[UNSCHEDULED])]}
    found = explain(evidence(PENDING, pods=pods)).causes
    assert [each.message for each in found] == ["no node for the pod: 0/4 nodes: pod east/a waits"]
    (cause,) = explain(evidence(PENDING)).causes
    assert (cause.message, cause.next) == ("llm-trainer-0: 0 of 2 pods run", TREE)


def test_what_runs_in_part_says_with_how_many_pods_beside_the_pod_that_waits() -> None:
    words = "1 of 1 sub-jobs run or completed, on east; llm-trainer-0 runs with 1 of 2 pods"
    job = sub_job(phase="Running", cluster="east", running=1)
    pods = {"llm-trainer-0": [pod("a", conditions=[UNSCHEDULED]), pod("b", "Running")]}
    answer = explain(evidence(hyperjob("Running", job, message=words), pods=pods))
    assert answer.headline == f"is Running: {words}"
    assert [cause.reason for cause in answer.causes] == ["PodsPending"]


@pytest.mark.parametrize("reason", ["TasksFailed", "CrashLoop"])
def test_what_the_status_says_of_pods_is_not_read_from_them_again(reason: str) -> None:
    job = sub_job(phase="Running", cluster="east", reason=reason, message="pod a is dead")
    pods = {"llm-trainer-0": [pod("a", conditions=[UNSCHEDULED])]}
    (cause,) = explain(evidence(hyperjob("Degraded", job), pods=pods)).causes
    assert (cause.reason, cause.message) == (reason, "llm-trainer-0: pod a is dead")
    assert cause.needs_help


def test_what_needs_a_person_stands_before_what_only_takes_time() -> None:
    jobs = waiting("Dispatching", "waits", phase="Placed"), waiting("ApplyFailed", "no", index=1)
    answer = explain(evidence(hyperjob("Starting", *jobs)))
    assert [cause.reason for cause in answer.causes] == ["ApplyFailed", "Dispatching"]


def warning(name: str, time: str, message: str) -> Object:
    about = {"kind": "ResourceBinding", "name": name}
    metadata = {"name": f"{name}.{time}", "namespace": "ml"}
    event = {"type": "Warning", "reason": "SyncWorkFailed", "message": message}
    return {"metadata": metadata, "involvedObject": about, "lastTimestamp": time, **event}


def test_what_karmada_says_of_a_binding_is_told_while_the_sub_job_is_on_its_way() -> None:
    """An OverridePolicy that does not fit is in no condition, only in a Warning."""
    told = [
        warning("llm-trainer-0-job", NOW, "missing value"),
        warning("llm-trainer-0-job", OLD, "of an earlier vcjob"),
        warning("other-trainer-0-job", NOW, "of others"),
    ]
    given = evidence(starting("Dispatching"), of_bindings=told, vcjobs=[vcjob()])
    first = explain(given).causes[0]
    assert (first.reason, first.message) == (
        "SyncWorkFailed",
        "llm-trainer-0: Karmada: missing value",
    )
    assert first.next == "kubectl describe resourcebinding llm-trainer-0-job -n ml"
    given = evidence(starting("Dispatching"), of_bindings=told[1:], vcjobs=[vcjob()])
    assert [cause.reason for cause in explain(given).causes] == ["Dispatching"]


def test_resources_that_cannot_be_read_are_named_once() -> None:
    def unseen(**more: Any) -> list[str]:
        return list(explain(evidence(hyperjob("Queued"), **more)).unseen)

    assert unseen(bindings=GONE) == []
    assert unseen(vcjobs=FORBIDDEN, bindings=BROKEN) == [
        "vcjobs: you may not",
        "resourcebindings: broken",
    ]
    assert unseen(vcjobs=FORBIDDEN, bindings=FORBIDDEN, events=BROKEN) == [
        f"vcjobs, resourcebindings: you have no right to read them (see {RIGHTS})",
        "events: broken",
    ]
    assert unseen(pod_errors={"llm-trainer-0": BROKEN}) == ["pods of llm-trainer-0: broken"]
