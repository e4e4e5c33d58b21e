"""Placement past the sizes at which it stops comparing all combinations, and its words at a tie."""

import pytest

from hyperjob_engine.placement import share
from hyperjob_engine.placement.explain import alternatives, explain_shortfall
from hyperjob_engine.placement.room import Room
from hyperjob_engine.placement.share import capacities
from tests.unit.engine.builders import cluster, request
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


def test_a_tie_is_said_to_be_decided_by_name() -> None:
    clusters = [cluster("a", 10), cluster("b", 10)]
    told = alternatives(request("j", 8), "a", Room(clusters), max_domains=None)
    assert {name: each.text for name, each in told.items()} == {
        "b": "has as much room as a, which comes first by name"
    }


def test_what_fits_beside_a_master_counts_the_master_in_each_sub_job() -> None:
    clusters = [cluster("a", 17), cluster("b", 9)]
    what = wish(130, fixed=1, per_pod=8)
    room = Room(clusters)
    assert capacities(what, room) == {"a": 2, "b": 1}
    told = explain_shortfall(what, room, max_domains=None)
    assert "26 fit on 2 clusters" in told
    assert "a has room for 17" in told
    assert "b has room for 9" in told
