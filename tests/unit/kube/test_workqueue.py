"""client-go's promises: nothing twice at once, nothing twice in line, nothing lost."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hyperjob_core.kube.ratelimit import TokenBucket
from hyperjob_core.kube.workqueue import PATIENCE, WorkQueue
from hyperjob_core.virtualtime import VirtualLoop
from tests.support.queues import due_in
from tests.support.virtually import virtually


def taken(queue):
    """Take one item that must be there."""
    with pytest.raises(StopIteration) as done:
        queue.get().send(None)
    return done.value.value


@virtually
async def test_items_of_low_priority_come_last_and_are_never_left_out():
    queue = WorkQueue()
    for item in ("old", "older", "both"):
        queue.add(item, low=True)
    queue.add("both")
    queue.add("new")
    queue.add("new", low=True)
    assert len(queue) == 4
    assert [taken(queue) for _ in range(3)] == ["both", "new", "old"]
    for number in range(20):
        queue.add(number)
    found = [taken(queue) for _ in range(21)]
    assert found.index("older") == PATIENCE
    queue.add("old", low=True)
    assert len(queue) == 0, "it is in work"
    queue.done("old")
    assert taken(queue) == "old"


def by_letter():
    """Return a queue in which the first letter of an item is its namespace."""
    return WorkQueue(namespace=lambda item: item[0])


@virtually
async def test_namespaces_take_turns_however_many_items_one_has():
    queue = by_letter()
    for number in range(1000):
        queue.add(f"a{number:03}")
    for item in ("b0", "b1", "c0"):
        queue.add(item)
    assert [taken(queue) for _ in range(6)] == ["a000", "b0", "c0", "a001", "b1", "a002"]


@virtually
async def test_a_namespace_with_the_fewest_items_in_work_is_next():
    queue = by_letter()
    for item in ("a0", "a1", "a2"):
        queue.add(item)
    assert [taken(queue) for _ in range(2)] == ["a0", "a1"]
    queue.add("b0")
    assert taken(queue) == "b0"
    queue.done("b0")
    queue.add("b0")
    assert taken(queue) == "b0"
    assert taken(queue) == "a2"


async def test_one_namespace_never_has_every_worker():
    queue = WorkQueue(namespace=lambda item: item[0], most=2)
    for item in ("a0", "a1", "a2"):
        queue.add(item)
    assert [await queue.get(), await queue.get()] == ["a0", "a1"]
    third = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not third.done()
    queue.add("b0")
    async with asyncio.timeout(10):
        assert await third == "b0"
    fourth = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not fourth.done()
    queue.done("a1")
    async with asyncio.timeout(10):
        assert await fourth == "a2"


@virtually
async def test_a_failing_item_waits_longer_each_time_until_it_is_forgotten():
    queue, waits = WorkQueue(), []
    for _ in range(20):
        queue.add_rate_limited("a")
        waits.append(due_in(queue, "a"))
        assert len(queue) == 0
        await asyncio.sleep(waits[-1])
        assert taken(queue) == "a"
        queue.done("a")
    assert waits[:5] == pytest.approx([0.005, 0.01, 0.02, 0.04, 0.08])
    assert waits[-2:] == pytest.approx([1000, 1000])
    queue.forget("a")
    for item in ("a", "b"):
        queue.add_rate_limited(item)
        assert due_in(queue, item) == pytest.approx(0.005)


@virtually
async def test_the_bucket_spreads_what_is_beyond_the_burst():
    bucket = TokenBucket(qps=10, burst=3)
    assert [round(bucket.reserve(), 3) for _ in range(6)] == [0, 0, 0, 0.1, 0.2, 0.3]
    await asyncio.sleep(0.3)
    assert round(bucket.reserve(), 3) == 0.1
    await asyncio.sleep(1000)
    assert [bucket.reserve() for _ in range(3)] == [0, 0, 0]
    assert bucket.reserve() > 0


async def test_a_cancelled_getter_loses_nothing():
    queue = WorkQueue()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    async with asyncio.timeout(10):
        assert await second == "a"
    with pytest.raises(asyncio.CancelledError):
        await first


@virtually
async def test_the_time_in_work_is_that_of_all_items_and_of_the_one_begun_first():
    queue = WorkQueue("jobs")
    for item in ("a", "b"):
        queue.add(item)
        taken(queue)
        await asyncio.sleep(2)
    assert (queue.unfinished_seconds(), queue.longest_running_seconds()) == (6, 4)
    queue.done("a")
    assert (queue.unfinished_seconds(), queue.longest_running_seconds()) == (2, 2)


class QueueMachine(RuleBasedStateMachine):
    """The queue beside a model so simple that it is plainly right."""

    items = st.sampled_from("abc")

    def __init__(self):
        super().__init__()
        self.loop = VirtualLoop()
        self.queue = WorkQueue()
        self.line = []  # waits, in order
        self.again = set()  # added while in work
        self.working = []
        self.later = {}  # item: earliest time
        self.said = 0

    def teardown(self):
        self.loop.close()

    def run(self, call, *arguments):
        """Call a method of the queue in the loop; return what it returns."""

        async def called():
            return call(*arguments)

        return self.loop.run_until_complete(called())

    def _add(self, item):
        if item in self.working:
            self.again.add(item)
        elif item not in self.line:
            self.line.append(item)

    @rule(item=items)
    def add(self, item):
        self.run(self.queue.add, item)
        self._add(item)

    @rule(item=items, delay=st.integers(-1, 5))
    def add_after(self, item, delay):
        self.said += 1
        if delay > 0:
            delay += self.said / 1000  # no two items are due at once
        self.run(self.queue.add_after, item, delay)
        if delay <= 0:
            self._add(item)
            return
        due = self.loop.time() + delay
        self.later[item] = min(due, self.later.get(item, due))

    @rule(seconds=st.integers(1, 6))
    def pass_time(self, seconds):
        self.loop.run_until_complete(asyncio.sleep(seconds))
        for item in sorted(self.later, key=self.later.get):
            if self.later[item] <= self.loop.time():
                del self.later[item]
                self._add(item)

    @rule()
    def get(self):
        if self.line:
            item = self.run(taken, self.queue)
            assert item == self.line.pop(0)
            self.working.append(item)

    @rule(item=items)
    def done(self, item):
        self.run(self.queue.done, item)
        if item in self.working:
            self.working.remove(item)
            if item in self.again:
                self.again.remove(item)
                self.line.append(item)

    @invariant()
    def holds(self):
        assert len(self.queue) == len(self.line)
        assert len(set(self.line)) == len(self.line)
        assert set(self.queue._processing) == set(self.working)
        assert not set(self.line) & set(self.working)
        waiting = dict.fromkeys({*self.line, *self.again}, 0)
        due = {item: at - self.loop.time() for item, at in self.later.items()} | waiting
        found = {item: self.run(due_in, self.queue, item) for item in "abc"}
        assert found == dict.fromkeys("abc") | due


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
