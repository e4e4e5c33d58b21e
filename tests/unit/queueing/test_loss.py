"""Who makes way first: of equally urgent HyperJobs those that lose least."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.quantity import NANO
from hyperjob_queueing.evict import loss_of
from hyperjob_queueing.state import admit, update
from hyperjob_queueing.workload import Entry, QueuedHyperJob
from tests.unit.engine.builders import NOW
from tests.unit.queueing.queueworld import LAG, QueueWorld, unit, world

URGENT = 1000


def saved(
    name: str, gpus: int, *, seconds_ago: int | None, priority: int = 0, age: int = 0
) -> QueuedHyperJob:
    """A HyperJob whose work is kept until so many seconds before the urgent one comes."""
    made = unit(name, gpus, priority=priority, age=age)
    if seconds_ago is None:
        return made
    return replace(made, kept=micro_time(NOW + 2 * LAG - timedelta(seconds=seconds_ago)))


def stopped_for(gpus: int, *running: QueuedHyperJob) -> list[str]:
    """Return who makes way for a more urgent HyperJob of so many GPUs."""
    made = world(running, a=sum(_gpus(each) for each in running))
    made.decide()
    made.now += 2 * LAG
    made.submit(unit("urgent", gpus, priority=URGENT, age=50))
    made.decide()
    return sorted(made.reclaimed)


def _gpus(each: QueuedHyperJob) -> int:
    return sum(part.request.demand["nvidia.com/gpu"] // 10**9 for part in each.parts)


def test_the_less_urgent_makes_way_whatever_it_loses() -> None:
    low = saved("low", 16, seconds_ago=3000)
    high = saved("high", 16, seconds_ago=10, priority=5)
    assert stopped_for(16, low, high) == ["low"]


def test_one_that_says_nothing_loses_all_since_it_began() -> None:
    silent, telling = saved("silent", 16, seconds_ago=None), saved("telling", 16, seconds_ago=10)
    assert stopped_for(16, silent, telling) == ["telling"]


def test_silence_about_checkpoints_spares_a_hyperjob_no_more_than_an_hour_of_work_would() -> None:
    silent = replace(saved("silent", 8, seconds_ago=None), created="2020-01-01T00:00:00Z")
    saving = saved("saving", 16, seconds_ago=2000)
    assert stopped_for(8, silent, saving) == ["silent"]


def test_those_that_lose_the_same_go_in_the_order_of_their_start_then_of_their_names() -> None:
    first, second = saved("a", 16, seconds_ago=60), saved("b", 16, seconds_ago=60)
    assert stopped_for(16, first, second) == ["b"]
    assert stopped_for(16, second, first) == ["b"]


@pytest.mark.parametrize(
    ("running", "stopped"),
    [
        ({"a8": 0, "b8": 0, "c16": 600, "d32": 0}, ["c16"]),
        ({"a8": 0, "b8": 0, "d32": 0}, ["a8", "b8"]),
        ({"a8": 0, "c24": 600, "d32": 0}, ["c24"]),
        ({"a8": 0, "b8": 0, "c16": 1900}, ["a8", "b8"]),
        ({"c16": 2000, "d24": 1900}, ["c16"]),
    ],
    ids=["the widest", "none wider than the demand", "the narrowest wider one", "little", "least"],
)
def test_of_those_that_lose_little_few_stop(running: dict[str, int], stopped: list[str]) -> None:
    holders = [saved(name, int(name[1:]), seconds_ago=age) for name, age in running.items()]
    assert stopped_for(16, *holders) == stopped


@given(ages=st.lists(st.integers(0, 3600), min_size=2, max_size=6))
def test_of_equal_ones_it_is_always_one_that_loses_least(ages: list[int]) -> None:
    running = [saved(f"r{index}", 8, seconds_ago=age) for index, age in enumerate(ages)]
    (chosen,) = stopped_for(8, *running)
    assert ages[int(chosen[1:])] == min(ages)


@pytest.mark.parametrize(
    ("seconds", "gpus", "expected"),
    [(0, 8, 0), (60, 8, 480), (60, 1, 60), (-5, 8, 0), (3600, 8, 28_800), (9000, 8, 28_800)],
)
def test_a_loss_is_seconds_times_accelerators(seconds: int, gpus: int, expected: int) -> None:
    made = unit("one", gpus)
    entry = Entry(replace(made, kept=micro_time(NOW - timedelta(seconds=seconds))))
    entry.holding = {part.name: (part, "a") for part in made.parts}
    assert loss_of(entry, now=NOW) == expected * NANO


def test_a_new_checkpoint_is_learnt_and_wakes_nobody() -> None:
    made: QueueWorld = world([saved("one", 8, seconds_ago=100)])
    newer = replace(made.units["ns/one"], kept=micro_time(NOW))
    assert not update(made.state, "ns/one", newer, now=NOW)
    assert made.state.entries["ns/one"].unit.kept == micro_time(NOW)


def test_a_hyperjob_that_is_learnt_again_keeps_the_sub_jobs_that_hold_its_share() -> None:
    made: QueueWorld = world([saved("one", 8, seconds_ago=100)])
    entry = made.state.entries["ns/one"]
    admit(made.state, "ns/one", {part.name: "a" for part in entry.unit.parts}, now=NOW)
    same = replace(entry.unit, parts=tuple(replace(part) for part in entry.unit.parts))
    assert not update(made.state, "ns/one", same, now=NOW)
    held = {id(part) for part, _ in entry.holding.values()}
    assert held == {id(part) for part in entry.unit.parts}
