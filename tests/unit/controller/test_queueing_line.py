"""One line for the clusters' room, where nobody confirms, against a slow implementation."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.firstinline import FirstInLine
from controller.model.observed import Cluster
from controller.model.resources import Resources, subtract
from controller.placement.claim import Claim, beside
from controller.placement.place import place
from controller.queueing.book import Book
from controller.queueing.confirm import IMPLICIT, Nobody
from controller.queueing.round import play
from controller.queueing.units import Unit
from controller.waiting import Waiting
from tests.unit.controller.builders import GPU, NOW, cluster
from tests.unit.controller.queueworld import unit

LAG = timedelta(seconds=30)


@st.composite
def lines(draw: st.DrawFn) -> tuple[list[Cluster], list[Unit]]:
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
    clusters: list[Cluster], units: list[Unit]
) -> tuple[set[str], str | None, dict[str, Resources]]:
    """Return what starts, who is first of the rest, and the room that is kept for it."""
    shown = {each.name: each.free for each in clusters}
    free, eventual, started = list(clusters), dict(shown), set[str]()
    waiting = Waiting(lambda _key, _delay: None)
    line = FirstInLine(waiting)
    line.connect(lambda: (free, eventual))
    for each in sorted(units, key=lambda unit: unit.order):
        requests = [part.request for part in each.parts]
        line.look_again()
        room = beside(free, line.kept_from(each.order))
        found = place(requests, room, max_domains=each.max_domains, minimum=each.minimum)
        for name, where in found.assigned.items():
            demand = next(request.demand for request in requests if request.name == name)
            free = [
                cluster_with(item, subtract(item.free, demand)) if item.name == where else item
                for item in free
            ]
        if found.assigned:
            started.add(each.key)
        else:
            waiting.put(
                each.order,
                needs=(),
                claim=Claim(
                    requests=tuple(requests), needed=each.minimum, max_domains=each.max_domains
                ),
            )
    line.look_again()
    kept = line.kept_from((10**6, "~", "~"))
    return started, kept.owner if kept else None, dict(kept.room) if kept else {}


def cluster_with(item: Cluster, free: Resources) -> Cluster:
    return cluster(item.name, free[GPU] // 10**9, total=24)


@settings(deadline=None, max_examples=300)
@given(lines())
def test_a_book_with_one_queue_without_limits_orders_and_reserves_as_one_line(
    made: tuple[list[Cluster], list[Unit]],
) -> None:
    clusters, units = made
    book = Book(lag=LAG, confirmer=Nobody())
    book.set_queues(())
    for each in units:
        book.put(each.key, each, now=NOW)
    book.begin(clusters, now=NOW)
    play(book, now=NOW)
    started = {each.key for each in units if book.admitted(each.key)}
    expected, first, room = one_after_the_other(clusters, units)
    assert started == expected
    assert book.heads.get(IMPLICIT) == first
    if first is not None:
        waiting = book.entries[first].waiting
        assert waiting is not None
        assert dict(book.wants[waiting.shape.site]) == room
