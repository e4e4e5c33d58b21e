"""Automatic splits: number, size and cluster of the sub-jobs, from the clusters' free resources.

Each pass decides a split again until one of its sub-jobs exists, then it stays.
`hyperjob_engine.gang` decides whether enough sub-jobs of the gang have a place.

The sub-jobs of an automatic split that have a size, and the accelerators left to share out.

A sub-job that exists or has ended keeps its size. The recorded sizes of the others count if all
sizes together are exactly the requested accelerators; else they are stale, and the rest of the
split is undecided again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain
from typing import Final

from hyperjob_core.api.names import child_name
from hyperjob_core.api.overlay import taken
from hyperjob_core.api.wire import objects
from hyperjob_engine.expansion.expand import (
    check_size,
    expand_group,
    fewest_of,
    items_of_task,
    kind_of_task,
    scale_of_group,
    sub_jobs,
)
from hyperjob_engine.expansion.members import members_of, present_indices
from hyperjob_engine.lifecycle.dependencies import waiting
from hyperjob_engine.model.line import Chosen
from hyperjob_engine.model.observed import (
    Observed,
    Ownership,
    QueueVerdict,
    ReplicatedJob,
)
from hyperjob_engine.model.planned import SplitQuestion
from hyperjob_engine.model.request import PlacementRequest, request_of_all, tier_of
from hyperjob_engine.model.split import Scale
from hyperjob_engine.model.subjobs import Child, Group, SubJob, child_of, closed_queue_of
from hyperjob_engine.placement.explain import explain_overflow_of, explain_shortfall
from hyperjob_engine.placement.place import assign
from hyperjob_engine.placement.room import Room
from hyperjob_engine.placement.share import SplitShare, Wish, share
from hyperjob_engine.reasons.reason import Blocked, Reason
from hyperjob_engine.resources import scale as multiply
from hyperjob_engine.splitting import consult

_PIECES: Final = 128  # the queue engine judges an automatic split in at most so many


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoSplit:
    """One automatic split: the decided pods of the scaled task by index, and a wish for the rest.

    `parked`: none of its sub-jobs exists, and the controller must not create one yet.
    """

    group: ReplicatedJob
    decided: Mapping[int, int]
    wish: Wish | None
    parked: bool


def part_of(observed: Observed, group: ReplicatedJob) -> AutoSplit:
    """Return the state of one automatic split; raises SpecError.

    Sizes are pods of the scaled task by index: `standing` those of vcjobs that exist or have ended,
    which never change here, `recorded` those that the status has for the others. The recorded sizes
    count all together or not at all: without a vcjob only while old ones leave, or after the split
    has made way with a part of its pods. A sub-job that it has given up has no record any more.
    """
    split, scale = scale_of_group(group)
    records = observed.hyperjob.records.values()
    own = [each.admitted for each in records if each.replicated_job == group.name]
    spared = bool(own) and _has_made_way(observed, group)
    standing: dict[int, int] = {}
    recorded: dict[int, int] = {}
    excluded: set[str] = set()
    parked = observed.hyperjob.suspend
    for index in sorted(present_indices(observed, group.name)):
        child = child_of(observed, child_name(observed.hyperjob.name, group.name, index))
        record = child.record
        if spared and record is None:
            parked = True
            continue
        due = record.retry_time if record is not None else None
        parked = parked or _is_leaving(child) or (due is not None and observed.now < due)
        excluded.update(record.excluded(observed.now) if record is not None else ())
        if child.exists and child.job is not None:
            tasks = child.job.tasks
            standing[index] = tasks[scale.task].replicas if scale.task < len(tasks) else 0
        elif record is not None:
            pods, rest = divmod((record.accelerators or 0) - scale.fixed, scale.per_pod)
            if child.is_terminal:
                standing[index] = max(0, pods)
            elif not rest and pods >= 1:
                recorded[index] = pods
    decided, left = standing, (split.accelerators or 0) - _accelerators(scale, standing)
    parked = parked and not standing
    kept = standing or parked or (spared and all(own))
    if kept and left == _accelerators(scale, recorded):
        decided, left = standing | recorded, 0
    if excluded.issuperset(cluster.name for cluster in observed.clusters):
        excluded.clear()  # with every cluster excluded by some sub-job, all are tried again
    wish = None
    if left > 0:
        wish = wish_of(observed, group, excluded=frozenset(excluded))
        wish = replace(wish, accelerators=left)
    return AutoSplit(group=group, decided=decided, wish=wish, parked=parked)


def _has_made_way(observed: Observed, group: ReplicatedJob) -> bool:
    """Return whether a split has its size because the rest of it made way for another HyperJob."""
    verdict = observed.verdict
    if verdict is not None and verdict.chosen is not None:
        return verdict.chosen is Chosen.SPARED
    known = taken(observed.hyperjob.status).get(group.name)
    return known is not None and known.reason == Chosen.SPARED


def pieces(hyperjob: str, wish: Wish, taken: Collection[str]) -> Iterator[PlacementRequest]:
    """Yield an undecided split in small pieces, which fit on any mix of clusters.

    The controller sizes the sub-jobs after the admission of the pieces.
    """
    pods = max(1, -(-(wish.accelerators - wish.fixed) // max(1, wish.per_pod)))
    number = min(pods, _PIECES)
    like: dict[tuple[int, bool], PlacementRequest] = {}
    index = 0
    for position in range(number):
        while (name := child_name(hyperjob, wish.like.group, index)) in taken:
            index += 1
        index += 1
        share = pods // number + (position < pods % number)
        known = like.get((share, position > 0))
        if known is None:
            known = like[share, position > 0] = _piece(wish, share, first=not position)
        yield known.named(name)


def _piece(wish: Wish, share: int, *, first: bool) -> PlacementRequest:
    """Return a piece with `share` pods of the scaled task; the first has all other pods too."""
    piece = wish.request(share)
    if first:
        return piece
    return replace(piece, demand=multiply(dict(wish.pod.request), share), pods=((wish.pod, share),))


def _is_leaving(child: Child) -> bool:
    return child.is_outdated or any(
        item is not None and item.deleting and item.ownership is Ownership.OURS
        for item in (child.job, child.policy)
    )


def _accelerators(scale: Scale, pods: Mapping[int, int]) -> int:
    return sum(scale.fixed + number * scale.per_pod for number in pods.values())


def wish_of(
    observed: Observed, group: ReplicatedJob, *, excluded: frozenset[str] = frozenset()
) -> Wish:
    """Return what an automatic split wants of the clusters in all; raises SpecError."""
    split, scale = scale_of_group(group)
    closed = closed_queue_of(observed, group.template)
    tasks = objects(group.template.get("tasks"))
    pairs = enumerate(zip(tasks, fewest_of(group.template), strict=True))
    others = (items_of_task(*each) for index, each in pairs if index != scale.task)
    pods = tuple(chain.from_iterable(others))
    return Wish(
        like=PlacementRequest(
            name="",
            group=group.name,
            demand=request_of_all(pods),
            preferred=group.cluster_names,
            required=group.required,
            excluded=excluded,
            closed=closed,
            pods=pods,
        ),
        accelerators=split.accelerators or 0,
        kind=split.accelerator_type or "",
        fixed=scale.fixed,
        per_pod=scale.per_pod,
        pod=kind_of_task(tasks[scale.task]),
        tier=tier_of(group.template),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The decision about the automatic splits of a HyperJob.

    `shares` are the pods of the scaled task of each sub-job, by replicatedJob and in the order of
    the indices. `pins` are the clusters, `overflow` the reasons for no preferred cluster, by
    sub-job. `waiting` has why a replicatedJob cannot be split now.
    `questions` are for an external splitter, which the controller asks again after `again`.
    """

    shares: Mapping[str, Sequence[int]] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)
    overflow: Mapping[str, str] = field(default_factory=dict)
    waiting: Mapping[str, Blocked] = field(default_factory=dict)
    questions: tuple[SplitQuestion, ...] = ()
    again: timedelta | None = None

    def pinned(self, request: PlacementRequest) -> PlacementRequest:
        """Return the request with only the cluster for which the sub-job's size was made."""
        cluster = self.pins.get(request.name)
        if cluster is None:
            return request
        return replace(request, preferred=(cluster,), required=True)


