"""Stops of HyperJobs whose pods end late: no two generations run together, and no step is lost."""

import asyncio
import logging
import os
import random
from typing import Any

import pytest

from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.virtualtime import run
from hyperjob_engine.placement.ground import Ground
from tests.unit.controller.slowends import SlowEnds
from tests.unit.controller.wholeworld import Logged

pytestmark = pytest.mark.long

STOPS = int(os.environ.get("HYPERJOB_HISTORIES", "20"))


def play(world: SlowEnds, stops: int, *, kills: bool = False) -> None:
    """Play stops in virtual time; no callback and no part of the controller may raise."""
    raised: list[Any] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: raised.append(context))
        await world.play(stops, kills=kills)

    logged, logger, before = Logged(), logging.getLogger("hyperjob_controller"), random.getstate()
    logger.addHandler(logged)
    random.seed(world.rng.random())
    try:
        run(main())
    finally:
        random.setstate(before)
        logger.removeHandler(logged)
    assert not raised
    assert not logged.records


@pytest.mark.parametrize("kills", [False, True], ids=["one controller", "killed at random"])
def test_no_two_generations_run_together_and_the_last_saved_step_is_resumed(kills: bool) -> None:
    world = SlowEnds(29)
    play(world, STOPS, kills=kills)
    assert not world.together()
    again = [each for each in world.generations if each.saved is not None]
    assert len(again) >= STOPS // 2
    assert [each for each in again if not each.unread and each.given != each.saved] == []


def test_after_a_bug_of_placement_by_nodes_all_hyperjobs_are_placed_by_sums(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Ground, "most", fails)
    world = SlowEnds(31, access=MemberAccess.NODES)
    with caplog.at_level(logging.ERROR, "hyperjob_controller"):
        run(world.play(3))
    words = [record.getMessage() for record in caplog.records]
    assert sum("Placement by nodes has failed" in each for each in words) == 1
    assert 1 <= sum("has set it aside" in each for each in words) <= 6
    assert world.stops >= 3


@pytest.mark.parametrize("access", [MemberAccess.PODS, MemberAccess.NODES, MemberAccess.LOGS])
def test_a_member_that_shows_its_changes_a_minute_late_delays_only_its_own_sub_jobs(
    access: MemberAccess,
) -> None:
    world = SlowEnds(31, access=access, late={"b": 60.0})
    play(world, STOPS)
    assert not world.together()
    assert world.delays("a") < 15.0
    assert world.delays("b") > 15.0
    if access is not MemberAccess.PODS:  # without the heartbeats of nodes, later events are rare
        assert world.bare_delays("a") < 20.0
