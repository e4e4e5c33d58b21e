"""The back-off of a failed sub-job: how long the controller waits before it recreates the sub-job.

The wait grows up to a bound. It depends on times in the status alone: a restart of the controller
does not change it.
"""

from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.duration import doubled

FIRST: Final = timedelta(seconds=10)
LONGEST: Final = timedelta(minutes=5)
STABLE: Final = timedelta(minutes=30)
"""After an attempt of this length the next one has no back-off: the program did not crash."""


def delay(attempt: int, lasted: timedelta | None) -> timedelta:
    """Return the wait before an attempt, from 1; `lasted` is the length of the attempt before.

    The wait is 0 before the first restart, and after an attempt of at least STABLE.
    """
    if attempt <= 1 or (lasted is not None and lasted >= STABLE):
        return timedelta()
    return doubled(FIRST, attempt - 2, LONGEST)


def retry_time(attempt: int, *, now: datetime, began: datetime | None) -> datetime:
    """Return when the controller may create an attempt; `began` is the start of the one before."""
    return now + delay(attempt, None if began is None else now - began)
