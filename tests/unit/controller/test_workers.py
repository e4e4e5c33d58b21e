import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from hyperjob_controller.memory.refusals import Refusals
from hyperjob_controller.wake.workers import run_workers
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.errors import from_status
from hyperjob_core.kube.ratelimit import DefaultLimiter
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_core.telemetry.logs import JsonFormatter
from hyperjob_core.telemetry.metrics import Metrics

LIMIT = 10.0


async def work(
    queue: WorkQueue[str],
    reconcile: Callable[[str], Awaitable[timedelta | None]],
    until: asyncio.Event,
    *,
    workers: int = 2,
) -> Metrics:
    metrics = Metrics()
    task = asyncio.create_task(run_workers(queue, reconcile, workers=workers, metrics=metrics))
    async with asyncio.timeout(LIMIT):
        await until.wait()
    await asyncio.sleep(0)  # the pass that set it ends
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return metrics


def quick() -> WorkQueue[str]:
    return WorkQueue("q", limiter=DefaultLimiter(base=0.001, qps=1000))


def sample(metrics: Metrics, result: str) -> float | None:
    return metrics.registry.get_sample_value(
        "controller_runtime_reconcile_total", {"controller": "hyperjob", "result": result}
    )


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
    caplog.set_level(logging.CRITICAL, "hyperjob_controller.wake.workers")
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
    metrics = await work(queue, reconcile, done)
    assert seen.count("ns/good") == 1
    assert sample(metrics, "error") == 2
    assert sample(metrics, "success") == 2
    assert queue.failures("ns/bad") == 0


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
    caplog.set_level(logging.INFO, "hyperjob_controller.wake.workers")
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
    caplog.set_level(logging.INFO, "hyperjob_controller.wake.workers")
    await fail_once(error, caplog)
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (level, "Reconciliation is tried again")
    assert said in record.__dict__["error"]


@pytest.mark.parametrize(
    ("again", "result"),
    [(timedelta(), "requeue"), (timedelta(milliseconds=1), "requeue_after")],
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
    metrics = await work(queue, reconcile, done)
    assert sample(metrics, result) == 1


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
    metrics = Metrics()
    task = asyncio.create_task(run_workers(queue, reconcile, workers=4, metrics=metrics))
    async with asyncio.timeout(LIMIT):
        await done.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def refused(refusals: Refusals, generation: int = 1) -> float:
    refusals.note(
        "ns/x", "j", uid="u", generation=generation, reason="Invalid", message="m", now=NOW
    )
    found = refusals.of("ns/x", uid="u", generation=generation)["j"]
    return (found.retry_at - NOW).total_seconds()


def test_each_refusal_waits_longer_up_to_a_limit() -> None:
    refusals = Refusals()
    assert [refused(refusals) for _ in range(8)] == [5, 10, 20, 40, 80, 160, 300, 300]


def test_a_changed_spec_or_another_hyperjob_starts_afresh() -> None:
    refusals = Refusals()
    refused(refusals)
    assert refusals.of("ns/x", uid="u", generation=2) == {}
    assert refused(refusals, 2) == 5
    assert refusals.of("ns/x", uid="other", generation=2) == {}


def test_an_acceptance_is_remembered_as_such() -> None:
    refusals = Refusals()
    refused(refusals)
    refusals.clear("ns/x", "j")
    assert refusals.of("ns/x", uid="u", generation=1) == {}
    assert refused(refusals) == 5
    refusals.forget("ns/x")
    assert refused(refusals) == 5


def unjudged(refusals: Refusals, key: str, *, after: float) -> None:
    refusals.note_outage(
        key,
        "j",
        uid="u",
        generation=1,
        reason="InternalError",
        message="failed calling webhook",
        now=NOW + timedelta(seconds=after),
    )


def waits(refusals: Refusals, key: str) -> float:
    found = refusals.of(key, uid="u", generation=1)["j"]
    return (found.retry_at - NOW).total_seconds()


def test_all_hyperjobs_share_the_short_wait_of_an_outage_and_one_of_them_tries_first() -> None:
    refusals = Refusals()
    for key in ("ns/first", "ns/second", "ns/third"):
        unjudged(refusals, key, after=0)
    assert waits(refusals, "ns/first") == 1
    assert waits(refusals, "ns/second") == waits(refusals, "ns/third") == 2


def test_a_try_that_fails_extends_the_outage_for_all_up_to_ten_seconds() -> None:
    refusals, tries = Refusals(), []
    unjudged(refusals, "ns/other", after=0)
    for _ in range(6):
        due = waits(refusals, "ns/other")
        unjudged(refusals, "ns/probe", after=due)
        tries.append(waits(refusals, "ns/probe") - due)
        assert waits(refusals, "ns/other") == waits(refusals, "ns/probe") + 1
    assert tries == [2, 4, 8, 10, 10, 10]


def test_an_outage_long_after_another_begins_with_the_shortest_wait() -> None:
    refusals = Refusals()
    for after in (0, 1, 3):
        unjudged(refusals, "ns/x", after=after)
    assert waits(refusals, "ns/x") == 7
    unjudged(refusals, "ns/x", after=600)
    assert waits(refusals, "ns/x") == 601


def test_a_sub_job_that_is_judged_after_an_outage_has_the_back_off_of_its_refusal() -> None:
    refusals = Refusals()
    unjudged(refusals, "ns/x", after=0)
    assert refused(refusals) == 5
    refusals.forget_all()
    assert refusals.of("ns/x", uid="u", generation=1) == {}
