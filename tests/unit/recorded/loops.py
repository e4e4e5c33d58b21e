"""Queues, rate limits, leader election and Events of the client layer, in virtual time."""

import asyncio
import random
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.backoff import Backoff
from hyperjob_core.kube.errors import from_status, make_status
from hyperjob_core.kube.events import EventRecorder
from hyperjob_core.kube.leaderelection import LeaderElector
from hyperjob_core.kube.ratelimit import DefaultLimiter, ItemBackoff, TokenBucket
from hyperjob_core.kube.resources import Resource, key_of
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_core.virtualtime import now, run
from tests.unit.recorded.clients import Counting, logged, seeded
from tests.unit.recorded.generated import some
from tests.unit.recorded.recording import Case, line

LONG: Final = re.compile("é{9,}|R{9,}")


def work_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        yield f"queue {seed}", run(_worked(random.Random(f"queue {seed}")))
    with seeded(1):
        yield "limits", run(_limited(random.Random("limits")))


async def _worked(rng: random.Random) -> list[str]:
    rows: list[str] = []
    queue: WorkQueue[str] = WorkQueue("q", limiter=DefaultLimiter(burst=3), metrics=Counting(rows))
    held: list[str] = []

    async def take() -> None:
        while True:
            item = await queue.get()
            rows.append(f"  got {item} at {asyncio.get_running_loop().time():.5g}")
            held.append(item)

    workers = [asyncio.create_task(take()) for _ in range(2)] if some(rng, 0.5) else []
    for _ in range(30):
        item = rng.choice("abcde")
        match rng.randrange(9):
            case 0:
                queue.add(item)
                rows.append(f"add {item}")
            case 1:
                queue.add(item, low=True)
                rows.append(f"add {item} low")
            case 2:
                delay = rng.choice((-1.0, 0.0, 0.5, 3.0))
                queue.add_after(item, delay)
                rows.append(f"add {item} after {delay}")
            case 3:
                queue.add_rate_limited(item)
                rows.append(f"add {item} again, failed {queue.failures(item)}")
            case 4:
                queue.forget(item)
            case 5 | 6 if held:
                queue.done(done := held.pop(0))
                rows.append(f"done {done}")
            case 7:
                await asyncio.sleep(rng.choice((0.0, 0.004, 1.0)))
            case _ if len(queue) and not workers:
                held.append(await queue.get())
                rows.append(f"get {held[-1]}")
        times = queue.unfinished_seconds(), queue.longest_running_seconds(), queue.due_in(item)
        rows.append(f"  {len(queue)} {queue.depth()} {line(times)}")
    for each in workers:
        each.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    return rows


async def _limited(rng: random.Random) -> list[str]:
    rows = []
    items: ItemBackoff[str] = ItemBackoff(base=0.5, cap=20.0)
    bucket, taker = TokenBucket(qps=2.0, burst=3), TokenBucket(qps=0.5, burst=2)
    backoff, usual = Backoff(base=1.0, cap=9.0), Backoff()
    for _ in range(40):
        await asyncio.sleep(rng.choice((0.0, 0.1, 1.0, 5.0)))
        item = rng.choice("ab")
        if some(rng, 0.15):
            items.forget(item)
            backoff.reset()
        found = items.when(item), items.failures(item), bucket.reserve(), taker.take()
        rows.append(line([item, *found, backoff.next(), usual.next()]))
    return rows


