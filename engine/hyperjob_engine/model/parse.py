"""Parsing of objects from the API server into the values of `hyperjob_engine.model.observed`.

A malformed field of another author's object reads as absent and never raises. The values keep only
the fields that a plan needs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from hyperjob_core.api import table
from hyperjob_core.api.choices import (
    DeadlineMode,
    DependencyStatus,
    FailurePolicyAction,
    OnNoProgress,
    SuccessOperator,
)
from hyperjob_core.api.defaults import complete_template
from hyperjob_core.api.duration import seconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import (
    GATE,
    LABEL_ATTEMPT,
    LABEL_CLAIMED,
    LABEL_HYPERJOB,
    LABEL_REPLICATED_JOB,
    UNCOUNTED,
    VCJOB_API_VERSION,
    VCJOB_KIND,
    WORLD,
)
from hyperjob_core.api.overlay import applied, size_in, sizes_of, taken
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import AlternativeStatus, GangStatus, JobStatus
from hyperjob_core.api.stops import DEFAULT_GRACE_SECONDS, DEFAULT_PATH, StopStatus
from hyperjob_core.api.wire import (
    at,
    condition,
    count,
    integer,
    mapping,
    natural,
    objects,
    one_of,
    string,
    string_map,
    strings,
    timestamp,
)
from hyperjob_engine.model.memo import Memo
from hyperjob_engine.model.observed import (
    Binding,
    Checkpoint,
    Deadline,
    Dependency,
    FailurePolicy,
    FailureRule,
    HyperJob,
    Job,
    Ownership,
    PodCounts,
    Policy,
    ReplicatedJob,
    ReportedStatus,
    SplitPolicy,
    SuccessPolicy,
    Task,
)
from hyperjob_engine.model.split import SplitError, split_scale

_MARKED_BY: Final = ("labels", "annotations")
_POD_COUNTERS: Final = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
_OPTIONS: Final[Memo[Object, tuple[bool, tuple[ReplicatedJob, ...]]]] = Memo()


def parse_hyperjob(raw: Object) -> HyperJob:
    """Parse a HyperJob; a field that the CRD's schema would refuse reads as absent."""
    metadata = mapping(raw.get("metadata"))
    spec = mapping(raw.get("spec"))
    status = mapping(raw.get("status"))
    had, records = taken(status), _records(status)
    return HyperJob(
        namespace=string(metadata.get("namespace")),
        name=string(metadata.get("name")),
        uid=string(metadata.get("uid")),
        resource_version=string(metadata.get("resourceVersion")),
        generation=count(metadata.get("generation")),
        deleting=metadata.get("deletionTimestamp") is not None,
        created=string(metadata.get("creationTimestamp")),
        replicated_jobs=tuple(
            _chosen(item, had, records.values(), quorum=integer(spec.get("quorum")))
            for item in objects(spec.get("replicatedJobs"))
            if string(item.get("name"))
        ),
        min_available=integer(spec.get("minAvailable")),
        max_domains=integer(spec.get("maxDomains")),
        status=status,
        records=records,
        annotations=string_map(metadata.get("annotations")),
        suspend=spec.get("suspend") is True,
        failure_policy=_failure_policy(spec.get("failurePolicy")),
        success_policy=_success_policy(spec.get("successPolicy")),
        ttl_seconds_after_finished=integer(spec.get("ttlSecondsAfterFinished")),
        deadline=_deadline(spec),
        plugins={
            name: strings(arguments) for name, arguments in mapping(spec.get("plugins")).items()
        },
        quorum=integer(spec.get("quorum")),
        on_no_progress=one_of(OnNoProgress, spec.get("onNoProgress")) or OnNoProgress.NOTIFY,
        checkpoint=_checkpoint(spec.get("checkpoint")),
        stop=table.read(StopStatus, status.get("stop")),
        resume_step=integer(at(status, "checkpoint", "resumeStep")),
        gang=table.read(GangStatus, status.get("gang")),
    )


