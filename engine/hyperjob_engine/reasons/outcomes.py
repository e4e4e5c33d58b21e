"""Why the controller recreates sub-jobs, refuses requests and ends a HyperJob, with sentences."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias, assert_never

from hyperjob_core.api.choices import DeadlineMode
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.reasons.failure import ContainerFailure, container_text
from hyperjob_engine.reasons.hindrance import queue_closed_text
from hyperjob_engine.reasons.podsrefused import refused_text
from hyperjob_engine.reasons.shortage import Shortage, shortage_text
from hyperjob_engine.reasons.stall import Stalled, stalled_text


class Missing(enum.StrEnum):
    """The object of a started sub-job that another client deleted; its pods are deleted with it."""

    CLUSTER = "Cluster"
    BINDING = "ResourceBinding"
    WORK = "Work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A sub-job whose cluster is not Ready, or that lacks an object; it is lost from `at` on.

    `since` is when the Cluster stopped being Ready; None with a `missing` object.
    """

    cluster: str
    at: datetime
    is_lost: bool
    since: datetime | None = None
    missing: Missing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A sub-job failed; `detail` is its first failed container, else the message of Volcano."""

    name: str
    phase: JobPhase
    cluster: str = ""
    detail: ContainerFailure | str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """The cluster of a sub-job is lost."""

    name: str
    loss: Loss


FailureCause: TypeAlias = Failed | Lost
SpentCause: TypeAlias = FailureCause | Stalled
"""The causes of restarts that count against maxRestarts."""


@dataclass(frozen=True, slots=True)
class WithAll:
    """The controller recreates all sub-jobs because one failed or makes no steps."""

    failure: SpentCause


@dataclass(frozen=True, slots=True)
class GivenBackWith:
    """The controller deletes the sub-job with another of its gang, `name`, of which no pod ran."""

    name: str
    cluster: str


@dataclass(frozen=True, slots=True)
class NoPodRan:
    """No pod of the sub-job ran on the cluster in time."""

    cluster: str
    limit: timedelta


@dataclass(frozen=True, slots=True)
class PodsNotAllowed:
    """The cluster refused the pods of the sub-job, in these words."""

    cluster: str
    message: str


@dataclass(frozen=True, slots=True)
class QueueClosedThere:
    """The cluster has closed the queue of the sub-job before a pod ran."""

    cluster: str
    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeWay:
    """The HyperJob makes way for `other`: the lender's, or a HyperJob of higher priority."""

    other: str
    preempted: bool


@dataclass(frozen=True, slots=True)
class Requested:
    """A person requested it by an annotation; `token` is its value."""

    kind: str
    token: str


AgainCause: TypeAlias = (
    SpentCause
    | WithAll
    | GivenBackWith
    | NoPodRan
    | PodsNotAllowed
    | QueueClosedThere
    | MadeWay
    | Requested
)


@dataclass(frozen=True, slots=True)
class OneCompleted:
    """A sub-job completed, and the success policy has the operator Any."""

    name: str


@dataclass(frozen=True, slots=True)
class AllCompleted:
    """All sub-jobs that the success policy names completed."""

    number: int


@dataclass(frozen=True, slots=True)
class QuorumCompleted:
    """`completed` of the `total` sub-jobs that train completed, a quorum, and no other runs."""

    completed: int
    total: int


@dataclass(frozen=True, slots=True)
class NeverCompleted:
    """The sub-jobs `names` did not complete, and others depend on them."""

    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class FailedByRule:
    """A rule of the failure policy fails the HyperJob; `rule` is its field."""

    failure: FailureCause
    rule: str


@dataclass(frozen=True, slots=True)
class RestartsSpent:
    """A sub-job failed after the last restart that `maxRestarts` allows."""

    failure: SpentCause
    max_restarts: int


@dataclass(frozen=True, slots=True)
class DeadlinePassed:
    """The time that counts against `activeDeadlineSeconds` has reached the limit."""

    limit: timedelta
    mode: DeadlineMode


EndCause: TypeAlias = (
    OneCompleted
    | AllCompleted
    | QuorumCompleted
    | NeverCompleted
    | FailedByRule
    | RestartsSpent
    | DeadlinePassed
)


class RequestProblem(enum.StrEnum):
    """Why a request is refused."""

    HAS_ENDED = "HasEnded"
    UNKNOWN_SUB_JOB = "UnknownSubJob"
    NO_SUB_JOB = "NoSubJob"
    COMPLETED = "Completed"
    NO_OTHER_CLUSTER = "NoOtherCluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRequest:
    """A request that the controller refuses, for the whole HyperJob or for the sub-jobs `names`.

    `cluster` and `shortages` are set for NO_OTHER_CLUSTER.
    """

    kind: str
    token: str
    problem: RequestProblem
    names: Sequence[str] = ()
    cluster: str = ""
    shortages: Sequence[Shortage] = ()


