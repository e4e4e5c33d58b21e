"""The rules of admission for one HyperJob: its queues are open, have quota, and its gang has room.

These functions change neither the usage nor the room that they get.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hyperjob_engine.model.line import WaitCode
from hyperjob_engine.placement.place import assign
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import Resources, accumulate, total
from hyperjob_queueing.queues import QueueTrouble
from hyperjob_queueing.usage import Limit, QueueUsage, Shares
from hyperjob_queueing.workload import Pending, PlacementNeeds, QueuedSubJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Why a HyperJob cannot be admitted now."""

    code: WaitCode
    resource: str = ""
    trouble: QueueTrouble | None = None
    limit: Limit | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """Sub-jobs that are admitted, with the cluster that has room for each."""

    clusters: dict[str, str] = field(default_factory=dict)


CAPACITY: Final = Block(code=WaitCode.CAPACITY)
"""The block of a HyperJob all of whose sub-jobs were tried, and found no room for its gang.

Callers compare by identity: HyperJobs with equal needs in other queues then get this answer too.
Where a limit of the queue left sub-jobs out of the trial, the block is another value.
"""


def closed(queues: Sequence[str], usage: QueueUsage) -> Block | None:
    """Return the block of the first queue that takes no jobs."""
    for queue in dict.fromkeys(queues):
        if trouble := usage.tree.trouble(queue):
            return Block(code=WaitCode.NOT_OPEN, trouble=trouble)
    return None


def try_to_admit(
    waiting: Sequence[QueuedSubJob], needs: PlacementNeeds, usage: QueueUsage, room: Room
) -> Grant | Block:
    """Return clusters for at least the sub-jobs that must start together, or the block."""
    verdict = _try_in_order(waiting, needs, usage, room)
    if isinstance(verdict, Block) and verdict is not CAPACITY:
        smallest = _smallest_first(waiting)
        if smallest != list(waiting):
            other = _try_in_order(smallest, needs, usage, room)
            return other if isinstance(other, Grant) else verdict
    return verdict


def gang_of(waiting: Pending, usage: QueueUsage) -> Sequence[QueuedSubJob]:
    """Return the sub-jobs for which a head of line waits: the smallest that can form its gang.

    The result is shorter than the gang if the capabilities forbid it even with unused queues.
    """
    tree, parts, needed = usage.tree, waiting.parts, waiting.shape.needs.needed
    queues = {part.queue for part in parts}
    if not any(tree.queues[each].capability for queue in queues for each in tree.path(queue)):
        return _smallest_first(parts)[:needed]
    sums: dict[str, dict[str, int]] = {}
    gang: list[QueuedSubJob] = []
    for part in _smallest_first(parts):
        if len(gang) == needed:
            break
        path, demand = tree.path(part.queue), usage.charge(part)
        if all(_is_within(tree.queues[each].capability, sums, each, demand) for each in path):
            for name in path:
                accumulate(sums.setdefault(name, {}), demand, 1)
            gang.append(part)
    return gang


def charges_of(gang: Iterable[QueuedSubJob], usage: QueueUsage) -> Mapping[str, Resources]:
    """Return what the sub-jobs of a gang count in each queue."""
    by_queue: dict[str, list[Resources]] = {}
    for part in gang:
        by_queue.setdefault(part.queue, []).append(usage.charge(part))
    return {queue: total(demands) for queue, demands in by_queue.items()}


def is_guaranteed(waiting: Sequence[QueuedSubJob], usage: QueueUsage) -> bool:
    """Return whether the guarantees of their queues cover all waiting sub-jobs."""
    queues = {part.queue for part in waiting}
    demand = total(part.request.demand for part in waiting)
    return len(queues) == 1 and usage.is_guaranteed(queues.pop(), demand)


def leaves_guarantees(
    gang: Sequence[QueuedSubJob], shares: Shares, eventual: Iterable[Resources]
) -> bool:
    """Return whether a gang has room beside all guarantees if no other HyperJob runs.

    A guarantee that another HyperJob uses now counts in full: it is unused again after the end of
    that HyperJob. `eventual` is what other workloads leave to HyperJobs on each cluster.
    """
    if not shares.usage.tree.guaranteed:
        return True
    alone, demands = shares.of_others(), charges_of(gang, shares.usage)
    for name, each in demands.items():
        alone.add(name, each)
    demand = total(part.request.demand for part in gang)
    kept, most = alone.kept_for_others(demand), total(eventual)
    return all(demand[name] + amount <= most.get(name, 0) for name, amount in kept.items())


def _try_in_order(
    waiting: Sequence[QueuedSubJob], needs: PlacementNeeds, usage: QueueUsage, room: Room
) -> Grant | Block:
    """Admit, in this order, as many sub-jobs as the limits of their queues allow."""
    allowed, block = _within_limits(waiting, usage, room)
    least = max(1, needs.needed)
    if len(allowed) < least:
        return block or Block(code=WaitCode.CAPACITY)
    requests = [part.request for part in allowed]
    beside = room.beside(needs.standing)
    found = assign(requests, beside, max_domains=needs.max_domains, least=least).assigned
    if len(found) < least:
        return CAPACITY if len(allowed) == len(waiting) else block or Block(code=WaitCode.CAPACITY)
    return Grant(found)


def _smallest_first(parts: Sequence[QueuedSubJob]) -> list[QueuedSubJob]:
    def size(part: QueuedSubJob) -> int:
        return part.request.demand.get(part.request.measure, 0)

    return sorted(parts, key=size)


def _is_within(
    capability: Resources, sums: Mapping[str, Resources], queue: str, demand: Resources
) -> bool:
    """Return whether a capability has room for a demand beside what `sums` has of the queue."""
    used = sums.get(queue, {})
    return all(
        used.get(name, 0) + amount <= capability[name]
        for name, amount in demand.items()
        if name in capability
    )


def _within_limits(
    waiting: Sequence[QueuedSubJob], usage: QueueUsage, room: Room
) -> tuple[list[QueuedSubJob], Block | None]:
    """Return the sub-jobs that the limits allow, in order, and the first block of the others.

    A limit is a capability of a queue or of its parents; the guarantees of other queues are room
    that must stay free. Each allowed sub-job counts in `usage` for the sub-jobs after it. On return
    `usage` is as before: the caller adds what it admits.
    """
    allowed: list[QueuedSubJob] = []
    block: Block | None = None
    asked: dict[str, int] = {}
    for part in waiting:
        demand, charge = part.request.demand, usage.charge(part)
        limit = usage.limit(part.queue, charge)
        if limit is not None:
            block = block or Block(code=WaitCode.LIMIT, limit=limit)
            continue
        usage.add(part.queue, charge)
        trial = total((asked, demand))
        kept = usage.kept_for_others(demand)
        short = next(
            (name for name, least in kept.items() if trial[name] + least > room.sum.get(name, 0)),
            None,
        )
        if short is not None:
            usage.add(part.queue, charge, -1)
            if trial[short] <= room.sum.get(short, 0):
                block = block or Block(code=WaitCode.GUARANTEE, resource=short)
            continue
        asked = trial
        allowed.append(part)
    for part in allowed:
        usage.count(part, -1)
    if block is not None and block.limit is not None:
        used = usage.used(block.limit.queue).get(block.limit.resource, 0)
        block = replace(block, limit=replace(block.limit, used=used))
    return allowed, block
