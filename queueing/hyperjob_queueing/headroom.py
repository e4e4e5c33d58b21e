"""What a queue asks of the room: may a gang start, what a head of line could use, and keeps.

While others make way for a head, everything is kept for it that it could use on any cluster: no
HyperJob that starts meanwhile can then delay it. For a head that has waited long no more is kept
than its gang needs. `eventual` is what is free on each cluster after the end of all HyperJobs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.duration import later
from hyperjob_core.api.wire import timestamp
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.place import assign
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import Resources, fits, measure_of, scale, subtract, times, total
from hyperjob_queueing.workload import LONGEST_WAIT, Pending

_MICROSECOND: Final = timedelta(microseconds=1)


def spots(waiting: Pending, room: Room, *, least: int | None = None) -> Mapping[str, str]:
    """Return clusters for as many of the sub-jobs that wait as have room; none for too few.

    Too few are less than `least`, by default than those that must start together.
    """
    needs, limit = waiting.shape.needs, waiting.shape.needs.max_domains
    if least is None:
        least = max(1, needs.needed)
        if not room.allows(needs.floor):
            return {}
    beside = room.beside(needs.standing)
    found = assign(waiting.requests, beside, max_domains=limit, least=least).assigned
    return found if len(found) >= least else {}


def eventual_of(cluster: Cluster, held: Resources) -> dict[str, int]:
    """Return what other workloads leave to HyperJobs on a cluster, of which these hold `held`.

    It is what is free after the end of all HyperJobs. Pods may count twice for a moment: at most
    all that the cluster has is the result.
    """
    free = total((cluster.free, held, cluster.settling, *cluster.ending.values()))
    return {name: min(amount, free.get(name, 0)) for name, amount in cluster.allocatable.items()}


def wants(
    room: Room,
    eventual: Mapping[str, Resources],
    requests: Sequence[PlacementRequest],
    *,
    most: int,
    max_domains: int | None,
) -> dict[str, Resources]:
    """Return the resources that a head could use, on every cluster that can ever take it.

    `most` is the number of sub-jobs that the gang needs. Each cluster counts as if it took as
    many of each kind as it can hold when empty: a head may use any of the clusters.
    """
    counts = Counter(request.kind for request in requests)
    kinds = list({request.kind: request for request in requests}.values())
    everything = total(request.demand for request in requests)
    found: dict[str, Resources] = {}
    for name in room.free:
        most_free = eventual.get(name, {})
        numbers = [
            min(counts[kind.kind], most, times(most_free, kind.demand, default=1))
            if kind.allows(name)
            else 0
            for kind in kinds
        ]
        if max_domains == 1 and not (
            fits(everything, most_free) if most >= len(requests) else sum(numbers) >= most
        ):
            continue
        used = total(map(scale, (kind.demand for kind in kinds), numbers))
        if any(used.values()):
            found[name] = used
    return found


def keep(
    room: Room, wanted: Mapping[str, Resources], *, most: Resources | None = None
) -> dict[str, Resources]:
    """Take these resources, as far as they are free, for the rest of the round.

    At most `most` of all clusters together, from those first that have the largest part of what
    is wanted of them: there it is complete first. Return what was taken of each cluster.
    """
    taken: dict[str, Resources] = {}
    left = dict(most) if most is not None else None
    free = {
        name: {
            each: max(0, min(amount, room.free[name].get(each, 0)))
            for each, amount in amounts.items()
        }
        for name, amounts in wanted.items()
    }
    for name in sorted(free, key=lambda n: (-free[n].get(measure_of(wanted[n]), 0), n)):
        found = free[name]
        if left is not None:
            found = {each: min(amount, left.get(each, 0)) for each, amount in found.items()}
            left = subtract(left, found)
        if any(found.values()):
            room.subtract(name, found)
            taken[name] = found
    return taken


def waited_long(
    waiting: Pending,
    wanted: Mapping[str, Resources],
    free: Mapping[str, Resources],
    patience: timedelta,
    *,
    now: datetime,
    longest: bool,
) -> bool:
    """Return whether a head has waited for this patience, times a factor.

    The less of its room is free the longer it waits, since the more others stop for it: the factor
    is 2 where half is free, and at most `LONGEST_WAIT`, which it is for the `longest`.
    """
    created = timestamp(waiting.order.created)
    if created is None or later(created, patience) > now:
        return False
    floor = waiting.shape.needs.floor
    measure = measure_of(floor)
    room = sum(
        max(0, min(each.get(measure, 0), free[name].get(measure, 0)))
        for name, each in wanted.items()
    )
    waited, most = now - created, patience * LONGEST_WAIT
    enough = waited // _MICROSECOND * room >= patience // _MICROSECOND * floor.get(measure, 0)
    return waited >= most or (enough and not longest)
