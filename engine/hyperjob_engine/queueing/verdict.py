"""The queue engine's verdict on one HyperJob: its place in line, its queue's share, what it lacks.

The last round has decided it; `hyperjob_engine.reasons.waiting` turns its codes into messages.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from hyperjob_core.api.quantity import NANO
from hyperjob_engine.model.observed import Cluster, QueueVerdict
from hyperjob_engine.placement.place import Placement, fits_never, place
from hyperjob_engine.queueing.admit import Block
from hyperjob_engine.queueing.confirm import IMPLICIT
from hyperjob_engine.queueing.evict import evicted_for, is_preempted
from hyperjob_engine.queueing.forecast import start_of
from hyperjob_engine.queueing.messages import message_facts
from hyperjob_engine.queueing.room import Space
from hyperjob_engine.queueing.state import QueueState, admitted, block_of, exceeds
from hyperjob_engine.queueing.workload import Entry, Pending
from hyperjob_engine.reasons.detail import Detail
from hyperjob_engine.reasons.hindrance import Obstacle
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.reasons.shortage import Shortage, ShortageCode
from hyperjob_engine.reasons.waiting import (
    LESS_THAN_NEVER,
    OTHER_NAMESPACE,
    GangShortage,
    KeptRoom,
    NextInLine,
    QueueTroubleCode,
    RoomDetail,
    Share,
    SplitRoom,
    Start,
    Wait,
    WaitCode,
)
from hyperjob_engine.resources import Resources, is_extended, measure_of, total

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


def verdict_of(state: QueueState, key: str, *, patient: bool = False) -> QueueVerdict:
    """Return the admitted sub-jobs of a HyperJob, and why the others wait.

    A HyperJob that the last round has not looked at has no block. It is undecided if it holds
    nothing, and keeps its status until a round has decided: always while the Queues are known, and
    with `patient` before too.
    """
    entry = state.entries.get(key)
    reclaimed_for = name_for(state, key, evicted_for(state, key))
    preempted = is_preempted(state, key)
    if entry is None or entry.waiting is None:
        return QueueVerdict(
            admitted=admitted(state, key),
            reclaimed_for=reclaimed_for,
            preempted=preempted,
        )
    waiting = entry.waiting
    block = block_of(state, entry)
    if block is None and (state.known or patient) and not entry.holding:
        return QueueVerdict(undecided=True)
    code, reason = _code_of(state, waiting, block)
    room: RoomDetail | None = None
    unplaced: Mapping[str, Detail] = {}
    if code in (WaitCode.CAPACITY, WaitCode.NEVER) or waiting.queue == IMPLICIT:
        room, unplaced = _shortage(state, waiting, never=code is WaitCode.NEVER)
        if _are_closed(unplaced.values()):
            reason = Reason.QUEUE_NOT_OPEN
    wait = _wait_of(state, entry, waiting, code=code, room=room)
    return QueueVerdict(
        admitted=admitted(state, key),
        reason=reason,
        wait=wait,
        reclaimed_for=reclaimed_for,
        preempted=preempted,
        message_facts=message_facts(state, entry, wait.place),
        unplaced=unplaced,
    )


def _are_closed(shortages: Collection[Detail]) -> bool:
    """Return whether every cluster that could take the sub-jobs has closed their queue."""
    found = [
        each.code is Obstacle.QUEUE_CLOSED
        for short in shortages
        for each in (short.hindrances if isinstance(short, Shortage) else ())
    ]
    return len(found) >= len(shortages) > 0 and all(found)


def _code_of(state: QueueState, waiting: Pending, block: Block | None) -> tuple[WaitCode, Reason]:
    """Return why a HyperJob waits, and the reason in its status, by the block of the last round.

    Before the Queues are known the code says that, with the reason of the block.
    """
    code = block.code if block is not None else WaitCode.NOT_LOOKED_AT
    if code is WaitCode.LIMIT and exceeds(state, waiting):
        code = WaitCode.LIMIT_OF_GANG
    if not state.known:
        return WaitCode.QUEUES_UNKNOWN, _REASONS[code]
    if code in LESS_THAN_NEVER and _exceeds_clusters(state, waiting):
        code = WaitCode.NEVER
    trouble = block.trouble if block is not None else None
    if trouble is not None and trouble.code is not QueueTroubleCode.NOT_OPEN:
        return code, Reason.INVALID_QUEUE
    return code, _REASONS[code]


def _exceeds_clusters(state: QueueState, waiting: Pending) -> bool:
    """Return whether not even empty clusters have room for a gang that is incomplete."""
    needs, never = waiting.shape.needs, state.answers.never
    known = never.get(needs) if needs.needed else False
    if known is None:
        known = never[needs] = fits_never(
            [part.request for part in waiting.parts],
            state.last.open.clusters,
            minimum=needs.needed,
            max_domains=needs.max_domains,
        )
    return known


def _wait_of(
    state: QueueState, entry: Entry, waiting: Pending, *, code: WaitCode, room: RoomDetail | None
) -> Wait:
    """Return the facts of a wait, from which its message is made."""
    block = block_of(state, entry)
    preempts, reclaims_from = _make_way(state, entry.unit.key)
    return Wait(
        queue=_named(waiting.queue),
        place=state.lines.place(waiting.queue, waiting.order),
        length=len(state.lines.line(waiting.queue)),
        code=code,
        share=share_of(state, waiting.queue, waiting.parts[0].request.demand),
        trouble=block.trouble if block is not None else None,
        limit=block.limit if block is not None else None,
        resource=block.resource if block is not None else "",
        room=room,
        behind=_first_in_line(state, waiting) if code is WaitCode.BEHIND else "",
        until=entry.rests_until,
        start=_expected(state, entry.unit.key),
        preempts=preempts,
        reclaims_from=reclaims_from,
        unsure_until=state.last.unsure.get(entry.unit.key),
    )


def name_for(state: QueueState, reader: str, key: str) -> str:
    """Return the name of another HyperJob in a message of the HyperJob `reader`."""
    if state.settings.names_others or not key or reader.partition("/")[0] == key.partition("/")[0]:
        return key
    return OTHER_NAMESPACE


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


def _named(queue: str) -> str:
    return "" if queue == IMPLICIT else queue


def _expected(state: QueueState, key: str) -> Start | None:
    start = start_of(state, key)
    return None if start is None else replace(start, after=name_for(state, key, start.after))


def _make_way(state: QueueState, key: str) -> tuple[list[str], list[str]]:
    """Return those that make way for a head: by preemption, and by reclaim."""
    known = state.eviction
    preempts: list[str] = []
    reclaims_from: list[str] = []
    victims = sorted(known.victims) if known is not None and known.head == key else ()
    for other in victims:
        names = preempts if is_preempted(state, other) else reclaims_from
        names.append(name_for(state, key, other))
    return preempts, reclaims_from


def _shortage(
    state: QueueState, waiting: Pending, *, never: bool
) -> tuple[RoomDetail, Mapping[str, Detail]]:
    """Return why a HyperJob has no room, and what each of its sub-jobs lacks.

    In this order: room that is kept for a head, the lack of an automatic split, the lack of the
    gang. Without any lack the HyperJob is next, and a later round of the engine admits it.
    """
    whole: RoomDetail | None = _kept_room(state, waiting)
    if whole is None and all(part.piece for part in waiting.parts):
        whole = _split_shortage(state, waiting, never=never)
    if whole is not None:
        return whole, {part.name: whole for part in waiting.parts}
    found, needed = _placement(state, waiting), max(1, waiting.shape.needs.needed)
    short = {
        name: shortage
        for name, shortage in found.unplaced.items()
        if shortage.code is not ShortageCode.WAITS_FOR_GANG
    }
    if not short:
        return NextInLine(), found.unplaced
    shown = dict(list(short.items())[:_NAMES_SHOWN])
    gang = GangShortage(
        needed=needed,
        room_for=found.room_for,
        never=never,
        lacking=shown,
        hidden=len(short) - len(shown),
    )
    return gang, found.unplaced


def _kept_room(state: QueueState, waiting: Pending) -> KeptRoom | None:
    """Return the head whose kept room this HyperJob could use; None if there is none.

    The message does not name the queue of a head that it does not name: it may name its tenant.
    """
    needs, head = waiting.shape.needs, state.last.kept_for
    entry, own = state.entries.get(head), waiting.order.key
    if entry is None or entry.waiting is None or head == own:
        return None
    requests = [part.request for part in waiting.parts]
    found = state.last.open.assign(requests, needs.standing, needs.max_domains)
    if len(found) < max(1, needs.needed):
        return None
    name, queue = name_for(state, own, head), entry.waiting.queue
    hidden = name != head and queue != waiting.queue
    return KeptRoom(head=name, queue="" if hidden else _named(queue))


def _first_in_line(state: QueueState, waiting: Pending) -> str:
    return name_for(state, waiting.order.key, state.lines.line(waiting.queue)[0].key)


def _placement(state: QueueState, waiting: Pending) -> Placement:
    """Place the sub-jobs that wait in the present room, what is kept for a head included."""
    needs = waiting.shape.needs
    return place(
        [part.request for part in waiting.parts],
        [_with_free(state.last.open, each.name, each) for each in state.last.open.clusters],
        standing=needs.standing,
        max_domains=needs.max_domains,
        minimum=max(1, needs.needed),
    )


def _split_shortage(state: QueueState, waiting: Pending, *, never: bool) -> SplitRoom | NextInLine:
    """Return what an automatic split lacks as a whole: the user does not know its pieces."""
    needs, demands = waiting.shape.needs, {part.name: part.request.demand for part in waiting.parts}
    requests = [part.request for part in waiting.parts]
    found = state.last.open.assign(requests, needs.standing, needs.max_domains)
    if len(found) == len(demands):
        return NextInLine()
    wanted = total(demands.values())
    measure = measure_of(wanted)
    room: dict[str, int] = {}
    for name, cluster in found.items():
        room[cluster] = room.get(cluster, 0) + demands[name].get(measure, 0)
    return SplitRoom(
        resource=measure,
        wanted=wanted.get(measure, 0),
        room=sum(room.values()),
        max_domains=needs.max_domains,
        clusters=sorted(room.items())[:_CLUSTERS_SHOWN],
        never=never,
    )


def _with_free(space: Space, name: str, cluster: Cluster) -> Cluster:
    return replace(cluster, free=space.free[name]) if name in space.free else cluster
