"""The end of a HyperJob by its activeDeadlineSeconds, with a planned stop of its sub-jobs.

From the deadline on the sub-jobs are stopped as those of a suspended HyperJob. With checkpoints the
HyperJob ends when the planned stop is over, and its status then has the last saved step.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.checkpoint import StopCause
from hyperjob_core.api.choices import DeadlineMode, TimeUse
from hyperjob_core.api.duration import later
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import timestamp
from hyperjob_engine.lifecycle.decisions import End, Member
from hyperjob_engine.lifecycle.stops import is_over, running_jobs, stopped
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.status.goodput import GoodputAccount, parse_account

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
    if not passed(observed):
        return observed
    return replace(observed, hyperjob=replace(observed.hyperjob, suspend=True))


def passed(observed: Observed) -> str:
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
    late = passed(observed)
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
