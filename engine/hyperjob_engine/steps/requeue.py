"""The time until the next pass of a HyperJob if no object changes: the least of all waits.

The end of a HyperJob by its activeDeadlineSeconds, with a planned stop of its sub-jobs.

From the deadline on the sub-jobs are stopped as those of a suspended HyperJob. With checkpoints the
HyperJob ends when the planned stop is over, and its status then has the last saved step.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.choices import DeadlineMode, TimeUse
from hyperjob_core.api.duration import later
from hyperjob_core.api.meta import Object
from hyperjob_core.api.stops import StopCause
from hyperjob_core.api.wire import timestamp
from hyperjob_engine.gang.giveback import SOON, records_share
from hyperjob_engine.lifecycle.decisions import End, Member, next_loss
from hyperjob_engine.lifecycle.silence import next_restart
from hyperjob_engine.lifecycle.stops import is_over, pods_of_stop, running_jobs, stopped, unopened
from hyperjob_engine.lifecycle.unstarted import next_due
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.subjobs import Child
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.status.goodput import GoodputAccount, parse_account
from hyperjob_engine.steps.draft import Draft

CONFLICT_RECHECK: Final = timedelta(seconds=30)
PODS_RECHECK: Final = timedelta(seconds=10)
_OVERDUE: Final = timedelta(seconds=5)


def requeue_after(draft: Draft) -> timedelta | None:
    """Return the time until the next pass; None if the plan has no wait."""
    return min(_waits(draft), default=None)


def _waits(draft: Draft) -> Iterator[timedelta]:
    """Yield the time until each instant at which the plan could differ without an event.

    A step that decides by the time must have a wait here: else its HyperJob stays as it is until an
    object changes. A wait that is too early costs one pass.
    """
    observed, now = draft.observed, draft.observed.now
    known = [draft.back_off.wait, draft.split.again, next_loss(observed, draft.losses)]
    known += [next_due(observed, draft.children), until_deadline(observed)]
    known += [next_restart(observed, draft.children), unopened(observed), draft.chooses_again]
    known += [draft.shrinks]
    known += [rejection_check.wait for rejection_check in draft.rejection_checks.values()]
    known += [silence_check.wait for silence_check in draft.silence_checks.values()]
    yield from (wait for wait in known if wait is not None)
    stop = observed.hyperjob.stop
    if stop is not None:
        if is_over(observed, draft.children):
            yield SOON  # the status loses the stop now; its own change requests no pass
        overdue = pods_of_stop(observed, stop) and now >= stop.until
        yield PODS_RECHECK if overdue else max(stop.until - now, timedelta())
        if any(observed.pods_left.get(name, 0) is None for name in stop.jobs):
            yield PODS_RECHECK  # a later event of the member proves that no pod is left
    for trouble in observed.pod_troubles.values():
        if trouble.changes is not None:
            yield trouble.changes - now
    yield from (until - now for until in observed.ending.values() if until > now)
    stopped = observed.hyperjob.records if observed.hyperjob.suspend else draft.blocked
    if any(observed.pods_left.get(name) for name in stopped):
        yield PODS_RECHECK  # the knowledge of a member that hangs ends without an event
    for name, refusal in observed.refusals.items():
        if name in draft.blocked and refusal.retry_at > now:
            yield refusal.retry_at - now
            if refusal.gives_back_at is not None and refusal.gives_back_at > now:
                yield refusal.gives_back_at - now
    if records_share(observed, (child for _, child in draft.children)):
        yield SOON
    for _, child in draft.children:
        end = child.record.exclusion_end(now) if child.record is not None else None
        if end is not None:
            yield end - now
        due = child.record.retry_time if child.record is not None else None
        blocked = draft.blocked.get(child.name)
        restarts = blocked is not None and blocked.reason is Reason.RESTARTING
        if due is not None and due > now and restarts:
            yield due - now
    if any(each.reason is Reason.NAME_CONFLICT for each in draft.blocked.values()):
        yield CONFLICT_RECHECK
    for _, child in draft.children:
        wait = until_look(child, now=now)
        if wait is not None and child.name in draft.blocked:
            yield wait or CONFLICT_RECHECK  # a read that is due is an action of this plan
    if draft.is_short and observed.capacity_changes_in is not None:
        yield observed.capacity_changes_in


def until_look(child: Child, *, now: datetime) -> timedelta | None:
    """Return the time until a direct read of a vcjob that the caches do not have; None if none.

    The informer selects vcjobs by label. A vcjob without the label shows only by a ResourceBinding
    that stays, or by a name conflict at the last read.
    """
    record, reason = child.record, child.record.reason if child.record is not None else ""
    if child.job is not None or child.stranger:
        return None
    if reason == Reason.NAME_CONFLICT:
        return timedelta()
    if not child.left_behind:
        return None
    since = timestamp(record.last_transition_time) if record is not None else None
    if reason != Reason.BEING_DELETED or since is None:
        return _OVERDUE
    return max(_OVERDUE - (now - since), timedelta())


_NO_RUN_TIME: Final[Collection[TimeUse | None]] = frozenset(
    {
        None,
        TimeUse.WAITING_FOR_QUEUE,
        TimeUse.WAITING_FOR_CAPACITY,
        TimeUse.BLOCKED,
        TimeUse.SUSPENDED,
    }
)


def with_deadline(observed: Observed) -> Observed:
    """Return the observation; after the deadline its sub-jobs count as suspended."""
    if not overdue(observed):
        return observed
    return replace(observed, hyperjob=replace(observed.hyperjob, suspend=True))


def overdue(observed: Observed) -> str:
    """Return which deadline has passed; empty before it, and without one."""
    deadline, left = observed.hyperjob.deadline, _time_left(observed)
    if deadline is None or left is None or left > timedelta():
        return ""
    time = "run time" if deadline.mode is DeadlineMode.RUN_TIME else "time since its creation"
    return f"activeDeadlineSeconds has passed: {deadline.limit.total_seconds():.0f} s of {time}"


def until_deadline(observed: Observed) -> timedelta | None:
    """Return the time until the deadline; None if no deadline comes closer, or it has passed."""
    deadline, left = observed.hyperjob.deadline, _time_left(observed)
    if deadline is None or left is None or left <= timedelta():
        return None
    if deadline.mode is DeadlineMode.RUN_TIME:
        account = _account(observed)
        return left if account is not None and account.state not in _NO_RUN_TIME else None
    return left


def stopping(observed: Observed, members: Sequence[Member]) -> End | Object | None:
    """Return the end of the HyperJob, or the status fields of its planned stop, after the deadline.

    None while the planned stop goes on, and before the deadline.
    """
    late = overdue(observed)
    if not late:
        return None
    end = End(completed=False, reason=Reason.DEADLINE_EXCEEDED, why=late)
    running = running_jobs(observed, members)
    if observed.hyperjob.checkpoint is None:
        return end
    if observed.hyperjob.stop is None:
        return stopped(observed, members, running, StopCause.DEADLINE) if running else end
    return end if is_over(observed, members) else None


def _time_left(observed: Observed) -> timedelta | None:
    """Return the time until the deadline, not above 0 after it; None if neither is known."""
    deadline = observed.hyperjob.deadline
    if deadline is None:
        return None
    if deadline.mode is DeadlineMode.RUN_TIME:
        account = _account(observed)
        return None if account is None else deadline.limit - _run_time(account, observed.now)
    created = timestamp(observed.hyperjob.created)
    return None if created is None else later(created, deadline.limit) - observed.now


def _run_time(account: GoodputAccount, now: datetime) -> timedelta:
    """Return the time in which the HyperJob neither waited nor was suspended."""
    spent = account.until(now).spent
    return timedelta(milliseconds=sum(spent[use] for use in spent if use not in _NO_RUN_TIME))


def _account(observed: Observed) -> GoodputAccount | None:
    return parse_account(observed.hyperjob.status.get("goodput"))