def loss_text(loss: Loss) -> str:
    """Return the trouble of a cluster, and from when on the cluster counts as lost."""
    if loss.missing is Missing.BINDING:
        return f"its ResourceBinding was deleted, and Karmada deleted its pods on {loss.cluster}"
    if loss.missing is Missing.WORK:
        return f"its Work was deleted, and Karmada deleted its pods on {loss.cluster}"
    if loss.since is None:
        return f"cluster {loss.cluster} is gone"
    text = f"cluster {loss.cluster} is not Ready since {rfc3339(loss.since)}"
    if loss.is_lost:
        return f"{text} and counts as lost"
    return f"{text}, counts as lost from {rfc3339(loss.at)} on"


def failure_text(failure: SpentCause) -> str:
    """Return which sub-job failed, on which cluster and how."""
    match failure:
        case Failed():
            where = f" on {failure.cluster}" if failure.cluster else ""
            detail = _detail(failure.detail)
            return f"{failure.name} is {failure.phase}{where}{detail}"
        case Lost():
            return f"{failure.name} is lost: {loss_text(failure.loss)}"
        case Stalled():
            return stalled_text(failure)
        case _:
            assert_never(failure)


def _detail(detail: ContainerFailure | str) -> str:
    text = detail if isinstance(detail, str) else container_text(detail)
    return f": {text}" if text else ""


def again_text(cause: AgainCause) -> str:
    """Return why the controller recreates a sub-job."""
    match cause:
        case Failed() | Lost() | Stalled():
            return failure_text(cause)
        case WithAll():
            return f"restarted with all sub-jobs, because {failure_text(cause.failure)}"
        case GivenBackWith():
            return f"deleted together with {cause.name}, of which no pod ran on {cause.cluster}"
        case NoPodRan():
            minutes = cause.limit / timedelta(minutes=1)
            return f"none of its pods ran on {cause.cluster} within {minutes:g} minutes"
        case PodsNotAllowed():
            return refused_text(cause.cluster, cause.message)
        case QueueClosedThere():
            return queue_closed_text(cause.cluster, cause.queue)
        case MadeWay():
            if cause.preempted:
                return f"is preempted by {cause.other}, which has a higher priority"
            return f"makes way for {cause.other}, whose queue takes back what it lent"
        case Requested():
            return f"{cause.kind} {cause.token} was requested"
        case _:
            assert_never(cause)


def end_text(cause: EndCause) -> str:
    """Return why a HyperJob ended."""
    match cause:
        case OneCompleted():
            return f"{cause.name} completed, and successPolicy asks for any one"
        case AllCompleted():
            return f"all {cause.number} sub-jobs that successPolicy names completed"
        case QuorumCompleted():
            return f"{cause.completed} of {cause.total} sub-jobs completed, and no other runs"
        case NeverCompleted():
            return f"{', '.join(cause.names)} did not complete, and others wait for it"
        case FailedByRule():
            return f"{failure_text(cause.failure)}; {cause.rule} fails the HyperJob"
        case RestartsSpent():
            spent = cause.max_restarts
            text = f"all {spent} restarts are used up" if spent else "maxRestarts is 0"
            return f"{failure_text(cause.failure)}; {text}"
        case DeadlinePassed():
            time = "run time" if cause.mode is DeadlineMode.RUN_TIME else "time since its creation"
            return (
                f"activeDeadlineSeconds has passed: {cause.limit.total_seconds():.0f} s of {time}"
            )
        case _:
            assert_never(cause)


def refusal_text(request: RefusedRequest) -> str:
    """Return why the controller refuses a request."""
    names = ", ".join(request.names)
    match request.problem:
        case RequestProblem.HAS_ENDED:
            return "the HyperJob has ended, create a new one"
        case RequestProblem.UNKNOWN_SUB_JOB:
            return f"there is no sub-job {names}"
        case RequestProblem.NO_SUB_JOB:
            return "names no sub-job to move"
        case RequestProblem.COMPLETED:
            return f"{names} has completed"
        case RequestProblem.NO_OTHER_CLUSTER:
            why = "; ".join(map(shortage_text, request.shortages))
            return f"{names} stays on {request.cluster}: {why}"
        case _:
            assert_never(request.problem)
