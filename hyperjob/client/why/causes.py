"""Why a HyperJob does not run: its status, and what the status cannot say. Pure."""

from collections.abc import Iterator
from typing import Final

from hyperjob.client.durations import age
from hyperjob.client.why.evidence import Cause, Evidence
from hyperjob.client.why.next import LOGS, NEEDS_HELP, command
from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE, binding_name
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import at, string, timestamp
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.text import listed
from hyperjob_engine.members.podtroubles import trouble_of
from hyperjob_engine.reasons.pods import (
    PodsTrouble,
    PodTrouble,
    container_text,
    pods_trouble_text,
    refused_text,
)
from hyperjob_engine.reasons.reason import Reason

_SHOWN: Final = 3
_OF_ALL: Final = frozenset(
    {Reason.INVALID_SPEC, Reason.INTERNAL_ERROR, Reason.NO_PROGRESS, Reason.SLOW_PROGRESS}
)
"""Reasons of a HyperJob whose sub-jobs may be in any state."""
_LOST: Final = frozenset({Reason.CLUSTER_NOT_READY, Reason.CLUSTER_LOST})
_WAITING: Final = frozenset(
    {
        Reason.WAITING_FOR_QUEUE,
        Reason.INSUFFICIENT_CAPACITY,
        Reason.WAITING_FOR_GANG,
        Reason.SUSPENDED,
    }
)
"""Reasons of sub-jobs that say no more than the state of their HyperJob."""
_MADE_WAY: Final = frozenset({Reason.PREEMPTED, Reason.RECLAIMED})
_FAILURES: Final = frozenset(
    {Reason.JOB_FAILED, Reason.CLUSTER_LOST, Reason.OBJECT_DELETED, Reason.NO_PROGRESS}
)
_BY_PODS: Final = frozenset({Reason.PODS_BLOCKED, Reason.TASKS_FAILED, Reason.CRASH_LOOP})
"""Reasons of sub-jobs that the controller has read from their pods."""


def deleted(evidence: Evidence) -> Iterator[Cause]:
    """Yield the finalizers that delay a deletion."""
    summary = evidence.summary
    if summary.deleting:
        names = ", ".join(summary.finalizers)
        held = f", held by finalizer {names}" if names else ""
        text = f"is being deleted since {age(summary.deleting, evidence.now)}{held}"
        # The controller and Karmada set no finalizer on a HyperJob; the garbage collector may.
        foreign = any(name != "foregroundDeletion" for name in summary.finalizers)
        stuck = foreign and evidence.is_old(summary.deleting)
        if stuck:
            text = f"{text}; the controller that set it has to remove it"
        yield _cause(evidence, Reason.BEING_DELETED, text, needs_help=stuck)


def unobserved(evidence: Evidence) -> Iterator[Cause]:
    """Yield a cause if no controller has observed the present generation of the HyperJob."""
    summary, leader = evidence.summary, evidence.leader
    # A deletion increases the generation too, and the controller need not observe it.
    if summary.deleting or (summary.is_current and summary.has_status):
        return
    what, changed = "it: it has no status (created", summary.changed or summary.created
    if summary.has_status:
        what = (
            f"generation {summary.generation}; the status is about generation"
            f" {summary.observed_generation} (changed"
        )
    text = f"no controller has observed {what} {age(changed, evidence.now)} ago)"
    late, unread = evidence.is_old(changed), isinstance(evidence.lease, KubeError)
    yield _cause(evidence, "NotObserved", text, needs_help=late and unread)
    where = f"Lease {LEASE_NAMESPACE}/{LEASE_NAME}"
    check = "check in the host cluster that hyperjob-controller runs"
    if leader is not None:
        since = "" if leader.renewed is None else leader.renewed.isoformat()
        renewed = f"renewed it {age(since, evidence.now)} ago"
        if not leader.leads:
            text = f"no controller renews {where}; {leader.holder or 'a controller'} {renewed}"
            yield _cause(evidence, "NoController", f"{text}: {check}")
        elif late:
            text = f"{leader.holder} leads, by {where}, and {renewed}: look at its log"
            yield _cause(evidence, "ControllerBusy", text)
    elif late and not unread:
        text = f"there is no {where}: no controller has led there; {check}"
        yield _cause(evidence, "NoController", text)


def of_hyperjob(evidence: Evidence) -> Iterator[Cause]:
    """Yield the state of a HyperJob where it explains all of its sub-jobs."""
    summary = evidence.summary
    waits = summary.phase in (Phase.PENDING, Phase.QUEUED, Phase.STOPPING, Phase.SUSPENDED)
    if summary.has_status and (waits or summary.reason in _OF_ALL):
        yield by_status(evidence)


def by_status(evidence: Evidence) -> Cause:
    """Return the state of a HyperJob as a cause."""
    summary, first = evidence.summary, next(iter(evidence.unstarted()), None)
    text = summary.message or f"it is {summary.phase}"
    return _cause(evidence, summary.reason or summary.phase, text, first)


