"""The reasons of a HyperJob and its sub-jobs, one CamelCase word each, for programs.

Beside them what a planned stop saved, and why the controller places nothing on a cluster.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from hyperjob_core.api import table
from hyperjob_core.api.meta import Object
from hyperjob_core.api.stops import CheckpointStatus


class Reason(enum.StrEnum):
    """Why a HyperJob or a sub-job is in its phase: one CamelCase word, as in a condition."""

    # no sub-job exists yet
    INSUFFICIENT_CAPACITY = "InsufficientCapacity"
    EXCEEDS_CLUSTERS = "ExceedsClusters"  # not even empty clusters have room
    NO_MATCHING_NODE = "NoMatchingNode"  # by labels or taints, or a cluster that does not exist
    WAITING_FOR_SPLITTER = "WaitingForSplitter"
    NAME_CONFLICT = "NameConflict"
    REFUSED = "Refused"  # the API server refused an object of a sub-job
    FAILED_CREATE = "FailedCreate"  # the API server could not judge it, such as without a webhook
    BEING_DELETED = "BeingDeleted"
    INVALID_SPEC = "InvalidSpec"
    INTERNAL_ERROR = "InternalError"  # a bug of the controller: it set the HyperJob aside
    GANG_BACK_OFF = "GangBackOff"
    WAITING_FOR_HOST = "WaitingForHost"
    # waits for its queue, or exists and does not run
    SUSPENDED = "Suspended"
    RESTARTING = "Restarting"
    WAITING_FOR_DEPENDENCY = "WaitingForDependency"
    WAITING_FOR_QUEUE = "WaitingForQueue"
    QUEUE_NOT_OPEN = "QueueNotOpen"
    INVALID_QUEUE = "InvalidQueue"  # it does not exist, or takes no jobs itself
    QUEUE_LIMIT_REACHED = "QueueLimitReached"
    EXCEEDS_QUEUE = "ExceedsQueue"
    DISPATCHER_SILENT = "DispatcherSilent"
    WAITING_FOR_GANG = "WaitingForGang"
    SUSPENDED_BY_POLICY = "DispatchingSuspended"
    DISPATCHING = "Dispatching"
    NOTHING_REPORTED = "NothingReported"
    APPLY_FAILED = "ApplyFailed"
    REFUSED_BY_CLUSTER = "RefusedByCluster"
    PODS_PENDING = "PodsPending"
    PODS_BLOCKED = "PodsBlocked"  # until a person acts: a missing ConfigMap, an image, a gate
    PODS_REFUSED = "PodsRefused"  # by the API server of the member: a quota, a missing class
    CLUSTER_NOT_READY = "ClusterNotReady"
    CLUSTER_LOST = "ClusterLost"
    OBJECT_DELETED = "ObjectDeleted"  # the ResourceBinding or the Work of a sub-job
    # runs, or has run
    JOBS_RUNNING = "JobsRunning"
    MIN_AVAILABLE_NOT_MET = "MinAvailableNotMet"
    QUORUM_MET = "QuorumMet"  # fewer than minAvailable run, and the training goes on
    QUORUM_NOT_MET = "QuorumNotMet"
    JOBS_COMPLETED = "JobsCompleted"
    JOBS_FAILED = "JobsFailed"
    JOBS_ABORTED = "JobsAborted"
    SUCCESS_POLICY = "SuccessPolicySatisfied"
    FAILURE_POLICY = "FailurePolicy"
    MAX_RESTARTS = "MaxRestartsExceeded"
    DEPENDENCY_FAILED = "DependencyFailed"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    ENDED = "EndedWithHyperJob"
    NO_PROGRESS = "NoProgress"  # runs, and makes no steps against its own pace
    SLOW_PROGRESS = "SlowProgress"  # runs, and a step takes more than twice its usual time
    TASKS_FAILED = "TasksFailed"  # pods ended with an error, and the others only run on
    CRASH_LOOP = "CrashLoop"
    # why a run of a sub-job ended
    JOB_FAILED = "JobFailed"
    RESTARTED_WITH_ALL = "RestartedWithAll"
    RESTART_REQUESTED = "RestartRequested"
    MIGRATE_REQUESTED = "MigrateRequested"
    RECLAIMED = "Reclaimed"
    PREEMPTED = "Preempted"
    RESIZED = "Resized"  # to another number of sub-jobs


NEVER_RUNS: Final = frozenset(
    {
        Reason.EXCEEDS_CLUSTERS,
        Reason.NO_MATCHING_NODE,
        Reason.EXCEEDS_QUEUE,
        Reason.INVALID_QUEUE,
        Reason.INVALID_SPEC,
    }
)
"""Reasons of a HyperJob that never runs until a person changes it, its queue or the clusters.