def with_status(hyperjob: HyperJob, status: Object) -> HyperJob:
    """Return the HyperJob as it is after a write of this status."""
    records, gang = _records(status), table.read(GangStatus, status.get("gang"))
    return with_fields(replace(hyperjob, records=records, gang=gang), status)


def with_fields(hyperjob: HyperJob, status: Object) -> HyperJob:
    """Return the HyperJob with another status, whose `jobs` and `gang` are unchanged."""
    return replace(
        hyperjob,
        status=status,
        stop=table.read(StopStatus, status.get("stop")),
        resume_step=integer(at(status, "checkpoint", "resumeStep")),
    )


def parse_job(raw: Object, *, owner: HyperJob) -> Job:
    """Parse a vcjob; its `ownership` is in relation to the HyperJob `owner`."""
    metadata = mapping(raw.get("metadata"))
    spec = mapping(raw.get("spec"))
    labels = string_map(metadata.get("labels"))
    ownership, holder = _ownership(metadata, owner)
    attempt, marks = _attempt(metadata), string_map(metadata.get("annotations"))
    # A vcjob of another controller gets its defaults in the member cluster alone.
    whole = spec if spec.get("minAvailable") else complete_template(spec)
    return Job(
        name=string(metadata.get("name")),
        uid=string(metadata.get("uid")),
        deleting=metadata.get("deletionTimestamp") is not None,
        ownership=ownership,
        owner=holder,
        labelled=labels.get(LABEL_HYPERJOB) == owner.name
        and LABEL_REPLICATED_JOB in labels
        and labels.get(LABEL_ATTEMPT, "0") == str(attempt),
        attempt=attempt,
        tasks=tuple(
            Task(
                name=string(task.get("name")),
                replicas=count(task.get("replicas")),
                min_available=integer(task.get("minAvailable")),
            )
            for task in objects(whole.get("tasks"))
        ),
        min_available=integer(whole.get("minAvailable")),
        priority_class=string(spec.get("priorityClassName")),
        queue=string(spec.get("queue")),
        report=parse_report(raw.get("status")),
        created=timestamp(metadata.get("creationTimestamp")),
        world=marks.get(WORLD, ""),
        uncounted=tuple(filter(None, marks.get(UNCOUNTED, "").split(","))),
        claimed=LABEL_CLAIMED in labels,
        spec=spec,
    )


def parse_policy(raw: Object, *, owner: HyperJob) -> Policy:
    """Parse a PropagationPolicy; its `ownership` is in relation to the HyperJob `owner`."""
    metadata = mapping(raw.get("metadata"))
    ownership, holder = _ownership(metadata, owner)
    return Policy(
        name=string(metadata.get("name")),
        uid=string(metadata.get("uid")),
        deleting=metadata.get("deletionTimestamp") is not None,
        ownership=ownership,
        owner=holder,
        labelled=string_map(metadata.get("labels")).get(LABEL_HYPERJOB) == owner.name,
        attempt=_attempt(metadata),
        clusters=pinned_clusters(at(raw, "spec", "placement")),
        suspended=at(raw, "spec", "suspension", "dispatching") is True,
        gate=string_map(metadata.get("annotations")).get(GATE, ""),
    )


