"""One line for the clusters' room, where nobody confirms, against a slow implementation."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.assign import FreeRoom
from hyperjob_engine.placement.search import assign
from hyperjob_engine.queueing.confirm import IMPLICIT, NoConfirmation
from hyperjob_engine.queueing.round import schedule
from hyperjob_engine.queueing.state import Settings, admitted, new_state, set_queues, update
from hyperjob_engine.queueing.workload import QueuedHyperJob
from hyperjob_engine.resources import Resources, fits, subtract, total
from tests.unit.controller.builders import NOW, cluster
from tests.unit.controller.queueworld import unit

LAG = timedelta(seconds=30)


@st.composite
def lines(draw: st.DrawFn) -> tuple[list[Cluster], list[QueuedHyperJob]]:
    """Make clusters that others use in part, and HyperJobs that all wait."""
    clusters = [
        cluster(name, draw(st.integers(0, 24)), total=24)
        for name in draw(st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]))
    ]
    units = []
    for number in range(draw(st.integers(1, 8))):
        sizes = draw(st.lists(st.integers(1, 20), min_size=1, max_size=3))
        units.append(
            unit(
                f"j{number}",
                *sizes,
                priority=draw(st.integers(0, 1)),
                age=draw(st.integers(0, 4)),
                minimum=draw(st.just(len(sizes)) | st.integers(1, len(sizes))),
                max_domains=draw(st.none() | st.just(1)),
                only_on=("a",) if draw(st.integers(0, 3)) == 0 else (),
            )
        )
    return clusters, units


def one_after_the_other(
    clusters: list[Cluster], units: list[QueuedHyperJob]
) -> tuple[set[str], str | None, dict[str, Resources]]:
    """Return what starts, who is first of the rest, and the room that is kept for it.

    Each in order takes what is free. The first that finds no room, and would have some on clusters
    that were empty of HyperJobs, keeps all that it could use from those behind it.
    """
    most = {each.name: each.free for each in clusters}
    free, kept = dict(most), dict[str, Resources]()
    started, first = set[str](), None
    for each in sorted(units, key=lambda unit: unit.order):
        requests = [part.request for part in each.parts]
        left = {name: without(room, kept.get(name, {})) for name, room in free.items()}
        found = fill(clusters, left, requests, each.max_domains)
        if len(found) >= each.minimum:
            started.add(each.key)
            for request in requests:
                if request.name in found:
                    where = found[request.name]
                    free[where] = subtract(free[where], request.demand)
            continue
        if first is None and len(fill(clusters, most, requests, each.max_domains)) >= each.minimum:
            first, kept = each.key, could_use(most, each)
    return started, first, kept


def fill(
    clusters: list[Cluster],
    free: Mapping[str, Resources],
    requests: Sequence[PlacementRequest],
    max_domains: int | None,
) -> Mapping[str, str]:
    room = FreeRoom.of(clusters, ())
    room.free = dict(free)
    return assign(requests, room, max_domains=max_domains).assigned


def without(free: Resources, wanted: Resources) -> Resources:
    return {name: amount - min(amount, wanted.get(name, 0)) for name, amount in free.items()}


def could_use(most: Mapping[str, Resources], each: QueuedHyperJob) -> dict[str, Resources]:
    """Return per cluster as many sub-jobs of each size as it would hold, as often as needed."""
    found: dict[str, Resources] = {}
    sizes = Counter(part.request.kind for part in each.parts)
    kinds = {part.request.kind: part.request for part in each.parts}
    for name, room in most.items():
        used: Counter[str] = Counter()
        number = 0
        for kind, request in kinds.items():
            holds = min(room.get(r, 0) // amount for r, amount in request.demand.items())
            fitting = min(sizes[kind], each.minimum, holds) if request.allows(name) else 0
            number += fitting
            for resource, amount in request.demand.items():
                used[resource] += fitting * amount
        if each.max_domains == 1:
            everything = total(part.request.demand for part in each.parts)
            whole = each.minimum >= len(each.parts)
            if not (fits(everything, room) if whole else number >= each.minimum):
                continue
        if any(used.values()):
            found[name] = dict(used)
    return found


@settings(deadline=None, max_examples=300)
@given(lines())
def test_a_book_with_one_queue_without_limits_orders_and_reserves_as_one_line(
    made: tuple[list[Cluster], list[QueuedHyperJob]],
) -> None:
    clusters, units = made
    state = new_state(Settings(lag=LAG), NoConfirmation())
    set_queues(state, ())
    for each in units:
        update(state, each.key, each, now=NOW)
    schedule(state, clusters, now=NOW)
    started = {each.key for each in units if admitted(state, each.key)}
    expected, first, room = one_after_the_other(clusters, units)
    assert started == expected
    assert state.last.heads.get(IMPLICIT) == first
    if first is not None:
        waiting = state.entries[first].waiting
        assert waiting is not None
        assert dict(state.answers.wants[waiting.shape.needs]) == room
