"""What a HyperJob is told: its place in line, its queue's share, and what is missing where.

Words only; the round has decided.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from controller.model.observed import Cluster, QueueVerdict
from controller.model.reasons import Reason
from controller.model.resources import Resources, accelerator_of, amount_text, is_extended, total
from controller.model.shortage import Detail, ShortageCode
from controller.model.wire import rfc3339
from controller.placement.place import Placement, place
from controller.queueing.account import Limit
from controller.queueing.admit import Block, Kind, gang_of
from controller.queueing.cache import QueueCache, roughly
from controller.queueing.confirm import IMPLICIT
from controller.queueing.entries import Entry, Pending
from controller.queueing.room import Space
from controller.status.phase import NEVER
from controller.status.shortage import detail_text
from hyperjob.api.quantity import NANO
from hyperjob.text import listed

_NAMES_SHOWN: Final = 3
_UNKNOWN: Final = (
    "queues are not known yet: is Volcano's Queue definition installed in the Karmada API server?"
)
_REASONS: Final = {
    Kind.NOT_OPEN: Reason.QUEUE_NOT_OPEN,
    Kind.LIMIT: Reason.QUEUE_LIMIT_REACHED,
    Kind.GUARANTEE: Reason.QUEUE_LIMIT_REACHED,
    Kind.CAPACITY: Reason.INSUFFICIENT_CAPACITY,
    Kind.BEHIND: Reason.WAITING_FOR_QUEUE,
    Kind.RESTING: Reason.WAITING_FOR_QUEUE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a queue uses of what it is entitled to, of one resource, in words."""

    resource: str
    used: str
    entitled: str

    def __str__(self) -> str:
        """Say it as a part of a sentence."""
        return f"{self.used} of its share of {self.entitled} {self.resource}"


def verdict_of(cache: QueueCache, key: str, *, patient: bool = False) -> QueueVerdict:
    """Say who of a HyperJob may be made and why the others wait.

    `patient`: that queues are not known yet is not worth telling.
    """
    entry = cache.entries.get(key)
    reclaimed_for = name_for(cache, key, cache.gives_back_for(key))
    preempted = cache.is_preempted(key)
    if entry is None or entry.waiting is None:
        return QueueVerdict(
            admitted=cache.admitted(key), reclaimed_for=reclaimed_for, preempted=preempted
        )
    waiting = entry.waiting
    place_ = cache.lines.place(waiting.queue, waiting.order)
    gist = cache.gist(entry, place_)
    block = cache.block_of(entry)
    if block is None and (cache.known or patient) and not entry.holding:
        return QueueVerdict(undecided=True)
    reason = _REASONS[block.kind] if block is not None else Reason.WAITING_FOR_QUEUE
    if block is not None and _never(cache, waiting, block):
        reason = Reason.EXCEEDS_QUEUE
    why = _why(cache, entry, waiting, block)
    unplaced: Mapping[str, Detail] = {}
    if block is not None and block.kind is Kind.CAPACITY and cache.known:
        why, never, unplaced = _shortage(cache, waiting)
        reason = Reason.EXCEEDS_CLUSTERS if never else reason
    elif waiting.queue == IMPLICIT:
        unplaced = _shortage(cache, waiting)[2]
    text = f"{_place(cache, waiting, place_)}: {why}{_expected(cache, key)}"
    known = cache.reclaiming()
    if known is not None and known.head == key and known.borrowers:
        text = f"{text}; {_makes_way(cache, key, sorted(known.borrowers))}"
    return QueueVerdict(
        admitted=cache.admitted(key),
        reason=reason,
        message=text,
        reclaimed_for=reclaimed_for,
        preempted=preempted,
        gist=gist,
        unplaced=unplaced,
    )


def _expected(cache: QueueCache, key: str) -> str:
    """Say when the head of a line has room, and by whose estimate; empty where nothing is known."""
    start = cache.starts.get(key)
    if start is None:
        return ""
    other = name_for(cache, key, start.after)
    if start.overdue:
        return f"; it starts when {other} ends, which runs longer than its estimate"
    at = start.at.replace(second=0, microsecond=0)
    return f"; it is expected to start about {rfc3339(at)}, when {other} ends by its estimate"


