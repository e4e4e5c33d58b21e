"""Why a HyperJob is not running: one answer for every state it can be in."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hyperjob.cli.kubectl.connection import Access
from hyperjob.cli.why import view
from hyperjob.client.expected import expected_start
from hyperjob.client.summary import read
from hyperjob.client.why.evidence import Evidence, Explanation, Outcome
from hyperjob.client.why.explain import explain
from hyperjob_core.api.names import GATE, GATE_HELD, QUEUE_ADMISSION, RESTART_REQUEST
from hyperjob_core.kube.errors import Forbidden, make_status
from hyperjob_engine.reasons.incident import InternalFault, fault_text
from hyperjob_engine.reasons.podsrefused import PodsRefused
from tests.unit.cli.objects import (
    GPU,
    NOW,
    Object,
    binding,
    cluster,
    hyperjob,
    pod,
    queue,
    sub_job,
)

FORBIDDEN = Forbidden(make_status(403, "you may not"))
FINE, WAITS, HELP = Outcome.FINE, Outcome.WAITS, Outcome.NEEDS_HELP


def lease(renewed: str = NOW, holder: str = "controller-0") -> Object:
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    return {"metadata": {"name": "hyperjob-controller"}, "spec": spec}


def evidence(obj: Object, **more: Any) -> Evidence:
    return Evidence(
        now=datetime.fromisoformat(NOW).astimezone(UTC),
        summary=read(obj),
        **{
            "lease": [lease()],
            "lease_name": "karmada-system/hyperjob-controller",
            "queues": [queue()],
            "clusters": [cluster("east"), cluster("west")],
            **more,
        },
    )


def waiting(reason: str, message: str = "", *, phase: str = "Queued", **fields: Any) -> Object:
    return sub_job(phase=phase, reason=reason, message=message, **fields)


@dataclass(frozen=True)
class Case:
    obj: Object
    outcome: Outcome
    reason: str
    message: str
    next: str = ""
    more: dict[str, Any] = field(default_factory=dict)


HELD = binding("llm-trainer-0", suspension={"scheduling": True})
POD_GROUP = {
    "status": {
        "conditions": [
            {"type": "Unschedulable", "status": "True", "message": "3/3 tasks unschedulable"}
        ]
    }
}
SHORT_OF_GPUS = {
    "status": {
        "conditions": [
            {
                "type": "Unschedulable",
                "status": "True",
                "message": "0/4 nodes are unavailable: 4 Insufficient nvidia.com/gpu.",
            }
        ]
    }
}
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/4 nodes are unavailable: 4 Insufficient nvidia.com/gpu.",
}
OLD_VCJOB = {
    "metadata": {"name": "llm-trainer-0", "creationTimestamp": "2026-01-01T00:50:00Z"},
}
_LATE = datetime.fromisoformat("2026-01-01T00:51:00Z")
REFUSED = PodsRefused("exceeded quota: team", _LATE, _LATE)
VCJOB = {"metadata": {"name": "llm-trainer-0"}}
NO_ROOM = waiting("InsufficientCapacity", "needs 64 nvidia.com/gpu", phase="Unplaced")

TOO_LARGE = "it is too large for every cluster, even an empty cluster"


def other_device(name: str) -> Object:
    """Build a cluster whose device has another name."""
    made = cluster(name)
    made["status"]["resourceSummary"] = {"allocatable": {f"{GPU}s": "32", "cpu": "64"}}
    return made


def automatic(made: Object) -> Object:
    """Turn the replicatedJob of a HyperJob into an automatic split of 8 accelerators."""
    split = {"mode": "auto", "accelerators": 8, "acceleratorType": GPU}
    made["spec"]["replicatedJobs"][0]["splitPolicy"] = split
    for job in made["status"]["jobs"]:
        job["accelerators"] = 8
    return made


CASES = {
    "a sub-job is larger than any cluster": Case(
        hyperjob("Pending", NO_ROOM), HELP, "InsufficientCapacity", TOO_LARGE,
        "kubectl hyperjob top", {"clusters": [cluster("east", gpus=4), cluster("west", gpus=7)]},
    ),
    "it would fit on the cluster that is not Ready": Case(
        hyperjob("Pending", NO_ROOM), WAITS, "InsufficientCapacity", "needs 64",
        "kubectl hyperjob top",
        {"clusters": [cluster("east", gpus=4), cluster("west", gpus=4, ready=False)]},
    ),
    "a gang is larger than all clusters": Case(
        hyperjob(
            "Pending", NO_ROOM,
            message="2 sub-jobs must be placed together, there is room for 1 and too little even on"
            " empty clusters: llm-trainer-0 needs 64",
            reason="ExceedsClusters",
        ),
        HELP, "InsufficientCapacity", TOO_LARGE, "kubectl hyperjob top",
    ),
    "it waits in line for a built-in queue, and is larger than any cluster": Case(
        hyperjob(
            "Queued", waiting("WaitingForQueue", "waits for queue default"),
            reason="InsufficientCapacity", message="first of 1 in queue default: llm-trainer-0",
        ),
        HELP, "InsufficientCapacity", TOO_LARGE, "kubectl hyperjob top",
        {"clusters": [cluster("east", gpus=4)]},
    ),
    "an automatic split waits that is larger than any cluster and not than all of them": Case(
        automatic(
            hyperjob(
                "Queued", waiting("WaitingForQueue", "waits for queue default"),
                reason="InsufficientCapacity", message="first of 1 in queue default: its split",
            )
        ),
        WAITS, "InsufficientCapacity", "its split", "kubectl hyperjob top",
        {"clusters": [cluster("east", gpus=4), cluster("west", gpus=4)]},
    ),
    "an automatic split is larger than all clusters": Case(
        automatic(
            hyperjob(
                "Queued", waiting("WaitingForQueue", "waits for queue default"),
                reason="InsufficientCapacity", message="first of 1 in queue default: its split",
            )
        ),
        HELP, "InsufficientCapacity", TOO_LARGE, "kubectl hyperjob top",
        {"clusters": [cluster("east", gpus=4), cluster("west", gpus=3)]},
    ),
    "no controller has ever looked, and none is there": Case(
        hyperjob(), HELP, "NoController", "no controller has led there", "get leases -A",
        {"lease": []},
    ),
    "nobody has looked yet, while somebody leads": Case(
        hyperjob(), WAITS, "NotObserved", "it has no status (created 60m ago)", "preflight"
    ),
    "the status is about an older spec": Case(
        hyperjob("Running", generation=3),
        WAITS,
        "NotObserved",
        "generation 3; the status is about generation 1",
    ),
    "the controller stopped renewing its Lease": Case(
        hyperjob("Running", generation=3),
        HELP,
        "NoController",
        "controller-0 renewed it 30m ago: check in the host cluster",
        "kubectl get lease -n karmada-system hyperjob-controller",
        more={"lease": [lease("2026-01-01T00:30:00Z")]},
    ),
    "a deletion that nobody finishes": Case(
        hyperjob(
            "Running",
            metadata={
                "deletionTimestamp": "2026-01-01T00:50:00Z",
                "finalizers": ["example.com/quota"],
            },
            generation=2,
        ),
        HELP,
        "BeingDeleted",
        "since 10m, held by finalizer example.com/quota; the controller that set it has",
        "kubectl get hj llm -n ml -o yaml",
        {"lease": []},
    ),
    "somebody suspended it": Case(
        hyperjob("Suspended", spec={"suspend": True}),
        HELP,
        "Suspended",
        "spec.suspend is true",
        "kubectl hyperjob resume llm -n ml",
    ),
    "the queue is closed": Case(
        hyperjob("Queued", waiting("WaitingForQueue")),
        HELP,
        "QueueNotOpen",
        "queue default is Closed; llm-trainer-0 cannot be admitted",
        "kubectl hyperjob queue open default",
        {"queues": [queue(state="Closed")]},
    ),
    "there is no such queue": Case(
        hyperjob("Queued", waiting("WaitingForQueue"), queue="gold"),
        HELP,
        "QueueNotOpen",
        "queue gold does not exist",
        "kubectl get queues",
    ),
    "a queue that nobody has given a state yet is no cause": Case(
        hyperjob("Queued", waiting("WaitingForQueue", "has not admitted it")),
        WAITS,
        "WaitingForQueue",
        "queue default: llm-trainer-0: has not admitted it",
        more={"queues": [queue(state="")]},
    ),
    "the queue has others before it": Case(
        hyperjob("Queued", waiting("WaitingForQueue", "has not admitted it")),
        WAITS,
        "WaitingForQueue",
        "queue default: llm-trainer-0: has not admitted it",
        "kubectl hyperjob top --by queue",
    ),
    "our own admission says of the whole HyperJob what it waits for": Case(
        hyperjob(
            "Queued",
            waiting("WaitingForQueue", "waits for queue default"),
            reason="InsufficientCapacity",
            message="first of 3 in queue default: there is room for 0",
        ),
        WAITS,
        "InsufficientCapacity",
        "first of 3 in queue default: there is room for 0",
        "kubectl hyperjob top",
    ),
    "queues may not be read": Case(
        hyperjob("Queued", waiting("WaitingForQueue", "has not admitted it")),
        WAITS,
        "WaitingForQueue",
        "has not admitted it",
        more={"queues": FORBIDDEN},
    ),
    "no cluster has room": Case(
        hyperjob("Pending", NO_ROOM, reason="InsufficientCapacity"),
        WAITS,
        "InsufficientCapacity",
        "needs 64 nvidia.com/gpu; free by the clusters' status: east 0, west 32",
        "kubectl hyperjob top",
        {"clusters": [cluster("east", used=32), cluster("west")]},
    ),
    "no cluster has joined": Case(
        hyperjob("Pending", NO_ROOM), HELP, "NoClusters", "no member cluster has joined",
        "karmadactl join", {"clusters": []},
    ),
    "the gang is incomplete": Case(
        hyperjob(
            "Starting", waiting("WaitingForGang", phase="Placed", cluster="east"),
            waiting("WaitingForQueue", "waits", index=1) | {"name": "llm-trainer-1"},
        ),
        WAITS, "WaitingForQueue", "llm-trainer-1: waits",
    ),
    "Karmada made no binding": Case(
        hyperjob("Queued", waiting("Dispatching", phase="Placed")), WAITS, "NoBinding",
        "Karmada has not created a ResourceBinding", "describe jobs.batch.volcano.sh llm-trainer-0",
        {"vcjobs": [VCJOB]},
    ),
    "Karmada makes no binding for long, since a webhook may not answer": Case(
        hyperjob("Queued", waiting("Dispatching", phase="Placed")), HELP, "NoBinding",
        "created a ResourceBinding for its vcjob for 10m; check that", "hyperjob preflight",
        {"vcjobs": [OLD_VCJOB]},
    ),
    "no queue will ever have room for it": Case(
        hyperjob("Queued", waiting("WaitingForQueue"), reason="ExceedsQueue", message="asks for 9"),
        HELP, "ExceedsQueue", "asks for 9", "get queues.scheduling.volcano.sh",
    ),
    "no cluster has the device": Case(
        hyperjob("Pending", NO_ROOM), HELP, "InsufficientCapacity",
        "no cluster has nvidia.com/gpu; did you mean nvidia.com/gpus?", "hyperjob top",
        {"clusters": [other_device("east"), other_device("west")]},
    ),
    "no cluster has the device, and the queue waits for room": Case(
        hyperjob(
            "Queued", waiting("WaitingForQueue"), reason="InsufficientCapacity",
            message="2 sub-jobs must start together: " + "east lacks 8 nvidia.com/gpu; " * 30,
        ),
        HELP, "InsufficientCapacity",
        "no cluster has nvidia.com/gpu; did you mean nvidia.com/gpus?", "hyperjob top",
        {"clusters": [other_device("east")]},
    ),
    "a pod is larger than every node": Case(
        hyperjob("Starting", waiting("PodsPending", phase="Pending", cluster="east")), HELP,
        "PodsPending", "32 nvidia.com/gpu are free in the cluster, and probably no node has the 4",
        "tree llm -n ml --pods",
        {"clusters": [cluster("east")], "pod_groups": {"llm-trainer-0": [SHORT_OF_GPUS]}},
    ),
    "pods of which no node has room enough, by their own conditions": Case(
        hyperjob("Starting", waiting("PodsPending", phase="Pending", cluster="east")), HELP,
        "PodsPending", "32 nvidia.com/gpu are free in the cluster, and probably no node has the 4",
        "tree llm -n ml --pods",
        {
            "clusters": [cluster("east")],
            "pods": {"llm-trainer-0": [pod("w-0", conditions=[UNSCHEDULABLE])]},
        },
    ),
    "Volcano in the member says why no pod is made": Case(
        hyperjob("Starting", waiting("PodsPending", phase="Pending", cluster="east")),
        WAITS, "PodsPending", "llm-trainer-0: Volcano on east: 3/3 tasks unschedulable", "--pods",
        {"pod_groups": {"llm-trainer-0": [POD_GROUP]}},
    ),
    "the member refuses the pods, and the controller does not read its Events": Case(
        hyperjob("Starting", waiting("PodsPending", phase="Pending", cluster="east")), HELP,
        "PodsRefused", "llm-trainer-0: cluster east refuses its pods: exceeded quota: team",
        "describe llm -n ml",
        {
            "vcjobs": [OLD_VCJOB], "bindings": [binding("llm-trainer-0")],
            "pods_refused": {"llm-trainer-0": REFUSED},
        },
    ),
    "the member refused the pods of an earlier vcjob": Case(
        hyperjob("Starting", waiting("PodsPending", phase="Pending", cluster="east")),
        WAITS, "PodsPending", "llm-trainer-0: Volcano on east: 3/3 tasks unschedulable", "--pods",
        {
            "vcjobs": [{"metadata": {"name": "llm-trainer-0", "creationTimestamp": NOW}}],
            "bindings": [binding("llm-trainer-0")],
            "pods_refused": {"llm-trainer-0": REFUSED},
            "pod_groups": {"llm-trainer-0": [POD_GROUP]},
        },
    ),
    "Volcano Global passes over a priority class that is missing": Case(
        hyperjob("Queued", waiting("WaitingForQueue"), priority="gold"),
        HELP, "NoPriorityClass", "there is no PriorityClass gold", "get priorityclasses",
        {"bindings": [HELD]},
    ),
    "a sub-job that Volcano Global's queue can never hold": Case(
        hyperjob("Queued", waiting("WaitingForQueue")),
        HELP, "ExceedsQueue", "for 8 nvidia.com/gpu, and queue default may never use more than 4",
        "get queues.scheduling.volcano.sh default",
        {"bindings": [HELD], "queues": [queue(capability={GPU: "4"})]},
    ),
    "our own admission looks at priority classes and queues itself": Case(
        hyperjob("Queued", waiting("WaitingForQueue"), priority="gold", message="first of 2"),
        WAITS, "WaitingForQueue", "first of 2", "top --by queue",
        {"queues": [queue(capability={GPU: "4"})]},
    ),
    "the member reports nothing": Case(
        hyperjob("Starting", waiting("NothingReported", "cluster east has reported nothing")),
        WAITS, "NothingReported", "llm-trainer-0: cluster east has reported nothing",
        "kubectl hyperjob describe llm",
    ),
    "the member refuses the job": Case(
        hyperjob("Starting", waiting("ApplyFailed", phase="Placed", cluster="east")),
        HELP, "ApplyFailed", "llm-trainer-0 on east: timed out", "get works -n karmada-es-east",
        {
            "vcjobs": [VCJOB],
            "bindings": [
                binding(
                    "llm-trainer-0", cluster="east",
                    aggregatedStatus=[{"clusterName": "east", "appliedMessage": "timed out"}],
                )
            ],
        },
    ),
    "a gang of which others are missing": Case(
        hyperjob(
            "Starting",
            waiting("WaitingForGang", phase="Placed", cluster="east"),
            waiting("WaitingForGang", index=1),
        ),
        WAITS,
        "WaitingForGang",
        "llm-trainer-0 is admitted and held; the gang still needs llm-trainer-1",
    ),
    "a held binding is not applied, and that is no failure": Case(
        hyperjob("Starting", waiting("WaitingForGang", phase="Placed", cluster="east")),
        WAITS, "WaitingForGang", "llm-trainer-0 is admitted and held", "tree llm -n ml -w",
        {
            "vcjobs": [VCJOB],
            "bindings": [
                binding(
                    "llm-trainer-0", cluster="east", annotations={GATE: GATE_HELD},
                    aggregatedStatus=[{"clusterName": "east", "appliedMessage": "suspended"}],
                )
            ],
        },
    ),
    "Karmada finds no cluster": Case(
        hyperjob("Starting", waiting("NoClusterFit", phase="Placed")), WAITS, "NoClusterFit",
        "Karmada: none fits", "kubectl describe resourcebinding llm-trainer-0-job",
        {
            "bindings": [
                binding(
                    "llm-trainer-0",
                    conditions=[
                        {
                            "type": "Scheduled", "status": "False",
                            "reason": "NoClusterFit", "message": "none fits",
                        }
                    ],
                )
            ]
        },
    ),
    "pods cannot be scheduled in the member": Case(
        hyperjob("Starting", waiting("PodsPending", phase="Pending", cluster="east")),
        WAITS, "PodsPending", "pod east/w-0 (and 1 more pods): Unschedulable: 0/4 nodes",
        "tree llm -n ml --pods",
        {
            "pods": {
                "llm-trainer-0": [
                    pod(
                        f"w-{index}",
                        conditions=[
                            {
                                "type": "PodScheduled", "status": "False",
                                "reason": "Unschedulable", "message": "0/4 nodes",
                            }
                        ],
                    )
                    for index in range(2)
                ]
            }
        },
    ),
    "an image cannot be pulled": Case(
        hyperjob("Starting", waiting("PodsPending", phase="Pending", cluster="east")),
        HELP, "PodsPending", "ImagePullBackOff: no such image", "--pods",
        {
            "pods": {
                "llm-trainer-0": [
                    pod(
                        "w-0",
                        containerStatuses=[
                            {
                                "name": "main",
                                "state": {
                                    "waiting": {
                                        "reason": "ImagePullBackOff", "message": "no such image"
                                    }
                                },
                            }
                        ],
                    )
                ]
            }
        },
    ),
    "a container that runs crashes again and again": Case(
        hyperjob("Running", waiting("", phase="Running", cluster="east")),
        HELP, "PodsFailing", "pod east/w-0: CrashLoopBackOff: back-off 5m0s",
        "logs llm -n ml --job llm-trainer-0 --previous --tail 50",
        {
            "pods": {
                "llm-trainer-0": [
                    pod(
                        "w-0",
                        "Running",
                        containerStatuses=[
                            {
                                "name": "main",
                                "state": {
                                    "waiting": {
                                        "reason": "CrashLoopBackOff", "message": "back-off 5m0s"
                                    }
                                },
                            }
                        ],
                    ),
                    pod("w-1", "Running"),
                ]
            }
        },
    ),
    "its queue has no more to give, by our own admission": Case(
        hyperjob("Queued", waiting("QueueLimitReached", "queue default has 8 of 8 in use")),
        WAITS, "QueueLimitReached", "llm-trainer-0: queue default has 8 of 8", "top --by queue",
    ),
    "it waits for one that it depends on": Case(
        hyperjob("Pending", waiting("WaitingForDependency", "waits for data", phase="Unplaced")),
        WAITS, "WaitingForDependency", "llm-trainer-0: waits for data", "tree llm -n ml -w",
    ),
    "what was given back is asked for again later": Case(
        hyperjob("Queued", waiting("GangBackOff", "asks again in 30s", phase="Unplaced")),
        WAITS, "GangBackOff", "asks again in 30s", "kubectl hyperjob top",
    ),
    "bindings cannot be seen, and the controller says that the member refuses": Case(
        hyperjob("Starting", waiting("RefusedByCluster", "quota", phase="Placed", cluster="east")),
        HELP, "RefusedByCluster", "llm-trainer-0: quota", "describe", {"bindings": FORBIDDEN},
    ),
    "a name is taken": Case(
        hyperjob("Pending", waiting("NameConflict", "belongs to Deployment x", phase="Unplaced")),
        HELP, "NameConflict", "llm-trainer-0: belongs to Deployment x",
        "kubectl get jobs.batch.volcano.sh,propagationpolicies -n ml",
    ),
    "the spec makes no sense": Case(
        hyperjob("Pending", reason="InvalidSpec", message="9 GPUs are no whole number of pods"),
        HELP, "InvalidSpec", "9 GPUs", "kubectl edit hj llm -n ml",
    ),
    "the controller failed at it, while its sub-jobs run": Case(
        hyperjob(
            "Running", sub_job(phase="Running", cluster="east"), reason="InternalError",
            message=fault_text(InternalFault("b3f44994b6")),
        ),
        HELP, "InternalError", "the controller failed at this HyperJob (incident b3f44994b6)",
        "kubectl --context host logs -n karmada-system deploy/hyperjob-controller | grep incident",
    ),
    "a sub-job failed": Case(
        hyperjob("Failed", sub_job(phase="Failed", cluster="east", message="exit code 3")),
        HELP, "JobsFailed", "llm-trainer-0 is Failed on east: exit code 3",
        "kubectl hyperjob logs llm -n ml --job llm-trainer-0 --tail 50",
    ),
    "its cluster is lost while it runs": Case(
        hyperjob("Running", sub_job(phase="Running", cluster="east")), HELP, "ClusterNotReady",
        "cluster east is not Ready: cluster is not reachable; llm-trainer-0 is there",
        "kubectl describe cluster east",
        {"clusters": [cluster("east", ready=False), cluster("west")]},
    ),
    "a restart that nobody took": Case(
        hyperjob("Running", metadata={"annotations": {RESTART_REQUEST: "t1 llm-trainer-0"}}),
        FINE, "RequestNotTaken", "the controller has not accepted the requested restart (t1) yet",
    ),
    "a reason that no rule knows": Case(
        hyperjob("Restarting", reason="Backoff", message="waits 30s before attempt 2"),
        WAITS, "Backoff", "waits 30s before attempt 2", "describe",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_first_cause_is_the_answer(case: Case) -> None:
    answer = explain(evidence(case.obj, **case.more))
    first = answer.causes[0]
    assert (first.reason, answer.outcome) == (case.reason, case.outcome)
    assert case.message in first.message
    assert case.next in first.next


@pytest.mark.parametrize("phase", ["Running", "Completed"])
def test_what_runs_or_has_completed_needs_no_answer(phase: str) -> None:
    job = sub_job(phase=phase, cluster="east")
    answer = explain(evidence(hyperjob(phase, job, message="2 of 2 run")))
    assert (answer.outcome, answer.causes) == (FINE, [])
    assert answer.headline == f"is {phase}: 2 of 2 run"


FAILURE = {"pod": "llm-trainer-0-worker-1", "container": "main", "exitCode": 137}
FAILED_RUN = {
    "attempt": 0,
    "cluster": "east",
    "endTime": "2026-01-01T00:58:00Z",
    "phase": "Failed",
    "reason": "JobFailed",
    "failure": FAILURE | {"reason": "OOMKilled"},
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
    job = sub_job(phase=phase, cluster="west", attempt=1, history=[FAILED_RUN])
    answer = explain(evidence(hyperjob(phase, job, message="2 of 2 run")))
    told = answer.causes[-1]
    assert told.reason == "JobFailed"
    assert told.message == (
        "attempt 1 of llm-trainer-0 failed on east 2m ago: pod llm-trainer-0-worker-1,"
        " container main: exit code 137 (killed by the kernel for its memory), OOMKilled"
    )
    assert answer.outcome is (FINE if phase == "Running" else WAITS)
    assert "2 of 2 run" in (answer.headline if phase == "Running" else answer.causes[0].message)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("Preempted", "is preempted by team/urgent, which has a higher priority"),
        ("Reclaimed", "makes way for team/owner, whose queue takes back what it lent"),
    ],
)
def test_for_whom_a_hyperjob_was_stopped_is_said_until_it_runs_again(
    reason: str, message: str
) -> None:
    stopped = {**FAILED_RUN, "phase": "Running", "reason": reason, "message": message}
    jobs = [
        sub_job(index, phase="Pending", cluster="", attempt=1, history=[stopped])
        for index in range(2)
    ]
    answer = explain(evidence(hyperjob("Queued", *jobs, message="number 2 of 2")))
    assert [cause.message for cause in answer.causes if cause.reason == reason] == [
        f"stopped 2m ago: llm-trainer-0 and 1 more {message}"
    ]
    assert answer.outcome is WAITS
    runs = [{**job, "phase": "Running", "cluster": "west"} for job in jobs]
    assert explain(evidence(hyperjob("Running", *runs))).causes == []


def test_a_run_that_a_person_ended_is_no_failure() -> None:
    asked = {**FAILED_RUN, "phase": "Running", "reason": "RestartRequested"}
    job = sub_job(phase="Running", cluster="west", attempt=1, history=[asked])
    assert explain(evidence(hyperjob("Running", job))).causes == []


def test_sub_jobs_that_only_ended_with_the_hyperjob_are_not_its_failures() -> None:
    failed = sub_job(phase="Failed", cluster="east", message="exit code 3")
    ended = sub_job(1, phase="Terminated", cluster="west", reason="EndedWithHyperJob")
    causes = explain(evidence(hyperjob("Failed", failed, ended))).causes
    assert [cause.message for cause in causes] == ["llm-trainer-0 is Failed on east: exit code 3"]


def test_a_lost_cluster_that_it_does_not_use_is_no_reason_while_it_runs() -> None:
    job = sub_job(phase="Running", cluster="east")
    clusters = [cluster("east"), cluster("west", ready=False)]
    assert explain(evidence(hyperjob("Running", job), clusters=clusters)).outcome is FINE


def test_what_needs_a_person_stands_before_what_only_takes_time() -> None:
    jobs = waiting("WaitingForQueue", "waits"), NO_ROOM | {"name": "llm-trainer-1"}
    answer = explain(evidence(hyperjob("Pending", *jobs), clusters=[]))
    assert [cause.needs_help for cause in answer.causes] == [True, False, False]


def shown(answer: Explanation, events: list[Object]) -> list[str]:
    now = datetime.fromisoformat(NOW).astimezone(UTC)
    lines = view.lines(answer, events, now, lambda words: f"{words} --context c")
    return [line.plain for line in lines]


def test_it_is_said_with_warnings_what_could_not_be_seen_and_the_next_command() -> None:
    event = {
        "type": "Warning",
        "reason": "Refused",
        "message": "not today",
        "lastTimestamp": "2026-01-01T00:59:00Z",
    }
    over = event | {"lastTimestamp": "2025-12-31T23:59:59Z", "message": "before it was queued"}
    obj = hyperjob("Queued", waiting("WaitingForQueue", "waits"))
    answer = explain(evidence(obj, bindings=FORBIDDEN))
    assert shown(answer, [event, over, {"type": "Normal", "reason": "Created"}]) == [
        "ml/llm is Queued",
        "  WaitingForQueue  queue default: llm-trainer-0: waits",
        "  event 60s ago  Refused: not today",
        "  not visible to you  resourcebindings: you may not",
        "Next:  kubectl hyperjob top --by queue --context c",
    ]


@pytest.mark.parametrize(
    ("words", "aimed"),
    [
        ("kubectl get hj", "kubectl --kubeconfig '/a b' --context k get hj"),
        ("kubectl hyperjob top", "kubectl hyperjob top --kubeconfig '/a b' --context k"),
        ("kubectl --context host logs x", "kubectl --context host logs x"),
    ],
)
def test_a_command_has_the_flags_of_its_api_server(words: str, aimed: str) -> None:
    assert Access(kubeconfig=Path("/a b"), context="k").command(words) == aimed


@pytest.mark.parametrize(("phase", "named"), [("Queued", True), ("Running", False)])
def test_the_queue_admission_at_work_is_named_while_it_waits(phase: str, named: bool) -> None:
    held = lease()
    held["metadata"]["annotations"] = {QUEUE_ADMISSION: "builtin"}
    answer = explain(evidence(hyperjob(phase, waiting("WaitingForQueue", "waits")), lease=[held]))
    assert ("  queue admission: builtin" in shown(answer, [])) is named
    assert view.value(answer, str)["queueAdmission"] == ("builtin" if named else "")


def test_as_a_value_it_says_the_same() -> None:
    answer = explain(evidence(hyperjob("Suspended", spec={"suspend": True})))
    assert view.value(answer, str) == {
        "namespace": "ml",
        "name": "llm",
        "phase": "Suspended",
        "message": "",
        "outcome": "NeedsHelp",
        "headline": "is Suspended",
        "queueAdmission": "",
        "training": {},
        "causes": [
            {
                "reason": "Suspended",
                "message": "spec.suspend is true: the controller removes its sub-jobs from"
                " the clusters",
                "next": "kubectl hyperjob resume llm -n ml",
                "needsHelp": True,
                "log": [],
            }
        ],
        "notVisible": [],
    }


def test_the_expected_start_is_said_in_words_and_as_a_value_with_whose_end_gives_room() -> None:
    expected = {"time": "2026-01-01T03:10:00Z", "after": "ml/base-model"}
    obj = hyperjob("Queued", waiting("WaitingForQueue", "waits"), expectedStart=expected)
    answer = explain(evidence(obj))
    assert shown(answer, [])[2] == (
        "  expected to start in about 2 h 10 min, when base-model ends (its estimate)"
    )
    assert view.value(answer, str)["expectedStart"] == expected


def test_without_an_expected_start_no_time_is_said() -> None:
    answer = explain(evidence(hyperjob("Queued", waiting("WaitingForQueue", "waits"))))
    assert not any("expected to start" in line for line in shown(answer, []))
    assert "expectedStart" not in view.value(answer, str)


@pytest.mark.parametrize(
    ("time", "namespace", "words"),
    [
        ("2026-01-01T01:00:30Z", "ml", "within a minute, when a ends"),
        ("2026-01-01T00:30:00Z", "ml", "within a minute, when a ends"),
        ("2026-01-01T01:59:00Z", "ml", "in about 59 min, when a ends"),
        ("2026-01-01T02:58:00Z", "ml", "in about 2 h, when a ends"),
        ("2026-01-02T02:00:00Z", "ml", "in about 1 d 1 h, when a ends"),
        ("2026-01-03T01:00:00Z", "other", "in about 2 d, when ml/a ends"),
    ],
)
def test_an_expected_start_is_a_rough_length_of_time(time: str, namespace: str, words: str) -> None:
    found = expected_start({"expectedStart": {"time": time, "after": "ml/a"}})
    assert found is not None
    now = datetime.fromisoformat(NOW).astimezone(UTC)
    assert found.words(now, namespace=namespace) == f"expected to start {words} (its estimate)"


@pytest.mark.parametrize("status", [{}, {"expectedStart": None}, {"expectedStart": {"time": "x"}}])
def test_what_is_no_time_is_no_expected_start(status: Object) -> None:
    assert expected_start(status) is None
