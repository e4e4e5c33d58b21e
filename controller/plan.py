"""The decision: from everything observed to everything to be done, in numbered steps.

Pure and total. It asks neither a clock nor a cluster, and what it returns can be carried out
without deciding anything more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from controller.expansion.adopt import adoptions, conflict, predecessor
from controller.expansion.auto import Split, is_admitted, resolve
from controller.expansion.delete import deletion
from controller.expansion.expand import Group, SpecError, SubJob, expand, queue_of, sub_jobs
from controller.expansion.members import members_of, strangers
from controller.expansion.objects import placement as placement_object
from controller.expansion.objects import policy as policy_object
from controller.expansion.objects import vcjob
from controller.expansion.resize import resize
from controller.gang.gate import is_held, openings
from controller.gang.giveback import WHY, Judgement, backs_off, describe_wait, go_on, to_give_back
from controller.gang.places import domains, look_again, ready, seat_of
from controller.gang.rejections import Lesson, describe, learn
from controller.gang.review import Review, Seat
from controller.lifecycle.dependencies import Waiting, waiting
from controller.lifecycle.ending import ending
from controller.lifecycle.failures import judge
from controller.lifecycle.finished import after_end, needs_more
from controller.lifecycle.loss import Loss, losses_of, next_loss
from controller.lifecycle.records import with_restart
from controller.lifecycle.requests import answer
from controller.lifecycle.verdict import End, Member, Restart
from controller.model.child import Child, child_of
from controller.model.observed import Observed, Policy, QueueAdmission
from controller.model.planned import Action, CreateChild, DeleteChild, OpenGate, Plan, Repin
from controller.model.resources import Resources
from controller.model.wire import rfc3339
from controller.placement.place import Placement, place
from controller.plugins.hook import plug_in, withdrawing
from controller.status.conditions import is_finished
from controller.status.derive import derive, derive_refusal
from controller.status.outlook import Outlook, Outlooks, Reason
from controller.status.transitions import restart_events, status_events
from hyperjob.api.meta import Object

CONFLICT_RECHECK: Final = timedelta(seconds=30)
AT_ONCE: Final = timedelta()


def plan(observed: Observed) -> Plan:
    """Decide everything about one HyperJob."""
    decided = _decide(observed)
    return replace(decided, actions=withdrawing(observed.hyperjob, decided.actions))


def _decide(observed: Observed) -> Plan:
    hyperjob = observed.hyperjob
    # 1. It is being deleted: ownerReferences take its objects along.
    if hyperjob.deleting:
        return Plan()
    # 2. It has ended: nothing of it is made, changed or run again.
    if is_finished(hyperjob.status):
        return after_end(observed)
    # Its turn to be judged by its queue comes in a moment; until then there is nothing to tell.
    if observed.verdict is not None and observed.verdict.undecided:
        return Plan()
    # 3. Its spec cannot be carried out: say so, touch nothing.
    try:
        split = resolve(observed)
        groups = expand(hyperjob, split.shares)
    except SpecError as error:
        status = derive_refusal(observed, str(error))
        return Plan(status=status, events=status_events(hyperjob.status, status))
    draft = _Draft(observed, split)
    children = _scale(observed, groups, draft)
    draft.losses = losses_of(observed, children)
    draft.waiting = waiting(observed, children)
    # 4. An end or a restart is written down first; what follows from it is for the next pass.
    end = ending(observed, children, draft.waiting)
    if end is not None:
        return _end(observed, children, end)
    leaving = bool(draft.actions)  # they go first, so that the record is of all there is
    asked = None if leaving else answer(hyperjob, children)
    if asked is not None:
        recorded = _recorded(observed, children, asked.restart)
        return replace(recorded, events=(*asked.events, *recorded.events))
    verdict = None if hyperjob.suspend or leaving else judge(observed, children, draft.losses)
    if isinstance(verdict, End):
        return _end(observed, children, verdict)
    if verdict is not None:
        return _recorded(observed, children, verdict)
    # 5. Sub-jobs that are not wanted any more go; those wanted are looked at one by one.
    for sub_job, child in children:
        _look_at(observed, sub_job, child, draft)
    # 6. What is missing is placed, the gang whole or not at all.
    minimum = _minimum(observed, len(children) - len(draft.waiting.for_what), len(children))
    placement, needed = _place(observed, draft, minimum)
    # 7. What no member has seen yet moves where its place is gone, and plugins tell the sub-jobs of
    # each other; what the queue has admitted and still fits is let through together; a gang that
    # stays in parts gives back what it holds.
    draft.found = _look_again(observed, draft, placement)
    outdated = _plug_in(observed, children, draft, placement, minimum)
    mine = [child for _, child in children if not child.is_leaving]
    if not hyperjob.suspend:
        able = ready(observed, mine, draft.found, minimum)
        draft.actions += openings(
            [child for child in mine if child.name not in outdated],
            minimum=minimum,
            admission=observed.admission,
            ready=able,
        )
    opening = frozenset(action.name for action in draft.actions if isinstance(action, OpenGate))
    judgement = go_on(observed, mine, opening=opening)
    for child in to_give_back(observed, mine, opening=opening):
        draft.actions += deletion(child, why=WHY)
        draft.blocked[child.name] = Reason.GANG_BACK_OFF, describe_wait(observed)
    # 8. The status tells all of it.
    outlooks = Outlooks(
        items=[draft.outlook(sub_job, child, placement, opening) for sub_job, child in children],
        minimum=minimum,
        room_for=placement.room_for,
        needed=needed,
        verdict=observed.verdict,
        suspended=hyperjob.suspend,
        gang=judgement.record,
    )
    status = derive(observed, outlooks)
    return Plan(
        actions=tuple(draft.actions),
        status=status,
        events=status_events(hyperjob.status, status),
        requeue_after=_requeue(
            observed, draft, placement, [child for _, child in children], judgement
        ),
        waits_for_capacity=bool(placement.unplaced or split.waiting or draft.found.short),
        needs=() if split.waiting else _needs(children, placement, draft.found),
        questions=split.questions,
    )


@dataclass(slots=True)
class _Draft:
    """What the steps have found so far."""

    observed: Observed
    split: Split = field(default_factory=Split)
    actions: list[Action] = field(default_factory=list)
    missing: dict[str, tuple[SubJob, Child]] = field(default_factory=dict)
    seats: dict[str, tuple[Seat, SubJob, Child]] = field(default_factory=dict)
    lessons: dict[str, Lesson] = field(default_factory=dict)
    found: Review = Review()  # noqa: RUF009 - it is immutable
    blocked: dict[str, tuple[Reason, str]] = field(default_factory=dict)
    standing: list[tuple[str, str]] = field(default_factory=list)
    secured: int = 0
    losses: Mapping[str, Loss] = field(default_factory=dict)
    waiting: Waiting = Waiting()  # noqa: RUF009 - it is immutable

    def excluded(self, child: Child) -> frozenset[str]:
        """Return where a sub-job must not stand: moved away from there, or refused by Karmada."""
        recorded = child.record.excluded_clusters if child.record is not None else ()
        lesson = self.lessons.get(child.name, Lesson())
        return lesson.excluded.union(recorded)

    def outlook(
        self, sub_job: SubJob, child: Child, placement: Placement, opening: frozenset[str]
    ) -> Outlook:
        """Return what is intended for one sub-job."""
        name = sub_job.name
        reason, message = self.blocked.get(name, ("", ""))
        if name in placement.unplaced:
            reason, message = Reason.INSUFFICIENT_CAPACITY, placement.unplaced[name]
        loss = self.losses.get(name)
        lesson = self.lessons.get(name, Lesson())
        return Outlook(
            sub_job=sub_job,
            child=child,
            cluster=placement.assigned.get(name) or self.found.moves.get(name, ""),
            blocked=reason,
            message=message,
            opening=name in opening,
            admitted=self._holds_share(child, placed=name in placement.assigned),
            cluster_trouble=loss.message if loss is not None else "",
            lost=loss is not None and loss.is_lost,
            no_room=self.found.short.get(name, ""),
            note=describe(lesson),
            rejections=lesson.rejections,
        )

    def _holds_share(self, child: Child, *, placed: bool) -> bool:
        """Tell whether to record that a sub-job is admitted; a grant that came to nothing is not.

        Recorded only by our own queue admission, and until the sub-job ends.
        """
        verdict = self.observed.verdict
        if verdict is None or child.name not in verdict.admitted or child.is_terminal:
            return False
        if self.observed.hyperjob.suspend:
            return False
        recorded = child.record is not None and child.record.admitted
        return recorded or child.exists or placed


def _end(observed: Observed, children: Sequence[Member], end: End) -> Plan:
    """Write down that the HyperJob has ended; what still runs of it goes after that."""
    text = f"ended with the HyperJob: {end.message}" if end.message else "ended with the HyperJob"
    items = [
        Outlook(sub_job=sub_job, child=child, ended="" if child.is_terminal else text)
        for sub_job, child in children
    ]
    status = derive(observed, Outlooks(items=items, minimum=len(items), end=end))
    return Plan(
        status=status,
        events=status_events(observed.hyperjob.status, status),
        requeue_after=AT_ONCE if needs_more(observed, status) else None,
    )


def _recorded(observed: Observed, children: Sequence[Member], decided: Restart) -> Plan:
    """Write down what is made again; the next pass reads it and does it."""
    decision = plan(with_restart(observed, children, decided))
    return replace(
        decision,
        actions=(),
        events=restart_events(decided, decision.events),
        requeue_after=AT_ONCE,
        waits_for_capacity=False,
    )


def _minimum(observed: Observed, ready: int, total: int) -> int:
    """Return how many sub-jobs belong together now: those that wait for others are not counted."""
    wanted = observed.hyperjob.min_available
    return max(1, min(total if wanted is None else wanted, ready))


def _scale(
    observed: Observed, groups: Sequence[Group], draft: _Draft
) -> list[tuple[SubJob, Child]]:
    members = {group.replicated_job.name: members_of(observed, group) for group in groups}
    indices = {name: found.kept for name, found in members.items()}
    wanted = [
        (sub_job, child_of(observed, sub_job.name))
        for sub_job in sub_jobs(observed.hyperjob, groups, indices)
    ]
    names = frozenset(sub_job.name for sub_job, _ in wanted)
    leaving = [name for found in members.values() for name in found.leaving]
    for name in dict.fromkeys([*leaving, *strangers(observed, names)]):
        draft.actions += deletion(child_of(observed, name))
    return wanted


def _look_at(observed: Observed, sub_job: SubJob, child: Child, draft: _Draft) -> None:
    """Sort one wanted sub-job: ended, standing, blocked, or missing."""
    name, record = sub_job.name, child.record
    if child.is_outdated:
        draft.actions += adoptions(observed.hyperjob, sub_job, child)
        draft.actions += deletion(child)
        draft.blocked[name] = Reason.RESTARTING, record.message if record is not None else ""
        return
    if child.is_terminal:
        draft.secured += 1
        draft.standing.append((sub_job.group.name, child.cluster))
        return
    in_the_way = conflict(child, observed.hyperjob.name)
    if in_the_way:
        passing = predecessor(child, observed.hyperjob.name)
        reason = Reason.BEING_DELETED if passing else Reason.NAME_CONFLICT
        draft.blocked[name] = reason, in_the_way
        return
    draft.actions += adoptions(observed.hyperjob, sub_job, child)
    if observed.hyperjob.suspend:
        draft.actions += deletion(child)
        draft.blocked[name] = Reason.SUSPENDED, "suspended"
        return
    if held_back := _held_back(observed, child, draft.waiting):
        draft.blocked[name] = held_back
        return
    draft.lessons[name] = learn(child, now=observed.now)
    refusal = observed.refusals.get(name)
    refused = refusal is not None and observed.now < refusal.retry_at
    if refusal is not None and refused:
        draft.blocked[name] = Reason.REFUSED, f"{refusal.reason}: {refusal.message}"
    if child.exists and child.job is not None:
        draft.secured += 1
        seat = seat_of(observed, sub_job, child, draft.excluded(child))
        if seat is not None:
            draft.seats[name] = seat, sub_job, child
        elif child.cluster:
            draft.standing.append((sub_job.group.name, child.cluster))
        if refused:
            return
        change = resize(child.job, sub_job.size.template)
        if change is not None:
            draft.actions.append(change)
        if child.policy is None and not backs_off(observed):
            draft.missing[name] = sub_job, child
        return
    leaving = [
        kind
        for kind, item in (("Job", child.job), ("PropagationPolicy", child.policy))
        if item is not None and item.deleting
    ]
    if leaving:
        draft.blocked[name] = Reason.BEING_DELETED, f"waits until its old {leaving[0]} is gone"
    elif refused:
        return
    elif backs_off(observed):
        draft.blocked[name] = Reason.GANG_BACK_OFF, describe_wait(observed)
    elif observed.verdict is not None and not is_admitted(
        observed.hyperjob.name, sub_job, observed.verdict
    ):
        queue = queue_of(sub_job.size.template)
        draft.blocked[name] = Reason.WAITING_FOR_QUEUE, f"waits for queue {queue}"
    else:
        draft.missing[name] = sub_job, child


def _held_back(observed: Observed, child: Child, waiting_for: Waiting) -> tuple[Reason, str] | None:
    """Say why a sub-job that there is none of must not be made yet."""
    if child.exists:
        return None
    if child.name in waiting_for.for_what:
        return Reason.WAITING_FOR_DEPENDENCY, waiting_for.for_what[child.name]
    record = child.record
    if record is not None and record.retry_time is not None and observed.now < record.retry_time:
        why = record.message.partition("; starts again at ")[0]
        return Reason.RESTARTING, f"{why}; starts again at {rfc3339(record.retry_time)}"
    return None


def _place(observed: Observed, draft: _Draft, minimum: int) -> tuple[Placement, int]:
    """Place what is missing and plan its creation; return it with how many had to fit together."""
    lost: dict[str, tuple[SubJob, Child]] = {}
    for name, (sub_job, child) in draft.missing.items():
        if child.exists and child.cluster:
            draft.actions.append(_creation(observed, sub_job, child, child.cluster))
        elif sub_job.group.name in draft.split.waiting:
            draft.blocked[name] = draft.split.waiting[sub_job.group.name]
        else:
            lost[name] = sub_job, child
    needed = max(0, minimum - draft.secured)
    placement = place(
        [
            draft.split.pinned(sub_job.request(draft.excluded(child)))
            for sub_job, child in lost.values()
        ],
        observed.clusters,
        standing=[
            *draft.standing,
            *domains(observed, [each for each, _, _ in draft.seats.values()]),
        ],
        max_domains=observed.hyperjob.max_domains,
        minimum=needed,
    )
    for name, cluster in placement.assigned.items():
        sub_job, child = lost[name]
        if child.policy is not None and child.policy.clusters != (cluster,):
            draft.actions.append(_repin(observed, sub_job, child.policy, cluster))
        overflow = placement.overflow.get(name) or draft.split.overflow.get(name, "")
        draft.actions.append(_creation(observed, sub_job, child, cluster, overflow=overflow))
    draft.actions.sort(key=lambda action: isinstance(action, DeleteChild))
    return placement, needed


def _look_again(observed: Observed, draft: _Draft, placement: Placement) -> Review:
    """Look at the places of what no member has seen, and plan the moves."""
    wanted = {name: sub_job for name, (sub_job, _) in draft.missing.items()}
    found = look_again(
        observed,
        [seat for seat, _, _ in draft.seats.values()],
        standing=draft.standing,
        placed=[
            (wanted[name].group.name, cluster, wanted[name].size.demand)
            for name, cluster in placement.assigned.items()
        ],
    )
    if not backs_off(observed):
        for name, cluster in found.moves.items():
            _, sub_job, child = draft.seats[name]
            if child.policy is not None:
                draft.actions.append(_repin(observed, sub_job, child.policy, cluster))
    return found


def _plug_in(
    observed: Observed,
    children: Sequence[Member],
    draft: _Draft,
    placement: Placement,
    minimum: int,
) -> frozenset[str]:
    """Let the plugins act on the plan so far; return the sub-jobs that are made again for them."""
    plugged = plug_in(
        observed, children, draft.actions, assigned=placement.assigned, minimum=minimum
    )
    draft.actions = plugged.actions
    draft.blocked.update(plugged.blocked)
    return plugged.outdated


def _needs(
    children: Sequence[Member], placement: Placement, found: Review
) -> tuple[Resources, ...]:
    """Return the sizes of what has no place."""
    homeless = {*placement.unplaced, *found.short}
    sizes = [sub_job.size.demand for sub_job, _ in children if sub_job.name in homeless]
    return tuple({id(demand): demand for demand in sizes}.values())


def _repin(observed: Observed, sub_job: SubJob, policy: Policy, cluster: str) -> Repin:
    gated = observed.admission is QueueAdmission.VOLCANO_GLOBAL
    return Repin(
        name=policy.name,
        uid=policy.uid,
        cluster=cluster,
        demand=sub_job.size.demand,
        placement=placement_object(cluster, gated=gated),
    )


def _creation(
    observed: Observed, sub_job: SubJob, child: Child, cluster: str, *, overflow: str = ""
) -> CreateChild:
    policy: Object | None = None
    if child.policy is None:
        gated = observed.admission is QueueAdmission.VOLCANO_GLOBAL
        gang = observed.admission is not QueueAdmission.NONE
        held = gang and (not child.exists or is_held(child))
        policy = policy_object(
            observed.hyperjob, sub_job, cluster, gated=gated, held=held, attempt=child.attempt
        )
    return CreateChild(
        name=sub_job.name,
        policy=policy,
        job=None if child.exists else vcjob(observed.hyperjob, sub_job, attempt=child.attempt),
        cluster=cluster,
        demand=sub_job.size.demand,
        overflow=overflow,
    )


def _requeue(
    observed: Observed,
    draft: _Draft,
    placement: Placement,
    children: list[Child],
    judgement: Judgement,
) -> timedelta | None:
    waits = [wait for wait in (judgement.wait, draft.split.again) if wait is not None]
    waits += [lesson.wait for lesson in draft.lessons.values() if lesson.wait is not None]
    waits += [
        refusal.retry_at - observed.now
        for name, refusal in observed.refusals.items()
        if name in draft.blocked and refusal.retry_at > observed.now
    ]
    waits += [
        child.record.retry_time - observed.now
        for child in children
        if child.record is not None
        and child.record.retry_time is not None
        and child.record.retry_time > observed.now
        and draft.blocked.get(child.name, ("",))[0] is Reason.RESTARTING
    ]
    loss = next_loss(observed, draft.losses)
    if loss is not None:
        waits.append(loss)
    if any(reason is Reason.NAME_CONFLICT for reason, _ in draft.blocked.values()):
        waits.append(CONFLICT_RECHECK)
    short = placement.unplaced or draft.split.waiting or draft.found.short
    if short and observed.capacity_changes_in is not None:
        waits.append(observed.capacity_changes_in)
    return min(waits, default=None)