The engine alone decides this; `plan`, `why`, `wait` and the page read it in `status.state`.
"""


class Blocked(NamedTuple):
    """Why the controller does not create a sub-job, in words, and from when on it may."""

    reason: Reason
    message: str = ""
    until: datetime | None = None


def checkpoint_of(status: Object) -> CheckpointStatus:
    """Return `status.checkpoint`; without any field if there is none."""
    return table.read(CheckpointStatus, status.get("checkpoint")) or CheckpointStatus()


def stop_text(status: Object) -> str:
    """Return the steps that a planned stop saved and did not save; empty if no step is known."""
    entry = checkpoint_of(status)
    cause, reached, saved = entry.stop_cause, entry.stopped_step, entry.resume_step
    if reached is None or cause is None or not cause.is_planned:
        return ""
    if saved is None:
        return f"step {reached} was reached, and no sub-job has reported a checkpoint"
    if saved >= reached:
        return f"saved at step {saved}"
    return f"step {reached} was reached, and all sub-jobs have saved step {saved}"


def has_lost(status: Object) -> bool:
    """Return whether a planned stop lost steps after the last checkpoint."""
    entry = checkpoint_of(status)
    return bool(stop_text(status)) and (entry.stopped_step or 0) > (entry.resume_step or 0)


def unkept_text(clusters: Sequence[str], refusal: str) -> str:
    """Return why the controller stops no sub-job that uses a claim in these clusters."""
    return (
        f"without its sub-job Karmada would delete the copy in {', '.join(clusters)}: the"
        f" controller does not stop the sub-job; {refusal}"
    )


class ClusterTrouble(enum.StrEnum):
    """Why the controller places nothing on a cluster."""

    REMOVED = "Removed"
    NOT_READY = "NotReady"
    TAINTED = "Tainted"
    NO_VCJOB_API = "NoVCJobAPI"
    NO_RESOURCE_SUMMARY = "NoResourceSummary"
    NO_READY_NODE = "NoReadyNode"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a cluster is not usable; `detail` is a condition's reason, or a taint."""

    code: ClusterTrouble
    detail: str = ""


_TROUBLES: Final = {
    ClusterTrouble.REMOVED: "is being removed",
    ClusterTrouble.NOT_READY: "is not Ready",
    ClusterTrouble.TAINTED: "has taint",
    ClusterTrouble.NO_VCJOB_API: (
        "does not serve batch.volcano.sh/v1alpha1 Job (is Volcano installed?)"
    ),
    ClusterTrouble.NO_RESOURCE_SUMMARY: "reports no resourceSummary",
    ClusterTrouble.NO_READY_NODE: "has no ready node",
}


def trouble_text(trouble: Trouble | None) -> str:
    """Return why a cluster is not usable, to follow its name; empty if it is."""
    if trouble is None:
        return ""
    text = _TROUBLES[trouble.code]
    if trouble.code is ClusterTrouble.TAINTED:
        return f"{text} {trouble.detail}"
    return f"{text} ({trouble.detail})" if trouble.detail else text


def closed_text(queue: str) -> str:
    """Return that a cluster has closed a queue, to follow the cluster's name."""
    return f"has closed queue {queue}"


def queue_closed_text(cluster: str, queue: str) -> str:
    """Return that a cluster has closed the queue of a sub-job that waits for its pods there."""
    return f"cluster {cluster} {closed_text(queue)}: Volcano creates no pod of it there"
