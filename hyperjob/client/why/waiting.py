"""Causes before a sub-job runs: queue, free accelerators, gang, Karmada, pods. Pure.

Each rule looks at the sub-jobs that do not run yet, and yields one cause for sub-jobs with the
same problem.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hyperjob.client.clusters import is_ready, no_device, why_not_ready
from hyperjob.client.durations import age
from hyperjob.client.queues import CLOSED
from hyperjob.client.reading import items
from hyperjob.client.summary import SubJob
from hyperjob.client.why.evidence import Cause, Evidence, is_older
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import GATE_HELD, binding_name
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.text import listed
from hyperjob_engine.model.clusterusage import room_of
from hyperjob_engine.reasons.failure import apply_failure
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.resources import is_extended

_NAMES_SHOWN: Final = 3
_SEE: Final = "kubectl hyperjob describe {name} -n {namespace}"
# Reasons of the status that no other rule explains: the next command, and whether a person must
# act.
_NEXT: Final[Mapping[str, tuple[str, bool]]] = {
    Reason.NAME_CONFLICT: (
        "kubectl get jobs.batch.volcano.sh,propagationpolicies -n {namespace} --show-labels",
        True,
    ),
    Reason.REFUSED: (_SEE, True),
    Reason.FAILED_CREATE: (_SEE, True),
    Reason.SUSPENDED_BY_POLICY: (
        "kubectl get propagationpolicy {job} -n {namespace} -o yaml",
        True,
    ),
    Reason.REFUSED_BY_CLUSTER: (_SEE, True),
    Reason.APPLY_FAILED: (_SEE, True),
    Reason.PODS_REFUSED: (_SEE, True),
    Reason.NOTHING_REPORTED: (_SEE, False),
    Reason.QUEUE_NOT_OPEN: ("kubectl get queues.scheduling.volcano.sh", True),
    Reason.QUEUE_LIMIT_REACHED: ("kubectl hyperjob top --by queue", False),
    Reason.EXCEEDS_QUEUE: ("kubectl get queues.scheduling.volcano.sh -o yaml", True),
    # The dispatcher is a process in the host cluster, to which this kubeconfig gives no access.
    Reason.DISPATCHER_SILENT: ("kubectl describe resourcebindings -n {namespace}", True),
    Reason.WAITING_FOR_SPLITTER: (_SEE, False),
    Reason.GANG_BACK_OFF: ("kubectl hyperjob top", False),
    Reason.RESTARTING: (_SEE, False),
    Reason.WAITING_FOR_DEPENDENCY: ("kubectl hyperjob tree {name} -n {namespace} -w", False),
    Reason.CLUSTER_NOT_READY: ("kubectl get clusters", True),
    Reason.CLUSTER_LOST: ("kubectl get clusters", True),
    Reason.OBJECT_DELETED: (_SEE, False),
}


def invalid(evidence: Evidence) -> Iterator[Cause]:
    """Yield a cause if the controller cannot carry out the spec."""
    summary = evidence.summary
    if summary.reason == Reason.INVALID_SPEC:
        yield Cause(
            reason=summary.reason,
            message=summary.message,
            next=f"kubectl edit hj {summary.name} -n {summary.namespace}",
            needs_help=True,
        )


def failed_at(evidence: Evidence) -> Iterator[Cause]:
    """Yield a cause if the controller has set the HyperJob aside after a bug."""
    summary = evidence.summary
    if summary.reason == Reason.INTERNAL_ERROR:
        yield Cause(
            reason=summary.reason,
            message=summary.message,
            next="kubectl --context host logs -n karmada-system deploy/hyperjob-controller"
            " | grep incident",
            needs_help=True,
        )


def message_of_status(evidence: Evidence) -> Iterator[Cause]:
    """Yield the controller's message for sub-jobs, once for sub-jobs with the same message."""
    summary = evidence.summary
    for reason, message, jobs in _alike(evidence.unstarted()):
        if reason in _NEXT:
            command, needs_help = _NEXT[reason]
            yield Cause(
                reason=reason,
                message=f"{_names(jobs)}: {message or reason}",
                next=command.format(
                    name=summary.name, namespace=summary.namespace, job=jobs[0].name
                ),
                needs_help=needs_help,
            )


