"""The begin of a round: the reservations of admitted sub-jobs that do not exist yet, by cluster.

A sub-job holds its reservation from its admission until the free amounts of its cluster exclude it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.place import assign
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import Resources
from hyperjob_queueing.headroom import eventual_of, keep, wants
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
from hyperjob_queueing.workload import Entry


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
