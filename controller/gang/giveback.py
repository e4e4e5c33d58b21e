"""An incomplete gang gives back: it deletes its held sub-jobs and asks its queue again later.

What is decided is written to the status first and done by a later pass, so that a controller which
is killed in between neither forgets it nor does it twice. Never touches what a member has seen.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from controller.gang.gate import is_released, is_through, is_undispatched
from controller.model.child import Child
from controller.model.detail import GaveBack
from controller.model.observed import GangRecord, Observed, QueueAdmission

# In lengths of the time limit: the first wait, the longest, and what each HyperJob adds of its own.
_FIRST: Final = 0.25
_LONGEST: Final = 4.0
_PATIENCE: Final = timedelta(seconds=30)  # of a gang of which the queue has released nothing
_SHORTEST: Final = timedelta(seconds=2)  # below a queue's own pace waits would not differ
SOON: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GangBackOff:
    """What the status is to remember of the gang, and when to look again."""

    record: GangRecord | None = None
    wait: timedelta | None = None


def backs_off(observed: Observed) -> bool:
    """Return whether a HyperJob has given back and waits until it may ask its queue again."""
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
    """Return the sub-jobs to delete: those that no member has received, once the status says so."""
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
    """Return the next state of a gang: incomplete, giving back, waiting to ask again, or whole.

    `leaving`: sub-jobs beside `children` are being deleted.

    Time counts from the last sub-job that the queue released. A gang of which the queue released
    nothing holds no quota, only room, and keeps that while no other waits for room. So does a gang
    that our own queue admission let in, which holds a share that only others who wait can use.
    """
    if observed.admission is QueueAdmission.NONE or observed.hyperjob.suspend:
        return GangBackOff()
    record = observed.hyperjob.gang or GangRecord()
    waits = backs_off(observed)
    whole = all(child.name in opening or is_through(child) for child in children)
    if whole and not (waits and leaving):
        return GangBackOff()
    if record.retry_time is not None and waits:
        return GangBackOff(record=record, wait=record.retry_time - observed.now)
    parts = [c for c in children if is_undispatched(c) and c.name not in opening]
    if not parts:
        return GangBackOff(record=GangRecord(attempts=record.attempts) if record.attempts else None)
    theirs = observed.admission is QueueAdmission.VOLCANO_GLOBAL
    passed = any(child.name in observed.passed_over for child in parts)
    released = sum(is_released(child) for child in parts) if theirs else 0
    if not (theirs and passed) or any(is_through(child) for child in children):
        return _gathering(observed, record, released=released, limit=observed.gang_timeout)
    if released:
        return _give_back(observed, record, window=_SHORTEST)
    limit = min(_PATIENCE, observed.gang_timeout)
    return _gathering(observed, record, released=released, limit=limit)


def next_try(observed: Observed, attempts: int) -> GangRecord | None:
    """Return the record of a gang that gives back now; None without a queue admission."""
    if observed.admission is QueueAdmission.NONE:
        return None
    retry = _retry_time(observed, attempts, observed.gang_timeout * _FIRST)
    return GangRecord(attempts=attempts, retry_time=retry)


def gave_back(observed: Observed, left: Sequence[str] = ()) -> GaveBack | None:
    """Return how often a HyperJob has given back, and until when it waits."""
    record = observed.hyperjob.gang
    if record is None or record.retry_time is None:
        return None
    return GaveBack(record.attempts, record.retry_time, left)


def _gathering(
    observed: Observed, record: GangRecord, *, released: int, limit: timedelta
) -> GangBackOff:
    since = record.incomplete_since
    if since is None or released > record.admitted:
        since = observed.now.replace(microsecond=0)
    wait = since + limit - observed.now
    if wait <= timedelta() and (released or observed.contended):
        return _give_back(observed, record, window=observed.gang_timeout * _FIRST)
    return GangBackOff(
        record=GangRecord(
            incomplete_since=since,
            admitted=max(released, record.admitted),
            attempts=record.attempts,
        ),
        wait=wait if wait > timedelta() else limit,
    )


def _give_back(observed: Observed, record: GangRecord, *, window: timedelta) -> GangBackOff:
    attempts = record.attempts + 1
    retry = _retry_time(observed, attempts, window)
    return GangBackOff(record=GangRecord(attempts=attempts, retry_time=retry), wait=SOON)


def _retry_time(observed: Observed, attempts: int, first: timedelta) -> datetime:
    """Return when to ask the queue again: later each time, and not when other HyperJobs do."""
    longest = max(_SHORTEST, observed.gang_timeout * _LONGEST)
    window = min(longest, max(_SHORTEST, first * 2.0 ** min(attempts - 1, 16)))
    seed = f"{observed.hyperjob.uid}/{attempts}".encode()
    share = int.from_bytes(hashlib.sha256(seed).digest()[:4], "big") / 2**32
    moment = observed.now + window + window * share
    return moment.replace(microsecond=0) + timedelta(seconds=1)
