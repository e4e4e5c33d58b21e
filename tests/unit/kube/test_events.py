"""Events reach the server once for each thing that happened, and never hold anybody up."""

import asyncio
import copy
import gc
from collections import Counter
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from hyperjob_core.kube import errors, events
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.events import EventRecorder
from hyperjob_core.kube.resources import EVENTS
from tests.support.counts import Counts
from tests.support.virtually import virtually

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
JOB = {
    "apiVersion": "training.volcano.sh/v1alpha1",
    "kind": "HyperJob",
    "metadata": {"name": "llm", "namespace": "ml", "uid": "u1", "resourceVersion": "7"},
    "spec": {},
}


class Server:
    def __init__(self):
        self.events = {}
        self.writes = []
        self.fails = []
        self.slow = 0.0

    async def create(self, resource, obj):
        await self._arrive("create", obj)
        name = obj["metadata"]["name"]
        if name in self.events:
            raise errors.AlreadyExists({"code": 409})
        self.events[name] = copy.deepcopy(obj)
        return obj

    async def patch(self, resource, name, body, *, kind, namespace=None):
        await self._arrive("patch", body)
        assert kind is PatchType.MERGE
        assert resource is EVENTS
        if name not in self.events:
            raise errors.NotFound({"code": 404})
        self.events[name] |= copy.deepcopy(body)
        return self.events[name]

    async def _arrive(self, verb, body):
        self.writes.append((verb, copy.deepcopy(body)))
        await asyncio.sleep(self.slow)
        if self.fails:
            raise self.fails.pop(0)


def dropped(counts):
    """Return the Events that were dropped since then, by reason."""
    name = "hyperjob_events_dropped_total"
    found = {reason: counts(name, reason=reason) for reason in ("full", "spam", "failed")}
    return {reason: count for reason, count in found.items() if count}


@asynccontextmanager
async def recording(server, **options):
    recorder = EventRecorder(server, "hyperjob-controller", instance="pod-1", **options)
    task = asyncio.create_task(recorder.run())
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(events, "utc_now", lambda: NOW)
            yield recorder
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def happened(recorder, obj=JOB, note="two of two sub-jobs run"):
    recorder.event(obj, "Normal", "Running", "Aggregate", note)


@virtually
async def test_an_event_carries_all_that_the_api_asks_for():
    server = Server()
    async with recording(server) as recorder:
        recorder.event(JOB, "Warning", "Unplaced", "Place", "no room")
        await asyncio.sleep(1)
    ((name, event),) = server.events.items()
    assert name.startswith("llm.")
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "ml"},
        "eventTime": "2026-03-01T12:00:00.000000Z",
        "reportingController": "hyperjob-controller",
        "reportingInstance": "pod-1",
        "type": "Warning",
        "reason": "Unplaced",
        "action": "Place",
        "note": "no room",
        "regarding": {
            "apiVersion": "training.volcano.sh/v1alpha1",
            "kind": "HyperJob",
            "namespace": "ml",
            "name": "llm",
            "uid": "u1",
            "resourceVersion": "7",
        },
    }


@virtually
async def test_an_object_without_namespace_has_its_events_in_default():
    server = Server()
    async with recording(server) as recorder:
        happened(recorder, {"kind": "Queue", "metadata": {"name": "q"}})
        await asyncio.sleep(1)
    (event,) = server.events.values()
    assert event["metadata"]["namespace"] == "default"
    assert event["regarding"] == {"kind": "Queue", "name": "q"}


@virtually
async def test_the_same_again_is_a_series_on_the_first():
    server = Server()
    async with recording(server) as recorder:
        for _ in range(5):
            happened(recorder)
            await asyncio.sleep(60)
        happened(recorder, note="another note")
        await asyncio.sleep(1)
    first, second = server.events.values()
    assert first["series"] == {"count": 5, "lastObservedTime": "2026-03-01T12:00:00.000000Z"}
    assert "series" not in second
    assert [verb for verb, _ in server.writes] == ["create", *["patch"] * 4, "create"]


@virtually
async def test_a_burst_while_the_server_is_slow_is_one_write():
    server = Server()
    async with recording(server) as recorder:
        server.slow = 1
        for _ in range(100):
            happened(recorder)
        await asyncio.sleep(10)
    (event,) = server.events.values()
    assert event["series"]["count"] == 100
    assert len(server.writes) == 1


@virtually
async def test_after_six_minutes_it_is_news_again():
    server = Server()
    async with recording(server) as recorder:
        happened(recorder)
        await asyncio.sleep(361)
        happened(recorder)
        await asyncio.sleep(1)
    assert len(server.events) == 2


@virtually
async def test_a_series_whose_event_was_swept_away_begins_anew():
    server = Server()
    async with recording(server) as recorder:
        happened(recorder)
        await asyncio.sleep(1)
        server.events.clear()
        happened(recorder)
        await asyncio.sleep(1)
    (event,) = server.events.values()
    assert event["series"]["count"] == 2


