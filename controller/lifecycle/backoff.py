"""How long a failed sub-job waits before it is made again.

Growing and bounded, and a function of recorded times alone, so that a restart of the controller
changes nothing.
"""

from datetime import datetime, timedelta
from typing import Final

FIRST: Final = timedelta(seconds=10)
LONGEST: Final = timedelta(minutes=5)
STABLE: Final = timedelta(minutes=30)
"""An attempt that lasted so long was no crash."""
_DOUBLINGS: Final = 10


def delay(attempt: int, lasted: timedelta | None) -> timedelta:
    """Return the wait before an attempt (1 is the first restart), given how long the last one was.

    The first restart is at once, as is one after an attempt that lasted.
    """
    if attempt <= 1 or (lasted is not None and lasted >= STABLE):
        return timedelta()
    return min(LONGEST, FIRST * (1 << min(attempt - 2, _DOUBLINGS)))


def retry_time(attempt: int, *, now: datetime, began: datetime | None) -> datetime:
    """Return when an attempt may be made; `began` is when the one before it was."""
    return now + delay(attempt, None if began is None else now - began)
