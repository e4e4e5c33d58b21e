"""When the queue engine plays its rounds, and which passes a round wakes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

from hyperjob_controller.admission.engine import Admission
from hyperjob_controller.caches import Caches
from hyperjob_core.api.quantity import NANO
from hyperjob_core.kube.resources import HYPERJOBS, QUEUES
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_engine.model.observed import Cluster, Observed, QueueAdmission
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.reasons.reason import Reason
from hyperjob_queueing.read import template_of
from hyperjob_queueing.state import Settings
from hyperjob_queueing.stopped import EndingPods, from_text, to_text
from tests.support.apiserver import ApiServer
from tests.support.walls import no_wall
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    observed,
)


class Free:
    """One cluster with so many free GPUs, or none."""

    def __init__(self, gpus: int = 0) -> None:
        self.gpus = gpus
        self.rounds = 0

    def clusters(self, *, now: datetime) -> Sequence[Cluster]:
        self.rounds += 1
        return (cluster("a", self.gpus, total=16),) if self.gpus else ()

    def changes_in(self, *, now: datetime) -> timedelta | None:
        return None


def engine(
    caches: Caches | None = None,
    *,
    queue: WorkQueue[str] | None = None,
    capacity: Free | None = None,
    mode: QueueAdmission = QueueAdmission.BUILTIN,
    messages_per_second: float = 50,
) -> Admission:
    """Return a queue engine; without caches it makes no call."""
    return Admission(
        caches or Caches(None),  # type: ignore[arg-type]
        WorkQueue() if queue is None else queue,
        Settings(lag=timedelta(seconds=30)),
        capacity or Free(),
        wall=no_wall(),
        mode=lambda: mode,
        now=lambda: NOW,
        messages_per_second=messages_per_second,
    )


async def test_nobody_is_told_that_queues_are_missing_before_a_round_was_played() -> None:
    """Queues that are listed are known with the first round only, which waits for more changes."""
    caches = Caches(None)  # type: ignore[arg-type]  # no call is made
    admission = engine(caches)
    seen = observed(admission=QueueAdmission.BUILTIN, clusters=(cluster("a"),))
    running = asyncio.create_task(admission.run(lambda _: None))
    try:
        caches.queues.synced.set()
        while not admission.state.known:
            admission.update(seen)
            assert admission.verdict(seen.hyperjob.key).undecided
            await asyncio.sleep(0)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def leading(
    server: ApiServer,
    capacity: Free,
    *,
    queue: WorkQueue[str] | None = None,
    messages_per_second: float = 50,
) -> AsyncIterator[tuple[Admission, WorkQueue[str]]]:
    """Run the queue engine over what `server` holds; it learns of each HyperJob as `seen` says."""
    caches = Caches(server.kube)
    queue = WorkQueue() if queue is None else queue
    admission = engine(
        caches, queue=queue, capacity=capacity, messages_per_second=messages_per_second
    )
    informers = (caches.hyperjobs, caches.queues)
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    try:
        async with asyncio.timeout(30):
            for informer in informers:
                await informer.synced.wait()

        def learn(key: str) -> None:
            admission.update(seen(server.get(HYPERJOBS, key) or {}))

        tasks.append(asyncio.create_task(admission.run(learn)))
        yield admission, queue
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def seen(raw: Object) -> Observed:
    """Observe a HyperJob; the one of the name `runs` has its sub-job in a member."""
    runs = raw["metadata"]["name"] == "runs"
    return observed(
        raw,
        *([job("runs-trainer-0", phase="Running", gpus=8)] if runs else []),
        admission=QueueAdmission.BUILTIN,
    )


async def test_a_state_that_begins_anew_counts_the_pods_of_stopped_sub_jobs_on() -> None:
    server = ApiServer()
    server.put(QUEUES, {"metadata": {"name": "default"}, "status": {"state": "Open"}})
    async with leading(server, Free(8)) as (admission, _):
        pods = EndingPods(NOW + timedelta(hours=1), "default", {GPU: 8}, "ns/x", "x-0", "a")
        admission.restore(to_text([pods]))
        admission.reset()
        assert from_text(admission.record()) == [pods]
        admission.wake()
        async with asyncio.timeout(30):
            while not admission.state.known:  # noqa: ASYNC110 - the engine sends no event
                await asyncio.sleep(0)
        assert admission.state.usage.used("default") == {GPU: 8}


async def test_a_new_leader_knows_what_queues_share_while_no_hyperjob_waits() -> None:
    server = ApiServer()
    server.put(QUEUES, {"metadata": {"name": "default"}, "status": {"state": "Open"}})
    async with leading(server, Free(8)) as (admission, _), asyncio.timeout(30):
        while not admission.state.shares.total:  # noqa: ASYNC110 - the engine sends no event
            await asyncio.sleep(0)
        assert admission.state.usage.tree.entitled(GPU)["default"] == 16 * NANO


def one(name: str) -> Object:
    return hyperjob(group(replicas=1, gpus=8), name=name)


async def test_a_new_leader_counts_every_share_before_it_admits_anything() -> None:
    """Room is no limit here: the capability of the queue is, and a HyperJob that runs uses it."""
    server = ApiServer()
    capability = {"capability": {GPU: "8"}}
    server.put(QUEUES, {"metadata": {"name": "default"}, "spec": capability})
    for name in ("runs", "waits"):
        server.put(HYPERJOBS, one(name))
    async with leading(server, Free(8)) as (admission, queue), asyncio.timeout(30):
        admission.update(seen(one("waits")))  # its pass comes first
        while admission.verdict("default/waits").undecided:
            queue.done(await queue.get())
        verdict = admission.verdict("default/waits")
    assert not verdict.admitted
    assert verdict.reason is Reason.QUEUE_LIMIT_REACHED


async def test_a_new_leader_learns_what_completed_hyperjobs_took() -> None:
    def ended(number: int, hours: float, phase: str = "Completed") -> Object:
        times = {"productive": round(hours * 3_600_000)}
        status = {
            "state": {"phase": phase, "lastTransitionTime": f"2026-01-02T0{number}:00:00Z"},
            "goodput": {"milliseconds": times},
        }
        made = hyperjob(group(replicas=1, gpus=8), name=f"j{number}", status=status)
        return {**made, "metadata": {**made["metadata"], "uid": f"u{number}"}}

    template = template_of(parse_hyperjob(ended(0, 1)))
    server = ApiServer()
    server.put(QUEUES, {"metadata": {"name": "default"}})
    for each in (ended(1, 2), ended(2, 5), ended(3, 9, "Failed")):
        server.put(HYPERJOBS, each)
    async with leading(server, Free(8)) as (admission, _):
        expected = admission.state.past.expect(template, "default", timedelta())
        assert expected == (timedelta(hours=5), "2 earlier runs of its template")
        admission.reset()
        assert admission.state.past.expect(template, "default", timedelta()) == expected


async def test_other_tasks_run_while_a_new_leader_learns_of_many_hyperjobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caches = Caches(None)  # type: ignore[arg-type]  # no call is made
    raws = [one(f"j{number}") for number in range(120)]
    monkeypatch.setattr(caches.hyperjobs, "items", lambda: raws)
    admission = engine(caches)
    learned, turns = list[str](), list[int]()

    async def other() -> None:
        while len(learned) < len(raws):
            turns.append(len(learned))
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await admission._learn_all(learned.append)
    await task
    assert turns == [50, 100]


@pytest.mark.parametrize("mode", QueueAdmission)
def test_another_component_that_queues_bindings_too_is_told_once_beside_our_gate(
    caplog: pytest.LogCaptureFixture, mode: QueueAdmission
) -> None:
    admission = engine(mode=mode)
    free, held = binding(), binding(suspension={"scheduling": True})
    for each in (free, held, held):
        admission.update(observed(job(), each, admission=mode))
    said = [each for each in caplog.records if "suspends bindings too" in each.getMessage()]
    assert len(said) == (mode is QueueAdmission.BUILTIN)


async def test_that_queues_are_missing_is_told_when_they_were_waited_for_long_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hyperjob_controller.admission.engine._PATIENCE", 0.05)
    queue = WorkQueue[str]()
    admission = engine(queue=queue)
    admission.update(observed(admission=QueueAdmission.BUILTIN, clusters=(cluster("a"),)))
    assert admission.verdict("default/hj").undecided
    waiting = asyncio.create_task(admission._when_known())
    async with asyncio.timeout(30):
        assert await queue.get() == "default/hj"
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    verdict = admission.verdict("default/hj")
    assert not verdict.undecided
    assert "queues are not known yet" in verdict.message


async def test_a_stale_message_is_written_anew_each_time() -> None:
    server, capacity = ApiServer(), Free(4)
    server.put(QUEUES, {"metadata": {"name": "default"}})
    server.put(HYPERJOBS, one("waits"))
    messages = []
    async with leading(server, capacity) as (admission, queue), asyncio.timeout(30):
        for free in (3, 2, 1):
            key = await queue.get()
            admission.update(seen(one("waits")))
            verdict = admission.verdict(key)
            messages.append(verdict.message)
            admission.message_written(key, verdict)
            queue.done(key)
            capacity.gpus = free
            admission.wake()
    lacking = [message.rpartition(": ")[2] for message in messages]
    assert lacking == [f"a lacks {8 - free} {GPU} ({free} free)" for free in (4, 3, 2)]


class Noting(WorkQueue[str]):
    """A workqueue that notes for how long it was to wait, and adds nothing then."""

    def __init__(self) -> None:
        super().__init__()
        self.delays: list[float] = []

    def add_after(self, item: str, delay: float) -> None:
        self.delays.append(delay)


async def test_rounds_that_find_a_planned_refresh_put_no_other_off() -> None:
    """Five messages are stale, one is written in a second, and ten rounds find all of them."""
    server, capacity, keys = ApiServer(), Free(4), [f"default/w{n}" for n in range(5)]
    noting = Noting()
    server.put(QUEUES, {"metadata": {"name": "default"}})
    for key in keys:
        server.put(HYPERJOBS, one(key.rpartition("/")[2]))
    async with leading(server, capacity, queue=noting, messages_per_second=1) as (admission, queue):
        for _ in keys:
            key = await queue.get()
            admission.message_written(key, admission.verdict(key))
        for number in range(10):
            played, capacity.gpus = capacity.rounds, number % 3 + 1
            admission.wake()
            async with asyncio.timeout(30):
                while capacity.rounds == played:  # noqa: ASYNC110 - the engine sends no event
                    await asyncio.sleep(0)
    assert len(noting.delays) >= len(keys)
    assert max(noting.delays) <= len(keys) + 1


async def test_a_queue_that_opens_is_looked_at_again() -> None:
    server = ApiServer()
    server.put(QUEUES, {"metadata": {"name": "default"}, "status": {"state": "Closed"}})
    server.put(HYPERJOBS, one("waits"))
    async with leading(server, Free(8)) as (admission, queue), asyncio.timeout(60):
        while admission.verdict("default/waits").reason is not Reason.QUEUE_NOT_OPEN:
            queue.done(await queue.get())
        server.put(QUEUES, {"metadata": {"name": "default"}, "status": {"state": "Open"}})
        while not admission.verdict("default/waits").admitted:
            queue.done(await queue.get())
