"""The plan of a HyperJob: actions, status and Events from the observation, in numbered steps.

Pure and total: the time and the clusters are in the observation, and `hyperjob_controller.apply`
sends the requests of the actions without further decisions.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_engine.expansion.auto import resolve
from hyperjob_engine.expansion.expand import SpecError, expand
from hyperjob_engine.expansion.members import joining
from hyperjob_engine.gang.giveback import next_try
from hyperjob_engine.lifecycle.decisions import End, Restart
from hyperjob_engine.lifecycle.failures import judge, unexplained, unread
from hyperjob_engine.lifecycle.finished import (
    after_end,
    ending,
    forgotten,
    needs_more,
    releases,
)
from hyperjob_engine.lifecycle.records import with_restart
from hyperjob_engine.lifecycle.requests import answer, giving_back, growing, refuse_after_end
from hyperjob_engine.lifecycle.silence import unmoving
from hyperjob_engine.lifecycle.stops import keeping, suspending, unopened
from hyperjob_engine.lifecycle.unstarted import given_back, not_allowed, not_started
from hyperjob_engine.model.line import Chosen
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.parse import with_fields
from hyperjob_engine.model.planned import Plan
from hyperjob_engine.model.subjobs import Choice, choosing
from hyperjob_engine.plugins.hook import withdrawing
from hyperjob_engine.status.derive import derive, derive_refusal, is_recorded
from hyperjob_engine.status.jobs import Outlook, Outlooks
from hyperjob_engine.status.training import with_last_lines
from hyperjob_engine.status.transitions import refusal_events, restart_events, status_events
from hyperjob_engine.steps.draft import Draft, no_target
from hyperjob_engine.steps.requeue import overdue, requeue_after, stopping, with_deadline
from hyperjob_engine.steps.settle import (
    apply_plugins,
    give_back,
    needs,
    open_gates,
    place_missing,
    review_pinned,
    scale,
    smaller,
)
from hyperjob_engine.steps.sort import sort

AT_ONCE: Final = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedPlan:
    """A plan with the draft from which it was made, for its explanation.

    `refusal` is why the spec is invalid. `draft` is None if the HyperJob is being deleted, has
    ended, is invalid, or the queue engine decides about it in its next round.
    """

    plan: Plan
    draft: Draft | None = None
    refusal: str = ""


def plan(observed: Observed) -> Plan:
    """Return the plan of one HyperJob."""
    return decide(observed).plan


def decide(observed: Observed) -> ExplainedPlan:
    """Return the plan of one HyperJob, with its draft."""
    decision = _decide(observed)
    actions = withdrawing(observed.hyperjob, decision.plan.actions)
    decided = keeping(observed, replace(decision.plan, actions=actions))
    return replace(decision, plan=decided)


def _decide(observed: Observed) -> ExplainedPlan:
    hyperjob = observed.hyperjob
    # 1. A deleted HyperJob: the garbage collector deletes its objects by ownerReference.
    if hyperjob.deleting:
        return ExplainedPlan(plan=Plan())
    # 2. An ended HyperJob: no sub-job is created, changed or restarted.
    if hyperjob.is_finished:
        ended, asked = after_end(observed), refuse_after_end(hyperjob)
        status = None if ended.status is None else with_last_lines(observed, ended.status)
        events = () if asked is None or status is None else refusal_events(asked.refused)
        return ExplainedPlan(plan=replace(ended, status=status, events=events))
    # 3. A new HyperJob before the next round of the queue engine: its status stays as it is.
    if observed.verdict is not None and observed.verdict.undecided:
        return ExplainedPlan(plan=Plan())
    # 4. After activeDeadlineSeconds its sub-jobs are stopped, as those of a suspended HyperJob.
    observed = with_deadline(observed)
    # 5. An invalid spec: the status has the reason, and no object changes.
    try:
        split = resolve(observed)
        groups = expand(hyperjob, split.shares)
    except SpecError as error:
        return ExplainedPlan(plan=_refuse(observed, str(error)), refusal=str(error))
    # 6. Sub-jobs that the spec no longer has are deleted.
    draft = scale(observed, split, groups)
    # 7. The cause of a failure is read first: the reaction to it deletes the pods.
    if (asking := unexplained(observed, draft.children)) is not None:
        waiting = Plan(failed=asking.jobs, requeue_after=asking.wait)
        return ExplainedPlan(plan=waiting, draft=draft)
    # 8. An end or a restart is written to the status first; the next pass acts on it.
    recorded = _record(draft)
    if recorded is not None:
        return ExplainedPlan(plan=recorded, draft=draft)
    # 9. Each sub-job of the spec is sorted: ended, existing, blocked or missing.
    for sub_job, child in draft.children:
        sort(draft, sub_job, child)
    # 10. Missing sub-jobs are placed, a gang as a whole or not at all, if need be fewer of them.
    place_missing(draft)
    if size := smaller(draft):
        return _decide(_with_size(observed, size))
    # 11. Sub-jobs that no member has received move if their cluster has no room any more.
    review_pinned(draft)
    # 12. Plugins give the pods of each sub-job the addresses of the others.
    apply_plugins(draft)
    # 13. The gates of admitted sub-jobs with room open together.
    open_gates(draft)
    # 14. The held sub-jobs of a gang that stays incomplete are deleted.
    give_back(draft)
    # 15. Ended sub-jobs are removed from Volcano Global's quota.
    draft.actions += [*releases(observed, draft.staying), *forgotten(observed, draft.staying)]
    # 16. The status and the Events are derived.
    return ExplainedPlan(plan=_finished_plan(draft), draft=draft)


def _refuse(observed: Observed, why: str) -> Plan:
    status = derive_refusal(observed, why)
    return Plan(status=status, events=status_events(observed.hyperjob.status, status))


def _with_size(observed: Observed, size: Choice) -> Observed:
    """Return the observation of a HyperJob with another number of sub-jobs; they keep its share."""
    verdict = observed.verdict
    return replace(
        observed,
        hyperjob=choosing(observed.hyperjob, size),
        verdict=None if verdict is None else replace(verdict, chosen=Chosen.LEFT),
    )


def _record(draft: Draft) -> Plan | None:
    """Return the plan that records an end or a restart in the status; None if there is neither.

    A restart waits for the deletion of sub-jobs that the spec no longer has.
    """
    observed, children = draft.observed, draft.children
    restart_late = partial(
        given_back, observed, children, minimum=draft.together, next_try=partial(next_try, observed)
    )
    refused = restart_late(not_allowed(observed, children))
    if refused is not None and not draft.actions:
        return _restart(draft, refused)
    end = ending(observed, children, draft.waiting, draft.losses)
    if end is not None:
        return _end(draft, end)
    late = stopping(observed, children)
    if late is not None:
        return _end(draft, late) if isinstance(late, End) else _stop(draft, late)
    if draft.actions or overdue(observed):
        return None
    asked = answer(observed.hyperjob, children, no_target=partial(no_target, draft))
    if asked is not None:
        return _restart(draft, asked)
    if observed.hyperjob.suspend:
        stop = suspending(observed, children)
        return None if stop is None else _stop(draft, stop)
    verdict = judge(observed, children, draft.losses)
    if isinstance(verdict, End):
        return _end(draft, verdict)
    verdict = verdict or unmoving(observed, children)
    if isinstance(verdict, End):
        return _end(draft, verdict)
    verdict = verdict or giving_back(observed, children)
    verdict = verdict or growing(observed, children, partial(joining, observed))
    verdict = verdict or restart_late(not_started(observed, children))
    return None if verdict is None else _restart(draft, verdict)


def _end(draft: Draft, end: End) -> Plan:
    """Return the plan that records the end; the next pass deletes sub-jobs that still run.

    Before it the controller reads the last lines of the programs that have ended.
    """
    observed = draft.observed
    wait = unread(observed, draft.children)
    if wait is not None:
        return Plan(requeue_after=wait)
    items = [
        Outlook(sub_job=sub_job, child=child, ended=None if child.is_terminal else end)
        for sub_job, child in draft.children
    ]
    status = derive(observed, Outlooks(items=items, minimum=len(items), end=end))
    return Plan(
        status=status,
        events=status_events(observed.hyperjob.status, status),
        requeue_after=AT_ONCE if needs_more(observed, status) else None,
    )


def _stop(draft: Draft, fields: Object) -> Plan:
    """Return the plan that records a planned stop; the next pass deletes the sub-jobs."""
    observed = draft.observed
    hyperjob = with_fields(observed.hyperjob, observed.hyperjob.status | fields)
    decision = plan(replace(observed, hyperjob=hyperjob))
    return replace(decision, actions=(), requeue_after=AT_ONCE, waits_for_capacity=False)


def _restart(draft: Draft, decided: Restart) -> Plan:
    """Return the plan that records a restart; the next pass deletes and recreates the sub-jobs."""
    decision = plan(with_restart(draft.observed, draft.children, decided))
    return replace(
        decision,
        actions=(),
        events=(*refusal_events(decided.refused), *restart_events(decided, decision.events)),
        requeue_after=AT_ONCE,
        waits_for_capacity=False,
    )


def _finished_plan(draft: Draft) -> Plan:
    """Return the plan of a complete draft."""
    observed = draft.observed
    outlooks = Outlooks(
        items=[draft.outlook(member) for member in draft.children],
        minimum=draft.minimum,
        room_for=draft.placement.room_for,
        needed=draft.needed,
        never=draft.never,
        late=overdue(observed),
        gang=draft.back_off.record,
    )
    status = derive(observed, outlooks)
    recorded = is_recorded(observed, (sub_job for sub_job, _ in draft.children))
    return Plan(
        actions=() if unopened(observed) or not recorded else tuple(draft.actions),
        status=status,
        events=status_events(observed.hyperjob.status, status),
        requeue_after=requeue_after(draft) if recorded else AT_ONCE,
        waits_for_capacity=draft.is_short,
        needs=needs(draft),
        questions=draft.split.questions,
    )
