"""The second look at places: keep, move, wait."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hyperjob_engine.gang.gang import PinnedPlace, Review, domains, review
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import Resources, fits, parse_resources, subtract, total
from tests.unit.engine.builders import GPU, cluster, observed, request
from tests.unit.engine.views import job, node, seen, task, view


def seat(
    name: str, pin: str, gpus: int = 8, *, released: bool = True, **fields: object
) -> PinnedPlace:
    held = bool(fields.pop("held", True))
    wanted = request(name, gpus, **fields)
    return PinnedPlace(request=wanted, pin=pin, held=held, released=released)


def look(*seats: PinnedPlace, on: list[Cluster], max_domains: int | None = None) -> Review:
    return review(seats, Room(on), standing=(), max_domains=max_domains)


def test_a_place_that_karmada_refuses_is_left_though_there_is_room() -> None:
    refused = seat("x", "a", excluded=frozenset({"a"}))
    assert look(refused, on=[cluster("a"), cluster("b")]).moves == {"x": "b"}


def test_only_places_on_usable_clusters_that_nothing_excludes_count_as_domains() -> None:
    known = observed(clusters=(cluster("a"), cluster("b", unusable="yes"), cluster("c")))
    places = [
        seat("x", "a"),
        seat("y", "b"),
        seat("z", "gone"),
        seat("v", "c", excluded=frozenset({"c"})),
    ]
    assert domains(known, places) == [("trainer", "a")]


def test_what_may_be_counted_twice_moves_nobody_but_is_waited_for() -> None:
    doubled = replace(cluster("a", -8), settling=parse_resources({GPU: "8", "pods": "8"}))
    found = look(seat("x", "a"), on=[doubled, cluster("b", 8)])
    assert (found.ready, dict(found.moves)) == (frozenset(), {})
    (waits,) = found.short.values()
    counts = "the status of a counts the pods that have just started there"
    assert waits.text == f"waits until {counts}"


def test_what_was_made_a_moment_ago_goes_though_others_may_be_counted_twice() -> None:
    """It waited at its gate for as long as what had started before it took to settle."""
    doubled = replace(cluster("a", -8), settling=parse_resources({GPU: "8", "pods": "8"}))
    fresh = [replace(seat(name, "a"), fresh=True) for name in ("x", "y")]
    assert look(fresh[0], on=[doubled]) == Review(ready=frozenset({"x"}))
    crowded = look(*fresh, on=[replace(doubled, free=cluster("a", -16).free)])
    assert len(crowded.ready) == 1, "no more go than there is room for"


def test_what_the_queue_released_keeps_its_place_before_what_it_did_not() -> None:
    seats = [seat("x", "a", released=False), seat("y", "a")]
    found = look(*seats, on=[cluster("a", -8)])
    assert found.ready == {"y"}
    assert set(found.short) == {"x"}


def test_a_gang_that_must_stay_together_moves_together() -> None:
    seats = [seat("x", "a"), seat("y", "a")]
    found = look(*seats, on=[cluster("a", -8), cluster("b", 16)], max_domains=1)
    assert found == Review(moves={"x": "b", "y": "b"})


def test_what_keeps_its_place_makes_way_when_all_fit_only_so() -> None:
    """Only b takes the large one, and the small one sits there."""
    seats = [seat("small", "b", 4), seat("large", "a", 12)]
    found = look(*seats, on=[cluster("a", -4), cluster("b", 8)])
    assert found == Review(moves={"small": "a", "large": "b"})


def test_of_those_that_are_placed_anew_some_keep_their_place() -> None:
    seats = [seat("small", "b", 4), seat("large", "a", 12), seat("other", "c", 16)]
    found = look(*seats, on=[cluster("a", -4), cluster("b", 8), cluster("c", 0)])
    assert found == Review(ready=frozenset({"other"}), moves={"small": "a", "large": "b"})


amounts = st.integers(-12, 20)


@given(
    st.lists(st.tuples(amounts, st.booleans()), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(1, 8), st.booleans(), st.booleans()), max_size=6
    ),
    st.one_of(st.none(), st.integers(1, 3)),
)
def test_nobody_is_ready_or_moves_without_room(
    rooms: list[tuple[int, bool]],
    wishes: list[tuple[int, int, bool, bool]],
    max_domains: int | None,
) -> None:
    clusters = [
        cluster(f"c{i}", size, unusable="" if usable else "is not Ready")
        for i, (size, usable) in enumerate(rooms)
    ]
    seats = [
        seat(f"s{i}", f"c{pin}", gpus, held=held, released=released)
        for i, (pin, gpus, held, released) in enumerate(wishes)
    ]
    found = look(*seats, on=clusters, max_domains=max_domains)
    assert found == look(*seats, on=clusters[::-1], max_domains=max_domains)
    usable = {item.name: item for item in clusters if item.usable}
    free: dict[str, Resources] = {name: item.free for name, item in usable.items()}
    for item in seats:
        if item.held and item.pin in free:
            free[item.pin] = total((free[item.pin], item.request.demand))
    for item in seats:
        where = item.pin if item.name in found.ready else found.moves.get(item.name, "")
        if where:
            assert fits(item.request.demand, free[where])
            free[where] = subtract(free[where], item.request.demand)
    told = {*found.ready, *found.moves, *found.short}
    assert {item.name for item in seats if item.held} <= told


def test_the_reservation_of_a_sub_job_that_stays_counts_once_on_the_nodes() -> None:
    tasks = task(1, 4, name="main", cpu=4), task(1, 4, cpu=2)
    stays, moves = job(*tasks, name="x"), job(*tasks, name="y")
    known = seen(view([node("n0"), node("n1")]), stays)
    places = [
        PinnedPlace(request=request, pin=pin, held=True, released=True)
        for request, pin in ((stays, "a"), (moves, "gone"))
    ]
    assert look(*places, on=[known]) == Review(ready=frozenset({"x"}), moves={"y": "a"})
