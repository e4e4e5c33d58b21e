"""A program that makes no steps against its own pace: what the reader of logs found. Pure.

One read never decides. The reader looks twice, and the record in the status stays until the
program makes a step, or its sub-job starts again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from hyperjob_engine.reasons.stacks import Survey

LEAST_RESTART: Final = timedelta(minutes=2)
"""A restart waits so long, or three times the patience, since the last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A sub-job whose program makes no steps, in two reads of its log.

    `since` is the time of its last step, `patience` how long a pause of it may last, `usual` the
    usual time between two of its lines; None: it has printed fewer than three.
    """

    since: datetime
    step: int
    attempt: int
    uid: str
    patience: timedelta
    usual: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """All stalls of a HyperJob by sub-job, and what its processes do; None: not read yet."""

    stalls: Mapping[str, Stall] = field(default_factory=dict)
    survey: Survey | None = None