def name_for(cache: QueueCache, reader: str, key: str) -> str:
    """Return what a message of the HyperJob `reader` calls another HyperJob."""
    if cache.names_others or not key or reader.partition("/")[0] == key.partition("/")[0]:
        return key
    return "a HyperJob of another namespace"


def _makes_way(cache: QueueCache, key: str, others: list[str]) -> str:
    """Say which HyperJobs make way for the HyperJob at the head of a line."""
    stopped = [other for other in others if cache.is_preempted(other)]
    preempted = [name_for(cache, key, other) for other in stopped]
    lent = [name_for(cache, key, other) for other in others if other not in stopped]
    texts = [f"preempts {listed(preempted)}"] if preempted else []
    texts += [f"takes back what its queue lent to {listed(lent)}"] if lent else []
    return " and ".join(texts)


def _place(cache: QueueCache, waiting: Pending, number: int) -> str:
    queue, length = waiting.queue, len(cache.lines.line(waiting.queue))
    rough = roughly(number)
    where = "first" if number == 1 else f"number {rough}" if rough == number else f"about {rough}"
    if queue == IMPLICIT:
        return f"{where} of {length} that wait for room"
    return f"{where} of {length} in queue {queue}{_share(cache, waiting)}"


def share_of(cache: QueueCache, queue: str, demand: Resources) -> Share | None:
    """Return a queue's share of the resource that a demand is measured by; None: no such queue."""
    measure = accelerator_of(demand) or "cpu"
    entitled = cache.account.tree.entitled.get(queue)
    if entitled is None:
        return None
    share = entitled.get(measure, 0)
    if is_extended(measure):
        share -= share % NANO  # no queue has a part of a device
    used = cache.account.used(queue).get(measure, 0)
    return Share(resource=measure, used=_amount(measure, used), entitled=_amount(measure, share))


def _share(cache: QueueCache, waiting: Pending) -> str:
    share = share_of(cache, waiting.queue, waiting.parts[0].request.demand)
    return f" (uses {share})" if share is not None else ""


def _why(cache: QueueCache, entry: Entry, waiting: Pending, block: Block | None) -> str:
    if not cache.known:
        return _UNKNOWN
    if block is None:
        return "is about to be looked at"
    match block.kind:
        case Kind.NOT_OPEN:
            return block.text
        case Kind.LIMIT:
            return _limit(block.limit, never=_never(cache, waiting, block))
        case Kind.GUARANTEE:
            return f"the {block.text} that is free is guaranteed to other queues"
        case Kind.CAPACITY:
            return ""
        case Kind.BEHIND:
            first = cache.lines.line(waiting.queue)[0][2]
            return f"waits behind {first}, for the queue's dequeueStrategy is fifo"
        case Kind.RESTING:
            until = rfc3339(entry.rests_until) if entry.rests_until is not None else "once"
            return f"was admitted and could not be made; it is its turn again from {until}"


def _never(cache: QueueCache, waiting: Pending, block: Block) -> bool:
    """Tell whether a queue's capability forbids it for ever."""
    site = waiting.shape.site
    if block.kind is not Kind.LIMIT:
        return False
    return len(gang_of(waiting.parts, site, cache.account)) < site.needed


def _limit(limit: Limit | None, *, never: bool) -> str:
    if limit is None:
        return "its queue's capability is used up"
    most = amount_text(limit.resource, limit.capability)
    missing = amount_text(limit.resource, limit.missing)
    if not limit.ever:
        return f"asks for more than queue {limit.queue} may ever use, its capability of {most}"
    if never:
        gang = "the sub-jobs that must start together ask for more than queue"
        return f"{gang} {limit.queue} may ever use, its capability of {most}"
    used = _amount(limit.resource, limit.used)
    return f"queue {limit.queue} uses {used} of its capability of {most}, {missing} are missing"