def queued(evidence: Evidence) -> Iterator[Cause]:
    """Yield the queues that have not admitted sub-jobs, and their state."""
    jobs = [job for job in evidence.unstarted() if job.reason == Reason.WAITING_FOR_QUEUE]
    by_queue: dict[str, list[SubJob]] = {}
    for job in jobs:
        group = evidence.summary.group(job.group)
        by_queue.setdefault(group.queue if group else "default", []).append(job)
    for queue, members in by_queue.items():
        state = _queue_state(evidence, queue)
        if state == "Open" or state is None:
            yield _not_admitted(evidence, queue, members)
        else:
            text = f"is {state}" if state else "does not exist"
            yield Cause(
                reason="QueueNotOpen",
                message=f"queue {queue} {text}; {_names(members)} cannot be admitted",
                next=_to_open(queue, state),
                needs_help=True,
            )


def _to_open(queue: str, state: str) -> str:
    """Return the command for a queue that is not Open; without a `state` there is no Queue."""
    if state in CLOSED:
        return f"kubectl hyperjob queue open {queue}"
    named = f" {queue} -o yaml" if state else ""
    return f"kubectl get queues.scheduling.volcano.sh{named}"


def _not_admitted(evidence: Evidence, queue: str, members: Sequence[SubJob]) -> Cause:
    """Return why an open queue does not admit: the HyperJob's reason if its status has one."""
    summary = evidence.summary
    if summary.phase == Phase.QUEUED and summary.message:
        by_queue = ("kubectl hyperjob top --by queue", False)
        command, needs_help = _NEXT.get(summary.reason, by_queue)
        large, text = "", summary.message
        if summary.reason == Reason.QUEUE_NOT_OPEN:  # in each cluster that could take it
            command = _to_open(queue, "Closed")
        if summary.reason in (Reason.INSUFFICIENT_CAPACITY, Reason.EXCEEDS_CLUSTERS):
            command, large = "kubectl hyperjob top", too_large(evidence, members)
            if missing := _no_device(evidence, members):
                text, large, needs_help = missing, "", True
        return Cause(
            reason=summary.reason or Reason.WAITING_FOR_QUEUE,
            message=f"{text}{large}",
            next=command.format(name=summary.name, namespace=summary.namespace),
            needs_help=needs_help or bool(large),
        )
    message = members[0].message or "has not been admitted yet"
    return Cause(
        reason=Reason.WAITING_FOR_QUEUE,
        message=f"queue {queue}: {_names(members)}: {message}",
        next="kubectl hyperjob top --by queue",
    )


def no_room(evidence: Evidence) -> Iterator[Cause]:
    """Yield the missing resources of each cluster, and the clusters that are unusable."""
    jobs = [job for job in evidence.unstarted() if job.reason == Reason.INSUFFICIENT_CAPACITY]
    if not jobs:
        return
    if missing := _no_device(evidence, jobs):
        yield Cause(
            reason=Reason.INSUFFICIENT_CAPACITY,
            message=missing,
            next="kubectl hyperjob top --by cluster",
            needs_help=True,
        )
        return
    first, *rest = jobs
    more = f" (and {len(rest)} more)" if rest else ""
    free = _free(evidence, first)
    large = too_large(evidence, jobs)
    yield Cause(
        reason=Reason.INSUFFICIENT_CAPACITY,
        message=f"{first.name}{more}: {first.message or 'no cluster has room'}{free}{large}",
        next="kubectl hyperjob top",
        needs_help=bool(large),
    )
    if not isinstance(evidence.clusters, KubeError) and not evidence.clusters:
        yield Cause(
            reason="NoClusters",
            message="no member cluster has joined this Karmada",
            next="karmadactl join NAME --cluster-kubeconfig FILE",
            needs_help=True,
        )
    yield from _lost_clusters(evidence)