def resolve(observed: Observed) -> Split:
    """Return the decision about the automatic splits of a HyperJob; raises SpecError."""
    hyperjob = observed.hyperjob
    parts = [part_of(observed, group) for group in hyperjob.replicated_jobs if group.is_auto]
    if not parts:
        return Split()
    check_size(hyperjob)
    decided = {part.group.name: part.decided for part in parts if part.decided}
    groups, indices = [], {}
    for wanted in hyperjob.replicated_jobs:
        kept = decided.get(wanted.name)
        sizes = None if kept is None else [pods for _, pods in sorted(kept.items())]
        group = expand_group(wanted, sizes)
        groups.append(group)
        indices[wanted.name] = members_of(observed, group).kept if kept is None else sorted(kept)
    members = [
        (sub_job, child_of(observed, sub_job.name))
        for sub_job in sub_jobs(hyperjob, groups, indices)
    ]
    later = waiting(observed, members).for_what
    open_groups = {part.group.name for part in parts} - decided.keys()
    standing: list[tuple[str, str]] = []
    missing: list[PlacementRequest] = []
    for sub_job, child in members:
        if child.exists or child.is_terminal:
            standing += [(sub_job.group.name, child.cluster)] if child.cluster else []
        elif child.name not in later and sub_job.group.name not in open_groups:
            missing.append(sub_job.request())
    dependent = {sub_job.group.name for sub_job, child in members if child.name in later}
    room = Room(observed.clusters, standing)
    ready = [part for part in parts if part.group.name not in dependent]
    return _decide(observed, parts, ready, _rooms(room, missing, hyperjob.max_domains))


