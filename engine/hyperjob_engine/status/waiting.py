"""Messages about a HyperJob that waits in a line: its place, its queue's share, missing resources.

Decisions compare the codes and numbers of `hyperjob_engine.model.waiting` instead.
"""

from typing import Final, assert_never

from hyperjob_core.api.wire import rfc3339
from hyperjob_core.text import listed
from hyperjob_engine.model.resources import amount_text
from hyperjob_engine.model.waiting import (
    GangShortage,
    KeptRoom,
    Limit,
    NextInLine,
    QueueTrouble,
    QueueTroubleCode,
    RoomDetail,
    Share,
    SplitRoom,
    Start,
    Wait,
    WaitCode,
    roughly,
)
from hyperjob_engine.status.shortage import (
    NEVER,
    alike,
    amount_only,
    no_device_text,
    shortage_text,
)

OTHER_NAMESPACE: Final = "a HyperJob of another namespace"


def wait_text(wait: Wait | None) -> str:
    """Return the place of a HyperJob in its line, why it waits and its expected start."""
    if wait is None:
        return ""
    text = f"{_place(wait)}: {_why(wait)}{_expected(wait.start)}"
    making_way = [f"preempts {listed(wait.preempts)}"] if wait.preempts else []
    if wait.reclaims_from:
        making_way.append(f"takes back what its queue lent to {listed(wait.reclaims_from)}")
    return f"{text}; {' and '.join(making_way)}" if making_way else text


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
            return _gang(room)
        case KeptRoom():
            texts = [_head(key, queue) for key, queue in room.heads]
            more = f" and {room.hidden} more" if room.hidden else ""
            return f"there is room, but it is reserved for {'; '.join(texts)}{more}"
        case SplitRoom():
            return _split(room)
        case NextInLine():
            return "there is room, and the HyperJob starts next"
        case _:
            assert_never(room)


def _place(wait: Wait) -> str:
    rough = roughly(wait.place)
    where = f"number {rough}" if rough == wait.place else f"about {rough}"
    where = "first" if wait.place == 1 else where
    if not wait.queue:
        return f"{where} of {wait.length} that wait for room"
    share = f" (uses {share_text(wait.share)})" if wait.share is not None else ""
    return f"{where} of {wait.length} in queue {wait.queue}{share}"


def _why(wait: Wait) -> str:
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
            return _limit(wait.limit, of_gang=wait.code is WaitCode.LIMIT_OF_GANG)
        case WaitCode.GUARANTEE:
            return f"the {wait.resource} that is free is guaranteed to other queues"
        case WaitCode.CAPACITY:
            return room_text(wait.room) if wait.room is not None else ""
        case WaitCode.BEHIND:
            return f"waits behind {wait.behind}: the queue's dequeueStrategy is fifo"
        case WaitCode.RESTING:
            until = rfc3339(wait.until) if wait.until is not None else "once"
            failed = "was admitted, but its sub-jobs could not be created"
            return f"{failed}; the queue retries from {until}"
        case _:
            assert_never(wait.code)


def _limit(limit: Limit | None, *, of_gang: bool) -> str:
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
    return f"queue {limit.queue} uses {used} of its capability of {most}, {missing} are missing"


def _expected(start: Start | None) -> str:
    if start is None:
        return ""
    if start.overdue:
        return f"; it starts when {start.after} ends, which runs longer than its estimate"
    at = start.at.replace(second=0, microsecond=0)
    return f"; it is expected to start about {rfc3339(at)}, when {start.after} ends by its estimate"


def _gang(short: GangShortage) -> str:
    absent = [each.no_device for each in short.lacking.values() if each.no_device is not None]
    if absent:
        return no_device_text(absent[0])
    texts = list(alike((name, shortage_text(each)) for name, each in short.lacking.items()))
    if short.hidden:
        texts.append(f"and {short.hidden} more")
    text = "; ".join(texts)
    if short.needed <= 1:
        return text
    room = f"{short.room_for}{NEVER if short.never else ''}"
    return f"{short.needed} sub-jobs must start together, there is room for {room}: {text}"


def _split(split: SplitRoom) -> str:
    wanted = amount_text(split.resource, split.wanted)
    limit = "" if split.max_domains is None else f" with maxDomains {split.max_domains}"
    where = ", ".join(
        f"{amount_only(split.resource, amount)} on {cluster}" for cluster, amount in split.clusters
    )
    fits = f"{amount_only(split.resource, split.room)}{limit}" + (f": {where}" if where else "")
    return f"its automatic split needs {wanted}, there is room for {fits}"


def _head(key: str, queue: str) -> str:
    return f"{key}, first in queue {queue}" if queue else f"{key}, first in line"