def lost(evidence: Evidence) -> Iterator[Cause]:
    """Yield the clusters with sub-jobs that are not Ready."""
    used = {job.cluster for job in evidence.summary.jobs if job.cluster and not job.has_ended}
    yield from _lost_clusters(evidence, only=used)


def held(evidence: Evidence) -> Iterator[Cause]:
    """Yield the sub-jobs for which the gate of a gang waits."""
    summary = evidence.summary
    waiting = [
        job for job in evidence.unstarted() if job.reason == Reason.WAITING_FOR_GANG and job.cluster
    ]
    if not waiting:
        return
    missing = [job for job in evidence.unstarted() if job not in waiting]
    others = f"; the gang still needs {_names(missing)}" if missing else ""
    yield Cause(
        reason=Reason.WAITING_FOR_GANG,
        message=f"{_names(waiting)} {_verb(waiting)} admitted and held{others}",
        next=f"kubectl hyperjob tree {summary.name} -n {summary.namespace} -w",
    )


def karmada(evidence: Evidence) -> Iterator[Cause]:
    """Yield Karmada's problems: no ResourceBinding, no suitable cluster, a failed apply."""
    namespace = evidence.summary.namespace
    for job in evidence.unstarted():
        vcjob = evidence.vcjob(job.name)
        raw = evidence.binding(binding_name(job.name))
        if raw is None:
            if vcjob is not None and not isinstance(evidence.bindings, KubeError):
                yield _no_binding(evidence, job, vcjob)
            continue
        # Importing the models takes a fifth of the command's CPU time.
        from hyperjob_engine.model.parse import parse_binding

        binding = parse_binding(raw)
        if at(raw, "spec", "suspension", "scheduling") is True and job.reason not in (
            Reason.WAITING_FOR_QUEUE,
            Reason.DISPATCHER_SILENT,
        ):
            yield Cause(
                reason="SchedulingSuspended",
                message=f"{job.name}: ResourceBinding {binding.name} has"
                " spec.suspension.scheduling, which HyperJob does not set: check whether Volcano"
                " Global is installed and the controller runs with --queue-admission"
                " volcano-global",
                next="kubectl hyperjob preflight",
                needs_help=True,
            )
        elif binding.apply_error and not (
            binding.gate == GATE_HELD
            or binding.dispatching_suspended  # HyperJob's own gate is not a failure
        ):
            reason, text = apply_failure(binding.cluster, binding.apply_error)
            yield Cause(
                reason=reason,
                message=f"{job.name} on {binding.cluster}: {text}{_no_webhook(evidence)}",
                next="kubectl hyperjob preflight"
                if evidence.lacks_defaults
                else f"kubectl get works -n karmada-es-{binding.cluster} -o wide",
                needs_help=True,
            )
        elif binding.unscheduled_reason and not binding.cluster:
            yield Cause(
                reason=binding.unscheduled_reason,
                message=f"{job.name}: Karmada: {binding.unscheduled_message}",
                next=f"kubectl describe resourcebinding {binding.name} -n {namespace}",
            )


def _no_webhook(evidence: Evidence) -> str:
    if not evidence.lacks_defaults:
        return ""
    return (
        "; the HyperJob was stored without defaults, so the API server did not call HyperJob's"
        " webhook: check the webhook, then delete the HyperJob and create it again"
    )


def _no_binding(evidence: Evidence, job: SubJob, vcjob: Object) -> Cause:
    """Return the cause that Karmada has not created a ResourceBinding for a vcjob.

    A failing webhook of HyperJob for ResourceBindings has this effect.
    """
    made = string(at(vcjob, "metadata", "creationTimestamp"))
    late = is_older(made, evidence.now)
    since = f" for {age(made, evidence.now)}" if made else ""
    return Cause(
        reason="NoBinding",
        message=f"{job.name}: Karmada has not created a ResourceBinding for its vcjob{since}"
        + ("; check that Karmada's controller manager and HyperJob's webhook run" if late else ""),
        next="kubectl hyperjob preflight"
        if late
        else f"kubectl describe jobs.batch.volcano.sh {job.name} -n {evidence.summary.namespace}",
        needs_help=late,
    )


