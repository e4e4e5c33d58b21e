"""Placement past the sizes at which it stops comparing all combinations, and its words at a tie."""

import pytest

from hyperjob_engine.placement import place as placing
from hyperjob_engine.placement import share
from tests.unit.engine.builders import cluster, place, request
from tests.unit.engine.test_share import shared, wish

MANY = 30


def scattered(near: set[int], *, gpus: int = 10) -> list:
    """Thirty clusters in regions of their own, but for some in one region."""
    return [
        cluster(
            f"c{number:02}",
            gpus,
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
