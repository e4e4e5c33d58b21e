"""One line for the clusters' room, where nobody confirms, against a slow implementation."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.place import assign
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import Resources, subtract
from hyperjob_queueing.confirm import NoConfirmation
from hyperjob_queueing.round import schedule
from hyperjob_queueing.state import Settings, admitted, new_state, set_queues, update
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.engine.builders import NOW, cluster
from tests.unit.queueing.queueworld import unit

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


def one_after_the_other(clusters: list[Cluster], units: list[QueuedHyperJob]) -> set[str]:
    """Return what starts: each in order takes what is free, if its gang has room there."""
    free, started = {each.name: each.free for each in clusters}, set[str]()
    for each in sorted(units, key=lambda unit: unit.order):
        requests = [part.request for part in each.parts]
        found = fill(clusters, free, requests, each.max_domains)
        if len(found) >= each.minimum:
            started.add(each.key)
            for request in requests:
                if request.name in found:
                    where = found[request.name]
                    free[where] = subtract(free[where], request.demand)
    return started


def fill(
    clusters: list[Cluster],
    free: Mapping[str, Resources],
    requests: Sequence[PlacementRequest],
    max_domains: int | None,
) -> Mapping[str, str]:
    room = Room(clusters)
    room.free = dict(free)
    return assign(requests, room, max_domains=max_domains).assigned


@given(lines())
def test_a_state_with_one_queue_without_limits_orders_and_starts_as_one_line(
    made: tuple[list[Cluster], list[QueuedHyperJob]],
) -> None:
    clusters, units = made
    state = new_state(Settings(lag=LAG), NoConfirmation())
    set_queues(state, ())
    for each in units:
        update(state, each.key, each, now=NOW)
    schedule(state, clusters, now=NOW)
    started = {each.key for each in units if admitted(state, each.key)}
    assert started == one_after_the_other(clusters, units)
