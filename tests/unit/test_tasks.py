"""A cancellation ends a loop around a group of tasks that ends by an error at that moment."""

import asyncio

import pytest

from hyperjob_core.tasks import apart


class Slow:
    """A group that ends by an error, as soon as its slow task may end."""

    def __init__(self) -> None:
        self.ending, self.may_end = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._end_slowly())
            await asyncio.sleep(0)
            raise ValueError("of the group")

    async def _end_slowly(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.ending.set()
            await self.may_end.wait()


async def test_a_cancellation_that_meets_an_error_ends_a_loop_that_survives_errors() -> None:
    slow, runs = Slow(), 0

    async def again_and_again() -> None:
        nonlocal runs
        while runs < 2:
            runs += 1
            try:
                await apart(slow.run())
            except Exception:  # noqa: BLE001 - what such a loop does
                continue

    task = asyncio.create_task(again_and_again())
    await slow.ending.wait()
    task.cancel()
    await asyncio.sleep(0)
    slow.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert runs == 1


async def test_an_error_is_raised_as_it_is() -> None:
    slow = Slow()
    slow.may_end.set()
    with pytest.raises(ExceptionGroup) as found:
        await apart(slow.run())
    assert [str(each) for each in found.value.exceptions] == ["of the group"]