def parse_binding(raw: Object) -> Binding:
    """Parse a ResourceBinding."""
    metadata = mapping(raw.get("metadata"))
    spec = mapping(raw.get("spec"))
    status = mapping(raw.get("status"))
    clusters = objects(spec.get("clusters"))
    cluster = string(clusters[0].get("name")) if clusters else ""
    scheduled = condition(status, "Scheduled")
    fully_applied = condition(status, "FullyApplied")
    unscheduled = scheduled.get("status") == "False"
    reports = objects(status.get("aggregatedStatus"))
    item = next((each for each in reports if each.get("clusterName") == cluster), {})
    return Binding(
        name=string(metadata.get("name")),
        uid=string(metadata.get("uid")),
        job_uid=_job_uid(metadata, spec),
        stranger=_other_template(mapping(spec.get("resource"))),
        cluster=cluster,
        pins=pinned_clusters(spec.get("placement")),
        scheduling_suspended=at(spec, "suspension", "scheduling") is True,
        dispatching_suspended=at(spec, "suspension", "dispatching") is True,
        gate=string_map(metadata.get("annotations")).get(GATE, ""),
        unscheduled_reason=string(scheduled.get("reason")) if unscheduled else "",
        unscheduled_message=string(scheduled.get("message")) if unscheduled else "",
        applied=item.get("applied") is True,
        applied_since=timestamp(fully_applied.get("lastTransitionTime"))
        if fully_applied.get("status") == "True"
        else None,
        apply_error=string(item.get("appliedMessage")),
        report=parse_report(item.get("status")),
        requests=bool(mapping(at(spec, "replicaRequirements", "resourceRequest"))),
        workless_since=timestamp(fully_applied.get("lastTransitionTime"))
        if fully_applied.get("status") == "False" and not status.get("aggregatedStatus")
        else None,
        undelivered_since=timestamp(status.get("lastScheduledTime"))
        if scheduled.get("status") == "True" and not (fully_applied or item)
        else None,
    )


def parse_report(raw: object) -> ReportedStatus | None:
    """Parse the status of a vcjob; None if it has no phase."""
    status = mapping(raw)
    state = mapping(status.get("state"))
    phase = string(state.get("phase"))
    if not phase:
        return None
    message, again = string(state.get("message")), count(status.get("retryCount"))
    if again and not message and phase == JobPhase.FAILED:
        message = f"Volcano has restarted it {again} times, as often as `maxRetry` allows"
    counters = {name: count(status.get(name)) for name in _POD_COUNTERS}
    pods = _with_task_counts(counters, status.get("taskStatusCount"))
    return ReportedStatus(
        phase=JobPhase(phase),
        phase_text=phase,
        reason=string(state.get("reason")),
        message=message,
        last_transition=string(state.get("lastTransitionTime")),
        since=timestamp(state.get("lastTransitionTime")),
        pods=pods,
        unmoved=phase == JobPhase.PENDING
        and pods.total == pods.pending
        and not again
        and {string(item.get("status")) for item in objects(status.get("conditions"))} <= {phase},
        began=_began(status),
    )


def _began(status: Object) -> str:
    """Return when a vcjob first ran, by its conditions; empty if they do not say it."""
    times = [
        string(item.get("lastTransitionTime"))
        for item in objects(status.get("conditions"))
        if item.get("status") == JobPhase.RUNNING
    ]
    return min(filter(None, times), default="")


def pinned_clusters(placement: object) -> tuple[str, ...]:
    """Return the cluster names that a placement allows, in its order; empty means any."""
    groups = objects(mapping(placement).get("clusterAffinities"))
    affinities = groups or [mapping(mapping(placement).get("clusterAffinity"))]
    names = (name for item in affinities for name in strings(item.get("clusterNames")))
    return tuple(dict.fromkeys(names))


def controller_of(metadata: Object) -> Object:
    """Return the ownerReference with controller=true, or an empty object."""
    for each in objects(metadata.get("ownerReferences")):
        if each.get("controller") is True:
            return each
    return {}


def _job_uid(metadata: Object, spec: Object) -> str:
    """Return the UID of a ResourceBinding's vcjob; empty if its owner and its resource differ."""
    owner = string(controller_of(metadata).get("uid"))
    return owner if at(spec, "resource", "uid") in (None, "", owner) else ""


def _other_template(resource: Object) -> str:
    """Return apiVersion, kind and name of a ResourceBinding's object; empty if it is a vcjob."""
    version, kind = string(resource.get("apiVersion")), string(resource.get("kind"))
    if not kind or (version, kind) == (VCJOB_API_VERSION, VCJOB_KIND):
        return ""
    return f"{version} {kind} {string(resource.get('name'))}"


