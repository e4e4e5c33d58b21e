"""A HyperJob in a line of the queue engine: its place, why it waits, and when it may start."""

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple


class WaitCode(enum.StrEnum):
    """The rule by which a HyperJob waits in its line."""

    QUEUES_UNKNOWN = "QueuesUnknown"
    NOT_LOOKED_AT = "NotLookedAt"
    NOT_OPEN = "NotOpen"
    LIMIT = "Limit"
    LIMIT_OF_GANG = "LimitOfGang"  # also with an unused queue
    GUARANTEE = "Guarantee"
    CAPACITY = "Capacity"
    NEVER = "Never"  # not even empty clusters have room
    BEHIND = "Behind"
    RESTING = "Resting"


_FULL: Final = frozenset({WaitCode.LIMIT, WaitCode.GUARANTEE, WaitCode.CAPACITY})
"""The rules that a HyperJob in a line meets in turns while its queue and the clusters are full."""
LESS_THAN_NEVER: Final = _FULL | {WaitCode.BEHIND}
"""The rules that say less than NEVER about a HyperJob for which no cluster is large enough."""
OUTSIDE: Final = frozenset({WaitCode.NEVER, WaitCode.LIMIT_OF_GANG})
"""The rules of HyperJobs that can never run as clusters and Queues are: they are in no line."""


class Chosen(enum.StrEnum):
    """Why a HyperJob has its alternatives."""

    EARLIEST_END = "EarliestEnd"
    FIRST_WITH_ROOM = "FirstWithRoom"
    FIRST = "FirstInOrder"  # none has room
    LARGEST = "LargestWithRoom"
    SMALLEST = "Smallest"  # no size has room
    WANTED = "Wanted"  # no size has been chosen yet
    LEFT = "LargestThatIsLeft"
    SPARED = "MadeWay"
    GREW = "Grew"


class MessageFacts(NamedTuple):
    """The parts of a waiting HyperJob's message whose change is written to its status.

    `code` is the rule by which it waits; the others are numbers of the message.
    """

    code: WaitCode | None
    place: int
    free: int
    used: int
    expected: str

    def is_like(self, other: "MessageFacts") -> bool:
        """Return whether the HyperJob waits for the same reason, or for others to end in both."""
        return self.code is other.code or {self.code, other.code} <= _FULL


@dataclass(frozen=True, slots=True)
class Start:
    """When the head of a line has room, by the expected end of the HyperJob that frees it."""

    at: datetime
    after: str
    overdue: bool = False
    by: str = "its estimate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The place of a HyperJob in a line, from 1 (0: in no line), and the message why it waits.

    Without `queue` the line is that of all HyperJobs that wait for room. `has_room`: it waits for
    something other than room.
    """

    queue: str
    place: int
    length: int
    message: str
    start: Start | None = None
    has_room: bool = True


NEAR: Final = 10
"""The places of a line, from its head, whose messages have exact places and the free resources."""


def roughly(place: int) -> int:
    """Return a place rounded down to its first digit, or from 100 on to its first two; never 0."""
    return place if place <= NEAR else place // step(place) * step(place)


def step(number: int) -> int:
    """Return the step in which places of a line, and its length, are rounded."""
    return 10 if number < 100 else 10 ** (len(str(number)) - 2)
