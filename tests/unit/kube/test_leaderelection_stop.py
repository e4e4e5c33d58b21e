"""A leader whose body stops after a lost Lease: a cancelled caller, and an exception at the end."""

import asyncio

import pytest

from hyperjob_core.kube.leaderelection import LeadershipLostError
from tests.support.virtually import virtually
from tests.unit.kube.test_leaderelection import Stage


@virtually
async def test_a_caller_cancelled_while_the_body_stops_after_a_lost_lease_is_cancelled():
    stage = Stage()
    overdue = []

    elector, line = stage.candidate("a", overdue=lambda: overdue.append(True))
    task = asyncio.create_task(elector.run(stage.body("a", stops_in=60)))
    await asyncio.sleep(1)
    line.down_until = 1e9
    await asyncio.sleep(12)  # the Lease is lost, and the body stops
    task.cancel("first")
    await asyncio.sleep(10)  # the Lease expires
    task.cancel("last")
    with pytest.raises(asyncio.CancelledError, match="last"):
        await task
    ((_, began, ended),) = stage.terms
    assert ended - began > 60
    assert overdue == [True]


@virtually
async def test_a_body_that_fails_as_it_is_stopped_is_logged(caplog):
    stage = Stage()

    async def body():
        try:
            await asyncio.sleep(3600)
        finally:
            raise LookupError("a bug of the end")

    elector, line = stage.candidate("a")
    task = asyncio.create_task(elector.run(body))
    await asyncio.sleep(1)
    line.down_until = 1e9
    with pytest.raises(LeadershipLostError):
        await task
    (failed,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert failed.message == "The leader's work failed as it was stopped"
    assert "a bug of the end" in caplog.text
