"""What a plan intends for one sub-job: the bridge from decision to status.

Carries words already chosen; takes no decision.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from controller.expansion.expand import SubJob
from controller.lifecycle.verdict import End
from controller.model.child import Child
from controller.model.observed import GangRecord, Rejection, Silence, Verdict


class Reason(enum.StrEnum):
    """Why a HyperJob or a sub-job is where it is; one word for programs."""

    # nothing stands yet
    INSUFFICIENT_CAPACITY = "InsufficientCapacity"
    WAITING_FOR_SPLITTER = "WaitingForSplitter"
    NAME_CONFLICT = "NameConflict"
    REFUSED = "Refused"
    BEING_DELETED = "BeingDeleted"
    INVALID_SPEC = "InvalidSpec"
    GANG_BACK_OFF = "GangBackOff"
    WAITING_FOR_HOST = "WaitingForHost"
    # waits for its queue, or stands and does not run
    SUSPENDED = "Suspended"
    RESTARTING = "Restarting"
    WAITING_FOR_DEPENDENCY = "WaitingForDependency"
    WAITING_FOR_QUEUE = "WaitingForQueue"
    QUEUE_NOT_OPEN = "QueueNotOpen"
    QUEUE_LIMIT_REACHED = "QueueLimitReached"
    EXCEEDS_QUEUE = "ExceedsQueue"
    WAITING_FOR_GANG = "WaitingForGang"
    SUSPENDED_BY_POLICY = "DispatchingSuspended"
    DISPATCHING = "Dispatching"
    NOTHING_REPORTED = "NothingReported"
    APPLY_FAILED = "ApplyFailed"
    REFUSED_BY_CLUSTER = "RefusedByCluster"
    PODS_PENDING = "PodsPending"
    CLUSTER_NOT_READY = "ClusterNotReady"
    CLUSTER_LOST = "ClusterLost"
    # runs, or has run
    JOBS_RUNNING = "JobsRunning"
    MIN_AVAILABLE_NOT_MET = "MinAvailableNotMet"
    JOBS_COMPLETED = "JobsCompleted"
    JOBS_FAILED = "JobsFailed"
    JOBS_ABORTED = "JobsAborted"
    SUCCESS_POLICY = "SuccessPolicySatisfied"
    FAILURE_POLICY = "FailurePolicy"
    MAX_RESTARTS = "MaxRestartsExceeded"
    DEPENDENCY_FAILED = "DependencyFailed"
    ENDED = "EndedWithHyperJob"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A sub-job, its objects, and what keeps it from being made, if anything does.

    `cluster_trouble` says what is the matter with its cluster, `lost` that it counts as lost;
    `ended` says why the end of the HyperJob ended it too; `unheard` that its cluster is silent.
    """

    sub_job: SubJob
    child: Child
    cluster: str = ""
    blocked: str = ""
    message: str = ""
    opening: bool = False
    admitted: bool = False
    cluster_trouble: str = ""
    lost: bool = False
    ended: str = ""
    no_room: str = ""
    note: str = ""
    rejections: tuple[Rejection, ...] = ()
    silence: Silence | None = None
    unheard: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlooks:
    """All sub-jobs of a HyperJob in the order of its spec, and how many must run together.

    `never`: not even empty clusters would hold as many as are `needed`.
    """

    items: Sequence[Outlook]
    minimum: int
    room_for: int = 0
    needed: int = 0
    never: bool = False
    verdict: Verdict | None = None
    suspended: bool = False
    end: End | None = None
    gang: GangRecord | None = None
