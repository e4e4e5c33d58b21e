"""Messages about the end of a HyperJob, recreated sub-jobs and refused requests."""

from collections.abc import Iterable
from datetime import timedelta
from typing import assert_never

from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.outcomes import (
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
from hyperjob_engine.model.planned import Event
from hyperjob_engine.model.runs import ContainerFailure
from hyperjob_engine.status.failure import container_text
from hyperjob_engine.status.shortage import shortage_text


def loss_text(loss: Loss) -> str:
    """Return the trouble of a cluster, and from when on the cluster counts as lost."""
    if loss.since is None:
        return f"cluster {loss.cluster} is gone"
    text = f"cluster {loss.cluster} is not Ready since {rfc3339(loss.since)}"
    if loss.is_lost:
        return f"{text} and counts as lost"
    return f"{text}, counts as lost from {rfc3339(loss.at)} on"


def failure_text(failure: FailureCause) -> str:
    """Return which sub-job failed, on which cluster and how."""
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
    """Return why the controller recreates a sub-job."""
    match cause:
        case Failed() | Lost():
            return failure_text(cause)
        case WithAll():
            return f"restarted with all sub-jobs, because {failure_text(cause.failure)}"
        case GivenBackWith():
            return f"deleted together with {cause.name}, of which no pod ran on {cause.cluster}"
        case NoPodRan():
            minutes = cause.limit / timedelta(minutes=1)
            return f"none of its pods ran on {cause.cluster} within {minutes:g} minutes"
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
        case _:
            assert_never(cause)


def refusal_events(refused: Iterable[RefusedRequest]) -> tuple[Event, ...]:
    """Return the Events of refused requests."""
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