def _lost_clusters(evidence: Evidence, *, only: set[str] | None = None) -> Iterator[Cause]:
    """Yield the clusters that are not Ready, of all or of `only` those that have sub-jobs.

    A person must act for sub-jobs that are on a lost cluster, not for those that wait for one.
    """
    for cluster in items(evidence.clusters):
        name = cluster["metadata"]["name"]
        if is_ready(cluster) or (only is not None and name not in only):
            continue
        there = [job for job in evidence.summary.jobs if job.cluster == name and not job.has_ended]
        stand = f"; {_names(there)} {_verb(there)} there" if there else ""
        yield Cause(
            reason="ClusterNotReady",
            message=f"cluster {name} is not Ready: {why_not_ready(cluster)}{stand}",
            next=f"kubectl describe cluster {name}",
            needs_help=only is not None,
        )


def _queue_state(evidence: Evidence, queue: str) -> str | None:
    """Return a queue's state; "" when the Queue does not exist, None when the state is unknown.

    A Queue without a state is unknown too: the queue admission decides whether it is open, and the
    HyperJob's status has the decision.
    """
    if isinstance(evidence.queues, KubeError):
        return None
    found = evidence.queue(queue)
    return "" if found is None else string(at(found, "status", "state")) or None


def _free(evidence: Evidence, job: SubJob) -> str:
    """Return the free accelerators by the clusters' status, which excludes reservations."""
    accelerator, number = evidence.summary.accelerators(job)
    if not number:
        return ""
    parts = [
        f"{cluster['metadata']['name']} {room_of(cluster).free.get(accelerator, 0) // NANO}"
        for cluster in items(evidence.clusters)
    ]
    more = f", and {len(parts) - 8} more clusters" if len(parts) > 8 else ""
    return f"; free by the clusters' status: {', '.join(parts[:8])}{more}" if parts else ""


def too_large(evidence: Evidence, jobs: Sequence[SubJob]) -> str:
    """Return a text if none of these sub-jobs would fit on empty clusters; else empty.

    It is empty without sub-jobs, and while a cluster is not Ready.
    """
    text = "; it is too large for every cluster, even an empty cluster, and never runs"
    if evidence.summary.reason == Reason.EXCEEDS_CLUSTERS:
        return text
    clusters = items(evidence.clusters)
    if not clusters or not all(map(is_ready, clusters)):
        return ""
    fits = any(_may_fit(evidence, job, clusters) for job in jobs)
    return "" if fits or not jobs else text


def _may_fit(evidence: Evidence, job: SubJob, clusters: Sequence[Object]) -> bool:
    """Return whether a sub-job may fit on an empty cluster, or an automatic split on all."""
    accelerator, number = evidence.summary.accelerators(job)
    group = evidence.summary.group(job.group)
    sizes = [room_of(cluster).allocatable.get(accelerator, 0) for cluster in clusters]
    most = sum(sizes) if group is not None and group.automatic else max(sizes)
    return most >= number * NANO


def _no_device(evidence: Evidence, jobs: Sequence[SubJob]) -> str:
    """Return a text if no cluster has the device that a sub-job requests; else empty."""
    reported = [room_of(cluster).allocatable for cluster in items(evidence.clusters)]
    if not reported or not all(reported):
        return ""
    devices = {name for each in reported for name in each if is_extended(name)}
    asked = [evidence.summary.accelerators(job)[0] for job in jobs]
    return next((no_device(name, devices) for name in asked if name and name not in devices), "")


def _alike(jobs: Sequence[SubJob]) -> list[tuple[str, str, list[SubJob]]]:
    """Return reason and message of the sub-jobs, with the sub-jobs that have both."""
    groups: dict[tuple[str, str], list[SubJob]] = {}
    for job in jobs:
        groups.setdefault((job.reason, job.message), []).append(job)
    return [(reason, message, members) for (reason, message), members in groups.items()]


def _names(jobs: Sequence[SubJob]) -> str:
    return listed([job.name for job in jobs], shown=_NAMES_SHOWN)


def _verb(jobs: Sequence[SubJob]) -> str:
    return "is" if len(jobs) == 1 else "are"
