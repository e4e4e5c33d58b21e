"""The placement steps: clusters for missing sub-jobs, and moves of sub-jobs without room.

A gang is placed as a whole or not at all. These steps never move a sub-job that a member cluster
has received.

The steps after placement: plugins change the actions, the gang's gates open or it backs off.

These steps release or delete only sub-jobs that no member cluster has received.

The scaling step: the sub-jobs of the spec, and the deletion of all other existing ones.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import timestamp
from hyperjob_engine.expansion.auto import Split, wish_of
from hyperjob_engine.expansion.expand import sub_jobs
from hyperjob_engine.expansion.members import members_of, unwanted
from hyperjob_engine.expansion.objects import placement as placement_object
from hyperjob_engine.expansion.objects import policy as policy_object
from hyperjob_engine.expansion.objects import vcjob
from hyperjob_engine.gang.gang import domains, is_held, openings, ready, review_places
from hyperjob_engine.gang.giveback import backs_off, gave_back, next_state, to_give_back
from hyperjob_engine.lifecycle.decisions import Member, deletion, losses_of
from hyperjob_engine.lifecycle.dependencies import waiting
from hyperjob_engine.lifecycle.records import last_cluster, next_attempt
from hyperjob_engine.lifecycle.silence import count_silent
from hyperjob_engine.lifecycle.unstarted import unreported
from hyperjob_engine.model.observed import Observed, Policy, QueueAdmission, ReplicatedJob
from hyperjob_engine.model.planned import CreateChild, DeleteChild, DeletionCause, Repin
from hyperjob_engine.model.subjobs import (
    Child,
    Choice,
    Group,
    SubJob,
    child_of,
    closed_queue_of,
    sizes,
)
from hyperjob_engine.placement.place import assign, fits_never, place, when_empty
from hyperjob_engine.placement.room import Room, after_ends, without_doubts
from hyperjob_engine.placement.share import share
from hyperjob_engine.plugins.hook import set_up
from hyperjob_engine.reasons.reason import Blocked, Reason
from hyperjob_engine.resources import Resources, is_companion
from hyperjob_engine.steps.draft import Draft

_NO_ROOM: Final = Reason.INSUFFICIENT_CAPACITY
_PATIENCE: Final = timedelta(minutes=1)
"""How long a HyperJob waits for room with its alternatives, before it may take others."""
_SETTLES: Final = timedelta(seconds=10)
"""How long after a restart clusters may not show yet that the pods before it have ended."""


def place_missing(draft: Draft) -> None:
    """Place the missing sub-jobs and plan their creation."""
    observed = draft.observed
    unplaced = _without_place(draft)
    draft.needed = max(0, draft.together - draft.secured)
    draft.sought = [
        sub_job.request(
            draft.excluded(child),
            last=last_cluster(child),
            closed=closed_queue_of(observed, sub_job.size.template),
        )
        for sub_job, child in unplaced.values()
    ]
    if draft.sought:
        room = Room(observed.clusters, _stays(draft))
        draft.placement = place(
            [draft.split.pinned(request) for request in draft.sought],
            room,
            max_domains=observed.hyperjob.max_domains,
            minimum=draft.needed,
        )
        draft.never = draft.placement.room_for < draft.needed and fits_never(
            draft.sought,
            room,
            minimum=draft.needed,
            max_domains=observed.hyperjob.max_domains,
        )
    draft.chooses_again = _chooses_again(draft)
    for name, cluster in draft.placement.assigned.items():
        sub_job, child = unplaced[name]
        if child.policy is not None and child.policy.clusters != (cluster,):
            draft.actions.append(_repin(observed, sub_job, child.policy, cluster))
        overflow = draft.placement.overflow.get(name) or draft.split.overflow.get(name, "")
        draft.actions.append(
            _creation(observed, sub_job, child, cluster, gated=draft.is_gated, overflow=overflow)
        )
    draft.actions.sort(key=lambda action: isinstance(action, DeleteChild))


def _chooses_again(draft: Draft) -> timedelta | None:
    """Return in how long what has no room gives its share back, to take other alternatives.

    None: it has no others, or without a quorum any sub-job of the HyperJob exists, has ended, is
    not admitted or has room. It waits `_PATIENCE` for room in clusters that can hold it; other
    HyperJobs may soon leave them.
    """
    observed = draft.observed
    if not draft.choosers or not (_is_without_room(draft) or draft.chooses_alone):
        return None
    if _never(draft):
        return timedelta()
    return max(timedelta(), _restarted(observed) + _PATIENCE - observed.now)


def smaller(draft: Draft) -> Choice:
    """Return the largest size with which a HyperJob without room can start; empty if there is none.

    It is taken at once where usable clusters cannot hold the present size even empty, as after the
    loss of one. `draft.shrinks` is set while a size may be taken later. With a quorum sub-jobs that
    have no room give their share back while the others train.
    """
    observed = draft.observed
    group = observed.hyperjob.elastic
    if group is not None and observed.hyperjob.quorum is not None and len(draft.standing):
        return _without_missing(draft, group)
    if group is None or not _is_without_room(draft):
        return ()
    if group.is_auto:
        return _smaller_split(draft, group)
    wait = _restarted(observed) + _SETTLES - observed.now
    if wait > timedelta() and not _never(draft):
        draft.shrinks = wait
        return ()
    ended = after_ends(Room(observed.clusters))
    room = without_doubts(ended) or ended
    own = [request for request in draft.sought if request.group == group.name]
    for option in sizes(group):
        less = group.replicas - option.replicas
        if 0 < less <= len(own):
            gone = {request.name for request in own[-less:]}
            asked = [request for request in draft.sought if request.name not in gone]
            found = assign(asked, room, max_domains=observed.hyperjob.max_domains)
            if len(found.assigned) == len(asked):
                return ((group.name, option.alternative),)
    return ()


def _smaller_split(draft: Draft, group: ReplicatedJob) -> Choice:
    """Return the largest size of an automatic split that has room, if it may be taken now.

    If the shares that it has kept since it made way have no room, it is divided again.
    """
    observed, most_domains = draft.observed, draft.observed.hyperjob.max_domains
    others = [request for request in draft.sought if request.group != group.name]

    def has_room(option: ReplicatedJob, room: Room) -> bool:
        left = assign(others, room, max_domains=most_domains) if others else room
        wish = wish_of(observed, option)
        return len(left.assigned) == len(others) and bool(
            share(wish, left, max_domains=most_domains)
        )

    empty = when_empty(Room(tuple(each for each in observed.clusters if each.usable)))
    wait = _restarted(observed) + _SETTLES - observed.now
    if wait > timedelta() and has_room(group, empty):
        draft.shrinks = wait
        return ()
    ended = after_ends(Room(observed.clusters))
    room = without_doubts(ended) or ended
    most = group.size if group.name in draft.split.waiting else group.size + 1
    fitting = (each for each in sizes(group) if each.size < most and has_room(each, room))
    return next((((group.name, each.alternative),) for each in fitting), ())


def _without_missing(draft: Draft, group: ReplicatedJob) -> Choice:
    """Return the largest size without the sub-jobs that have had no room for a minute, if any."""
    left = group.replicas - sum(each in draft.missing for each in draft.placement.unplaced)
    wait = _restarted(draft.observed) + _PATIENCE - draft.observed.now
    fitting = [each for each in sizes(group) if each.replicas <= left]
    if left == group.replicas or not fitting:
        return ()
    if wait > timedelta():
        draft.shrinks = wait
        return ()
    return ((group.name, fitting[0].alternative),)


def _is_without_room(draft: Draft) -> bool:
    """Return whether all sub-jobs of a HyperJob are admitted and have no room."""
    waiting = draft.split.waiting
    short = {name for name, each in waiting.items() if each.reason is _NO_ROOM}
    without = [sub_job for sub_job, _ in draft.missing.values() if sub_job.group.name in short]
    return len(draft.placement.unplaced) + len(without) >= len(draft.children)


def _never(draft: Draft) -> bool:
    """Return whether no usable cluster could hold the missing sub-jobs, even empty."""
    observed = draft.observed
    return fits_never(
        draft.sought,
        Room(tuple(each for each in observed.clusters if each.usable)),
        minimum=max(1, draft.needed),
        max_domains=observed.hyperjob.max_domains,
    )


def _restarted(observed: Observed) -> datetime:
    """Return when the phase of a sub-job last changed."""
    times = (timestamp(each.last_transition_time) for each in observed.hyperjob.records.values())
    return max(filter(None, times), default=observed.now)


def review_pinned(draft: Draft) -> None:
    """Review the sub-jobs that no member has received, and plan the moves."""
    observed, placed = draft.observed, draft.placement.assigned
    draft.review = review_places(
        observed,
        [pinned for pinned, _, _ in draft.pinned_places.values()],
        standing=draft.standing,
        placed=[
            (request, placed[request.name]) for request in draft.sought if request.name in placed
        ],
    )
    if backs_off(observed):
        return
    for name, cluster in draft.review.moves.items():
        _, sub_job, child = draft.pinned_places[name]
        if child.policy is not None:
            draft.actions.append(_repin(observed, sub_job, child.policy, cluster))


def needs(draft: Draft) -> tuple[Resources, ...]:
    """Return the sizes of the sub-jobs without a cluster; none while a split has no sizes."""
    if draft.awaits_split:
        return ()
    unplaced = {*draft.placement.unplaced, *draft.review.short}
    sizes = [sub_job.size.demand for sub_job, _ in draft.children if sub_job.name in unplaced]
    return tuple({id(demand): demand for demand in sizes}.values())


def _stays(draft: Draft) -> tuple[tuple[str, str], ...]:
    """Return (group, cluster) of the sub-jobs that have a place."""
    pinned_places = [pinned for pinned, _, _ in draft.pinned_places.values()]
    return *draft.standing, *domains(draft.observed, pinned_places)


def _without_place(draft: Draft) -> dict[str, Member]:
    """Return the missing sub-jobs that need a cluster; the others are created on theirs."""
    found: dict[str, Member] = {}
    for name, (sub_job, child) in draft.missing.items():
        if child.exists and child.cluster:
            draft.actions.append(
                _creation(draft.observed, sub_job, child, child.cluster, gated=draft.is_gated)
            )
        elif sub_job.group.name in draft.split.waiting:
            draft.blocked[name] = draft.split.waiting[sub_job.group.name]
        else:
            found[name] = sub_job, child
    return found


def _repin(observed: Observed, sub_job: SubJob, policy: Policy, cluster: str) -> Repin:
    return Repin(
        name=policy.name,
        uid=policy.uid,
        cluster=cluster,
        demand=sub_job.size.demand,
        pods=sub_job.size.items,
        placement=placement_object(cluster, observed.admission, gated=policy.suspended),
    )


def _creation(
    observed: Observed,
    sub_job: SubJob,
    child: Child,
    cluster: str,
    *,
    gated: bool,
    overflow: str = "",
) -> CreateChild:
    """Return the creation of what a sub-job lacks: its policy, its vcjob, or both.

    The policy of a gang holds the gate, unless the vcjob exists and its gate is open already: a
    running sub-job is never held again.
    """
    policy: Object | None = None
    if child.policy is None:
        gang = observed.admission is not QueueAdmission.NONE
        policy = policy_object(
            observed.hyperjob,
            sub_job,
            cluster,
            admission=observed.admission,
            held=gang and (is_held(child) if child.exists else gated),
            gated=child.exists or gated,
            attempt=next_attempt(child),
        )
    attempt, is_foreign = next_attempt(child), observed.admission is QueueAdmission.VOLCANO_GLOBAL
    # Of parts of shared devices, which Volcano's scheduler may ignore, its queues count none.
    parts = filter(is_companion, unreported(observed, sub_job)) if is_foreign else ()
    return CreateChild(
        name=sub_job.name,
        policy=policy,
        job=None
        if child.exists
        else vcjob(observed.hyperjob, sub_job, attempt=attempt, uncounted=parts),
        cluster=cluster,
        demand=sub_job.size.demand,
        pods=sub_job.size.items,
        overflow=overflow,
    )


def apply_plugins(draft: Draft) -> None:
    """Apply the plugins to the actions so far."""
    plugged = set_up(
        draft.observed,
        draft.children,
        draft.actions,
        assigned=draft.placement.assigned,
        minimum=draft.minimum,
    )
    draft.actions = plugged.actions
    draft.blocked.update(plugged.blocked)
    draft.outdated = plugged.outdated


def open_gates(draft: Draft) -> None:
    """Open the gates of all sub-jobs that the queue has admitted and that still have room."""
    observed, minimum, staying = draft.observed, draft.together, draft.staying
    if observed.hyperjob.suspend:
        return
    opened = openings(
        [child for child in staying if child.name not in draft.outdated],
        minimum=minimum,
        admission=observed.admission,
        ready=ready(observed, staying, draft.review, minimum),
    )
    draft.actions += opened
    draft.opening = frozenset(action.name for action in opened)


def give_back(draft: Draft) -> None:
    """Set the state of the gang; delete the held sub-jobs of a gang that stays incomplete."""
    observed, staying = draft.observed, draft.staying
    draft.back_off = next_state(
        observed, staying, opening=draft.opening, leaving=len(staying) < len(draft.children)
    )
    for child in to_give_back(observed, staying, opening=draft.opening):
        draft.actions += deletion(child, why=DeletionCause.GANG_INCOMPLETE)
        draft.blocked[child.name] = Blocked(Reason.GANG_BACK_OFF, gave_back(observed))


def scale(observed: Observed, split: Split, groups: Sequence[Group]) -> Draft:
    """Return a draft with the sub-jobs of the spec, and the deletions of the others."""
    members = {group.replicated_job.name: members_of(observed, group) for group in groups}
    indices = {name: found.kept for name, found in members.items()}
    children = [
        (sub_job, child_of(observed, sub_job.name))
        for sub_job in sub_jobs(observed.hyperjob, groups, indices)
    ]
    names = frozenset(sub_job.name for sub_job, _ in children)
    leaving = [name for found in members.values() for name in found.leaving]
    deletions: list[DeleteChild] = []
    for name in dict.fromkeys([*leaving, *unwanted(observed, names)]):
        deletions += deletion(child_of(observed, name))
    return Draft(
        observed=observed,
        split=split,
        children=children,
        losses=losses_of(observed, children),
        waiting=waiting(observed, children),
        silent_counts=count_silent(observed, children),
        actions=[*deletions],
    )
