"""Why a HyperJob waits in a line of the queue engine: its codes, numbers and sentences."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, assert_never

from hyperjob_core.api.wire import rfc3339
from hyperjob_core.text import listed
from hyperjob_engine.reasons.hindrance import alike
from hyperjob_engine.reasons.shortage import NEVER, TOO_LARGE, Shortage, shortage_text
from hyperjob_engine.resources import amount_only, amount_text

MOST_LEVELS: Final = 16
"""A Queue that takes jobs is at most so many levels below root: each level costs every round."""


class QueueTroubleCode(enum.StrEnum):
    """Why a Queue takes no jobs."""

    MISSING = "Missing"
    IS_ROOT = "IsRoot"
    PARENT_MISSING = "ParentMissing"
    CIRCLE = "Circle"
    TOO_DEEP = "TooDeep"
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
    """A queue's capability is too small for a demand; amounts in nano-units.

    `ending` is the part of `used` that pods of stopped sub-jobs may still hold.
    """

    queue: str
    resource: str
    capability: int
    used: int
    missing: int
    ever: bool  # it would fit if the queue used nothing
    ending: int = 0


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
    """The room is kept for the first HyperJob of a line, for which others make way."""

    head: str
    queue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRoom:
    """An automatic split needs more of a resource than the clusters have free, in nano-units.

    `never`: even empty clusters have too little.
    """

    resource: str
    wanted: int
    room: int
    max_domains: int | None
    clusters: Sequence[tuple[str, int]] = ()
    never: bool = False


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
    NEVER = "Never"  # not even empty clusters have room
    BEHIND = "Behind"
    RESTING = "Resting"


_FULL: Final = frozenset({WaitCode.LIMIT, WaitCode.GUARANTEE, WaitCode.CAPACITY})
"""The rules that a HyperJob in a line meets in turns while its queue and the clusters are full."""
LESS_THAN_NEVER: Final = _FULL | {WaitCode.BEHIND}
"""The rules that say less than NEVER about a HyperJob for which no cluster is large enough."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The place of a HyperJob in a line, from 1, and why it waits.

    Without `queue` the line is that of all HyperJobs that wait for room. `trouble` is set for
    NOT_OPEN, `limit` for LIMIT and LIMIT_OF_GANG, `resource` for GUARANTEE, `room` for CAPACITY
    and NEVER, `behind` for BEHIND, `until` for RESTING. `preempts` and `reclaims_from` are the
    HyperJobs that make way for it. A controller that has just begun to lead stops none of them
    before `unsure_until`.
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
    unsure_until: datetime | None = None


NEAR: Final = 10
"""The places of a line, from its head, whose messages have exact places and the free resources."""


def roughly(place: int) -> int:
    """Return a place rounded down to its first digit, or from 100 on to its first two; never 0."""
    return place if place <= NEAR else place // _step(place) * _step(place)


