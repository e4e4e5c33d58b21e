import asyncio
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


async def test_a_creation_is_seen_before_the_informer_has_it(
    cache: MutationCache, informer: Informers
) -> None:
    cache.note(obj(5))
    assert cache.get("ns/x") == obj(5)
    assert cache.by_index("a") == [obj(5)]
    assert cache.written("ns/") == [obj(5)]
    informer.tell(EventType.ADDED, obj(5))
    assert cache.written("ns/") == []
    assert cache.get("ns/x") == obj(5)


async def test_an_older_event_does_not_bring_the_past_back(
    cache: MutationCache, informer: Informers
) -> None:
    informer.tell(EventType.ADDED, obj(3))
    cache.note(obj(9, of="b"))
    informer.tell(EventType.MODIFIED, obj(5))
    assert cache.get("ns/x") == obj(9, of="b")
    assert cache.by_index("a") == []
    assert cache.by_index("b") == [obj(9, of="b")]
    informer.tell(EventType.MODIFIED, obj(12))
    assert cache.get("ns/x") == obj(12)


async def test_an_answer_older_than_the_informer_is_not_noted(
    cache: MutationCache, informer: Informers
) -> None:
    informer.tell(EventType.ADDED, obj(7))
    cache.note(obj(6))
    assert cache.get("ns/x") == obj(7)


async def test_a_deletion_is_seen_before_the_informer_has_it(
    cache: MutationCache, informer: Informers
) -> None:
    informer.tell(EventType.ADDED, obj(3))
    cache.note_deleted("ns/x", "u")
    informer.tell(EventType.MODIFIED, obj(4))
    assert cache.get("ns/x") is None
    assert cache.by_index("a") == []
    informer.tell(EventType.DELETED, obj(5))
    informer.tell(EventType.ADDED, obj(6, uid="next"))
    assert cache.get("ns/x") == obj(6, uid="next")


async def test_a_successor_of_another_uid_wins(cache: MutationCache, informer: Informers) -> None:
    cache.note(obj(50))
    informer.tell(EventType.ADDED, obj(60, uid="next"))
    assert cache.get("ns/x") == obj(60, uid="next")


async def test_a_creation_that_was_deleted_again_is_forgotten(
    cache: MutationCache, informer: Informers
) -> None:
    informer.tell(EventType.ADDED, obj(3))
    cache.note(obj(4))
    informer.tell(EventType.DELETED, obj(5))
    assert cache.get("ns/x") is None


async def test_an_answer_that_comes_after_the_end_of_its_object_is_not_noted(
    cache: MutationCache, informer: Informers
) -> None:
    """No watch event would name the ghost again: a wait for its end would last for ever."""
    informer.tell(EventType.ADDED, obj(3))
    informer.tell(EventType.DELETED, obj(5))
    cache.note(obj(4))
    assert cache.get("ns/x") is None
    informer.tell(EventType.ADDED, obj(6, uid="next"))
    cache.note(obj(4))
    assert cache.get("ns/x") == obj(6, uid="next")
    assert cache.written("ns/") == []


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
