"""Causes of a HyperJob's lifecycle: deletion, no controller, suspension, its end. Pure."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Final

from hyperjob.client.durations import age
from hyperjob.client.reading import items
from hyperjob.client.summary import SubJob, Summary
from hyperjob.client.training import Training, training_of
from hyperjob.client.why.evidence import Cause, Evidence, is_older
from hyperjob_core.api.names import MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.wire import mapping, string, timestamp
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.text import human_duration
from hyperjob_engine.model.runs import Run
from hyperjob_engine.reasons.failure import container_text
from hyperjob_engine.reasons.reason import Reason

_FOREGROUND: Final = "foregroundDeletion"
_SILENT_SECONDS: Final = 900
_SILENT_STEPS: Final = 75
_SHOWN: Final = 3
_FAILURES: Final = (
    Reason.JOB_FAILED, Reason.CLUSTER_LOST, Reason.OBJECT_DELETED, Reason.NO_PROGRESS
)  # fmt: skip
_MADE_WAY: Final = (Reason.PREEMPTED, Reason.RECLAIMED)
_LOOK_THERE: Final = "check in the host cluster that hyperjob-controller runs"


def deleted(evidence: Evidence) -> Iterator[Cause]:
    """Yield the finalizer that delays a deletion."""
    summary = evidence.summary
    if not summary.deleting:
        return
    since = age(summary.deleting, evidence.now)
    names = ", ".join(summary.finalizers)
    held = f", held by finalizer {names}" if names else ""
    late = is_older(summary.deleting, evidence.now)
    command, text = "", ""
    # The controller and Karmada set no finalizer on a HyperJob; the garbage collector may.
    foreign = [name for name in summary.finalizers if name != _FOREGROUND]
    if late and foreign:
        command = f"kubectl get hj {summary.name} -n {summary.namespace} -o yaml"
        text = "; the controller that set it has to remove it"
    elif late:
        command = f"kubectl hyperjob tree {summary.name} -n {summary.namespace}"
        text = ": its sub-jobs go first"
    yield Cause(
        reason="BeingDeleted",
        message=f"is being deleted since {since}{held}{text}",
        next=command,
        needs_help=late and bool(foreign),
    )


def unobserved(evidence: Evidence) -> Iterator[Cause]:
    """Yield a cause if no controller has observed the present generation of the HyperJob."""
    summary = evidence.summary
    # A deletion increases the generation too, and the controller need not observe it.
    if summary.deleting or (summary.is_current and summary.has_status):
        return
    if summary.has_status:
        what = (
            f"no controller has observed generation {summary.generation}; the status is about"
            f" generation {summary.observed_generation} (changed"
        )
    else:
        what = "no controller has observed it: it has no status (created"
    changed = summary.changed or summary.created
    late = is_older(changed, evidence.now)
    # A controller that starts creates its Lease late; a Lease that nothing renews is a cause at
    # once.
    no_leader = list(_no_leader(evidence)) if late or items(evidence.lease) else []
    yield Cause(
        reason="NotObserved",
        message=f"{what} {age(changed, evidence.now)} ago)",
        next="kubectl hyperjob preflight",
        needs_help=late and not no_leader,
    )
    yield from no_leader


def suspended(evidence: Evidence) -> Iterator[Cause]:
    """Yield a cause if the HyperJob is suspended."""
    summary = evidence.summary
    if summary.suspend and not summary.has_ended:
        yield Cause(
            reason="Suspended",
            message="spec.suspend is true: the controller removes its sub-jobs from the clusters",
            next=f"kubectl hyperjob resume {summary.name} -n {summary.namespace}",
            needs_help=True,
        )


def failed(evidence: Evidence) -> Iterator[Cause]:
    """Yield each failed sub-job, and the command for its logs."""
    summary = evidence.summary
    for job in summary.jobs:
        if job.has_failed and job.reason != Reason.ENDED:
            why = (
                container_text(job.failure)
                if job.failure is not None
                else job.message or job.reason
            )
            why = why or "its cluster gives no message"
            yield Cause(
                reason=job.reason or "JobsFailed",
                message=f"{job.name} is {job.phase} on {job.cluster or 'no cluster'}: {why}",
                next=f"kubectl hyperjob logs {summary.name} -n {summary.namespace}"
                f" --job {job.name} --tail 50",
                needs_help=summary.phase in (Phase.FAILED, Phase.DEGRADED),
                log=job.failure.last_lines if job.failure is not None else (),
            )
    if summary.phase == Phase.FAILED and not any(job.has_failed for job in summary.jobs):
        yield Cause(
            reason=summary.reason or "Failed",
            message=summary.message or "it has failed",
            next=f"kubectl hyperjob describe {summary.name} -n {summary.namespace}",
            needs_help=True,
        )


def failed_before(evidence: Evidence) -> Iterator[Cause]:
    """Yield the failure of the last run of each restarted sub-job, the latest first."""
    summary = evidence.summary
    failures = [each for each in _last_runs(summary, _FAILURES) if not each[0].has_failed]
    failures.sort(key=lambda each: each[1].end, reverse=True)
    for job, run in failures[:_SHOWN]:
        text = container_text(run.failure) if run.failure is not None else run.message or run.phase
        where = f" on {run.cluster}" if run.cluster else ""
        yield Cause(
            reason=run.reason,
            message=f"attempt {run.attempt + 1} of {job.name} failed{where}"
            f" {age(run.end, evidence.now)} ago: {text}",
            next=f"kubectl hyperjob describe {summary.name} -n {summary.namespace}",
            log=run.failure.last_lines if run.failure is not None else (),
        )


def made_way(evidence: Evidence) -> Iterator[Cause]:
    """Yield the HyperJob for which a HyperJob that has not restarted was stopped."""
    summary = evidence.summary
    if summary.phase == Phase.RUNNING:
        return
    stopped = _last_runs(summary, _MADE_WAY)
    if stopped:
        job, run = max(stopped, key=lambda each: each[1].end)
        others = f" and {len(stopped) - 1} more" if len(stopped) > 1 else ""
        yield Cause(
            reason=run.reason,
            message=f"stopped {age(run.end, evidence.now)} ago: {job.name}{others} {run.message}",
            next=f"kubectl hyperjob describe {summary.name} -n {summary.namespace}",
        )


def _last_runs(summary: Summary, reasons: Collection[str]) -> list[tuple[SubJob, Run]]:
    """Return the sub-jobs whose last run ended for one of `reasons`, with that run."""
    runs = ((job, job.history[-1]) for job in summary.jobs if job.history)
    return [(job, run) for job, run in runs if run.reason in reasons]


def asked(evidence: Evidence) -> Iterator[Cause]:
    """Yield each requested restart or move that the controller has not accepted."""
    summary = evidence.summary
    for annotation, kind in ((RESTART_REQUEST, "restart"), (MIGRATE_REQUEST, "migrate")):
        words = summary.annotations.get(annotation, "").split()
        if not words or summary.requests.get(kind) == words[0]:
            continue
        if summary.has_ended:
            text = f"a {kind} was requested, but a HyperJob that has ended never runs again"
            yield Cause(
                reason="RequestRefused",
                message=text,
                next=f"kubectl annotate hj {summary.name} -n {summary.namespace} {annotation}-",
            )
        else:
            yield Cause(
                reason="RequestNotTaken",
                message=f"the controller has not accepted the requested {kind} ({words[0]}) yet",
                next=f"kubectl hyperjob describe {summary.name} -n {summary.namespace}",
            )


def _no_leader(evidence: Evidence) -> Iterator[Cause]:
    """Yield the state of leader election, if the Lease is readable."""
    if isinstance(evidence.lease, KubeError) and evidence.lease.http_code != 404:
        return
    where = evidence.lease_name
    if not evidence.lease or isinstance(evidence.lease, KubeError):
        yield Cause(
            reason="NoController",
            message=f"there is no Lease {where}: no controller has led there; {_LOOK_THERE}",
            next="kubectl get leases -A",
            needs_help=True,
        )
        return
    spec = mapping(evidence.lease[0].get("spec"))
    holder, renewed = string(spec.get("holderIdentity")), timestamp(spec.get("renewTime"))
    leader = evidence.leader
    if leader is not None and leader.leads:
        since = (
            human_duration((evidence.now - renewed).total_seconds()) if renewed else "unknown time"
        )
        yield Cause(
            reason="ControllerBusy",
            message=f"{holder} leads (Lease {where}, renewed {since} ago): look at its log",
        )
    else:
        last = age(spec.get("renewTime"), evidence.now)
        yield Cause(
            reason="NoController",
            message=f"no controller renews Lease {where}; {holder or 'a controller'} renewed it"
            f" {last} ago: {_LOOK_THERE}",
            next=f"kubectl get lease -n {where.replace('/', ' ')} -o yaml",
            needs_help=True,
        )


def stalled(evidence: Evidence) -> Iterator[Cause]:
    """Yield a cause if programs make no steps, or if none has reported progress for very long.

    The controller compares each program with its own pace, and reads what its processes do.
    """
    summary = evidence.summary
    if summary.stall is not None:
        message = summary.stall.message
    else:
        message = _silence(training_of(summary.training), evidence.now)
    if message:
        yield Cause(
            reason="NoProgress",
            message=message,
            next=f"kubectl hyperjob logs {summary.name} -n {summary.namespace} --since 15m",
            needs_help=True,
        )


def _silence(training: Training | None, now: datetime) -> str:
    """Return a text if a training has reported nothing for very long; else empty.

    That is 15 minutes, or the time of 75 steps if that is more.
    """
    if training is None or training.updated is None or not training.steps_per_second:
        return ""
    silent, speed = (now - training.updated).total_seconds(), training.steps_per_second
    if silent <= max(_SILENT_SECONDS, _SILENT_STEPS / speed):
        return ""
    return (
        f"the program has reported no progress for {human_duration(silent)}: it was"
        f" at step {training.step}, and made {speed:g} steps/s before"
    )
