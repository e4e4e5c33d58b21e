"""Why a HyperJob waits in a line of the queue engine: codes and numbers.

Decisions compare them; `hyperjob_engine.status.waiting` turns them into messages.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from hyperjob_engine.model.shortage import Shortage


class QueueTroubleCode(enum.StrEnum):
    """Why a Queue takes no jobs."""

    MISSING = "Missing"
    IS_ROOT = "IsRoot"
    PARENT_MISSING = "ParentMissing"
    CIRCLE = "Circle"
    NOT_OPEN = "NotOpen"
    HAS_CHILDREN = "HasChildren"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTrouble:
    """Why the Queue `queue` takes no jobs; `other` is the parent that the code is about."""

    queue: str
    code: QueueTroubleCode
    other: str = ""
    state: str = ""
    children: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """A queue's capability is too small for a demand; amounts in nano-units."""

    queue: str
    resource: str
    capability: int
    used: int
    missing: int
    ever: bool  # it would fit if the queue used nothing


@dataclass(frozen=True, slots=True)
class Share:
    """A queue's use of one resource and the amount that it is entitled to, in nano-units."""

    resource: str
    used: int
    entitled: int


@dataclass(frozen=True, slots=True)
class Start:
    """When the head of a line has room, by the estimate of the HyperJob whose end frees it."""

    at: datetime
    after: str
    overdue: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GangShortage:
    """The gang of a HyperJob, `needed` sub-jobs, has no room; `lacking` is why, by sub-job.

    `room_for` sub-jobs have a place. `never`: even empty clusters have room for too few. `hidden`
    is how many sub-jobs `lacking` omits.
    """

    needed: int
    room_for: int
    never: bool
    lacking: Mapping[str, Shortage] = field(default_factory=dict)
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRoom:
    """The room is reserved for the heads of lines, (HyperJob, queue), and for `hidden` more."""

    heads: Sequence[tuple[str, str]]
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRoom:
    """An automatic split needs more of a resource than the clusters have free, in nano-units."""

    resource: str
    wanted: int
    room: int
    max_domains: int | None
    clusters: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True, slots=True)
class NextInLine:
    """There is room for the HyperJob, and the next round starts it."""


RoomDetail = GangShortage | KeptRoom | SplitRoom | NextInLine
"""Why a HyperJob that its queue would admit has no room."""


class WaitCode(enum.StrEnum):
    """The rule by which a HyperJob waits in its line."""

    QUEUES_UNKNOWN = "QueuesUnknown"
    NOT_LOOKED_AT = "NotLookedAt"
    NOT_OPEN = "NotOpen"
    LIMIT = "Limit"
    LIMIT_OF_GANG = "LimitOfGang"  # also with an unused queue
    GUARANTEE = "Guarantee"
    CAPACITY = "Capacity"
    BEHIND = "Behind"
    RESTING = "Resting"


class MessageFacts(NamedTuple):
    """The parts of a waiting HyperJob's message whose change is written to its status.

    `code` is the rule by which it waits; the others are numbers of the message.
    """

    code: WaitCode | None
    place: int
    free: int
    used: int
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The place of a HyperJob in a line, from 1, and why it waits.

    Without `queue` the line is that of all HyperJobs that wait for room. `trouble` is set for
    NOT_OPEN, `limit` for LIMIT and LIMIT_OF_GANG, `resource` for GUARANTEE, `room` for CAPACITY,
    `behind` for BEHIND, `until` for RESTING. `preempts` and `reclaims_from` are the HyperJobs that
    make way for it.
    """

    queue: str
    place: int
    length: int
    code: WaitCode
    share: Share | None = None
    trouble: QueueTrouble | None = None
    limit: Limit | None = None
    resource: str = ""
    room: RoomDetail | None = None
    behind: str = ""
    until: datetime | None = None
    start: Start | None = None
    preempts: Sequence[str] = ()
    reclaims_from: Sequence[str] = ()


def roughly(place: int) -> int:
    """Return a place rounded to its first digit, or from 100 on to its first two; never 0."""
    if place <= 10:
        return place
    step = 10 if place < 100 else 10 ** (len(str(place)) - 2)
    return place // step * step
