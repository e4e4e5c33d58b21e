"""The command to type next for each reason, and which reasons need a person. Pure."""

from collections.abc import Mapping
from typing import Final

from hyperjob.client.summary import Summary
from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE, binding_name
from hyperjob_core.api.status import JobStatus
from hyperjob_engine.reasons.reason import NEVER_RUNS, Reason

LOGS: Final = "kubectl hyperjob logs {name} -n {namespace} --job {job} --tail 50"
_RECENT_LOGS: Final = "kubectl hyperjob logs {name} -n {namespace} --since 15m"
_SEE: Final = "kubectl describe hj {name} -n {namespace}"
_WATCH: Final = "kubectl hyperjob tree {name} -n {namespace} -w"
_PODS: Final = "kubectl hyperjob tree {name} -n {namespace} --pods"
_EDIT: Final = "kubectl edit hj {name} -n {namespace}"
_CHANGE: Final = (
    f"kubectl hyperjob suspend {{name}} -n {{namespace}} && {_EDIT}"
    " && kubectl hyperjob resume {name} -n {namespace}"
)
"""The template of a HyperJob that has sub-jobs changes only in the phase Suspended."""
_PREFLIGHT: Final = "kubectl hyperjob preflight"
_ROOM: Final = "kubectl hyperjob top"
_SHARES: Final = "kubectl hyperjob top --by queue"
_QUEUES: Final = "kubectl get queues.scheduling.volcano.sh"
_BINDING: Final = "kubectl describe resourcebinding {binding} -n {namespace}"
_CLUSTER: Final = "kubectl describe cluster {cluster}"
_WORKS: Final = "kubectl get works -n karmada-es-{cluster} -o wide"

_NEXT: Final[Mapping[str, str]] = {
    "NotObserved": _PREFLIGHT,
    "NoController": f"kubectl get lease -n {LEASE_NAMESPACE} {LEASE_NAME} -o yaml",
    "ControllerBusy": _PREFLIGHT,
    "NoBinding": _PREFLIGHT,
    # Karmada's scheduler says these two.
    "NoClusterFit": _BINDING,
    "SchedulerError": _BINDING,
    Reason.BEING_DELETED: "kubectl get hj {name} -n {namespace} -o yaml",
    Reason.INSUFFICIENT_CAPACITY: _ROOM,
    Reason.EXCEEDS_CLUSTERS: _CHANGE,
    Reason.NO_MATCHING_NODE: _EDIT,
    Reason.GANG_BACK_OFF: _ROOM,
    Reason.WAITING_FOR_QUEUE: _SHARES,
    Reason.QUEUE_LIMIT_REACHED: _SHARES,
    Reason.EXCEEDS_QUEUE: f"{_QUEUES} {{queue}} -o yaml",
    Reason.INVALID_QUEUE: _QUEUES,
    Reason.QUEUE_NOT_OPEN: "kubectl hyperjob queue open {queue}",
    # The dispatcher is a process in the host cluster, to which this kubeconfig gives no access.
    Reason.DISPATCHER_SILENT: _BINDING,
    Reason.DISPATCHING: _BINDING,
    Reason.WAITING_FOR_GANG: _WATCH,
    Reason.WAITING_FOR_DEPENDENCY: _WATCH,
    Reason.APPLY_FAILED: _WORKS,
    Reason.REFUSED_BY_CLUSTER: _WORKS,
    Reason.CLUSTER_NOT_READY: _CLUSTER,
    Reason.CLUSTER_LOST: _CLUSTER,
    Reason.PODS_PENDING: _PODS,
    Reason.PODS_BLOCKED: _PODS,
    Reason.TASKS_FAILED: LOGS,
    Reason.CRASH_LOOP: f"{LOGS} --previous",
    Reason.NAME_CONFLICT: "kubectl get jobs.batch.volcano.sh,propagationpolicies -n {namespace}"
    " --show-labels",
    Reason.SUSPENDED: "kubectl hyperjob resume {name} -n {namespace}",
    Reason.SUSPENDED_BY_POLICY: "kubectl get propagationpolicy {job} -n {namespace} -o yaml",
    Reason.INVALID_SPEC: _EDIT,
    Reason.INTERNAL_ERROR: "kubectl --context host logs -n karmada-system"
    " deploy/hyperjob-controller | grep incident",
    Reason.NO_PROGRESS: _RECENT_LOGS,
    Reason.SLOW_PROGRESS: _RECENT_LOGS,
}
NEEDS_HELP: Final = NEVER_RUNS | {
    "NoController",
    "NoBinding",
    Reason.QUEUE_NOT_OPEN,
    Reason.DISPATCHER_SILENT,
    Reason.APPLY_FAILED,
    Reason.REFUSED_BY_CLUSTER,
    Reason.CLUSTER_NOT_READY,
    Reason.CLUSTER_LOST,
    Reason.PODS_REFUSED,
    Reason.PODS_BLOCKED,
    Reason.TASKS_FAILED,
    Reason.CRASH_LOOP,
    Reason.REFUSED,
    Reason.FAILED_CREATE,
    Reason.NAME_CONFLICT,
    Reason.SUSPENDED,
    Reason.SUSPENDED_BY_POLICY,
    Reason.INTERNAL_ERROR,
    Reason.NO_PROGRESS,
}
"""Reasons that stay until a person acts; the others may end by themselves."""


def command(summary: Summary, reason: str, job: JobStatus | None, *, form: str = "") -> str:
    """Return the command to type next for a reason of a HyperJob, or of one of its sub-jobs."""
    group = summary.group(job.replicated_job) if job is not None else None
    return (form or _NEXT.get(reason, _SEE)).format(
        name=summary.name,
        namespace=summary.namespace,
        job=job.name if job is not None else "",
        binding=binding_name(job.name) if job is not None else "",
        cluster=job.cluster if job is not None else "",
        queue=group.queue if group is not None else summary.queue,
    )
