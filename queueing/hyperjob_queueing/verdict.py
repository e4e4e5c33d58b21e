"""The queue engine's verdict on one HyperJob: its place in line, its queue's share, what it lacks.

The last round has decided it. A verdict has the message of the status: it is asked for where that
is written, and `message_facts` says without it whether the message has changed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, assert_never

from hyperjob_core.api.duration import later
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import rfc3339, timestamp
from hyperjob_core.text import alike, listed
from hyperjob_engine.model.line import NEAR, OUTSIDE, Start, Wait, WaitCode, roughly, step
from hyperjob_engine.model.observed import QueueVerdict
from hyperjob_engine.model.subjobs import Choice, choice_text
from hyperjob_engine.placement.explain import Shortage
from hyperjob_engine.placement.place import NEVER, TOO_LARGE, place, when_empty
from hyperjob_engine.placement.room import Room
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.resources import (
    Resources,
    amount_only,
    amount_text,
    is_extended,
    measure_of,
    total,
)
from hyperjob_queueing.admit import Block
from hyperjob_queueing.evict import evicted_for, is_behind
from hyperjob_queueing.forecast import start_of
from hyperjob_queueing.messages import code_of, message_facts, stopped_for
from hyperjob_queueing.queues import IMPLICIT
from hyperjob_queueing.reserve import spots
from hyperjob_queueing.state import QueueState, admitted, block_of
from hyperjob_queueing.usage import Limit
from hyperjob_queueing.workload import EARNED, LONGEST_WAIT, Entry, Pending, Turn, Victim

_NAMES_SHOWN: Final = 3
_CLUSTERS_SHOWN: Final = 5
_REASONS: Final = {
    WaitCode.NOT_LOOKED_AT: Reason.WAITING_FOR_QUEUE,
    WaitCode.NOT_OPEN: Reason.QUEUE_NOT_OPEN,
    WaitCode.LIMIT: Reason.QUEUE_LIMIT_REACHED,
    WaitCode.LIMIT_OF_GANG: Reason.EXCEEDS_QUEUE,
    WaitCode.GUARANTEE: Reason.QUEUE_LIMIT_REACHED,
    WaitCode.CAPACITY: Reason.INSUFFICIENT_CAPACITY,
    WaitCode.NEVER: Reason.EXCEEDS_CLUSTERS,
    WaitCode.BEHIND: Reason.WAITING_FOR_QUEUE,
    WaitCode.RESTING: Reason.WAITING_FOR_QUEUE,
}
"""The reason in the status, by why a HyperJob waits."""
_NEXT: Final = "there is room, and the HyperJob starts next"


@dataclass(frozen=True, slots=True)
class _Room:
    """Why a HyperJob that its queue would admit does not start, and what each sub-job lacks."""

    text: str = ""
    has_room: bool = True
    short: Mapping[str, Shortage] | None = None


def verdict_of(state: QueueState, key: str, *, patient: bool = False) -> QueueVerdict:
    """Return the admitted sub-jobs of a HyperJob, and why the others wait.

    A HyperJob that the last round has not looked at has no block. It is undecided if it holds
    nothing, and keeps its status until a round has decided: always while the Queues are known, and
    with `patient` before too.
    """
    entry, victim = state.entries.get(key), state.eviction.victims.get(key, Victim())
    verdict = QueueVerdict(
        admitted=admitted(state, key),
        reclaimed_for=name_for(state, key, evicted_for(state, key)),
        preempted=victim.why,
        shrinks_to=victim.size,
        leaving=victim.leaving,
        grows_to=entry.grows if entry is not None else (),
        chosen=entry.chosen if entry is not None else None,
    )
    if entry is None or entry.waiting is None:
        return verdict
    waiting = entry.waiting
    block = block_of(state, entry)
    if block is None and (state.known or patient) and not entry.holding:
        return QueueVerdict(undecided=True)
    code, reason = _code_of(state, waiting, block)
    if code in OUTSIDE:
        state.lines.set_aside(waiting.queue, waiting.shape)
    room = _Room()
    unplaced: Mapping[str, str] = {}
    if code in (WaitCode.CAPACITY, WaitCode.NEVER) or waiting.queue == IMPLICIT:
        room = _shortage(state, waiting, never=code is WaitCode.NEVER)
        unplaced = {part.name: room.text for part in waiting.parts}
        if room.short is not None:
            unplaced = {name: each.text for name, each in room.short.items()}
            if _are_closed(room.short.values()):
                reason = Reason.QUEUE_NOT_OPEN
            elif code is WaitCode.NEVER and any(each.mismatch for each in room.short.values()):
                reason = Reason.NO_MATCHING_NODE
    wait = _wait_of(state, entry, waiting, code, room)
    facts = message_facts(state, entry, wait.place)
    return replace(verdict, reason=reason, wait=wait, message_facts=facts, unplaced=unplaced)


def is_contended(state: QueueState, key: str) -> bool:
    """Return whether another HyperJob waits that could use the resources of this one.

    A HyperJob in a closed queue does not count, nor a HyperJob that can never have room.
    """
    return any(other != key for other in state.index.resting) or any(
        state.answers.could.get(shape.needs, True)
        and _may_use(state.last.blocks.get((queue, shape)))
        and any(order.key != key for order in orders[:2])
        for queue, shape, orders in state.lines.groups()
    )


def _may_use(block: Block | None) -> bool:
    if block is None:
        return True
    over = block.limit is not None and not block.limit.ever
    return block.code is not WaitCode.NOT_OPEN and not over


def choice_in(state: QueueState, key: str) -> Choice:
    """Return the alternatives that a round has chosen, until the status has them; else empty."""
    entry = state.entries.get(key)
    if entry is None or (entry.holding and not entry.granted):
        return ()
    return entry.unit.choice


def _are_closed(shortages: Collection[Shortage]) -> bool:
    """Return whether every cluster that could take the sub-jobs has closed their queue."""
    found = [short.closed for short in shortages if not short.in_gang]
    return bool(found) and all(found)


def _code_of(state: QueueState, waiting: Pending, block: Block | None) -> tuple[WaitCode, Reason]:
    """Return why a HyperJob waits, and the reason in its status, by the block of the last round.

    Before the Queues are known the code says that, with the reason of the block.
    """
    code = code_of(state, waiting, block.code if block is not None else WaitCode.NOT_LOOKED_AT)
    if not state.known:
        return WaitCode.QUEUES_UNKNOWN, _REASONS[code]
    trouble = block.trouble if block is not None else None
    if trouble is not None and not trouble.is_closed:
        return code, Reason.INVALID_QUEUE
    return code, _REASONS[code]


def _wait_of(
    state: QueueState, entry: Entry, waiting: Pending, code: WaitCode, room: _Room
) -> Wait:
    """Return the place of a HyperJob in its line, why it waits and its expected start."""
    key, start = entry.unit.key, _expected(state, entry.unit.key)
    place, length = (
        state.lines.place(waiting.queue, waiting.order),
        len(state.lines.line(waiting.queue)),
    )
    text = _place_text(state, waiting, place, length)
    why = _why(state, entry, waiting, code, room)
    text = f"{text}: {why}{_start_text(start)}"
    if code in OUTSIDE:
        place, text = 0, f"{why}; it is in no line until a cluster or a Queue changes"
    preempts, reclaims_from = _make_way(state, key)
    if entry.unit.variants:
        kind = "sizes" if entry.unit.elastic else "alternatives"
        text = f"{text}; of its {kind} this is about {choice_text(entry.unit.choice)}"
    making_way = [f"preempts {listed(preempts)}"] if preempts else []
    if reclaims_from:
        making_way.append(f"takes back what its queue lent to {listed(reclaims_from)}")
    if _has_turn(state, key):
        making_way = [_turn_text(state.turn)]
    elif code is WaitCode.CAPACITY and place == 1:
        making_way += _large_text(state, waiting)
    making_way += _stopped_text(state, key)
    if making_way:
        text = f"{text}; {' and '.join(making_way)}"
    return Wait(
        queue=waiting.queue,
        place=place,
        length=length,
        message=text,
        start=start,
        has_room=room.has_room,
    )


def _turn_text(turn: Turn) -> str:
    """Return why what becomes free is kept for the head that has its turn."""
    if not turn.earned or turn.began is None:
        return "it has waited long and has its turn: what becomes free is kept for it"
    until = rfc3339(turn.began + EARNED)
    why = "its queue has consumed less of its share than another"
    return f"{why} and has its turn: what becomes free is kept for it until {until}"


def _large_text(state: QueueState, waiting: Pending) -> list[str]:
    """Return when a head has its turn that is larger than the share of its queue."""
    created, queue = timestamp(waiting.order.created), state.usage.tree.queues.get(waiting.queue)
    large = state.usage.exceeds_share(waiting.queue, waiting.shape.needs.floor)
    if not large or created is None or queue is None or queue.patience is None:
        return []
    at = rfc3339(later(created, queue.patience * LONGEST_WAIT))
    return [f"it is larger than the share of its queue, and has its turn about {at} at the latest"]


def _stopped_text(state: QueueState, key: str) -> list[str]:
    """Return whose pods still hold the room that was made for a head, and until when."""
    stopped = stopped_for(state, key)
    if not stopped:
        return []
    names = dict.fromkeys(name_for(state, key, each) for each in stopped)
    until = rfc3339(max(stopped.values()))
    return [f"waits for the pods of {listed(list(names))}, stopped, to end by {until}"]


def _place_text(state: QueueState, waiting: Pending, place: int, length: int) -> str:
    """Return the place in the line; a far one and its line are rounded: they change often."""
    where = f"{'first' if place == 1 else f'number {place}'} of {length}"
    if place > NEAR:
        nearest = (length + step(length) // 2) // step(length) * step(length)
        where = f"about {roughly(place)} of about {nearest}"
    if waiting.queue == IMPLICIT:
        return f"{where} that wait for room"
    share = share_of(state, waiting.queue, waiting.parts[0].request.demand)
    uses = f" (uses {share_text(share)})" if share is not None else ""
    return f"{where} in queue {waiting.queue}{uses}"


def _why(state: QueueState, entry: Entry, waiting: Pending, code: WaitCode, room: _Room) -> str:
    """Return why a HyperJob waits, by the code of its wait."""
    block = block_of(state, entry)
    match code:
        case WaitCode.QUEUES_UNKNOWN:
            return (
                "queues are not known yet: is Volcano's Queue definition installed in the Karmada"
                " API server?"
            )
        case WaitCode.NOT_LOOKED_AT:
            return "the queue engine has not considered it yet"
        case WaitCode.NOT_OPEN:
            return block.trouble.text if block is not None and block.trouble is not None else ""
        case WaitCode.LIMIT | WaitCode.LIMIT_OF_GANG:
            limit = block.limit if block is not None else None
            beyond = any(part.request.everything for part in waiting.parts)
            gang = _least(state, waiting, limit) if code is WaitCode.LIMIT_OF_GANG else None
            return _limit_text(limit, gang=gang, beyond=beyond)
        case WaitCode.GUARANTEE:
            resource = block.resource if block is not None else ""
            return f"the {resource} that is free is guaranteed to other queues"
        case WaitCode.CAPACITY | WaitCode.NEVER:
            return room.text
        case WaitCode.BEHIND:
            line = state.lines.line(waiting.queue)
            first = name_for(state, entry.unit.key, line[0].key if line else "")
            return f"waits behind {first}: the queue's dequeueStrategy is fifo"
        case WaitCode.RESTING:
            until = rfc3339(entry.rests_until) if entry.rests_until is not None else "once"
            failed = "was admitted, but its sub-jobs could not be created"
            return f"{failed}; the queue retries from {until}"
        case _:
            assert_never(code)


def _least(state: QueueState, waiting: Pending, limit: Limit | None) -> int:
    """Return the least that the sub-jobs that must start together need of what is limited."""
    resource = limit.resource if limit is not None else ""
    amounts = sorted(state.usage.charge(part).get(resource, 0) for part in waiting.parts)
    return sum(amounts[: waiting.shape.needs.needed])


def _limit_text(limit: Limit | None, *, gang: int | None, beyond: bool) -> str:
    """Return which capability of a queue is too small.

    `gang`: what the sub-jobs that must start together need, which an unused queue has not either.
    `beyond`: there are pods beyond the `minAvailable` of a vcjob, which count too.
    """
    if limit is None:
        return "its queue's capability is used up"
    most = amount_text(limit.resource, limit.capability)
    than = f"more than queue {limit.queue} may ever use: its capability is {most}"
    if not limit.ever:
        counts = ", and pods beyond minAvailable count" if beyond else ""
        return f"needs {amount_text(limit.resource, limit.asked)}, {than}{counts}"
    if gang is not None:
        needed = amount_text(limit.resource, gang)
        return f"the sub-jobs that must start together need {needed}, {than}"
    used = amount_only(limit.resource, limit.used)
    missing = amount_text(limit.resource, limit.missing)
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
    return f"; it is expected to start about {rfc3339(at)}, when {start.after} ends by {start.by}"


def name_for(state: QueueState, reader: str, key: str) -> str:
    """Return the name of another HyperJob in a message of the HyperJob `reader`."""
    if state.settings.names_others or not key or reader.partition("/")[0] == key.partition("/")[0]:
        return key
    return "a HyperJob of another namespace"


@dataclass(frozen=True, slots=True)
class Share:
    """A queue's use of one resource and the amount that it is entitled to, in nano-units."""

    resource: str
    used: int
    entitled: int