@virtually
async def test_what_the_server_refuses_is_counted_and_holds_nothing_up():
    server, counts = Server(), Counts()
    server.fails = [errors.Forbidden({"code": 403}), errors.unreachable("POST", "down")]

    async with recording(server) as recorder:
        for note in ("one", "two", "three"):
            happened(recorder, note=note)
        await asyncio.sleep(1)
    assert [event["note"] for event in server.events.values()] == ["three"]
    assert dropped(counts) == {"failed": 2}


@virtually
async def test_one_object_cannot_flood_the_others():
    server, counts = Server(), Counts()
    async with recording(server) as recorder:
        for count in range(100):
            happened(recorder, note=f"note {count}")
        happened(recorder, {**JOB, "metadata": {"name": "other", "namespace": "ml"}})
        await asyncio.sleep(1)
        await asyncio.sleep(300)
        happened(recorder, note="after a while")
        await asyncio.sleep(1)
    names = Counter(event["regarding"]["name"] for event in server.events.values())
    assert names == {"llm": 26, "other": 1}
    assert dropped(counts) == {"spam": 75}


@virtually
async def test_what_is_remembered_is_bounded():
    server = Server()
    async with recording(server) as recorder:
        for number in range(4200):
            happened(recorder, {"kind": "Job", "metadata": {"name": f"j{number}"}})
            if number % 500 == 0:
                await asyncio.sleep(0.1)
        for number in (0, 4199):
            happened(recorder, {"kind": "Job", "metadata": {"name": f"j{number}"}})
        await asyncio.sleep(1)
    counts = Counter(event["regarding"]["name"] for event in server.events.values())
    assert (counts["j0"], counts["j4199"]) == (2, 1)


@virtually
async def test_what_does_not_fit_is_dropped_and_counted():
    server, counts = Server(), Counts()
    recorder = EventRecorder(server, "hyperjob-controller")
    for number in range(1200):
        happened(recorder, {"kind": "Job", "metadata": {"name": f"j{number}"}})
    assert dropped(counts) == {"full": 200}


@virtually
async def test_what_waits_at_the_end_is_written_still():
    server = Server()
    async with recording(server) as recorder:
        await asyncio.sleep(1)
        happened(recorder)
    assert len(server.events) == 1


@virtually
async def test_the_end_does_not_wait_for_a_dead_server():
    server, counts = Server(), Counts()
    async with recording(server) as recorder:
        server.slow = 3600
        happened(recorder)
        happened(recorder, note="another")
        await asyncio.sleep(1)
        before = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - before <= 2
    assert dropped(counts) == {"failed": 2}


@virtually
async def test_a_long_note_is_cut_at_a_whole_character():
    server = Server()
    async with recording(server) as recorder:
        happened(recorder, note="ü" * 2000)
        happened(recorder, {"kind": "Job", "metadata": {"name": "n" * 253}})
        await asyncio.sleep(1)
    long, named = server.events.values()
    assert len(long["note"].encode()) <= 1024
    assert long["note"].endswith("ü…")
    assert len(named["metadata"]["name"]) == 253


@virtually
async def test_a_series_that_goes_on_is_remembered_longer_than_those_begun_after_it():
    server = Server()
    async with recording(server) as recorder:

        async def again(name):
            happened(recorder, {"kind": "Job", "metadata": {"name": name}})
            await asyncio.sleep(0.01)

        for number in range(4096):
            await again(f"j{number}")
        for name in ("j0", "new", "j0", "j1"):
            await again(name)
    counts = Counter(event["regarding"]["name"] for event in server.events.values())
    assert (counts["j0"], counts["j1"]) == (1, 2)


def dicts(value, seen=None):
    """Count the plain dicts that an object of the recorder refers to."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, type):
        return 0
    seen.add(id(value))
    inner = sum(dicts(each, seen) for each in gc.get_referents(value))
    return inner + (type(value) is dict)


@virtually
async def test_a_written_event_leaves_no_body_in_memory():
    counts = []
    async with recording(Server()) as recorder:
        for number in range(100):
            happened(recorder, {"kind": "Job", "metadata": {"name": f"j{number}"}})
            await asyncio.sleep(1)
            counts.append(dicts(recorder._series))
    assert counts[-1] == counts[0]


@virtually
async def test_a_repetition_while_its_event_is_being_written_is_in_the_series():
    server = Server()
    server.slow = 1.0

    async with recording(server) as recorder:
        happened(recorder)
        await asyncio.sleep(0.5)
        happened(recorder)
        await asyncio.sleep(3)
    assert [verb for verb, _ in server.writes] == ["create", "patch"]
    (event,) = server.events.values()
    assert event["series"]["count"] == 2
