"""The bound on the memory of unjudged bodies, and which one gives way."""

import asyncio
from unittest.mock import Mock

import pytest
from aiohttp import StreamReader

from hyperjob_webhook.connections import MEMORY_BYTES, Bodies, Body, BodyTooLarge
from hyperjob_webhook.review import MAX_BODY_BYTES


class Sender:
    """A body that is sent piece by piece and read by a task."""

    def __init__(self, bodies, peer):
        self.content = StreamReader(Mock(), 2**16, loop=asyncio.get_running_loop())
        self.gave_way = False
        self.task = asyncio.create_task(self._read(bodies, peer))

    async def _read(self, bodies, peer):
        deadline = asyncio.timeout(60)
        body = Body(peer, deadline)
        try:
            async with deadline:
                with bodies.taken(body):
                    return await bodies.read(body, self.content)
        except TimeoutError:
            self.gave_way = body.gave_way
            return None

    async def send(self, size):
        self.content.feed_data(b"x" * size)
        for _ in range(5):
            await asyncio.sleep(0)


async def started(bodies, *peers):
    senders = [Sender(bodies, peer) for peer in peers]
    await asyncio.sleep(0)
    return senders


async def ended(senders):
    for sender in senders:
        sender.content.feed_eof()
    return [len(await sender.task or b"") for sender in senders]


async def test_the_oldest_body_of_the_largest_peer_gives_way_to_the_memory_of_another():
    senders = await started(Bodies(at_a_time=9, memory_bytes=1000), "a", "b", "b", "c")
    for sender in senders[:3]:
        await sender.send(300)
    await senders[3].send(200)
    assert [sender.gave_way for sender in senders] == [False, True, False, False]
    assert await ended(senders) == [300, 0, 300, 200]


async def test_a_body_gives_way_to_itself_where_its_peer_has_the_most():
    bodies = Bodies(at_a_time=9, memory_bytes=1000)
    senders = await started(bodies, "a", "b")
    await senders[0].send(100)
    await senders[1].send(901)
    assert [sender.gave_way for sender in senders] == [False, True]
    (third,) = await started(bodies, "b")
    await third.send(900)
    assert await ended([senders[0], third]) == [100, 900]


async def test_a_piece_that_arrives_as_its_body_gives_way_takes_no_memory():
    bodies = Bodies(at_a_time=9, memory_bytes=1000)
    large, small = await started(bodies, "a", "b")
    await large.send(600)
    small.content.feed_data(b"x" * 450)
    await large.send(500)
    assert [large.gave_way, small.gave_way] == [True, False]
    (third,) = await started(bodies, "c")
    await third.send(550)
    assert await ended([small, third]) == [450, 550]


async def test_the_oldest_body_of_the_peer_with_the_most_gives_way_to_one_more():
    bodies = Bodies(at_a_time=3)
    senders = await started(bodies, "a", "b", "b")
    senders += await started(bodies, "a")
    await senders[0].send(1)
    assert [sender.gave_way for sender in senders] == [False, True, False, False]
    assert await ended(senders) == [1, 0, 0, 0]


async def test_a_body_larger_than_any_review_is_given_up():
    (sender,) = await started(Bodies(at_a_time=1), "a")
    await sender.send(MAX_BODY_BYTES + 1)
    with pytest.raises(BodyTooLarge):
        await sender.task


async def test_a_body_may_be_as_large_as_a_review_and_the_memory_as_eight_of_them():
    assert MEMORY_BYTES == 8 * MAX_BODY_BYTES == 56 * 2**20
    (sender,) = await started(Bodies(at_a_time=1), "a")
    await sender.send(MAX_BODY_BYTES)
    assert await ended([sender]) == [MAX_BODY_BYTES]


async def test_the_memory_may_be_full_to_its_last_byte():
    senders = await started(Bodies(at_a_time=2, memory_bytes=1000), "a", "b")
    for sender in senders:
        await sender.send(500)
    assert [sender.gave_way for sender in senders] == [False, False]
    await senders[1].send(1)
    assert [sender.gave_way for sender in senders] == [False, True]
    assert await ended(senders) == [500, 0]


async def test_a_body_that_was_released_frees_its_memory_once():
    bodies = Bodies(at_a_time=9, memory_bytes=1000)
    deadline = asyncio.timeout(None)
    async with deadline:
        body = Body("a", deadline)
        with bodies.taken(body):
            content = StreamReader(Mock(), 2**16, loop=asyncio.get_running_loop())
            content.feed_data(b"x" * 900)
            content.feed_eof()
            assert len(await bodies.read(body, content)) == 900
            bodies.release(body)
    (sender,) = await started(bodies, "b")
    await sender.send(1000)
    assert await ended([sender]) == [1000]
    (sender,) = await started(bodies, "b")
    await sender.send(1001)
    assert await ended([sender]) == [0]
