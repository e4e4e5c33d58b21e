"""Where sub-jobs are placed, also past the sizes at which not all combinations are compared."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement import place as placing
from hyperjob_engine.placement import share
from hyperjob_engine.placement.place import Placement, assign
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import fits, parse_resources, subtract
from tests.unit.engine.builders import GPU, cluster, place, request
from tests.unit.engine.test_share import shared, wish

CPU = parse_resources({"cpu": "64", "pods": "110"})


def assigned(placement: Placement) -> dict[str, str]:
    return dict(placement.assigned)


PREFERRED: dict[str, tuple[int, list[str], dict[str, int], list[str]]] = {
    "the first": (1, ["b", "a"], {"a": 100, "b": 100}, ["b"]),
    "though another fits more closely": (1, ["b"], {"a": 8, "b": 100}, ["b"]),
    "the first while it has room": (3, ["b", "a"], {"a": 100, "b": 16, "c": 100}, ["a", "b", "b"]),
    "no other while one has room": (1, ["a", "b"], {"a": 7, "b": 7, "c": 8}, ["c"]),
    "none, so that like sub-jobs stand apart": (2, [], {"a": 100, "b": 100}, ["a", "b"]),
    "none, so that the closest fit is taken": (1, [], {"a": 30, "b": 9}, ["b"]),
}


@pytest.mark.parametrize(
    ("number", "preferred", "gpus", "placed"), PREFERRED.values(), ids=list(PREFERRED)
)
def test_preferred_clusters_are_tried_in_order_and_then_those_that_fit_most_closely(
    number: int, preferred: list[str], gpus: dict[str, int], placed: list[str]
) -> None:
    wanted = [request(f"j-{index}", 8, preferred=preferred) for index in range(number)]
    found = place(wanted, [cluster(name, free) for name, free in gpus.items()])
    assert sorted(found.assigned.values()) == placed


def test_required_clusters_are_the_only_ones() -> None:
    wanted = [request("j-0", 8, preferred=["a"], required=True)]
    found = place(wanted, [cluster("a", 7), cluster("c", 8)])
    assert assigned(found) == {}
    assert found.unplaced["j-0"].text == (
        "needs 8 nvidia.com/gpu (clusterPolicy Required): a lacks 1 nvidia.com/gpu (has 7)"
    )


def test_clusters_that_lack_the_same_are_named_together_and_those_without_the_device_last() -> None:
    clusters = [
        *(replace(cluster(name), allocatable=CPU, free=CPU) for name in ("a", "b")),
        cluster("c", 7),
        cluster("d", 7),
    ]
    found = place([request("j-0", 8)], clusters)
    assert found.unplaced["j-0"].text == (
        "needs 8 nvidia.com/gpu: each of c, d lacks 1 nvidia.com/gpu (has 7);"
        " each of a, b lacks 8 nvidia.com/gpu (has none)"
    )


def test_unknown_and_unusable_clusters_are_named() -> None:
    wanted = [request("j-0", 8, preferred=["typo", "down"], required=True)]
    found = place(wanted, [cluster("down", unusable="is not Ready")])
    assert found.unplaced["j-0"].text == "cluster typo does not exist; cluster down is not Ready"


def test_sub_jobs_stand_near_each_other_where_there_is_a_choice() -> None:
    clusters = [
        cluster("a", 8, provider="p", region="west"),
        cluster("b", 9, provider="p", region="east"),
        cluster("c", 20, provider="p", region="west"),
    ]
    wanted = [
        request("x-0", 8, group="x"),
        request("y-0", 8, group="y"),
        request("y-1", 8, group="y"),
    ]
    found = assigned(place(wanted[:1], clusters))
    assert found == {"x-0": "a"}
    both = assigned(place(wanted[1:], clusters, standing=[("x", "a")]))
    assert both["y-0"] == "a"
    assert both["y-1"] == "c"


def test_regions_of_one_name_at_two_providers_are_not_near_each_other() -> None:
    where = {"a": ("p", "r"), "b": ("q", "r"), "c": ("p", "s")}
    clusters = [cluster(name, provider=p, region=r) for name, (p, r) in where.items()]
    wanted = request("hj-trainer-1", excluded=frozenset("a"))
    assert place([wanted], clusters, standing=[("other", "a")]).assigned == {"hj-trainer-1": "c"}


def test_too_few_domains_leave_no_place_though_the_sum_would_fit() -> None:
    wanted = [request(f"j-{i}", 8) for i in range(2)]
    found = place(wanted, [cluster("a", 8), cluster("b", 8)], max_domains=1, minimum=2)
    assert assigned(found) == {}
    assert found.room_for == 1
    assert any("maxDomains 1 is used up" in each.text for each in found.unplaced.values())


def test_sub_jobs_that_stand_already_count_as_domains() -> None:
    clusters = [cluster("a", 0), cluster("b", 8)]
    found = place([request("j-1", 8)], clusters, standing=[("trainer", "a")], max_domains=1)
    assert assigned(found) == {}


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    wanted = [request(f"j-{i}", 8) for i in range(3)]
    clusters = [cluster("a", 8), cluster("b", 8)]
    short = place(wanted, clusters, minimum=3)
    assert (assigned(short), short.room_for) == ({}, 2)
    assert set(short.unplaced) == {"j-0", "j-1", "j-2"}
    enough = place(wanted, clusters, minimum=2)
    assert len(enough.assigned) == 2
    assert len(enough.unplaced) == 1


def test_without_any_cluster_the_reason_is_said() -> None:
    assert place([request("j")], []).unplaced["j"].text.endswith("no cluster is registered")


CLUSTERS = st.lists(st.integers(0, 8), min_size=0, max_size=3).map(
    lambda sizes: [cluster(f"c{i}", size) for i, size in enumerate(sizes)]
)
REQUESTS = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from(["x", "y"]), st.booleans()), max_size=4
).map(
    lambda items: [
        request(f"j{i}", size, group=group, preferred=["c0"] if picky else [], required=picky)
        for i, (size, group, picky) in enumerate(items)
    ]
)


def most_placeable(
    requests: list[PlacementRequest], clusters: list[Cluster], max_domains: int | None
) -> int:
    """Try everything."""
    names = [None, *(item.name for item in clusters)]
    best = 0
    for choice in product(names, repeat=len(requests)):
        free = {item.name: item.free for item in clusters}
        used = {name for name in choice if name is not None}
        if max_domains is not None and len(used) > max_domains:
            continue
        good = True
        for item, name in zip(requests, choice, strict=True):
            if name is None:
                continue
            if not item.allows(name) or not fits(item.demand, free[name]):
                good = False
                break
            free[name] = subtract(free[name], item.demand)
        if good:
            best = max(best, sum(name is not None for name in choice))
    return best


@settings(max_examples=200)
@given(REQUESTS, CLUSTERS, st.one_of(st.none(), st.integers(1, 3)), st.randoms())
def test_small_cases_are_placed_as_well_as_possible_whatever_the_order(
    requests: list[PlacementRequest],
    clusters: list[Cluster],
    max_domains: int | None,
    random: object,
) -> None:
    found = place(requests, clusters, max_domains=max_domains)
    free = {item.name: item.free for item in clusters}
    for item in requests:
        if item.name in found.assigned:
            name = found.assigned[item.name]
            assert item.allows(name)
            assert fits(item.demand, free[name])
            free[name] = subtract(free[name], item.demand)
    assert {*found.assigned, *found.unplaced} == {item.name for item in requests}
    assert len(found.assigned) == most_placeable(requests, clusters, max_domains)
    shuffled = list(clusters)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert place(requests, shuffled, max_domains=max_domains) == found


@pytest.mark.parametrize("max_domains", [None, 3])
def test_many_sub_jobs_on_many_clusters_are_placed(max_domains: int | None) -> None:
    wanted = [request(f"j-{i}", 8, preferred=["c7"]) for i in range(1000)]
    clusters = [cluster(f"c{i}", 120) for i in range(100)]
    found = place(wanted, clusters, max_domains=max_domains)
    assert len(found.assigned) == (1000 if max_domains is None else 45)
    assert found == place(wanted, clusters, max_domains=max_domains)


@pytest.mark.parametrize(
    ("demand", "text"),
    [
        ({"cpu": "8", "memory": "16Gi", "pods": "2"}, "needs 8 cpu and 16Gi memory: "),
        ({"pods": "2"}, "needs 2 pods: "),
        ({"rdma/hca": "4", "cpu": "1"}, "needs 4 rdma/hca and 1 cpu: "),
    ],
)
def test_the_size_of_a_sub_job_is_told_by_what_it_has(demand: dict[str, str], text: str) -> None:
    wanted = PlacementRequest(name="j", group="g", demand=parse_resources(demand))
    small = replace(cluster("a"), free={}, allocatable={})
    assert place([wanted], [small]).unplaced["j"].text.startswith(text)


def test_at_most_two_lacking_resources_are_told_accelerators_first() -> None:
    demand = parse_resources({GPU: "8", "cpu": "8", "memory": "1Gi", "pods": "8"})
    wanted = PlacementRequest(name="j", group="g", demand=demand)
    half = parse_resources({GPU: "4", "cpu": "2", "pods": "1"})
    found = place([wanted], [replace(cluster("a"), free=half)])
    assert found.unplaced["j"].text == (
        "needs 8 nvidia.com/gpu: a lacks 4 nvidia.com/gpu (4 free) and 6 cpu (2 free)"
    )


def test_equal_kinds_of_requests_are_kept_once() -> None:
    """Ten thousand HyperJobs that wait took a fifth more memory with a copy each."""
    assert request("x", 8).kind is request("y", 8).kind
    assert request("x", 8).kind != request("x", 4).kind


@pytest.mark.parametrize(("least", "placed"), [(0, {"a": 2}), (2, {"a": 2}), (3, {})])
def test_with_one_cluster_the_largest_is_chosen_unless_too_few_fit(
    least: int, placed: dict[str, int]
) -> None:
    room = Room([cluster("a", 16), cluster("b", 8)])
    mates = [request(f"hj-{number}", 8) for number in range(3)]
    found = assign(mates, room, max_domains=1, least=least)
    assert Counter(found.assigned.values()) == placed
    assert not room.assigned, "the room that was given stays"


def test_a_search_finds_the_order_in_which_all_fit() -> None:
    room = Room([cluster("a", 10), cluster("b", 9)])
    mates = [request(f"hj-{number}", gpus) for number, gpus in enumerate((6, 5, 4, 4))]
    found = assign(mates, room, max_domains=None)
    assert len(found.assigned) == 4


def test_a_full_cluster_has_room_again_when_what_it_holds_leaves() -> None:
    nothing = dict.fromkeys((GPU, "cpu", "memory", "pods"), 0)
    room = Room([replace(cluster("full", 4), free=nothing)])
    held = {**nothing, **request("one", 4).demand}
    assert not list(room.ranked(request("one", 4)))
    room.leave("full", "default/other", held)
    assert list(room.ranked(request("one", 4))) == ["full"]
    assert room.near == frozenset()


MANY = 30


def scattered(near: set[int]) -> list[Cluster]:
    """Thirty clusters in regions of their own, but for some in one region."""
    return [
        cluster(
            f"c{number:02}",
            10,
            provider="p",
            region="home" if number in near else f"r{number}",
            zone=f"z{number}",
        )
        for number in range(MANY)
    ]


@pytest.mark.parametrize("limit", [0, share._COMBINATIONS, 10**9])
def test_near_clusters_are_found_whether_or_not_all_combinations_are_compared(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(share, "_COMBINATIONS", limit)
    near = {3, 11, 29}
    found = shared(wish(30), *scattered(near))
    assert set(found) == {f"c{number:02}" for number in near}


def test_beyond_5000_combinations_the_clusters_of_one_region_are_tried_first() -> None:
    near = {2, 9, 17, 28}
    found = shared(wish(40), *scattered(near))
    assert set(found) == {f"c{number:02}" for number in near}


def test_beyond_5000_combinations_a_preferred_cluster_without_room_changes_nothing() -> None:
    clusters = [*scattered({1, 2, 3, 4}), cluster("full", 0), cluster("later", 10)]
    found = shared(wish(40, preferred=("full", "later", "typo")), *clusters)
    assert "full" not in found
    assert next(iter(found)) == "later"
    assert sum(found.values()) == 40


def test_beyond_5000_combinations_a_preferred_cluster_that_is_too_small_changes_nothing() -> None:
    near = {2, 9, 17, 28}
    found = shared(wish(40, preferred=("small",)), *scattered(near), cluster("small", 1))
    assert set(found) == {f"c{number:02}" for number in near}


def test_beyond_5000_combinations_clusters_without_a_region_leave_the_least_over() -> None:
    clusters = [cluster(f"c{number:02}", 10) for number in range(MANY)]
    assert "large" not in shared(wish(40), cluster("large", 13), *clusters)


def test_of_many_sub_jobs_one_without_room_keeps_no_other_from_its_place() -> None:
    wanted = [request("large", 301), *(request(f"j-{number}") for number in range(300))]
    assert set(place(wanted, [cluster("a", 300)]).unplaced) == {"large"}


def test_the_likeliest_clusters_are_tried_first_where_only_a_few_sets_are_tried() -> None:
    """With 2,000 sub-jobs only four sets of clusters are tried; the fourth best holds too few."""
    small = [cluster(f"a{number}", 10) for number in range(10)]
    large = [cluster(f"z{number}", 1000) for number in range(2)]
    wanted = [request(f"j-{number}", 1) for number in range(2000)]
    assert placing._PLACINGS // len(wanted) < placing._FEWEST_SETS
    placed = place(wanted, [*small, *large], max_domains=2)
    assert not placed.unplaced
    assert set(placed.assigned.values()) == {"z0", "z1"}


@pytest.mark.parametrize("number", [12, 13, 40])
def test_the_sets_of_clusters_are_compared_in_the_order_of_what_they_hold(number: int) -> None:
    """Sub-jobs of two kinds: the kind that is larger fits on two clusters alone."""
    clusters = [cluster(f"a{index}", 8 * number) for index in range(12)]
    clusters += [cluster("y", 16 * number), cluster("z", 16 * number)]
    wanted = [request(f"big-{i}", 16, group="big") for i in range(number)]
    wanted += [request(f"small-{i}", 8, group="small") for i in range(2 * number)]
    placed = place(wanted, clusters, max_domains=2)
    assert not placed.unplaced
    assert set(placed.assigned.values()) == {"y", "z"}


def test_the_set_that_can_hold_most_is_tried_first_where_only_a_few_sets_are_tried() -> None:
    """Of 300 sets 22 are tried, and the sets of the 25 clusters that hold most by themselves come
    before those with `z`, the one cluster of the second kind.
    """
    clusters = [*(cluster(f"a{number:02}", 110) for number in range(25)), cluster("z", 109)]
    wanted = [request(f"x-{n}", excluded=frozenset({"z"})) for n in range(110)]
    wanted += [request(f"y-{n}", preferred=("z",), required=True) for n in range(109)]
    assert placing._PLACINGS // len(wanted) < 24
    placed = place(wanted, clusters, max_domains=2)
    assert not placed.unplaced


def test_of_few_sub_jobs_many_sets_are_tried() -> None:
    """Each of 20 small clusters has room for either sub-job, and only the last one for both."""
    clusters = [*(cluster(f"a{number:02}", 10) for number in range(20)), cluster("z", 13)]
    wanted = [request("big", 7), request("small", 6, group="small")]
    placed = place(wanted, clusters, max_domains=1)
    assert placed.assigned == {"big": "z", "small": "z"}