def is_admitted(hyperjob: str, sub_job: SubJob, verdict: QueueVerdict) -> bool:
    """Return whether a queue admitted a sub-job.

    The queue engine admits an automatic split as a whole, before the number of its sub-jobs is
    known: any admitted name of the split admits all of them.
    """
    if sub_job.name in verdict.admitted or not sub_job.group.is_auto:
        return sub_job.name in verdict.admitted
    prefix = child_name(hyperjob, sub_job.group.name, 0)[:-1]
    return any(
        name.startswith(prefix) and name.removeprefix(prefix).isdecimal()
        for name in verdict.admitted
    )


def _rooms(room: Room, missing: Sequence[PlacementRequest], max_domains: int | None) -> list[Room]:
    """Return the room that is left by the sub-jobs of other groups, and the whole free room."""
    if not missing:
        return [room]
    return [assign(missing, room, max_domains=max_domains), room]


def _decide(
    observed: Observed,
    parts: Sequence[AutoSplit],
    ready: Sequence[AutoSplit],
    rooms: Iterable[Room],
) -> Split:
    """Return the split by the first of `rooms` with room for all wishes, else by the last one.

    An external splitter is asked about the first room alone. A split with sub-jobs that are being
    deleted (`parked`) waits for their deletion.
    """
    parked = {
        part.group.name: Blocked(Reason.BEING_DELETED, "waits until its old sub-jobs are gone")
        for part in ready
        if part.parked
    }
    wishes = [part.wish for part in ready if part.wish is not None and not part.parked]
    outcome = _Outcome()
    for room in rooms:
        outcome = _share_out(observed, wishes, room.copy())
        if not outcome.short or observed.split_answers is not None:
            break
    return replace(
        _split(observed, parts, outcome.shares, parked | outcome.short),
        questions=tuple(outcome.questions),
        again=min(outcome.again, default=None),
    )


@dataclass(slots=True)
class _Outcome:
    """The result of sharing out: the shares, or a reason, by replicatedJob."""

    shares: dict[str, Sequence[SplitShare]] = field(default_factory=dict)
    short: dict[str, Blocked] = field(default_factory=dict)
    questions: list[SplitQuestion] = field(default_factory=list)
    again: list[timedelta] = field(default_factory=list)


def _share_out(observed: Observed, wishes: Iterable[Wish], room: Room) -> _Outcome:
    """Share out the accelerators of one split after the other; return shares or reasons."""
    limit = observed.hyperjob.max_domains
    outcome = _Outcome()
    for wish in wishes:
        if observed.split_answers is not None:
            found = _ask(observed, wish, room, outcome)
        else:
            found = share(wish, room, max_domains=limit)
            if not found:
                text = explain_shortfall(wish, room, max_domains=limit)
                outcome.short[wish.like.group] = Blocked(Reason.INSUFFICIENT_CAPACITY, text)
        if not found:
            continue
        outcome.shares[wish.like.group] = found
        for position, item in enumerate(found):
            room.put(wish.request(item.pods, f"{wish.like.group}/{position}"), item.cluster)
    return outcome


def _ask(observed: Observed, wish: Wish, room: Room, outcome: _Outcome) -> tuple[SplitShare, ...]:
    """Return an external splitter's shares; without them, record the reason and the question."""
    consulted = consult(observed, wish, room)
    if not consulted.shares:
        outcome.short[wish.like.group] = Blocked(Reason.WAITING_FOR_SPLITTER, consulted.wait)
        outcome.questions += [consulted.ask] if consulted.ask is not None else []
        outcome.again += [consulted.again] if consulted.again is not None else []
    return consulted.shares


def _split(
    observed: Observed,
    parts: Iterable[AutoSplit],
    shares: Mapping[str, Sequence[SplitShare]],
    short: Mapping[str, Blocked],
) -> Split:
    """Return sizes and clusters by sub-job: those that are decided, and `shares` for new indices.

    A decided sub-job keeps its index. The shares get the other indices of the replicatedJob, those
    that it has before new ones.
    """
    clusters = {each.name: each for each in observed.clusters}
    sizes: dict[str, Sequence[int]] = {}
    pins: dict[str, str] = {}
    overflow: dict[str, str] = {}
    for part in parts:
        group, found = part.group, shares.get(part.group.name, ())
        if not part.decided and not found:
            continue  # expansion represents an unsized split by one sub-job
        total = len(part.decided) + len(found)
        one = expand_group(group, [1])
        kept = members_of(observed, Group(replicated_job=group, sizes=[*one.sizes] * total)).kept
        fresh = [index for index in kept if index not in part.decided]
        pods = {**part.decided, **{i: item.pods for i, item in zip(fresh, found, strict=True)}}
        sizes[group.name] = [pods[index] for index in kept]
        for index, item in zip(fresh, found, strict=True):
            name = child_name(observed.hyperjob.name, group.name, index)
            pins[name] = item.cluster
            if group.cluster_names and item.cluster not in group.cluster_names and part.wish:
                overflow[name] = explain_overflow_of(part.wish, clusters, found)
    return Split(shares=sizes, pins=pins, overflow=overflow, waiting=short)
