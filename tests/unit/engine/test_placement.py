from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.place import Placement, assign
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import fits, parse_resources, subtract
from tests.unit.engine.builders import GPU, cluster, place, request

CPU = parse_resources({"cpu": "64", "pods": "110"})


def assigned(placement: Placement) -> dict[str, str]:
    return dict(placement.assigned)


def test_preferred_clusters_are_tried_in_order() -> None:
    wanted = [request("j-0", 8, preferred=["b", "a"])]
    assert assigned(place(wanted, [cluster("a"), cluster("b")])) == {"j-0": "b"}


def test_a_preference_is_kept_even_where_it_is_not_the_best_fit() -> None:
    wanted = [request("j-0", 8, preferred=["b"])]
    assert assigned(place(wanted, [cluster("a", 8), cluster("b", 100)])) == {"j-0": "b"}


def test_like_sub_jobs_all_go_to_the_first_preference_while_it_has_room() -> None:
    wanted = [request(f"j-{i}", 8, preferred=["b", "a"]) for i in range(3)]
    found = assigned(place(wanted, [cluster("a"), cluster("b", 16), cluster("c")]))
    assert sorted(found.values()) == ["a", "b", "b"]


def test_others_are_used_only_when_no_preferred_cluster_has_room() -> None:
    wanted = [request("j-0", 8, preferred=["a", "b"])]
    found = place(wanted, [cluster("a", 7), cluster("b", 7), cluster("c", 8)])
    assert assigned(found) == {"j-0": "c"}


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


def test_without_a_preference_like_sub_jobs_stand_apart() -> None:
    wanted = [request(f"j-{i}", 8) for i in range(2)]
    found = assigned(place(wanted, [cluster("a"), cluster("b")]))
    assert sorted(found.values()) == ["a", "b"]


def test_a_lone_sub_job_takes_the_tightest_cluster() -> None:
    assert assigned(place([request("j", 8)], [cluster("a", 30), cluster("b", 9)])) == {"j": "b"}


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


def test_one_domain_keeps_all_in_one_cluster() -> None:
    wanted = [request(f"j-{i}", 8) for i in range(2)]
    clusters = [cluster("a", 8), cluster("b", 15), cluster("c", 16)]
    assert set(assigned(place(wanted, clusters, max_domains=1)).values()) == {"c"}


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


def test_the_shortage_is_told_cluster_by_cluster() -> None:
    found = place([request("j", 128)], [cluster("m1", 64, total=96), cluster("m2", 0)])
    assert found.unplaced["j"].text == (
        "needs 128 nvidia.com/gpu: m1 lacks 32 nvidia.com/gpu (has 96);"
        " m2 lacks 128 nvidia.com/gpu (has none)"
    )


def test_the_shortage_of_many_clusters_stays_readable() -> None:
    found = place([request("j", 2)], [cluster(f"c{i:03}", 1) for i in range(200)])
    assert found.unplaced["j"].text.endswith("and 195 more clusters do not fit either")
    assert len(found.unplaced["j"].text) < 400


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


def test_an_excluded_cluster_is_not_used() -> None:
    wanted = request("j", excluded=frozenset({"a"}))
    found = place([wanted], [cluster("a"), cluster("b", 0)])
    assert assigned(found) == {}
    assert "a is excluded" in found.unplaced["j"].text


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
