"""Queues that are saturated share by weight; what is lent comes back within one job's length."""

import random
from datetime import timedelta

import pytest

from tests.unit.queueing.queueworld import QueueWorld, queue, unit

WEIGHTS = {"one": 1, "two": 2, "three": 3}


def saturated(sizes: tuple[int, ...], lengths: tuple[int, int], *, seed: int) -> QueueWorld:
    """Two clusters of 96 and a line in every queue that never ends."""
    chance = random.Random(seed)
    made = QueueWorld({"a": 96, "b": 96})
    made.set_queues(*(queue(name, weight=weight) for name, weight in WEIGHTS.items()))
    for name in WEIGHTS:
        for number in range(400):
            job = f"{name}-{number}"
            made.submit(unit(job, chance.choice(sizes), queue=name, age=number))
            made.lengths[job] = chance.randint(*lengths)
    return made


def shares(made: QueueWorld, seconds: int) -> dict[str, float]:
    """Run on, and return what part of all that ran each queue had on average."""
    until = made.now + timedelta(seconds=seconds)
    sums = dict.fromkeys(WEIGHTS, 0.0)
    while made.now < until:
        before = made.now
        used = {name: made.used(name) for name in WEIGHTS}
        made.advance()
        made.decide()
        for name in WEIGHTS:
            sums[name] += used[name] * (made.now - before).total_seconds()
    return {name: amount / sum(sums.values()) for name, amount in sums.items()}


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [((4,), (60, 60)), ((2, 4, 8), (30, 90)), ((1, 8), (50, 70))],
    ids=["like jobs", "mixed sizes and lengths", "small and large"],
)
def test_shares_are_the_weights_within_five_percent(
    sizes: tuple[int, ...], lengths: tuple[int, int]
) -> None:
    made = saturated(sizes, lengths, seed=7)
    made.decide()
    shares(made, 2 * lengths[1])  # warm up
    found = shares(made, 6 * lengths[1])
    for name, weight in WEIGHTS.items():
        assert found[name] == pytest.approx(weight / 6, rel=0.05), found


def test_an_idle_queues_share_is_lent_and_comes_back_within_one_jobs_length() -> None:
    made = saturated((4,), (60, 60), seed=1)
    late = [each for each in list(made.units.values()) if each.parts[0].queue == "three"]
    for each in late:
        made.end(each.key)
    made.decide()
    assert made.used("one") + made.used("two") == 192
    assert made.used("one") == pytest.approx(64, abs=4)
    made.now += timedelta(seconds=20)
    made.submit(*late)
    made.decide()
    assert made.used("three") == 0
    returned = made.now + timedelta(seconds=60)
    while made.used("three") < 96:
        made.advance()
        made.decide()
        assert made.now <= returned
    assert made.used("one") == 32
    assert made.used("two") == 64


def test_a_higher_queue_is_served_first_and_a_guarantee_holds_against_it() -> None:
    made = QueueWorld({"a": 64})
    made.set_queues(queue("low", guarantee=16), queue("high", priority=10))
    for number in range(40):
        made.submit(unit(f"high-{number}", 4, queue="high", age=number))
        made.submit(unit(f"low-{number}", 4, queue="low", age=number))
    made.decide()
    assert (made.used("high"), made.used("low")) == (48, 16)
