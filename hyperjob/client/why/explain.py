"""Why a HyperJob does not run: its status, what the status cannot say, the next command. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from hyperjob.client.durations import age
from hyperjob.client.reading import Reading, event_time, items
from hyperjob.client.summary import Summary
from hyperjob.client.why.evidence import ON_ITS_WAY, Cause, Evidence, Explanation, Outcome
from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE, binding_name
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import at, string, timestamp
from hyperjob_core.kube.errors import Forbidden, KubeError
from hyperjob_core.text import listed
from hyperjob_engine.members.podtroubles import trouble_of
from hyperjob_engine.reasons.pods import (
    PodsTrouble,
    PodTrouble,
    container_text,
    pods_trouble_text,
    refused_text,
)
from hyperjob_engine.reasons.reason import NEVER_RUNS, Reason

_RIGHTS: Final = "docs/reference/cli.md#rights"


def explain(evidence: Evidence) -> Explanation:
    """Return the explanation of a HyperJob's state."""
    summary = evidence.summary
    causes = [*deleted(evidence), *unobserved(evidence)]
    if not summary.has_ended:
        causes += of_hyperjob(evidence)
    causes += failed(evidence)
    if not summary.has_ended:
        causes += [*in_members(evidence), *unbound(evidence), *by_karmada(evidence)]
        known = {cause.reason for cause in causes}
        causes += [each for each in of_sub_jobs(evidence) if each.reason not in known]
    if not causes and summary.phase not in (Phase.RUNNING, Phase.COMPLETED):
        causes = [by_status(evidence)]
    headline = _headline(evidence, causes)
    if not summary.has_ended:
        causes += earlier(evidence)
    # A cause that needs a person's action comes first: the other causes may end by themselves.
    causes.sort(key=lambda cause: not cause.needs_help)
    leader, waits = evidence.leader, summary.phase in (Phase.PENDING, Phase.QUEUED)
    return Explanation(
        summary=summary,
        outcome=_outcome(evidence, causes),
        headline=headline,
        causes=list(dict.fromkeys(causes)),
        unseen=_unseen(evidence),
        admission=leader.admission if leader is not None and waits else "",
    )


def _outcome(evidence: Evidence, causes: list[Cause]) -> Outcome:
    summary = evidence.summary
    if any(cause.needs_help for cause in causes) or summary.phase == Phase.FAILED:
        return Outcome.NEEDS_HELP
    settled = summary.phase in (Phase.RUNNING, Phase.COMPLETED) and summary.is_current
    return Outcome.FINE if settled and not summary.deleting else Outcome.WAITS


def _headline(evidence: Evidence, causes: list[Cause]) -> str:
    """Return the state of the HyperJob, with its message where it runs or there is no cause."""
    summary = evidence.summary
    if summary.deleting:
        return "is being deleted"
    if not summary.has_status:
        return "has no status yet"
    says = summary.message and (not causes or summary.phase == Phase.RUNNING)
    text = f": {summary.message}" if says else ""
    return f"is {summary.phase}{text}"


def _unseen(evidence: Evidence) -> list[str]:
    """Return the resources that could not be read: they may have the real cause."""
    readings: dict[str, Reading] = {
        "vcjobs": evidence.vcjobs,
        "resourcebindings": evidence.bindings,
        "events": evidence.events,
        "lease": evidence.lease,
        "events of bindings": evidence.of_bindings,
        **{f"pods of {name}": error for name, error in evidence.pod_errors.items()},
    }
    errors = {
        name: reading
        for name, reading in readings.items()
        if isinstance(reading, KubeError) and reading.http_code != 404
    }
    forbidden = [name for name, error in errors.items() if isinstance(error, Forbidden)]
    if len(forbidden) < 2:
        return [f"{name}: {error.message}" for name, error in errors.items()]
    others = [f"{name}: {errors[name].message}" for name in errors if name not in forbidden]
    return [f"{', '.join(forbidden)}: you have no right to read them (see {_RIGHTS})", *others]


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
_MADE_WAY: Final = frozenset({Reason.PREEMPTED, Reason.RECLAIMED, Reason.RESIZED})
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
        was = replace(job, cluster=run.cluster)
        yield _cause(evidence, run.reason, text, was, needs_help=False, log=log)


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


def by_karmada(evidence: Evidence) -> Iterator[Cause]:
    """Yield why Karmada does not deliver sub-jobs, such as an OverridePolicy that does not fit.

    Its only word is a Warning about the ResourceBinding.
    """
    last = {
        string(at(each, "involvedObject", "name")): each
        for each in sorted(items(evidence.of_bindings), key=event_time)
    }
    for job in evidence.unstarted() if last else ():
        event, since = last.get(binding_name(job.name)), timestamp(evidence.created(job))
        then = timestamp(event_time(event)) if event is not None else None
        if job.reason in ON_ITS_WAY and event and then and since and then >= since:
            text = f"{job.name}: Karmada: {string(event.get('message'))}"
            yield _cause(evidence, string(event.get("reason")), text, job, next_=_BINDING)


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
    # Karmada's scheduler says these three.
    "NoClusterFit": _BINDING,
    "SchedulerError": _BINDING,
    "QuotaExceeded": "kubectl get federatedresourcequotas -n {namespace} -o yaml",
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
