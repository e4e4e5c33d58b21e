"""The begin of a round, and what it keeps: for sub-jobs without an object, and for heads of lines.

A sub-job holds its reservation from its admission until the free amounts of its cluster exclude it.
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
from hyperjob_queueing.state import (
    LastRound,
    QueueState,
    end_pods,
    end_rests,
    follow,
    renew_shares,
    working_on,
)
from hyperjob_queueing.stopped import PodsLeft
from hyperjob_queueing.workload import LONGEST_WAIT, Entry, Pending


def begin(
    state: QueueState,
    clusters: Sequence[Cluster],
    *,
    now: datetime,
    pods_left: PodsLeft = lambda _cluster, _job: None,
) -> None:
    """Let the state follow the time and the clusters; the blocks of the last round stay.

    The order matters: ends of rests and pods change lines and usage, which new shares count. Then
    `reserve` takes the room of sub-jobs that are admitted and not created yet. Of the two rooms
    that it leaves equal, `room` also loses what is kept for a head during the round.
    """
    follow(state, now=now)
    end_rests(state, now=now)
    end_pods(state, pods_left, now=now)
    renew_shares(state, clusters)
    state.usage.forget_claims()
    usable = [cluster for cluster in clusters if cluster.usable]
    eventual = {each.name: eventual_of(each, state.held.get(each.name, {})) for each in usable}
    layouts = {each.name: each.view.layout for each in usable if each.view is not None}
    if (eventual, layouts) != (state.answers.eventual, state.answers.layouts):
        state.answers.eventual, state.answers.layouts = eventual, layouts
        state.answers.could.clear()
        state.answers.wants.clear()
    empty = {
        each.name: (each.allocatable, each.trouble, each.view.layout if each.view else None)
        for each in clusters
    }
    if empty != state.answers.empty:
        state.lines.changed.update(state.lines.queues())  # what can never run is another one now
        state.answers.empty = empty
        state.answers.changes += 1
        state.answers.never.clear()
        state.lines.take_back()
    room = Room(clusters)
    reserve(state, room)
    state.last = LastRound(
        at=now,
        room=room,
        open=room.copy(),
        blocks=state.last.blocks,
    )


def hold(last: LastRound, request: PlacementRequest, cluster: str) -> None:
    """Reserve room on a cluster for a sub-job to which the present round gives its share."""
    last.room.hold(request, cluster)
    last.open.hold(request, cluster)


def reserved(state: QueueState, *, but: str) -> dict[str, list[PlacementRequest]]:
    """Return the sub-jobs with a reservation, of all HyperJobs except `but`, by cluster.

    What is kept for a head of line is like a sub-job without pods, unless a queue of `but` has a
    guarantee: `but` then precedes the head.
    """
    found: dict[str, list[PlacementRequest]] = {}
    entries, counts = state.entries, state.settings.counts
    for key in state.index.missing:
        if key == but:
            continue
        entry, namespace = entries[key], key[: key.index("/") + 1]
        holding = entry.holding
        for name, cluster in entry.reserved_clusters.items():
            if not counts(namespace + name):
                found.setdefault(cluster, []).append(holding[name][0].request)
    known, last = entries.get(but), state.last
    if last.kept_for != but and not (known is not None and _has_guarantee(state, known)):
        for cluster, kept in last.kept.items():
            request = PlacementRequest(name=last.kept_for, group="", demand=kept)
            found.setdefault(cluster, []).append(request)
    return found


def _has_guarantee(state: QueueState, entry: Entry) -> bool:
    tree = state.usage.tree
    paths = (tree.path(queue) for queue in entry.queues)
    return any(tree.queues[name].guarantee for path in paths for name in path)


def reserve(state: QueueState, room: Room) -> None:
    """Take all reservations from the room; move those on an unusable cluster to another one.

    A reservation belongs to a sub-job that holds a share and that no free amount excludes yet.
    """
    for key in sorted(state.index.missing, key=lambda key: state.entries[key].unit.order):
        entry, namespace, unplaced = state.entries[key], key.partition("/")[0], []
        with working_on(key):
            for part in entry.missing:
                if state.settings.counts(f"{namespace}/{part.name}"):
                    continue
                cluster = entry.reserved_clusters.get(part.name)
                if cluster in room.free:
                    room.hold(part.request, cluster)
                else:
                    entry.reserved_clusters.pop(part.name, None)
                    unplaced.append(part.request)
            if unplaced:
                _reserve_elsewhere(entry, unplaced, room, state.answers.eventual)


def _reserve_elsewhere(
    entry: Entry,
    unplaced: Sequence[PlacementRequest],
    room: Room,
    eventual: Mapping[str, Resources],
) -> None:
    """Move reservations to clusters with room; for the rest, keep all room that they could use."""
    limit = entry.unit.max_domains
    standing = [
        (part.request.group, cluster) for part, cluster in entry.holding.values() if cluster
    ]
    found = assign(unplaced, room.beside(standing), max_domains=limit).assigned
    for request in unplaced:
        if request.name in found:
            entry.reserved_clusters[request.name] = found[request.name]
            room.hold(request, found[request.name])
    left = [request for request in unplaced if request.name not in found]
    if left:
        keep(room, wants(room, eventual, left, most=len(left), max_domains=limit))


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
