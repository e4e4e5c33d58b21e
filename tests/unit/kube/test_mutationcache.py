import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hyperjob_core.kube import mutationcache
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Store
from hyperjob_core.kube.mutationcache import MutationCache

Object = dict[str, Any]


class Informers:
    """An informer whose events a test hands in."""

    def __init__(self) -> None:
        self.store = Store({"index": lambda obj: [obj["metadata"]["labels"]["of"]]})
        self.handlers: list[Any] = []
        self.seen_version = 0
        self.known: Any = None

    def get(self, key: str) -> Object | None:
        return self.store.get(key)

    def by_index(self, name: str, value: str) -> list[Object]:
        return self.store.by_index(name, value)

    def transformed(self, obj: Object) -> Object:
        return obj

    def add_handler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def call(self, handler: Any, kind: EventType, old: Object | None, new: Object | None) -> None:
        handler(kind, old, new)

    def tell(self, kind: EventType, obj: Object) -> None:
        old = self.store.pop("ns/x") if kind is EventType.DELETED else self.store.put(obj)
        for handler in self.handlers:
            handler(kind, old, None if kind is EventType.DELETED else obj)
        self.seen_version = int(obj["metadata"]["resourceVersion"])


def obj(version: int, uid: str = "u", of: str = "a") -> Object:
    metadata = {"namespace": "ns", "name": "x", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata | {"labels": {"of": of}}}


@pytest.fixture
def informer() -> Informers:
    return Informers()


@pytest.fixture
def cache(informer: Informers) -> MutationCache:
    return MutationCache(
        informer,  # type: ignore[arg-type]
        index="index",
        indexer=lambda item: [item["metadata"]["labels"]["of"]],
    )


ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED
Step = Callable[[MutationCache, Informers], None]


def note(version: int, **more: str) -> Step:
    return lambda cache, _: cache.note(obj(version, **more))


def note_deleted() -> Step:
    return lambda cache, _: cache.note_deleted("ns/x", "u")


def told(kind: EventType, version: int, **more: str) -> Step:
    return lambda _, informer: informer.tell(kind, obj(version, **more))


# A wait for the end of a ghost would last for ever: no watch event would name it again.
SCENES: dict[str, tuple[list[Step], Object | None]] = {
    "a creation before its event": ([note(5)], obj(5)),
    "a creation after its event": ([note(5), told(ADDED, 5)], obj(5)),
    "an older event": ([told(ADDED, 3), note(9, of="b"), told(MODIFIED, 5)], obj(9, of="b")),
    "a newer event": ([told(ADDED, 3), note(9, of="b"), told(MODIFIED, 12)], obj(12)),
    "an answer older than the informer": ([told(ADDED, 7), note(6)], obj(7)),
    "a deletion before its event": ([told(ADDED, 3), note_deleted(), told(MODIFIED, 4)], None),
    "the next object after a deletion": (
        [told(ADDED, 3), note_deleted(), told(DELETED, 5), told(ADDED, 6, uid="next")],
        obj(6, uid="next"),
    ),
    "a successor of another uid": ([note(50), told(ADDED, 60, uid="next")], obj(60, uid="next")),
    "a change that was deleted again": ([told(ADDED, 3), note(4), told(DELETED, 5)], None),
    "an answer after the end of its object": ([told(ADDED, 3), told(DELETED, 5), note(4)], None),
    "an answer after the next object": (
        [told(ADDED, 3), told(DELETED, 5), told(ADDED, 6, uid="next"), note(4)],
        obj(6, uid="next"),
    ),
}


@pytest.mark.parametrize(("steps", "found"), SCENES.values(), ids=list(SCENES))
async def test_own_writes_count_until_the_informer_has_the_same_or_a_newer_object(
    cache: MutationCache, informer: Informers, steps: list[Step], found: Object | None
) -> None:
    for step in steps:
        step(cache, informer)
    there = [] if found is None else [found]
    assert cache.get("ns/x") == found
    for of in "ab":
        assert cache.by_index(of) == [
            each for each in there if each["metadata"]["labels"]["of"] == of
        ]
    assert cache.written("ns/") == ([] if informer.get("ns/x") == found else there)


async def test_a_strangers_object_is_noted_though_it_is_old(informer: Informers) -> None:
    cache = MutationCache(informer, selected=lambda _: False)  # type: ignore[arg-type]
    informer.seen_version = 9
    cache.note(obj(4))
    assert cache.get("ns/x") == obj(4)


async def test_what_the_informer_never_confirms_is_forgotten_in_time(
    cache: MutationCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutationcache, "LIFETIME", 0.01)
    told: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()
    cache.add_handler(lambda *change: told.put_nowait(change))
    cache.note(obj(5))
    assert await told.get() == (EventType.DELETED, obj(5), None)
    assert cache.get("ns/x") is None
    assert cache.written("ns/") == []


async def test_a_deletion_that_the_informer_never_confirms_is_forgotten_in_time(
    cache: MutationCache, informer: Informers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutationcache, "LIFETIME", 0.01)
    informer.tell(EventType.ADDED, obj(3))
    told: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()
    cache.add_handler(lambda *change: told.put_nowait(change))
    cache.note_deleted("ns/x", "u")
    assert await told.get() == (EventType.ADDED, None, obj(3))
    assert cache.get("ns/x") == obj(3)


async def test_what_the_informer_confirms_does_not_lapse(
    cache: MutationCache, informer: Informers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutationcache, "LIFETIME", 0.01)
    told: list[EventType] = []
    cache.add_handler(lambda kind, *_: told.append(kind))
    cache.note(obj(5))
    informer.tell(EventType.ADDED, obj(5))
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, later.set)
    await later.wait()
    assert told == [EventType.ADDED]


async def test_an_event_of_the_own_write_is_the_written_object_itself(
    informer: Informers, cache: MutationCache
) -> None:
    written = obj(2)
    cache.note(written)
    assert informer.known(obj(2)) is written
    assert informer.known(obj(3)) is None
    assert informer.known(obj(2, uid="other")) is None


async def test_writes_lapse_in_their_order_and_later_ones_too(
    cache: MutationCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutationcache, "LIFETIME", 0.01)
    told: asyncio.Queue[str] = asyncio.Queue()

    def lapsed(_kind: EventType, old: Object | None, _new: Object | None) -> None:
        assert old is not None
        told.put_nowait(old["metadata"]["name"])
        if old["metadata"]["name"] == "b":
            cache.note(named("c"))

    def named(name: str) -> Object:
        return {"metadata": {**obj(5)["metadata"], "name": name}}

    cache.add_handler(lapsed)
    for name in "xab":
        cache.note(named(name))
    assert [await told.get() for _ in range(4)] == ["x", "a", "b", "c"]
    cache.note(named("d"))
    assert await told.get() == "d"
    assert cache.written("ns/") == []
