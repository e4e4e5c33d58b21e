from dataclasses import replace
from datetime import timedelta

from hyperjob_engine.gang.gang import PinnedPlace, review
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest, kind_of, request_of_all
from hyperjob_engine.placement.capacity import less
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import parse_resources
from hyperjob_queueing.reserve import reserved
from hyperjob_queueing.round import schedule
from hyperjob_queueing.state import Settings, new_state, set_queues, update
from hyperjob_queueing.workload import QueuedHyperJob, QueuedSubJob
from tests.unit.engine.builders import GPU, NOW, place
from tests.unit.engine.views import held, node, seen, view
from tests.unit.queueing.queueworld import queue


def half(free: int = 16) -> Cluster:
    """Four nodes of 8, of which 4 are free on each."""
    nodes = [node(f"n{number}", 8, held(f"p{number}", 4)) for number in range(4)]
    return replace(seen(view(nodes)), free=parse_resources({GPU: str(free), "pods": "100"}))


def sized(number: int, gpus: int, name: str = "j") -> PlacementRequest:
    pods = ((kind_of(parse_resources({GPU: str(gpus), "pods": "1"})), number),)
    return PlacementRequest(name=name, group="g", demand=request_of_all(pods), pods=pods)


def test_sub_jobs_of_one_pass_share_the_nodes() -> None:
    crowded = half()
    found = place([sized(3, 4, "j-0"), sized(1, 3, "j-1"), sized(1, 1, "j-2")], [crowded])
    assert set(found.assigned) == {"j-0", "j-1", "j-2"}
    found = place([sized(3, 4, "j-0"), sized(2, 3, "j-1")], [replace(crowded, free=FREE)])
    assert set(found.assigned) == {"j-0"}
    assert set(found.unplaced) == {"j-1"}


FREE = parse_resources({GPU: "100", "pods": "100"})


def halved(free: int = 100, *reserved: PlacementRequest) -> Cluster:
    """Four nodes of which two have 4 left: as many pods of 4, or none of 8."""
    return less(half(free), reserved)


def test_what_is_reserved_takes_its_nodes_and_gives_them_back() -> None:
    wanted, other = sized(4, 4), replace(sized(1, 4), name="k")
    assert list(Room([halved()]).ranked(wanted)) == ["a"]
    taken = Room([halved(100, other)])
    assert list(taken.ranked(wanted)) == []
    taken.hold(other, "a", -1)
    assert list(taken.ranked(wanted)) == ["a"]
    again = Room([halved()])
    again.hold(other, "a", -1)  # nobody knows of it
    assert list(again.ranked(replace(wanted, name="l"))) == ["a"]
    assert list(again.ranked(sized(4, 5))) == [], "that makes no room"


def test_what_is_placed_again_does_not_stand_in_its_own_way() -> None:
    """Two held sub-jobs of 2 pods each are reserved; the cluster of one is lost."""
    one, two = (replace(sized(4, 2), name=name) for name in "jk")
    seats = [
        PinnedPlace(request=one, pin="a", held=True, released=True),
        PinnedPlace(request=two, pin="gone", held=True, released=True),
    ]
    found = review(seats, Room([halved(92, one)]), standing=(), max_domains=None)
    assert (found.ready, dict(found.moves)) == (frozenset({"j"}), {"k": "a"})
    third = PinnedPlace(request=replace(two, name="l"), pin="gone", held=True, released=True)
    found = review([*seats, third], Room([halved(92, one)]), standing=(), max_domains=None)
    assert (found.moves, list(found.short)) == ({"k": "a"}, ["l"])


def test_two_of_one_round_are_not_promised_the_same_nodes() -> None:
    state = new_state(Settings(lag=timedelta(seconds=30)))
    set_queues(state, [queue("default")])
    for name in ("first", "second"):
        part = QueuedSubJob(queue="default", request=replace(sized(4, 3), name=f"{name}-0"))
        alone = QueuedHyperJob(key=f"ns/{name}", created=name, minimum=1, parts=(part,))
        update(state, alone.key, alone, now=NOW)
    assert schedule(state, [halved()], now=NOW).keys == ["ns/first"]
    assert [request.name for request in reserved(state, but="ns/second")["a"]] == ["first-0"]
    assert schedule(state, [halved()], now=NOW).keys == []