def of_sub_jobs(evidence: Evidence) -> Iterator[Cause]:
    """Yield the reasons of sub-jobs that do not run or may not, once for an equal message."""
    summary = evidence.summary
    said = {summary.reason, *_WAITING} if any(of_hyperjob(evidence)) else set()
    shown = _LOST | _BY_PODS
    lost = [job for job in summary.jobs if not job.has_ended and job.reason in shown]
    alike: dict[tuple[str, str], list[JobStatus]] = {}
    for job in dict.fromkeys([*evidence.unstarted(), *lost]):
        if job.reason and job.reason not in said:
            alike.setdefault((job.reason, job.message), []).append(job)
    for (reason, message), jobs in alike.items():
        names = listed([job.name for job in jobs], shown=_SHOWN)
        yield _cause(evidence, reason, f"{names}: {message or reason}", jobs[0])


def failed(evidence: Evidence) -> Iterator[Cause]:
    """Yield each failed sub-job, with its first failed container."""
    final = evidence.summary.phase in (Phase.FAILED, Phase.DEGRADED)
    for job in evidence.summary.jobs:
        if job.has_failed and job.reason != Reason.ENDED:
            why = container_text(job.failure) if job.failure is not None else ""
            why = why or job.message or job.reason or "its cluster gives no message"
            yield _cause(
                evidence,
                job.reason or Reason.JOBS_FAILED,
                f"{job.name} is {job.phase} on {job.cluster or 'no cluster'}: {why}",
                job,
                next_=LOGS,
                needs_help=final,
                log=job.failure.last_lines if job.failure is not None else (),
            )


def earlier(evidence: Evidence) -> Iterator[Cause]:
    """Yield the last failed runs of sub-jobs, and for whom those that do not run were stopped."""
    runs = evidence.summary.phase == Phase.RUNNING
    reasons = _FAILURES if runs else _FAILURES | _MADE_WAY
    last = [(job, job.history[-1]) for job in evidence.summary.jobs if job.history]
    last = [(job, run) for job, run in last if run.reason in reasons and not job.has_failed]
    for job, run in sorted(last, key=lambda each: each[1].end, reverse=True)[:_SHOWN]:
        how = container_text(run.failure) if run.failure is not None else run.message or run.phase
        where = f" on {run.cluster}" if run.cluster else ""
        since = age(run.end, evidence.now)
        text = f"attempt {run.attempt + 1} of {job.name}{where} ended {since} ago: {how}"
        log = run.failure.last_lines if run.failure is not None else ()
        yield _cause(evidence, run.reason, text, needs_help=False, log=log)


def unbound(evidence: Evidence) -> Iterator[Cause]:
    """Yield the vcjobs without a ResourceBinding for long: a failing webhook has this effect."""
    if isinstance(evidence.bindings, KubeError):
        return
    bound = {each["metadata"]["name"] for each in evidence.bindings}
    for job in evidence.unstarted():
        since = evidence.created(job)
        if evidence.is_old(since) and binding_name(job.name) not in bound:
            text = (
                f"{job.name}: Karmada has not created a ResourceBinding for its vcjob for"
                f" {age(since, evidence.now)}; check that Karmada's controller manager and"
                " HyperJob's webhook run"
            )
            yield _cause(evidence, "NoBinding", text)


def in_members(evidence: Evidence) -> Iterator[Cause]:
    """Yield what members show of sub-jobs of which the controller says nothing, each reason once.

    It reads no pods with `--members off`.
    """
    seen: dict[PodTrouble, list[tuple[str, JobStatus]]] = {}
    for job in evidence.summary.jobs:
        for pod in evidence.pods.get(job.name, ()) if job.reason not in _BY_PODS else ():
            found = trouble_of(pod)
            if found is not None and found.trouble.words:
                seen.setdefault(found.trouble, []).append(
                    (string(at(pod, "metadata", "name")), job)
                )
    for trouble in sorted(seen, key=lambda each: each.order)[:_SHOWN]:
        name, job = seen[trouble][0]
        shown = PodsTrouble(trouble=trouble, pod=f"{job.cluster}/{name}", pods=len(seen[trouble]))
        yield _cause(evidence, trouble.reason, pods_trouble_text(shown), job)
    for job in evidence.unstarted():
        refused, since = evidence.pods_refused.get(job.name), timestamp(evidence.created(job))
        # An older Event is about an earlier vcjob of the name.
        if refused is not None and since is not None and since <= refused.last:
            text = f"{job.name}: {refused_text(job.cluster, refused.message)}"
            yield _cause(evidence, Reason.PODS_REFUSED, text, job)


def _cause(
    evidence: Evidence,
    reason: str,
    message: str,
    job: JobStatus | None = None,
    *,
    next_: str = "",
    needs_help: bool | None = None,
    log: tuple[str, ...] = (),
) -> Cause:
    """Return a cause; its command and whether a person must act are by default of its reason."""
    if needs_help is None:
        needs_help = reason in NEEDS_HELP or evidence.summary.phase == Phase.FAILED
    return Cause(
        reason=reason,
        message=message,
        next=command(evidence.summary, reason, job, form=next_),
        needs_help=needs_help,
        log=log,
    )
