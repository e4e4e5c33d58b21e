"""The words for why sub-jobs are made again, requests are refused, and a HyperJob ends."""

from collections.abc import Iterable
from datetime import timedelta
from typing import assert_never

from controller.model.outcomes import (
    AgainCause,
    AllCompleted,
    EndCause,
    Failed,
    FailedByRule,
    FailureCause,
    GivenBackWith,
    Loss,
    Lost,
    MadeWay,
    NeverCompleted,
    NoPodRan,
    OneCompleted,
    QuorumCompleted,
    RefusedRequest,
    Requested,
    RequestProblem,
    RestartsSpent,
    WithAll,
)
from controller.model.planned import Event
from controller.model.runs import ContainerFailure
from controller.model.wire import rfc3339
from controller.status.failure import container_text
from controller.status.shortage import shortage_text


def loss_text(loss: Loss) -> str:
    """Say what is the matter with a cluster, and when it counts as lost."""
    if loss.since is None:
        return f"cluster {loss.cluster} is gone"
    text = f"cluster {loss.cluster} is not Ready since {rfc3339(loss.since)}"
    if loss.is_lost:
        return f"{text} and counts as lost"
    return f"{text}, counts as lost from {rfc3339(loss.at)} on"


def failure_text(failure: FailureCause) -> str:
    """Say which sub-job failed, where and how."""
    match failure:
        case Failed():
            where = f" on {failure.cluster}" if failure.cluster else ""
            detail = _detail(failure.detail)
            return f"{failure.name} is {failure.phase}{where}{detail}"
        case Lost():
            return f"{failure.name} is lost: {loss_text(failure.loss)}"
        case _:
            assert_never(failure)


def _detail(detail: ContainerFailure | str) -> str:
    text = detail if isinstance(detail, str) else container_text(detail)
    return f": {text}" if text else ""


def again_text(cause: AgainCause) -> str:
    """Say why a sub-job is made again."""
    match cause:
        case Failed() | Lost():
            return failure_text(cause)
        case WithAll():
            return f"restarted with all, for {failure_text(cause.failure)}"
        case GivenBackWith():
            return f"given back with {cause.name}, of which no pod ran on {cause.cluster}"
        case NoPodRan():
            minutes = cause.limit / timedelta(minutes=1)
            return f"no pod of it ran on {cause.cluster} within {minutes:g} minutes"
        case MadeWay():
            if cause.preempted:
                return f"is preempted by {cause.other}, which is more urgent"
            return f"gives back what its queue was lent, for {cause.other}"
        case Requested():
            return f"{cause.kind} {cause.token} was asked for"
        case _:
            assert_never(cause)


def end_text(cause: EndCause) -> str:
    """Say how a HyperJob came to its end."""
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
            text = f"all {spent} restarts are spent" if spent else "maxRestarts is 0"
            return f"{failure_text(cause.failure)}; {text}"
        case _:
            assert_never(cause)


def refusal_events(refused: Iterable[RefusedRequest]) -> tuple[Event, ...]:
    """Return the events of requests that are not carried out."""
    return tuple(
        Event(
            type="Warning",
            reason="RequestRefused",
            action="Restart",
            note=f"{request.kind} {request.token}: {_refusal(request)}",
        )
        for request in refused
    )


def _refusal(request: RefusedRequest) -> str:
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