def _nearest(length: int) -> int:
    """Return the length of a line rounded in the steps of places."""
    return (length + _step(length) // 2) // _step(length) * _step(length)


def _step(number: int) -> int:
    return 10 if number < 100 else 10 ** (len(str(number)) - 2)


OTHER_NAMESPACE: Final = "a HyperJob of another namespace"


def wait_text(wait: Wait | None) -> str:
    """Return the place of a HyperJob in its line, why it waits and its expected start."""
    if wait is None:
        return ""
    text = f"{_place_text(wait)}: {_why_text(wait)}{_start_text(wait.start)}"
    making_way = [f"preempts {listed(wait.preempts)}"] if wait.preempts else []
    if wait.reclaims_from:
        making_way.append(f"takes back what its queue lent to {listed(wait.reclaims_from)}")
    if making_way:
        return f"{text}; {' and '.join(making_way)}"
    if wait.unsure_until is not None:
        return f"{text}; {_unsure_text(wait.unsure_until)}"
    return text


def _unsure_text(until: datetime) -> str:
    return (
        "the controller has just begun to lead and stops no HyperJob for it before"
        f" {until:%H:%M:%S}Z, since the status of the Clusters may count pods that have ended"
    )


def share_text(share: Share) -> str:
    """Return the use of a queue's share, as a part of a sentence."""
    used, entitled = (amount_only(share.resource, each) for each in (share.used, share.entitled))
    return f"{used} of its share of {entitled} {share.resource}"


def trouble_of_queue(trouble: QueueTrouble | None) -> str:
    """Return why a Queue takes no jobs, with its name; empty if it takes jobs."""
    if trouble is None:
        return ""
    name, other = trouble.queue, trouble.other
    match trouble.code:
        case QueueTroubleCode.PARENT_MISSING:
            return f"queue {other}, a parent of queue {name}, does not exist"
        case QueueTroubleCode.CIRCLE:
            return f"the parents of queue {name} form a cycle"
        case QueueTroubleCode.TOO_DEEP:
            return f"queue {name} is more than {MOST_LEVELS} levels below queue root"
        case QueueTroubleCode.NOT_OPEN if other:
            return f"queue {other}, a parent of queue {name}, is {trouble.state}"
        case _:
            return f"queue {name} {after_its_name(trouble)}"


def after_its_name(trouble: QueueTrouble | None) -> str:
    """Return why a Queue takes no jobs, to follow its name; empty if it takes jobs."""
    if trouble is None:
        return ""
    match trouble.code:
        case QueueTroubleCode.MISSING:
            return "does not exist; create it or name another in templateSpec.queue"
        case QueueTroubleCode.IS_ROOT:
            return "takes no jobs itself; name one of its children"
        case QueueTroubleCode.HAS_CHILDREN:
            return f"has child queues; jobs go to one of {listed(trouble.children)}"
        case QueueTroubleCode.NOT_OPEN if not trouble.other:
            return f"is {trouble.state}"
        case _:
            return f"takes no jobs: {trouble_of_queue(trouble)}"


def room_text(room: RoomDetail) -> str:
    """Return why a HyperJob that its queue would admit has no room."""
    match room:
        case GangShortage():
            return _gang_text(room)
        case KeptRoom():
            line = f"queue {room.queue}" if room.queue else "line"
            kept = f"it is kept for {room.head}, first in {line}, for which others make way"
            return f"there is room, but {kept}"
        case SplitRoom():
            return _split_text(room)
        case NextInLine():
            return "there is room, and the HyperJob starts next"
        case _:
            assert_never(room)


def _place_text(wait: Wait) -> str:
    """Return the place in the line; a far one and its line are rounded: they change often."""
    if wait.place <= NEAR:
        place = "first" if wait.place == 1 else f"number {wait.place}"
        where = f"{place} of {wait.length}"
    else:
        where = f"about {roughly(wait.place)} of about {_nearest(wait.length)}"
    if not wait.queue:
        return f"{where} that wait for room"
    share = f" (uses {share_text(wait.share)})" if wait.share is not None else ""
    return f"{where} in queue {wait.queue}{share}"


def _why_text(wait: Wait) -> str:
    """Return why a HyperJob waits, by the code of its wait."""
    match wait.code:
        case WaitCode.QUEUES_UNKNOWN:
            return (
                "queues are not known yet: is Volcano's Queue definition installed in the Karmada"
                " API server?"
            )
        case WaitCode.NOT_LOOKED_AT:
            return "the queue engine has not considered it yet"
        case WaitCode.NOT_OPEN:
            return trouble_of_queue(wait.trouble)
        case WaitCode.LIMIT | WaitCode.LIMIT_OF_GANG:
            return _limit_text(wait.limit, of_gang=wait.code is WaitCode.LIMIT_OF_GANG)
        case WaitCode.GUARANTEE:
            return f"the {wait.resource} that is free is guaranteed to other queues"
        case WaitCode.CAPACITY | WaitCode.NEVER:
            return room_text(wait.room) if wait.room is not None else ""
        case WaitCode.BEHIND:
            return f"waits behind {wait.behind}: the queue's dequeueStrategy is fifo"
        case WaitCode.RESTING:
            until = rfc3339(wait.until) if wait.until is not None else "once"
            failed = "was admitted, but its sub-jobs could not be created"
            return f"{failed}; the queue retries from {until}"
        case _:
            assert_never(wait.code)


def _limit_text(limit: Limit | None, *, of_gang: bool) -> str:
    """Return which capability of a queue is too small.

    `of_gang`: for the sub-jobs that must start together, also with an unused queue.
    """
    if limit is None:
        return "its queue's capability is used up"
    most = amount_text(limit.resource, limit.capability)
    if not limit.ever:
        return f"needs more than queue {limit.queue} may ever use: its capability is {most}"
    if of_gang:
        gang = "the sub-jobs that must start together need more than queue"
        return f"{gang} {limit.queue} may ever use: its capability is {most}"
    used, missing = (
        amount_only(limit.resource, limit.used),
        amount_text(limit.resource, limit.missing),
    )
    text = f"queue {limit.queue} uses {used} of its capability of {most}, {missing} are missing"
    if limit.ending <= 0:
        return text
    ending = amount_only(limit.resource, limit.ending)
    return f"{text}; pods of stopped sub-jobs hold {ending} of it until their grace period is over"


def _start_text(start: Start | None) -> str:
    """Return the expected start, to follow the reason; empty without an estimate."""
    if start is None:
        return ""
    if start.overdue:
        return f"; it starts when {start.after} ends, which runs longer than its estimate"
    at = start.at.replace(second=0, microsecond=0)
    return f"; it is expected to start about {rfc3339(at)}, when {start.after} ends by its estimate"


def _gang_text(short: GangShortage) -> str:
    """Return which sub-jobs of a gang have no room; an absent device explains all."""
    absent = [each.absent for each in short.lacking.values() if each.absent]
    if absent:
        return absent[0]
    texts = list(alike((name, shortage_text(each)) for name, each in short.lacking.items()))
    if short.hidden:
        texts.append(f"and {short.hidden} more")
    text = "; ".join(texts)
    if short.needed <= 1:
        return f"{TOO_LARGE}{text}" if short.never else text
    room = f"{short.room_for}{NEVER if short.never else ''}"
    return f"{short.needed} sub-jobs must start together, there is room for {room}: {text}"


def _split_text(split: SplitRoom) -> str:
    """Return how much of a resource an automatic split needs, and where how much is free."""
    wanted = amount_text(split.resource, split.wanted)
    limit = "" if split.max_domains is None else f" with maxDomains {split.max_domains}"
    where = ", ".join(
        f"{amount_only(split.resource, amount)} on {cluster}" for cluster, amount in split.clusters
    )
    fits = f"{amount_only(split.resource, split.room)}{limit}" + (f": {where}" if where else "")
    text = f"its automatic split needs {wanted}, there is room for {fits}"
    return f"{TOO_LARGE}{text}" if split.never else text