def _ownership(metadata: Object, owner: HyperJob) -> tuple[Ownership, str]:
    """Return the ownership of an object, and the kind and name of its other controller, if any."""
    reference = controller_of(metadata)
    if reference:
        if owner.uid and reference.get("uid") == owner.uid:
            return Ownership.OURS, ""
        return Ownership.FOREIGN, f"{string(reference.get('kind'))} {string(reference.get('name'))}"
    labels = string_map(metadata.get("labels"))
    if labels.get(LABEL_HYPERJOB) == owner.name:
        return Ownership.ORPHAN, ""
    return Ownership.FOREIGN, ""


def _chosen(
    raw: Object,
    had: Mapping[str, AlternativeStatus],
    records: Iterable[JobStatus],
    *,
    quorum: int | None,
) -> ReplicatedJob:
    """Parse a replicatedJob with the alternatives or size of the status, or with its first one."""
    given, options = _OPTIONS.of((id(raw), quorum), raw, partial(_options, quorum))
    if not given and options[0].wish is None:
        return options[0]
    before = had.get(options[0].name)
    wanted, own = before.name if before is not None else "", None
    first = [each for each in options if each.shape == options[0].shape]
    usual = next((each for each in first if each.size == each.wish), first[0])
    chosen = next((each for each in options if each.alternative == wanted), usual)
    if given and quorum is not None:
        own = {
            each.index: each.alternative
            for each in records
            if each.replicated_job == options[0].name and each.alternative
        }
        chosen = next((each for each in first if each.size == size_in(wanted)), usual)
    return replace(chosen, options=options, own=own)


def _options(quorum: int | None, raw: Object) -> tuple[bool, tuple[ReplicatedJob, ...]]:
    """Return whether a replicatedJob has alternatives, and it with each of them and of its sizes.

    Objects in the informer caches never change, and share the parts of a spec that stayed equal.
    """
    given = [each for each in objects(raw.get("alternatives")) if string(each.get("name"))]
    shapes = [(each["name"], applied(raw, each)) for each in given] or [("", raw)]
    options: list[ReplicatedJob] = []
    for name, made in shapes:
        whole = _replicated_job(made)
        for each in _sizes(made, whole, quorum, len(shapes)):
            text = f"{each.size} {name}".strip()
            options.append(replace(each, alternative=text, shape=name, wish=whole.size))
        if not options or options[-1].shape != name:
            options.append(replace(whole, alternative=name, shape=name))
    return bool(given), tuple(options)


def _sizes(
    raw: Object, whole: ReplicatedJob, quorum: int | None, shapes: int
) -> list[ReplicatedJob]:
    """Return a replicatedJob with each of its sizes, if it leaves it open, the largest first.

    A sub-job of a split keeps its size while it runs, so that with a quorum no size changes.
    """
    split = whole.split
    if split is None or not whole.is_auto:
        return [replace(whole, replicas=size) for size in sizes_of(raw, shapes=shapes)]
    if quorum is not None:
        return []
    try:
        scale = split_scale(split, whole.template)
    except SplitError:
        return []  # it makes the spec invalid
    sizes = filter(scale.divides, sizes_of(raw, scale.per_pod, shapes))
    return [replace(whole, split=replace(split, accelerators=size)) for size in sizes]


def _replicated_job(raw: Object) -> ReplicatedJob:
    """Parse a replicatedJob with its complete template; unknown dependencies are left out."""
    replicas = integer(raw.get("replicas"))
    metadata = mapping(raw.get("templateMetadata"))
    return ReplicatedJob(
        name=string(raw.get("name")),
        replicas=1 if replicas is None else max(replicas, 0),
        template=complete_template(mapping(raw.get("templateSpec"))),
        template_labels=string_map(metadata.get("labels")),
        template_annotations=string_map(metadata.get("annotations")),
        cluster_names=tuple(dict.fromkeys(strings(raw.get("clusterNames")))),
        required=raw.get("clusterPolicy") == "Required",
        split=_split(mapping(raw.get("splitPolicy"))),
        depends_on=tuple(
            Dependency(name=string(item.get("name")), status=status)
            for item in objects(raw.get("dependsOn"))
            if (status := one_of(DependencyStatus, item.get("status"))) is not None
        ),
    )