def _shortage(cache: QueueCache, waiting: Pending) -> tuple[str, bool, Mapping[str, Detail]]:
    """Say what is missing where, whether empty clusters lack it too, and what each job lacks."""
    told = _kept(cache, waiting)
    if not told and all(part.piece for part in waiting.parts):
        told = _split_shortage(cache, waiting)
    if told:
        return told, False, {part.name: told for part in waiting.parts}
    found, needed = _placement(cache, waiting), max(1, waiting.shape.site.needed)
    short = {
        name: shortage
        for name, shortage in found.unplaced.items()
        if shortage.code is not ShortageCode.WAITS_FOR_GANG
    }
    texts = [f"{name} {detail_text(each)}" for name, each in list(short.items())[:_NAMES_SHOWN]]
    if len(short) > len(texts):
        texts.append(f"and {len(short) - len(texts)} more")
    told = "; ".join(texts) or "there is room, and it is its turn next"
    if needed > 1 and texts:
        room = f"{found.room_for}{NEVER if found.never else ''}"
        text = f"{needed} sub-jobs must start together, there is room for {room}: {told}"
        return text, found.never, found.unplaced
    return told, False, found.unplaced


def _kept(cache: QueueCache, waiting: Pending) -> str:
    """Say for which HyperJobs room is kept that this one could use; empty where there is none."""
    site = waiting.shape.site
    requests = [part.request for part in waiting.parts]
    own = waiting.order[2]
    heads = {queue: key for queue, key in cache.heads.items() if key != own}
    others = {queue: name_for(cache, own, key) for queue, key in heads.items()}
    if not others:
        return ""
    found = cache.open.assign(requests, site.standing, site.max_domains)
    if len(found) < max(1, site.needed):
        return ""
    return f"there is room, but it is kept for {_heads(others)}"


def _placement(cache: QueueCache, waiting: Pending) -> Placement:
    site = waiting.shape.site
    return place(
        [part.request for part in waiting.parts],
        [_with_free(cache.open, each.name, each) for each in cache.open.clusters],
        standing=site.standing,
        max_domains=site.max_domains,
        minimum=max(1, site.needed),
    )


def _split_shortage(cache: QueueCache, waiting: Pending) -> str:
    """Tell of an automatic split, which is judged in pieces: the user asked for none of them."""
    site, demands = waiting.shape.site, {part.name: part.request.demand for part in waiting.parts}
    requests = [part.request for part in waiting.parts]
    found = cache.open.assign(requests, site.standing, site.max_domains)
    if len(found) == len(demands):
        return "there is room, and it is its turn next"
    wanted = total(demands.values())
    measure = accelerator_of(wanted) or "cpu"
    room: dict[str, int] = {}
    for name, cluster in found.items():
        room[cluster] = room.get(cluster, 0) + demands[name].get(measure, 0)
    fits_ = _amount(measure, sum(room.values()))
    where = ", ".join(f"{_amount(measure, room[name])} on {name}" for name in sorted(room)[:5])
    limit = "" if site.max_domains is None else f" with maxDomains {site.max_domains}"
    return (
        f"its automatic split needs {amount_text(measure, wanted.get(measure, 0))},"
        f" there is room for {fits_}{limit}" + (f": {where}" if where else "")
    )


def _heads(others: dict[str, str]) -> str:
    texts = [
        f"{key}, first in queue {queue}" if queue != IMPLICIT else f"{key}, which is first in line"
        for queue, key in sorted(others.items())
    ]
    hidden = len(texts) - _NAMES_SHOWN
    return "; ".join(texts[:_NAMES_SHOWN]) + (f" and {hidden} more" if hidden > 0 else "")


def _with_free(space: Space, name: str, cluster: Cluster) -> Cluster:
    return replace(cluster, free=space.free[name]) if name in space.free else cluster


def _amount(name: str, amount: int) -> str:
    return amount_text(name, amount).split(" ", maxsplit=1)[0]
