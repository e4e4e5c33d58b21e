"""Why a HyperJob waits in a line of the queue engine: codes and numbers, which programs compare.

The words for people are made of them in `controller.status.waiting`, once.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from controller.model.shortage import Shortage


class QueueTroubleCode(enum.StrEnum):
    """Why a queue takes no jobs."""

    MISSING = "Missing"
    IS_ROOT = "IsRoot"
    PARENT_MISSING = "ParentMissing"
    CIRCLE = "Circle"
    NOT_OPEN = "NotOpen"
    HAS_CHILDREN = "HasChildren"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTrouble:
    """Why `queue` takes no jobs; `other` is the parent that the code speaks of."""

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
    """What a queue uses of what it is entitled to, of one resource, in nano-units."""

    resource: str
    used: int
    entitled: int


@dataclass(frozen=True, slots=True)
class Start:
    """When the head of a line has room by the estimates of others, and whose end gives it."""

    at: datetime
    after: str
    overdue: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GangShortage:
    """What the sub-jobs of a HyperJob lack, of which `needed` must start together.

    `room_for` of them have a place; `never`: empty clusters hold too few as well. `hidden` more
    sub-jobs are not in `lacking`.
    """

    needed: int
    room_for: int
    never: bool
    lacking: Mapping[str, Shortage] = field(default_factory=dict)
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRoom:
    """There is room, but it is kept for the heads of lines: (HyperJob, queue), `hidden` more."""

    heads: Sequence[tuple[str, str]]
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRoom:
    """An automatic split needs more of a resource than clusters have room for, in nano-units."""

    resource: str
    wanted: int
    room: int
    max_domains: int | None
    clusters: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True, slots=True)
class NextInLine:
    """There is room for the HyperJob, and it is its turn next."""


RoomDetail = GangShortage | KeptRoom | SplitRoom | NextInLine
"""What keeps room from a HyperJob that its queue would admit."""


class WaitCode(enum.StrEnum):
    """The rule that makes a HyperJob wait in its line."""

    QUEUES_UNKNOWN = "QueuesUnknown"
    NOT_LOOKED_AT = "NotLookedAt"
    NOT_OPEN = "NotOpen"
    LIMIT = "Limit"
    LIMIT_OF_GANG = "LimitOfGang"  # however little the queue uses
    GUARANTEE = "Guarantee"
    CAPACITY = "Capacity"
    BEHIND = "Behind"
    RESTING = "Resting"


class MessageFacts(NamedTuple):
    """The parts of the message of a waiting HyperJob that are kept up to date.

    `code` is what the HyperJob waits for; the others are the numbers of the message.
    """

    code: WaitCode | None
    place: int
    free: int
    used: int
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A place in a line, from 1, and why the HyperJob there waits.

    Without `queue` it is the line of all that wait for room. `trouble` is set for NOT_OPEN, `limit`
    for LIMIT and LIMIT_OF_GANG, `resource` for GUARANTEE, `room` for CAPACITY, `behind` for BEHIND,
    `until` for RESTING. `preempts` and `reclaims_from` are the HyperJobs that make way for it.
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
    """Round a place to its first digit, or its first two from 100 on, never to 0."""
    if place <= 10:
        return place
    step = 10 if place < 100 else 10 ** (len(str(place)) - 2)
    return place // step * step