def _failure_policy(raw: object) -> FailurePolicy | None:
    """Parse `spec.failurePolicy`; None if absent. A rule with an unknown action is left out."""
    if not isinstance(raw, dict):
        return None
    return FailurePolicy(
        max_restarts=count(raw.get("maxRestarts")),
        rules=tuple(
            FailureRule(
                action=action,
                on_job_phases=frozenset(map(JobPhase, strings(rule.get("onJobPhases")))),
                on_cluster_lost=rule.get("onClusterLost") is True,
                targets=frozenset(strings(rule.get("targetReplicatedJobs"))),
            )
            for rule in objects(raw.get("rules"))
            if (action := one_of(FailurePolicyAction, rule.get("action"))) is not None
        ),
    )


def _success_policy(raw: object) -> SuccessPolicy | None:
    """Parse `spec.successPolicy`; None if it is absent. The operator is All unless it is Any."""
    if not isinstance(raw, dict):
        return None
    return SuccessPolicy(
        operator=one_of(SuccessOperator, raw.get("operator")) or SuccessOperator.ALL,
        targets=frozenset(strings(raw.get("targetReplicatedJobs"))),
    )


def _checkpoint(raw: object) -> Checkpoint | None:
    """Parse `spec.checkpoint`; None without a place.

    A claim is mounted at `path`; without a claim the place is `directory`.
    """
    if not isinstance(raw, dict):
        return None
    claim = string(raw.get("persistentVolumeClaim"))
    place = string(raw.get("path")) or DEFAULT_PATH if claim else string(raw.get("directory"))
    if not place:
        return None
    return Checkpoint(
        directory=place,
        claim=claim,
        grace_seconds=count(raw.get("gracePeriodSeconds")) or DEFAULT_GRACE_SECONDS,
        interval_seconds=count(raw.get("intervalSeconds")) or None,
    )


def _deadline(spec: Object) -> Deadline | None:
    """Parse the deadline; None without activeDeadlineSeconds. An unknown mode is RunTime."""
    limit = count(spec.get("activeDeadlineSeconds"))
    mode = one_of(DeadlineMode, spec.get("activeDeadlineMode")) or DeadlineMode.RUN_TIME
    return Deadline(seconds(limit), mode) if limit else None


def _attempt(metadata: Object) -> int:
    """Return the attempt in an object's label or annotation; without them it is the first, 0.

    The annotation repeats the label: an object whose labels a user removed stays of its attempt.
    """
    marks = (string_map(metadata.get(kind)).get(LABEL_ATTEMPT, "") for kind in _MARKED_BY)
    return max(natural(text) or 0 for text in marks)


def _split(raw: Object) -> SplitPolicy | None:
    """Parse a split policy; None for a static one without accelerators and acceleratorType."""
    policy = SplitPolicy(
        mode=string(raw.get("mode")) or "static",
        accelerators=integer(raw.get("accelerators")),
        accelerator_type=string(raw.get("acceleratorType")) or None,
    )
    given = policy.accelerators is not None or policy.accelerator_type is not None
    return policy if given or policy.mode != "static" else None


def _records(status: Object) -> dict[str, JobStatus]:
    """Return the entries of `status.jobs` by name."""
    return {record.name: record for record in table.read_all(JobStatus, status.get("jobs"))}


def _with_task_counts(counters: Mapping[str, int], tasks: object) -> PodCounts:
    """Return the vcjob's pod counts, from its tasks if Karmada's interpreter dropped a counter."""
    by_phase: dict[str, int] = {}
    for task in mapping(tasks).values():
        for phase, number in mapping(mapping(task).get("phase")).items():
            key = str(phase).lower()
            by_phase[key] = by_phase.get(key, 0) + count(number)
    return PodCounts(
        **{name: max(number, by_phase.get(name, 0)) for name, number in counters.items()}
    )
