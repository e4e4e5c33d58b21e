"""What is believed to be free, and what is stopped for it, against what the members truly have."""

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.controller.freeroom import CLUSTERS, Fleet
from tests.unit.engine.builders import GPU

pytestmark = pytest.mark.long

SECONDS = 60
HISTORIES = int(os.environ.get("HYPERJOB_HISTORIES", "20"))


def histories(fleet: Fleet, rng: random.Random, *, takeovers: float = 0.0) -> None:
    """Let HyperJobs come, end and be deleted at random, and check each second."""
    for _ in range(SECONDS):
        if rng.random() < 0.25:
            gpus, where = rng.choice((2, 4, 8, 16)), rng.choice(("x", "x", "y"))
            fleet.submit(gpus, where, priority=rng.choice((0, 0, 5)))
        running = [each for each in fleet.jobs.values() if not each.completed]
        if running and rng.random() < 0.08:
            fleet.remove(rng.choice(running))
        if rng.random() < takeovers:
            fleet.lead()
        fleet.tick()
        for cluster in fleet.clusters():
            free = cluster.free.get(GPU, 0) // 10**9
            truth = fleet.truth(cluster.name)
            assert free >= 0 or not fleet.sees
            assert free <= truth + (0 if fleet.sees else fleet.ended_unseen(cluster.name))


@given(seed=st.integers(0, 2**32), takeovers=st.sampled_from((0.0, 0.04)))
@settings(max_examples=HISTORIES, deadline=None)
def test_beside_other_workloads_that_change_nothing_stops_without_need_by_the_members_pods(
    seed: int, takeovers: float
) -> None:
    """By summaries alone some do: an other workload may end and be counted for ten seconds more."""
    fleet = Fleet(seed, sees=True, changing=True)
    histories(fleet, random.Random(seed), takeovers=takeovers)
    assert fleet.needless == []


@pytest.mark.parametrize("sees", [False, True], ids=["by summaries", "with the members' pods"])
@given(seed=st.integers(0, 2**32), others=st.tuples(st.integers(0, 4), st.integers(0, 4)))
@settings(max_examples=HISTORIES, deadline=None)
def test_in_any_history_free_room_is_that_of_the_pods_and_nothing_stops_without_need(
    *, sees: bool, seed: int, others: tuple[int, int]
) -> None:
    """HYPERJOB_HISTORIES sets how many."""
    fleet = Fleet(seed, sees=sees, others=dict(zip(CLUSTERS, others, strict=True)))
    histories(fleet, random.Random(seed))
    assert fleet.needless == []


@given(seed=st.integers(0, 2**32), others=st.tuples(st.integers(0, 4), st.integers(0, 4)))
@settings(max_examples=HISTORIES, deadline=None)
def test_with_the_members_pods_a_new_leader_stops_nothing_without_need(
    seed: int, others: tuple[int, int]
) -> None:
    fleet = Fleet(seed, sees=True, others=dict(zip(CLUSTERS, others, strict=True)))
    histories(fleet, random.Random(seed), takeovers=0.04)
    assert fleet.needless == []


def test_by_summaries_at_most_one_stop_of_ten_is_without_need() -> None:
    """A new leader decides at once by summaries of unknown age, here every 25 seconds one.

    Without takeovers none is: nobody is stopped while a summary may still have what has ended.
    """
    stops = needless = 0
    for seed in range(2 * HISTORIES):
        rng = random.Random(seed)
        fleet = Fleet(seed, others={name: rng.randrange(5) for name in CLUSTERS})
        histories(fleet, rng, takeovers=0.04)
        stops += fleet.evicted
        needless += len(fleet.needless) + len(fleet.unseen)
    assert stops
    assert needless <= stops / 10
