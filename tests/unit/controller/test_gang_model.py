"""Gangs in any history: never in parts, never beyond what is free, and all of them end.

HYPERJOB_MODEL_EXAMPLES is the number of histories, 150 unless set.
"""

import os
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.unit.controller.gangworld import GangWorld
from tests.unit.controller.histories import Events, made, run_out, settings_of, shapes

EXAMPLES = int(os.environ.get("HYPERJOB_MODEL_EXAMPLES", "150"))


class Histories(Events):
    """Submissions, losses, restarts and late or repeated messages in any order."""

    @initialize(
        sizes=st.lists(st.integers(8, 24), min_size=1, max_size=3),
        spare=st.tuples(st.sampled_from([0, 0, 4, 12]), st.sampled_from([0, 0, 4, 12])),
        first=st.lists(shapes, min_size=2, max_size=3),
    )
    def begin(self, sizes: list[int], spare: tuple[int, int], first: list[Any]) -> None:
        self.start(GangWorld, sizes, spare, first)

    @rule(at_most=st.integers(0, 6), in_turn=st.booleans(), dispatches=st.booleans())
    def karmada_and_the_queue_work(self, at_most: int, in_turn: bool, dispatches: bool) -> None:
        self.world.bind()
        self.world.release(at_most=at_most, in_turn=in_turn)
        self.world.schedule()
        if dispatches:
            self.world.dispatch()

    @rule(data=st.data())
    def a_release_arrives_twice(self, data: st.DataObject) -> None:
        key = self.pick(data, self.world.bindings)
        if key is not None:
            self.world.release_again(key)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            run_out(self.world)


Histories.TestCase.settings = settings_of(EXAMPLES)
TestHistories = Histories.TestCase


def test_two_that_compete_for_one_quota_are_presented_one_after_the_other() -> None:
    """Volcano Global would release a half of each, and neither would ever go."""
    world = GangWorld.of([32, 32], [32, 32])
    for number in range(2):
        world.submit(made(number, ([(2, 16, "q0", False)], None, None)))
    run_out(world)
    assert not world.given_back


def test_a_gang_that_another_workload_came_before_gives_back_at_once_and_comes_again() -> None:
    """Volcano Global released one half, then a Deployment took the quota of the other."""
    world = GangWorld.of([32, 32], [32, 32])
    world.submit(made(0, ([(2, 16, "q0", False)], None, None)))
    pass_on(world, releases=1)
    world.quotas["q0"] = 16
    world.queues_arrive()
    began = world.now
    pass_on(world, releases=0)
    assert world.given_back["hj0"] == 1
    assert world.now - began < timedelta(seconds=10)
    assert not world.bindings, "no half of it holds a quota"
    world.quotas["q0"] = 32
    world.queues_arrive()
    run_out(world)


def test_a_gang_of_which_nothing_was_released_keeps_its_turn_for_half_a_minute() -> None:
    """It holds no quota; made again at once it would only come to the same end again."""
    world = GangWorld.of([32, 32], [32])
    world.submit(made(0, ([(2, 16, "q0", False)], None, None)))
    pass_on(world, releases=0)
    world.quotas["q0"] = 16
    world.queues_arrive()
    world.submit(made(1, ([(1, 16, "q0", False)], None, None)))
    pass_on(world, releases=0)
    world.now += timedelta(seconds=20)
    pass_on(world, releases=0)
    assert world.given_back["hj0"] == 0
    world.now += timedelta(seconds=11)
    pass_on(world, releases=0)
    assert world.given_back["hj0"] == 1


def pass_on(world: GangWorld, *, releases: int) -> None:
    """Let everybody work until all is quiet, without any time passing."""
    for _ in range(20):
        world.bind()
        world.release(at_most=releases)
        releases = releases if not world.bindings else 0
        world.schedule()
        for name in list(world.hyperjobs):
            world.deliver(name)
        world.now += timedelta(milliseconds=2)
        world.time_is_up()
        for name in list(world.due):
            world.work(name)


def test_a_gang_that_can_never_be_whole_is_never_presented_and_holds_up_nobody() -> None:
    """The first needs more than its queue has; the second needs what the first half holds."""
    world = GangWorld.of([32], [24, 48])
    world.submit(made(0, ([(2, 16, "q0", False)], None, None)))
    world.submit(made(1, ([(1, 16, "q0", False)], None, None)))
    with pytest.raises(AssertionError, match=r"no end|nothing will ever wake"):
        run_out(world)
    assert list(world.hyperjobs) == ["hj0"], "the second has ended and is gone"
    assert not world.given_back
    assert world.hyperjobs["hj0"]["status"]["state"]["reason"] == "ExceedsQueue"