def share_text(share: Share) -> str:
    """Return the use of a queue's share, as a part of a sentence."""
    used, entitled = (amount_only(share.resource, each) for each in (share.used, share.entitled))
    return f"{used} of its share of {entitled} {share.resource}"


def share_of(state: QueueState, queue: str, demand: Resources) -> Share | None:
    """Return a queue's share of the resource that a demand is measured by; None: no such queue."""
    measure = measure_of(demand)
    tree = state.usage.tree
    if queue not in tree.queues or queue == IMPLICIT:
        return None
    share = tree.entitled(measure).get(queue, 0)
    if is_extended(measure):
        share -= share % NANO  # devices are whole
    return Share(resource=measure, used=state.usage.used(queue).get(measure, 0), entitled=share)


def _expected(state: QueueState, key: str) -> Start | None:
    start = start_of(state, key)
    return None if start is None else replace(start, after=name_for(state, key, start.after))


def _make_way(state: QueueState, key: str) -> tuple[list[str], list[str]]:
    """Return those that make way for a head: by preemption, and by reclaim."""
    names: tuple[list[str], list[str]] = ([], [])
    for other, victim in sorted(state.eviction.victims.items()):
        if state.eviction.head == key:
            names[not victim.why].append(name_for(state, key, other))
    return names


