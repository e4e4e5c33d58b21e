"""Virtual time passes only while everybody waits."""

import asyncio
import time

import pytest

from hyperjob_core.virtualtime import START, StandstillError, now, run


def test_a_day_of_waiting_takes_no_time() -> None:
    async def wait() -> tuple[float, object]:
        await asyncio.sleep(86400)
        return asyncio.get_running_loop().time(), now() - START

    began = time.monotonic()
    passed, on_the_wall = run(wait())
    assert passed == pytest.approx(86400)
    assert str(on_the_wall) == "1 day, 0:00:00"
    assert time.monotonic() - began < 60


def test_timers_come_in_their_order() -> None:
    async def wait() -> list[int]:
        found: list[int] = []
        loop = asyncio.get_running_loop()
        for seconds in (30, 10, 20):
            loop.call_later(seconds, found.append, seconds)
        await asyncio.sleep(40)
        return found

    assert run(wait()) == [10, 20, 30]


def test_waiting_for_nothing_is_an_error() -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(StandstillError):
        run(wait())
