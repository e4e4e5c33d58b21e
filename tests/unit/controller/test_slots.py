"""Slots of API requests: nobody waits behind another namespace's hundreds of writes."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_controller.apply.slots import FairSlots
from hyperjob_core.virtualtime import run


async def write(slots: FairSlots, namespace: str, ended: dict[str, float]) -> None:
    """Take a slot for a second; note when the namespace's last write ended."""
    async with slots.of(namespace):
        await asyncio.sleep(1)
    ended[namespace] = asyncio.get_running_loop().time()


def ends(*crowds: tuple[str, int], limit: int = 50) -> dict[str, float]:
    """Return the second at which the last write of each namespace ended, all begun in order."""

    async def scene() -> dict[str, float]:
        slots, ended = FairSlots(limit), dict[str, float]()
        async with asyncio.TaskGroup() as group:
            for namespace, count in crowds:
                for _ in range(count):
                    group.create_task(write(slots, namespace, ended))
        return ended

    return run(scene())


def test_a_few_writes_do_not_wait_for_hundreds_of_another_namespace() -> None:
    found = ends(("big", 2000), ("small", 4))
    assert found["small"] == 2, "one second until a slot is free, one for the write"
    assert found["big"] == 41, "a slot is never idle: 2004 writes of a second at 50 slots"


def test_a_single_namespace_has_every_slot() -> None:
    assert ends(("big", 500)) == {"big": 10}


def test_equal_crowds_end_together_whichever_came_first() -> None:
    found = ends(("a", 200), ("b", 200), ("c", 200), limit=12)
    assert max(found.values()) == 50
    assert min(found.values()) >= 48


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(1, 4), st.booleans()),
        max_size=30,
    ),
    st.integers(1, 4),
)
def test_no_slot_is_lost_or_held_twice_whatever_is_cancelled(
    works: list[tuple[str, int, int, bool]], limit: int
) -> None:
    held: Counter[str] = Counter()

    async def work(slots: FairSlots, namespace: str, begin: int, length: int) -> None:
        await asyncio.sleep(begin)
        async with slots.of(namespace):
            held[namespace] += 1
            assert held.total() <= limit
            try:
                await asyncio.sleep(length)
            finally:
                held[namespace] -= 1

    async def scene() -> None:
        slots = FairSlots(limit)
        tasks = [
            (asyncio.create_task(work(slots, namespace, begin, length)), stopped)
            for namespace, begin, length, stopped in works
        ]
        await asyncio.sleep(3)
        for task, stopped in tasks:
            if stopped:
                task.cancel()
        await asyncio.gather(*(task for task, _ in tasks), return_exceptions=True)
        assert not held.total()
        async with asyncio.timeout(1), asyncio.TaskGroup() as group:
            for _ in range(limit):
                group.create_task(take(slots))

    async def take(slots: FairSlots) -> None:
        async with slots.of("after"):
            await asyncio.sleep(0.5)

    run(scene())


def test_a_slot_that_comes_with_a_cancellation_goes_to_the_next() -> None:
    async def scene() -> None:
        slots = FairSlots(1)
        first, second, third = (slots.of(name) for name in "abc")
        await first.__aenter__()
        waiting = asyncio.create_task(second.__aenter__())
        last = asyncio.create_task(third.__aenter__())
        await asyncio.sleep(0)
        await first.__aexit__(None, None, None)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(last, 1)

    run(scene())


def test_a_cluster_that_does_not_answer_takes_at_most_its_own_slots() -> None:
    async def scene() -> tuple[float, list[str]]:
        slots, began = FairSlots(3, of_cluster=2), list[str]()

        async def hang(number: int) -> None:
            async with slots.of("ns", "hung"):
                began.append(f"hung {number}")
                await asyncio.sleep(900)

        async def read(number: int) -> None:
            async with slots.of("ns", "well"):
                await asyncio.sleep(1)

        hanging = [asyncio.create_task(hang(number)) for number in range(5)]
        await asyncio.gather(*(read(number) for number in range(9)))
        moment = asyncio.get_running_loop().time()
        for task in hanging[1:3]:
            task.cancel()
        await asyncio.sleep(1)
        assert began == ["hung 0", "hung 1", "hung 3"], "the next of its cluster, once one has left"
        await asyncio.gather(*hanging, return_exceptions=True)
        async with slots.of("ns", "hung"), slots.of("ns", "hung"), slots.of("ns", "well"):
            return moment, began

    moment, began = run(scene())
    assert moment == 9, "the third slot serves all others"
    assert len(began) == 4