def _shortage(state: QueueState, waiting: Pending, *, never: bool) -> _Room:
    """Return why a HyperJob has no room, and what each of its sub-jobs lacks where that differs.

    `never`: the clusters have none even when they are empty, and the amounts are those then. In
    this order: room that is kept for a head, the lack of an automatic split, the lack of the
    gang. Without any lack the HyperJob is next, and a later round of the engine admits it.
    """
    if kept := _kept_room(state, waiting):
        return _Room(kept)
    if all(part.piece for part in waiting.parts):
        return _split_shortage(state, waiting, never=never)
    needs, room = waiting.shape.needs, _seen(state, never=never)
    room = room.beside(needs.standing)
    needed, limit = max(1, needs.needed), needs.max_domains
    found = place(waiting.requests, room, max_domains=limit, minimum=needed)
    short = {name: shortage for name, shortage in found.unplaced.items() if not shortage.in_gang}
    if not short:
        return _Room(_NEXT, short=found.unplaced)
    shown = dict(list(short.items())[:_NAMES_SHOWN])
    absent = [each.text for each in shown.values() if each.absent]
    texts = list(alike((name, each.text) for name, each in shown.items()))
    if len(short) > len(shown):
        texts.append(f"and {len(short) - len(shown)} more")
    text = absent[0] if absent else "; ".join(texts)
    if needed > 1 and not absent:
        holds = f"there is room for {found.room_for}{NEVER if never else ''}"
        text = f"{needed} sub-jobs must start together, {holds}: {text}"
    elif never and not absent:
        text = f"{TOO_LARGE}{text}"
    return _Room(text, has_room=False, short=found.unplaced)