class Store:
    """One Lease, or many Events, with the errors of a script and the time that a call takes."""

    def __init__(self, rng: random.Random, rows: list[str]) -> None:
        self._rng = rng
        self._rows = rows
        self._version = 0
        self.known: dict[str, Object] = {}
        self.trouble = 0.0

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        await self._pass(f"get {name}")
        if f"{namespace}/{name}" not in self.known:
            raise from_status(make_status(404, "no", reason="NotFound"), "GET")
        return self.known[f"{namespace}/{name}"]

    async def create(self, resource: Resource, obj: Object, **_: Any) -> Object:
        await self._pass(f"create {self._said(obj)}")
        if key_of(obj) in self.known:
            raise from_status(make_status(409, "is there", reason="AlreadyExists"), "POST")
        return self._put(obj)

    async def replace(self, resource: Resource, obj: Object) -> Object:
        await self._pass(f"replace {self._said(obj)}")
        known = self.known.get(key_of(obj), {"metadata": {}})
        if known["metadata"].get("resourceVersion") != obj["metadata"].get("resourceVersion"):
            raise from_status(make_status(409, "changed", reason="Conflict"), "PUT")
        return self._put(obj)

    async def patch(self, resource: Resource, name: str, body: Object, **_: Any) -> Object:
        series = body["series"]["count"]
        await self._pass(f"patch {name.partition('.')[0]} {series}")
        if some(self._rng, 0.15):
            raise from_status(make_status(404, "no", reason="NotFound"), "PATCH")
        return body

    def _put(self, obj: Object) -> Object:
        self._version += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self._version), "uid": "u"}
        self.known[key_of(obj)] = {**obj, "metadata": metadata}
        return self.known[key_of(obj)]

    async def _pass(self, text: str) -> None:
        self._rows.append(f"{asyncio.get_running_loop().time():.6g} {text}")
        if some(self._rng, self.trouble):
            await asyncio.sleep(self._rng.choice((0.0, 1.0, 12.0)))
            self._rows.append("  fails")
            raise from_status(make_status(503, "down"), "CALL")

    @staticmethod
    def _said(obj: Object) -> str:
        if "spec" in obj:
            return line([obj["spec"], obj["metadata"].get("annotations")])
        return line({**obj, "metadata": obj["metadata"]["namespace"]})


def leader_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        with seeded(seed):
            rows: list[str] = []
            with logged(rows):
                run(_led(random.Random(f"leader {seed}"), rows))
            yield f"electors {seed}", rows


async def _led(rng: random.Random, rows: list[str]) -> None:
    store = Store(rng, rows)
    if some(rng, 0.3):
        held = {"holderIdentity": "gone", "leaseDurationSeconds": 20, "leaseTransitions": 4}
        store._put({"metadata": {"namespace": "ns", "name": "lock"}, "spec": held})

    async def candidate(name: str) -> None:
        while True:
            elector = LeaderElector(
                store, "ns", "lock", name, wall=now, metrics=Counting(rows),
                annotations=lambda: {"mode": name} if name == "b" else {},
                overdue=lambda: rows.append(f"  {name} is overdue"),
            )  # fmt: skip
            try:
                await elector.run(lambda: body(name))
                rows.append(f"  {name} has ended, leader {elector.leader}")
            except Exception as error:  # noqa: BLE001 - its text is what is recorded
                rows.append(f"  {name}: {type(error).__name__} {error}")
            await asyncio.sleep(1.0)

    async def body(name: str) -> None:
        rows.append(f"  {name} leads")
        try:
            await asyncio.sleep(rng.choice((10.0, 60.0, 500.0)))
        finally:
            if some(rng, 0.3):
                await asyncio.sleep(8.0)
            rows.append(f"  {name} stops")

    tasks = [asyncio.create_task(candidate(name)) for name in "ab"]
    for _ in range(5):
        await asyncio.sleep(rng.choice((5.0, 20.0)))
        store.trouble = rng.choice((0.0, 0.0, 0.3, 1.0))
        rows.append(f"trouble {store.trouble}")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def event_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        with seeded(seed):
            rows: list[str] = []
            with logged(rows):
                run(_recorded(random.Random(f"events {seed}"), rows))
            yield f"events {seed}", [_cut(row) for row in rows]


async def _recorded(rng: random.Random, rows: list[str]) -> None:
    store = Store(rng, rows)
    store.trouble = rng.choice((0.0, 0.1))
    instance = rng.choice(("", "pod-1"))
    recorder = EventRecorder(store, "me", instance=instance, wall=now, metrics=Counting(rows))
    task = asyncio.create_task(recorder.run())
    for _ in range(40):
        name = rng.choice("xxxy")
        space = {"namespace": "team"} if name == "x" else {}
        obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "uid": name, **space}}
        note = rng.choice(("again", "again", f"n{rng.randrange(99)}", "é" * 600))
        reason = rng.choice(("Started", "Started", "R" * 130))
        recorder.event(obj, "Normal", reason, "Start", note, related=rng.choice((None, obj)))
        await asyncio.sleep(rng.choice((0.0, 0.0, 1.0, 359.0, 360.0, 361.0)))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _cut(row: str) -> str:
    return LONG.sub(lambda found: f"{found[0][0]}*{len(found[0])}", row)
