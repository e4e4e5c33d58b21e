"""The back-off of an incomplete gang: its held sub-jobs are deleted, and it queues again later.

The controller writes the decision to the status first, and a later pass deletes the sub-jobs: a
controller that restarts in between acts on it once. It never deletes a sub-job that a member has
received.

An outage: the API server cannot judge sub-jobs that a HyperJob is admitted for.

After some seconds the HyperJob gives the room of its missing sub-jobs back, and it is in its line
again for the next try. Sub-jobs that exist stay.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.status import GangStatus
from hyperjob_engine.gang.gang import is_released, is_through, is_undispatched
from hyperjob_engine.model.observed import Observed, QueueAdmission
from hyperjob_engine.model.subjobs import Child

# Factors of the gang timeout: the first wait and the longest.
_FIRST: Final = 0.25
_LONGEST: Final = 4.0
_PATIENCE: Final = timedelta(seconds=30)  # for a gang without a released sub-job
_SETTLED: Final = timedelta(seconds=5)  # the time in which most gangs become complete
_SHORTEST: Final = timedelta(seconds=2)  # shorter waits would end in the same round of the queue
SOON: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GangBackOff:
    """The gang's record for the status, and the time until the next look."""

    record: GangStatus | None = None
    wait: timedelta | None = None


def backs_off(observed: Observed) -> bool:
    """Return whether a HyperJob's gang was deleted and waits until it may queue again."""
    record = observed.hyperjob.gang
    return (
        observed.admission is not QueueAdmission.NONE
        and record is not None
        and record.retry_time is not None
        and observed.now < record.retry_time
    )


def to_give_back(
    observed: Observed, children: Sequence[Child], *, opening: Collection[str]
) -> list[Child]:
    """Return the sub-jobs to delete: if the status has the back-off, those in no member."""
    if not backs_off(observed):
        return []
    return [child for child in children if is_undispatched(child) and child.name not in opening]


def next_state(
    observed: Observed,
    children: Sequence[Child],
    *,
    opening: Collection[str],
    leaving: bool = False,
) -> GangBackOff:
    """Return the next state of a gang: incomplete, to be deleted, backing off, or complete.

    `leaving`: sub-jobs beside `children` are being deleted.

    The gang timeout counts from the last sub-job that the queue released. A gang without a released
    sub-job holds no quota but only room, and keeps it while no other HyperJob waits for room. The
    same applies to a gang that the queue engine admitted.

    A gang whose quota Volcano Global has given to other workloads (`passed_over`) will not be
    complete soon: the controller deletes its released sub-jobs at once, and waits for `_PATIENCE`
    if none is released. A gang with a sub-job in a member (`is_through`) always has its gang
    timeout.
    """
    if observed.admission is QueueAdmission.NONE or observed.hyperjob.suspend:
        return GangBackOff()
    record = observed.hyperjob.gang or GangStatus()
    waits = backs_off(observed)
    whole = all(child.name in opening or is_through(child) for child in children)
    if whole and not (waits and leaving):
        return GangBackOff()
    if record.retry_time is not None and waits:
        return GangBackOff(record=record, wait=record.retry_time - observed.now)
    parts = [c for c in children if is_undispatched(c) and c.name not in opening]
    if not parts:
        return GangBackOff(record=GangStatus(attempts=record.attempts) if record.attempts else None)
    theirs = observed.admission is QueueAdmission.VOLCANO_GLOBAL
    passed = any(child.name in observed.passed_over for child in parts)
    released = sum(is_released(child) for child in parts) if theirs else 0
    if not (theirs and passed) or any(is_through(child) for child in children):
        return _gathering(observed, parts, released=released, limit=observed.limits.gang)
    if released:
        return _give_back(observed, record, window=_SHORTEST)
    limit = min(_PATIENCE, observed.limits.gang)
    return _gathering(observed, parts, released=released, limit=limit)