def _seen(state: QueueState, *, never: bool) -> Room:
    return when_empty(state.last.open) if never else state.last.open


def _kept_room(state: QueueState, waiting: Pending) -> str:
    """Return for which head the room is kept that this HyperJob could use; empty without one.

    The message does not name the queue of a head that it does not name: it may name its tenant.
    """
    head, own = state.last.kept_for, waiting.order.key
    entry = state.entries.get(head)
    if entry is None or entry.waiting is None or head == own:
        return ""
    if not spots(waiting, state.last.open):
        return ""
    name, queue = name_for(state, own, head), entry.waiting.queue
    hidden = name != head and queue != waiting.queue
    line = f"queue {queue}" if queue != IMPLICIT and not hidden else "line"
    waits = "for which others make way"
    if _has_turn(state, head):
        waits = "which has waited long and has its turn"
        if state.turn.earned:
            waits = "whose queue has consumed less of its share and has its turn"
    place = "" if is_behind(state, head) else f"first in {line}, "
    return f"there is room, but it is kept for {name}, {place}{waits}"


def _has_turn(state: QueueState, key: str) -> bool:
    """Return whether room is kept for a head only since it has waited long."""
    return key == state.turn.head == state.last.kept_for and state.eviction.head != key


def _split_shortage(state: QueueState, waiting: Pending, *, never: bool) -> _Room:
    """Return what an automatic split lacks as a whole: the user does not know its pieces."""
    needs, demands = waiting.shape.needs, {part.name: part.request.demand for part in waiting.parts}
    found = spots(waiting, _seen(state, never=never), least=0)
    if len(found) == len(demands):
        return _Room(_NEXT)
    whole = total(demands.values())
    measure = measure_of(whole)
    room: dict[str, int] = {}
    for name, cluster in found.items():
        room[cluster] = room.get(cluster, 0) + demands[name].get(measure, 0)
    where = ", ".join(
        f"{amount_only(measure, amount)} on {cluster}"
        for cluster, amount in sorted(room.items())[:_CLUSTERS_SHOWN]
    )
    limit = "" if needs.max_domains is None else f" with maxDomains {needs.max_domains}"
    fits = f"{amount_only(measure, sum(room.values()))}{limit}" + (f": {where}" if where else "")
    wanted = amount_text(measure, whole.get(measure, 0))
    text = f"its automatic split needs {wanted}, there is room for {fits}"
    return _Room(f"{TOO_LARGE}{text}" if never else text, has_room=False)
