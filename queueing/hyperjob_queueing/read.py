"""The queue engine's view of a HyperJob (`QueuedHyperJob`), from its observed objects.

A sub-job holds a share by the objects and the status alone: a restarted controller finds the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

from hyperjob_core.api.choices import DeadlineMode
from hyperjob_core.api.duration import micro_time, seconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import GATE_OPEN, child_name
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.wire import mapping, rfc3339, string
from hyperjob_engine.expansion.auto import part_of, pieces
from hyperjob_engine.expansion.expand import (
    SpecError,
    demand_of,
    demand_of_all,
    expand,
    expand_group,
    sub_jobs,
)
from hyperjob_engine.expansion.members import growth, members_of, spare
from hyperjob_engine.gang.gang import is_opened, is_ungated
from hyperjob_engine.gang.giveback import backs_off, gives_back
from hyperjob_engine.lifecycle.dependencies import waiting
from hyperjob_engine.lifecycle.finished import together
from hyperjob_engine.lifecycle.stops import latest_reports
from hyperjob_engine.model.observed import (
    Binding,
    HyperJob,
    Observed,
    Ownership,
    PodCounts,
    ReplicatedJob,
    grace_of,
)
from hyperjob_engine.model.request import ClosedQueue, PlacementRequest
from hyperjob_engine.model.subjobs import (
    Child,
    Group,
    SubJob,
    child_of,
    choice_of,
    choice_text,
    choices,
    choosing,
    closed_queue_of,
    queue_of,
)
from hyperjob_engine.placement.share import Wish
from hyperjob_queueing.sizes import Took, estimated, is_beyond, remaining, template_of, with_sizes
from hyperjob_queueing.workload import (
    NONE,
    QueuedHyperJob,
    QueuedSubJob,
    has_made_way,
)

_DEFAULT_QUEUE: Final = "default"
_LEAST_GRACE: Final = 2
"""Seconds that the kubelet lets a container end, also with a grace period of 0."""


def unit_of(observed: Observed, took: Took | None = None) -> QueuedHyperJob | None:
    """Return a HyperJob for the queue engine; None if it holds no share and does not wait.

    While it holds nothing it may have any of its alternatives. `took` says what earlier runs of a
    template took. `observed` has no clusters and no verdict: a HyperJob is read again when one of
    its objects changes, not when a cluster does.
    """
    unit, hyperjob = _unit_of(observed, took), observed.hyperjob
    if unit is not None and unit.elastic and unit.held:
        unit = with_sizes(unit, observed)
    if unit is None or not unit.parts:  # with another size it does not wait either
        return unit
    if not any(each.options for each in hyperjob.replicated_jobs):
        return unit
    whole = not (unit.held or unit.ended or any(e.admitted for e in hyperjob.records.values()))
    found = choices(hyperjob, partial(_open, observed, unit.held | unit.ended), whole=whole)
    if len(found) == 1 and found[0] == unit.choice:
        return unit
    others = [replace(observed, hyperjob=choosing(hyperjob, each)) for each in found]
    units = [(each.hyperjob, _unit_of(each, took)) for each in others]
    variants = [
        replace(each, beyond=is_beyond(of), remaining=each.remaining if whole else None)
        for of, each in units
        if each is not None and each.parts
    ]
    own = {key for key, _ in unit.choice}
    if own.issuperset(key for key, _ in found[0]) and unit.choice not in found:
        variants.append(unit)  # a round may have granted this mix when more sub-jobs waited
    return replace(unit, variants=tuple(variants)) if len(variants) > 1 else unit


def _open(observed: Observed, held: frozenset[str], group: ReplicatedJob) -> list[int]:
    """Return the sub-jobs of a replicatedJob that hold no share and may have any alternative."""
    name, indices = observed.hyperjob.name, members_of(observed, expand_group(group)).kept
    return [each for each in indices if child_name(name, group.name, each) not in held]


def _unit_of(observed: Observed, took: Took | None) -> QueuedHyperJob | None:
    """Return a HyperJob with its present alternatives for the queue engine.

    It has no sub-job whose dependencies are not met, nor one of a gang that backs off, nor a
    missing one during an outage that has lasted. In an outage the engine remembers the HyperJob.

    Invariants: each sub-job without its share is in `parts` once, a sub-job that grows twice (what
    it has, and what it asks for in addition). `held` has the names whose share counts, and `made`
    those that exist in Karmada. An undecided split is in pieces, and starts with all of them.
    """
    hyperjob = observed.hyperjob
    if hyperjob.deleting or hyperjob.suspend or hyperjob.is_finished:
        return _living(observed)
    try:
        wishes, shares = _automatic(observed)
        groups = expand(hyperjob, shares)
    except SpecError:
        return None
    members = list(_members(observed, groups, open_=frozenset(wishes)))
    put_off = _put_off(observed, members)
    wishes = {} if backs_off(observed) or gives_back(observed) else wishes
    parts, growing = _parts(observed, [each for each in members if each[1].name not in put_off])
    if not parts and backs_off(observed):
        return None
    cut = {group: _pieces(hyperjob, group, wish, members) for group, wish in wishes.items()}
    admitted = [cut[group] for group in cut if _holds_all(hyperjob, group)]
    kept = {each.name for cuts in admitted for each in cuts}
    parts += [each for cuts in cut.values() for each in cuts]
    children = [child for _, child in members]
    made = frozenset(child.name for child in children if child.exists and not child.is_terminal)
    held, able = kept | {each.name for each in children if _holds_share(each)}, len(parts)
    elastic, choice = hyperjob.elastic, choice_of(hyperjob)
    return QueuedHyperJob(
        key=f"{hyperjob.namespace}/{hyperjob.name}",
        uid=hyperjob.uid,
        created=hyperjob.created,
        priority=observed.priority,
        minimum=together(hyperjob, children, able=able) if parts and not wishes else able,
        max_domains=hyperjob.max_domains,
        parts=(*parts, *growing),
        held=made if held == made else frozenset(held),
        made=made,
        ended=frozenset(child.name for child in children if child.is_terminal) or NONE,
        clusters={child.name: child.cluster for child in children if child.cluster},
        preempts=observed.preempts,
        since=max((_started(child) for child in children), default=""),
        kept=_saved_until(observed),
        saves=_saves(hyperjob),
        again=has_made_way(hyperjob.records.values()),
        ends=string(mapping(hyperjob.status.get("training")).get("estimatedCompletionTime")),
        estimate=estimated(hyperjob),
        limit=_limit(hyperjob),
        template=template_of(hyperjob),
        grace=_grace(children),
        choice=choice,
        shape=choice_text(choice) if elastic is None or held else elastic.shape,
        remaining=remaining(hyperjob, took),
        elastic=elastic is not None,
        spare=spare(observed, members),
    )


def _parts(
    observed: Observed, members: Sequence[tuple[SubJob, Child]]
) -> tuple[list[QueuedSubJob], list[QueuedSubJob]]:
    """Return sub-jobs for the queue engine, and the growth of those that grow."""
    parts, growing = [], []
    for sub_job, child in members:
        queue = queue_of(sub_job.size.template)
        more = growth(observed, sub_job, child)
        closed = closed_queue_of(observed, sub_job.size.template)
        record = child.record
        excluded = frozenset(record.excluded(observed.now)) if record is not None else NONE
        request = _request(sub_job, child, excluded, closed=closed, grows=more is not None)
        parts.append(QueuedSubJob(queue=queue, request=request))
        if more is not None:
            growing.append(QueuedSubJob(queue=queue, request=more, grows=True))
    return parts, growing


def _put_off(observed: Observed, members: Sequence[tuple[SubJob, Child]]) -> set[str]:
    """Return the sub-jobs that neither hold a share now nor wait for one."""
    put_off = set(waiting(observed, members).for_what)
    if backs_off(observed):
        put_off |= {child.name for _, child in members if not (child.exists or child.is_terminal)}
    missing = [child for _, child in members if not (child.exists or _is_held(child))]
    if any(_is_early(observed, child) for child in missing):
        put_off |= {child.name for child in missing}
    # The status gives a recorded admission back first: a pass that fails must not lose that.
    if gives_back(observed) or observed.hyperjob.stop is not None:
        put_off |= {child.name for _, child in members if not (child.exists or _is_held(child))}
    return put_off


def _is_early(observed: Observed, child: Child) -> bool:
    """Return whether no vcjob can be created yet: an admission would lapse."""
    if child.job is not None:
        return False
    leaving = child.policy is not None and (child.policy.deleting or child.is_outdated)
    left = observed.pods_left.get(child.name) or (child.left_behind and not child.stranger)
    due = child.record.retry_time if child.record is not None else None
    return bool(leaving or left or (due is not None and observed.now < due))


def _pieces(
    hyperjob: HyperJob, group: str, wish: Wish, members: Sequence[tuple[SubJob, Child]]
) -> list[QueuedSubJob]:
    """Return the pieces of an undecided split, as sub-jobs that do not exist yet."""
    taken = {child.name for _, child in members}
    queue = next(queue_of(g.template) for g in hyperjob.replicated_jobs if g.name == group)
    return [
        QueuedSubJob(queue=queue, request=each, piece=True)
        for each in pieces(hyperjob.name, wish, taken)
    ]


def _holds_share(child: Child) -> bool:
    """Return whether a sub-job exists, is being deleted, or was admitted and has not ended."""
    if child.is_terminal:
        return False
    admitted = child.record is not None and child.record.admitted
    return child.exists or admitted or _is_still_there(child)


def _grace(children: Iterable[Child]) -> dict[str, timedelta]:
    """Return the vcjobs that a member has, and how long their pods may outlive a deletion.

    A vcjob that ends before its pods do is left out: its pods count as if it had been deleted.
    """
    return {
        child.name: timedelta() if child.is_terminal else _of_pods(child)
        for child in children
        if child.job is not None and (_lives(child) or (child.is_terminal and _has_ended(child)))
    }


def _of_pods(child: Child) -> timedelta:
    """Return for how long the pods of a vcjob may run on after its deletion.

    A pod may start after the last report, and end as soon as it gets the signal.
    """
    assert child.job is not None
    return _grace_time(child.job.spec if _has_pods(child) else {})


def _grace_time(template: Object) -> timedelta:
    return seconds(max(_LEAST_GRACE, grace_of(template)))


def _has_pods(child: Child) -> bool:
    """Return whether pods of a vcjob may run; without a report of its cluster they may."""
    report = child.report
    if child.is_terminal or report is None:
        return not child.is_terminal
    counts = report.pods
    running = counts.running + counts.terminating + counts.unknown
    return running > 0 or report.phase is JobPhase.RUNNING


def _has_ended(child: Child) -> bool:
    """Return whether the pods of a terminal vcjob have ended with it, as far as Volcano counts."""
    counts = child.report.pods if child.report is not None else PodCounts()
    early = child.job is not None and child.job.spec.get("minSuccess") is not None
    return not early and counts.running + counts.terminating == 0


def _saved_until(observed: Observed) -> str:
    """Return the time up to which all sub-jobs have saved their work; empty if it is unknown."""
    return min(
        (micro_time(each.kept_until) for each in latest_reports(observed).values()), default=""
    )


def _saves(hyperjob: HyperJob) -> timedelta | None:
    """Return the time between checkpoints of `spec.checkpoint`; None without one."""
    checkpoint = hyperjob.checkpoint
    every = checkpoint.interval_seconds if checkpoint is not None else None
    return seconds(every) if every is not None else None


def _limit(hyperjob: HyperJob) -> timedelta | None:
    """Return the longest running time by activeDeadlineSeconds; None if it counts all time."""
    deadline = hyperjob.deadline
    return None if deadline is None or deadline.mode is DeadlineMode.TOTAL else deadline.limit


def _is_held(child: Child) -> bool:
    return child.is_terminal or (child.record is not None and child.record.admitted)


def _started(child: Child) -> str:
    """Return when a sub-job began to run; empty if it does not run."""
    report = child.report
    if report is None or report.phase is not JobPhase.RUNNING or report.since is None:
        return ""
    return rfc3339(report.since)


def _living(observed: Observed) -> QueuedHyperJob | None:
    """Return a deleted, suspended or ended HyperJob with its vcjobs that have not ended.

    A vcjob in no member cluster holds no share. The engine admits no new sub-job of it.
    """
    children = [child_of(observed, name) for name in sorted(observed.jobs)]
    living = [
        (child.name, child.job.queue, child.job.spec, child.cluster)
        for child in children
        if child.job is not None and _lives(child)
    ]
    unit = _of_vcjobs(observed.hyperjob.key, living, _grace(children))
    if unit is None:
        return None
    return replace(unit, created=observed.hyperjob.created, priority=observed.priority)


def unit_of_remains(key: str, remains: Sequence[tuple[Object, Binding]]) -> QueuedHyperJob | None:
    """Return a HyperJob that no longer exists, with its vcjobs that still hold a share.

    `remains` are vcjobs, orphaned or not yet garbage collected, with their ResourceBindings. A
    vcjob in no member cluster holds no share: any user may create one with these labels.
    """
    living, grace = [], {}
    for job, binding in remains:
        metadata, spec = mapping(job.get("metadata")), mapping(job.get("spec"))
        if binding.job_uid == metadata.get("uid") and _is_in_member(binding):
            name = string(metadata.get("name"))
            living.append((name, string(spec.get("queue")), spec, binding.cluster))
            grace[name] = _grace_time(spec)
    return _of_vcjobs(key, living, grace)


def _of_vcjobs(
    key: str, living: Sequence[tuple[str, str, Object, str]], grace: Mapping[str, timedelta]
) -> QueuedHyperJob | None:
    """Return a HyperJob that asks for nothing: its vcjobs, by name, queue, spec and cluster."""
    parts = tuple(
        QueuedSubJob(
            queue=queue or _DEFAULT_QUEUE,
            request=PlacementRequest(
                name=name, group="", demand=demand_of(spec), everything=demand_of_all(spec)
            ),
        )
        for name, queue, spec, _ in living
    )
    if not parts:
        return None
    names = frozenset(part.name for part in parts)
    clusters = {name: cluster for name, _, _, cluster in living}
    return QueuedHyperJob(
        key=key, minimum=0, parts=parts, held=names, made=names, clusters=clusters, grace=grace
    )


def _is_in_member(binding: Binding) -> bool:
    """Return whether a member cluster has, or is about to get, a vcjob that has not ended.

    After the gate was opened Karmada applies the vcjob in the member, also without its HyperJob. So
    it does with a ResourceBinding that has a cluster and is not suspended.
    """
    if binding.report is not None:
        return not binding.report.phase.is_terminal
    sent = bool(binding.cluster) and not (binding.suspended or binding.gate or binding.apply_error)
    return sent or binding.applied or binding.gate == GATE_OPEN


def _lives(child: Child) -> bool:
    """Return whether a member has, or is about to get, this HyperJob's vcjob, and it has not ended.

    With `--cascade=orphan` the garbage collector removes the ownerReference of the vcjob before it
    removes the HyperJob: in between the vcjob runs on and still holds its share.
    """
    job, binding = child.job, child.binding
    if job is None or job.ownership is Ownership.FOREIGN:
        return False
    if job.report is not None and (binding is None or binding.report is None):
        return not job.report.phase.is_terminal
    if binding is None:
        return False
    sent = is_opened(child) or is_ungated(child)
    return _is_in_member(binding) or (binding.report is None and sent)


def _is_still_there(child: Child) -> bool:
    """Return whether a vcjob is being deleted; it holds its share until its deletion ends."""
    job = child.job
    mine = job is not None and job.ownership is not Ownership.FOREIGN
    return mine and child.is_leaving and not child.is_terminal


def _automatic(observed: Observed) -> tuple[dict[str, Wish], dict[str, list[int]]]:
    """Return the wishes of undecided splits, and the sizes of decided ones, by replicatedJob."""
    wishes: dict[str, Wish] = {}
    shares: dict[str, list[int]] = {}
    for group in observed.hyperjob.replicated_jobs:
        if not group.is_auto:
            continue
        part = part_of(observed, group)
        if part.decided:
            shares[group.name] = [pods for _, pods in sorted(part.decided.items())]
        if part.wish is not None:
            wishes[group.name] = part.wish
    return wishes, shares


def _members(
    observed: Observed, groups: tuple[Group, ...], *, open_: frozenset[str]
) -> Iterator[tuple[SubJob, Child]]:
    """Yield the sub-jobs as a plan has them; of an undecided split only those with a size."""
    indices: dict[str, tuple[int, ...]] = {}
    for group in groups:
        name = group.replicated_job.name
        if name in open_:
            decided = part_of(observed, group.replicated_job).decided
            indices[name] = tuple(sorted(decided))
        else:
            indices[name] = tuple(members_of(observed, group).kept)
    for sub_job in sub_jobs(observed.hyperjob, groups, indices):
        yield sub_job, child_of(observed, sub_job.name)


def _holds_all(hyperjob: HyperJob, group: str) -> bool:
    """Return whether a split that a restart made undecided again was admitted before."""
    records = hyperjob.records.values()
    return any(record.admitted for record in records if record.replicated_job == group)


def _request(
    sub_job: SubJob,
    child: Child,
    excluded: frozenset[str],
    *,
    closed: ClosedQueue | None,
    grows: bool,
) -> PlacementRequest:
    """Return the request of a sub-job; a growing one asks for its present size.

    Pods beyond those that start together are charged while they run: without a node they hold
    nothing.
    """
    request = sub_job.request(excluded or NONE, closed=closed)
    if child.job is None:
        return request
    existing = child.report.pods.running if child.report else 0
    if grows or existing > sub_job.size.fewest:
        spec = child.job.spec
        demand, everything = demand_of(spec, existing=existing), demand_of_all(spec)
        return replace(request, demand=demand, everything=everything)
    return request
