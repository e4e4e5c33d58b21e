"""Small ones that pass the first of those that wait, in the modes without queues of ours."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_engine.model.observed import QueueAdmission
from tests.unit.controller.gangworld import GangWorld
from tests.unit.controller.histories import made

NONE, THEIRS = QueueAdmission.NONE, QueueAdmission.VOLCANO_GLOBAL
WAITS = ("Pending", "Queued")


def pass_time(world: GangWorld) -> None:
    """Let everybody work until all is quiet, then let a minute go by."""
    for _ in range(50):
        world.bind()
        world.release()
        world.schedule()
        world.dispatch()
        for name in list(world.hyperjobs):
            world.deliver(name)
        world.time_is_up()
        if not world.due:
            break
        for name in list(world.due):
            world.work(name)
    world.delete_ended()
    world.now += timedelta(minutes=1)
    world.finish_jobs()


def submit(world: GangWorld, number: int, shape: Any) -> None:
    raw = made(number, shape)
    raw["metadata"]["creationTimestamp"] = f"2026-01-02T02:{number:02}:00Z"
    world.submit(raw)


def stream(world: GangWorld, first: int, number: int) -> Iterable[None]:
    """Submit two small ones a minute, which would fill the clusters for ever."""
    for each in range(number):
        for one in range(2):
            submit(world, first + 2 * each + one, ([(1, 8, "q0", False)], None, None))
        pass_time(world)
        yield


@pytest.mark.parametrize("admission", [NONE, THEIRS])
def test_a_large_one_starts_once_those_that_pass_it_leave_room(admission: QueueAdmission) -> None:
    world = GangWorld.of([16, 16], [999, 999], admission=admission)
    for _ in stream(world, 1, 4):
        pass
    submit(world, 10, ([(2, 16, "q1", False)], None, None))
    for number, _ in enumerate(stream(world, 11, 6)):
        running = {name for name in world.hyperjobs if world.phase(name) == "Running"}
        assert running or not number, "free accelerators do not wait for the large one"
        assert "hj10" not in running
    for _ in range(6):
        pass_time(world)
        if world.phase("hj10") == "Running":
            return
    raise AssertionError(world.phase("hj10"))


@pytest.mark.parametrize("admission", [NONE, THEIRS])
def test_one_that_could_never_stand_holds_nobody_up(admission: QueueAdmission) -> None:
    world = GangWorld.of([16, 16], [999, 999], admission=admission)
    submit(world, 1, ([(3, 16, "q1", False)], None, None))
    for number, _ in enumerate(stream(world, 2, 5)):
        running = sum(world.phase(name) == "Running" for name in world.hyperjobs)
        assert running or not number
    assert world.phase("hj1") in WAITS
    assert len(world.hyperjobs) <= 5, "the small ones end one after the other"


@pytest.mark.parametrize("admission", [NONE, THEIRS])
def test_a_first_that_waits_for_room_lets_those_that_fit_pass(admission: QueueAdmission) -> None:
    world = GangWorld.of([16, 16], [999, 999], admission=admission)
    submit(world, 1, ([(2, 8, "q0", False)], None, None))
    pass_time(world)
    submit(world, 2, ([(2, 16, "q0", False)], None, None))
    submit(world, 3, ([(1, 8, "q0", False)], None, None))
    pass_time(world)
    assert (world.phase("hj2") in WAITS, world.phase("hj3")) == (True, "Running")
