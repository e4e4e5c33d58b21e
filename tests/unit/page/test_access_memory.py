"""What access remembers: bounded in number and age, asked for once, never shared."""

import asyncio

import pytest

from hyperjob_core.kube.accessreviews import Cached


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Asked:
    """Counts questions; each is answered with its own number."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, key: str) -> int:
        self.keys.append(key)
        number = len(self.keys)
        await self.open.wait()
        if key == "bad":
            raise ValueError(key)
        return number


def cached(asked, clock, *, seconds=30.0, size=10):
    return Cached(asked, seconds=seconds, size=size, clock=clock)


async def test_an_answer_is_used_until_it_is_too_old():
    asked, clock = Asked(), Clock()
    cache = cached(asked, clock)
    assert [await cache.get("a"), await cache.get("a")] == [1, 1]
    clock.now = 29.9
    assert await cache.get("a") == 1
    clock.now = 30.0
    assert await cache.get("a") == 2


async def test_the_age_counts_from_the_question():
    asked, clock = Asked(), Clock()
    asked.open.clear()
    cache = cached(asked, clock)
    waiting = asyncio.create_task(cache.get("a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    clock.now = 20.0
    asked.open.set()
    await waiting
    clock.now = 30.0
    assert await cache.get("a") == 2


async def test_those_who_ask_together_share_one_question():
    asked = Asked()
    asked.open.clear()
    cache = cached(asked, Clock())
    first = asyncio.create_task(cache.get("a"))
    others = [asyncio.create_task(cache.get("a")) for _ in range(50)]
    await asyncio.sleep(0)
    first.cancel()  # a visitor who leaves takes the answer from nobody
    asked.open.set()
    assert await asyncio.gather(*others) == [1] * 50
    with pytest.raises(asyncio.CancelledError):
        await first
    assert asked.keys == ["a"]


async def test_a_failure_is_told_and_not_remembered():
    asked = Asked()
    cache = cached(asked, Clock())
    for _ in range(2):
        with pytest.raises(ValueError, match="bad"):
            await cache.get("bad")
    assert asked.keys == ["bad", "bad"]


async def test_the_least_used_answer_goes_first():
    asked = Asked()
    cache = cached(asked, Clock(), size=2)
    for key in ("a", "b", "a", "c"):
        await cache.get(key)
    assert len(cache) == 2
    await cache.get("a")
    assert asked.keys == ["a", "b", "c"]
    await cache.get("b")
    assert asked.keys == ["a", "b", "c", "b"]


async def test_closing_ends_open_questions():
    asked = Asked()
    asked.open.clear()
    cache = cached(asked, Clock())
    waiting = asyncio.create_task(cache.get("a"))
    await asyncio.sleep(0)
    await cache.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