def next_try(observed: Observed, attempts: int, soon: bool) -> GangStatus | None:
    """Return the record of a gang that is deleted now; None without a queue admission.

    `soon`: the first tries follow within seconds, because another cluster may start the gang, and
    no wait is longer than the first one otherwise: a quota may be raised at any time.
    """
    if observed.admission is QueueAdmission.NONE:
        return None
    usual = observed.limits.gang * _FIRST
    if soon:
        retry = _retry_time(observed, attempts, _SHORTEST, longest=usual)
    else:
        retry = _retry_time(observed, attempts, usual)
    return GangStatus(attempts=attempts, retry_time=retry)


def gave_back(observed: Observed, left: Sequence[str] = (), *, name: str = "") -> str:
    """Return when a gang that was deleted tries again, and what it lacked; empty if it was not.

    `left` are the clusters that the sub-job `name` left; its record has why it left the last one.
    """
    record = observed.hyperjob.gang
    if record is None or record.retry_time is None:
        return ""
    known = observed.hyperjob.records.get(name)
    why = (known.excluded_message if known is not None and left else "") or (
        f"the gang stayed incomplete (time {record.attempts}), and the controller deleted its"
        " sub-jobs"
    )
    where = f" without {', '.join(left)}" if left else ""
    return f"waits for the next try at {record.retry_time:%H:%M:%S}Z{where}: {why}"


def _gathering(
    observed: Observed, parts: Sequence[Child], *, released: int, limit: timedelta
) -> GangBackOff:
    """Return the state of a gang of which `parts` wait, by when it was released or created last.

    The record of a gang without a released sub-job follows from its newest vcjob: most gangs are
    complete before it must be written.
    """
    now, record = observed.now, observed.hyperjob.gang or GangStatus()
    since = record.incomplete_since
    if released > record.admitted:
        since = now.replace(microsecond=0)
    elif since is None:
        made = [child.job.created for child in parts if child.job is not None]
        newest = max(filter(None, made), default=None)
        since = min(newest or now, now).replace(microsecond=0)
        soon = since + _SETTLED - now
        if newest is not None and soon > timedelta() and limit > _SETTLED:
            known = GangStatus(attempts=record.attempts) if record.attempts else None
            return GangBackOff(record=known, wait=soon)
    wait = since + limit - now
    if wait <= timedelta() and (released or observed.contended):
        return _give_back(observed, record, window=observed.limits.gang * _FIRST)
    return GangBackOff(
        record=GangStatus(
            incomplete_since=since,
            admitted=max(released, record.admitted),
            attempts=record.attempts,
        ),
        wait=wait if wait > timedelta() else limit,
    )


def _give_back(observed: Observed, record: GangStatus, *, window: timedelta) -> GangBackOff:
    attempts = record.attempts + 1
    retry = _retry_time(observed, attempts, window)
    return GangBackOff(record=GangStatus(attempts=attempts, retry_time=retry), wait=SOON)


def _retry_time(
    observed: Observed, attempts: int, first: timedelta, *, longest: timedelta | None = None
) -> datetime:
    """Return when the gang queues again: later each time, with a jitter by HyperJob."""
    longest = max(_SHORTEST, longest or observed.limits.gang * _LONGEST)
    window = min(longest, max(_SHORTEST, first * 2.0 ** min(attempts - 1, 16)))
    seed = f"{observed.hyperjob.uid}/{attempts}".encode()
    share = int.from_bytes(hashlib.sha256(seed).digest()[:4], "big") / 2**32
    moment = observed.now + window + window * share
    return moment.replace(microsecond=0) + timedelta(seconds=1)


def gives_back(observed: Observed) -> bool:
    """Return whether other HyperJobs have the room of a HyperJob's missing sub-jobs meanwhile."""
    return any(
        refusal.gives_back_at is not None
        and refusal.gives_back_at <= observed.now < refusal.retry_at
        for refusal in observed.refusals.values()
    )


def records_share(observed: Observed, children: Iterable[Child]) -> bool:
    """Return whether the status still records the share of a missing sub-job in an outage."""
    return gives_back(observed) and any(
        child.record is not None
        and child.record.admitted
        and not (child.exists or child.is_terminal)
        for child in children
    )
