import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

import orjson
import pytest

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.errors import from_status
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_core.telemetry.logs import JsonFormatter
from hyperjob_core.workers import run_workers
from tests.support.counts import Counts
from tests.support.queues import due_in

LIMIT = 10.0


async def work(
    queue: WorkQueue[str],
    reconcile: Callable[[str], Awaitable[timedelta | None]],
    until: asyncio.Event,
    *,
    workers: int = 2,
) -> Counts:
    counts = Counts()
    task = asyncio.create_task(run_workers(queue, reconcile, workers=workers))
    async with asyncio.timeout(LIMIT):
        await until.wait()
    await asyncio.sleep(0)  # the pass that set it ends
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return counts


def quick() -> WorkQueue[str]:
    return WorkQueue("q", longest_wait=0.001)


def sample(counts: Counts, result: str) -> float | None:
    name = "controller_runtime_reconcile_total"
    return counts(name, controller="hyperjob", result=result)


@pytest.mark.parametrize(
    "error",
    [
        from_status({"code": 503, "message": "away"}, "GET /"),
        from_status({"code": 429, "message": "slow"}, "GET /", retry_after=0.001),
        from_status({"code": 409, "message": "conflict"}, "GET /"),
        TimeoutError(),
        ZeroDivisionError("a bug"),
    ],
)
async def test_a_failed_key_comes_back_and_others_do_not_wait(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "hyperjob_core.workers")
    done = asyncio.Event()
    seen: list[str] = []

    async def reconcile(key: str) -> timedelta | None:
        seen.append(key)
        if key == "ns/bad" and seen.count(key) < 3:
            raise error
        if {"ns/bad", "ns/good"} <= set(seen) and seen.count("ns/bad") == 3:
            done.set()
        return None

    queue = quick()
    queue.add("ns/bad")
    queue.add("ns/good")
    counts = await work(queue, reconcile, done)
    assert seen.count("ns/good") == 1
    assert sample(counts, "error") == 2
    assert sample(counts, "success") == 2
    queue.add_rate_limited("ns/bad")
    due = due_in(queue, "ns/bad")
    assert due is not None
    assert due <= 0.001, "the first wait: its failures are forgotten"


async def fail_once(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """Work on one HyperJob until a pass succeeds; its passes fail until something is logged."""
    done = asyncio.Event()

    async def reconcile(_: str) -> timedelta | None:
        if caplog.records:
            done.set()
            return None
        raise error

    queue = quick()
    queue.add("ns/hj")
    await work(queue, reconcile, done)


@pytest.mark.parametrize("error", [TimeoutError(), ZeroDivisionError("a bug")])
async def test_each_line_of_a_pass_names_its_hyperjob(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hyperjob_core.workers")
    caplog.handler.setFormatter(JsonFormatter())
    await fail_once(error, caplog)
    lines: list[Object] = [orjson.loads(line) for line in caplog.text.splitlines()]
    assert [line["hyperjob"] for line in lines] == [{"namespace": "ns", "name": "hj"}]
    assert ("stacktrace" in lines[0]) is isinstance(error, ZeroDivisionError)


@pytest.mark.parametrize(
    ("error", "level", "said"),
    [
        (TimeoutError(), logging.INFO, "time limit"),
        (from_status({"code": 409, "message": "changed"}, "GET /"), logging.WARNING, "changed"),
    ],
)
async def test_the_log_says_why_a_pass_is_tried_again(
    error: Exception, level: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hyperjob_core.workers")
    await fail_once(error, caplog)
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (level, "Reconciliation is tried again")
    assert said in record.__dict__["error"]


@pytest.mark.parametrize(
    ("again", "result"), [(timedelta(), "requeue"), (timedelta(milliseconds=1), "requeue_after")]
)
async def test_a_key_is_looked_at_again_when_it_says_so(again: timedelta, result: str) -> None:
    done = asyncio.Event()
    times = 0

    async def reconcile(_: str) -> timedelta | None:
        nonlocal times
        times += 1
        if times == 2:
            done.set()
            return None
        return again

    queue = quick()
    queue.add("ns/x")
    counts = await work(queue, reconcile, done)
    assert sample(counts, result) == 1


async def test_keys_are_worked_on_side_by_side_but_one_key_never_twice_at_once() -> None:
    done = asyncio.Event()
    both = asyncio.Barrier(2)
    active: set[str] = set()
    passes = 0

    async def reconcile(key: str) -> timedelta | None:
        nonlocal passes
        assert key not in active
        active.add(key)
        queue.add(key)
        await both.wait()
        active.discard(key)
        passes += 1
        if passes >= 6:
            done.set()
            await asyncio.sleep(0)
        return None

    queue = quick()
    queue.add("ns/x")
    queue.add("ns/y")
    task = asyncio.create_task(run_workers(queue, reconcile, workers=4))
    async with asyncio.timeout(LIMIT):
        await done.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
