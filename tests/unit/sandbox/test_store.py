"""The store: revisions, order, history, and what one may rely on while others write."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_sandbox.apiserver.state.store import Change, Exists, Expired, Stale, Store, Stored

THINGS = ("example.dev", "things")
NAMES = st.sampled_from(["a", "b", "c", "d"])


def thing(name: str, namespace: str = "x", **spec: object) -> dict:
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return {"metadata": meta, "spec": spec}


def create(store: Store, name: str, namespace: str = "x", **spec: object) -> Stored:
    return store.create(THINGS, (namespace, name), thing(name, namespace, **spec))


def test_every_change_has_its_own_revision() -> None:
    store = Store()
    first = create(store, "a")
    second = store.update(THINGS, thing("a", n=1), expected=first)
    third = store.delete(THINGS, thing("a", n=1), expected=second)
    assert first.revision < second.revision < third.revision == store.revision
    assert third.obj["metadata"]["resourceVersion"] == str(third.revision)


def test_what_was_read_must_still_be_there() -> None:
    store = Store()
    first = create(store, "a")
    store.update(THINGS, thing("a", n=1), expected=first)
    with pytest.raises(Stale):
        store.update(THINGS, thing("a", n=2), expected=first)
    with pytest.raises(Stale):
        store.delete(THINGS, thing("a"), expected=first)
    with pytest.raises(Exists):
        create(store, "a")


def test_objects_come_in_order_of_namespace_and_name() -> None:
    store = Store()
    for namespace, name in (("y", "a"), ("x", "b"), ("x-1", "a"), ("x", "a")):
        create(store, name, namespace)
    collection = store.collection(THINGS)
    assert [s.key for s in collection.select()] == [
        ("x", "a"),
        ("x", "b"),
        ("x-1", "a"),
        ("y", "a"),
    ]
    assert [s.key for s in collection.select("x")] == [("x", "a"), ("x", "b")]


def test_a_reader_that_falls_behind_is_told() -> None:
    store = Store(history_limit=3)
    cursor = store.collection(THINGS).end()
    for number in range(10):
        create(store, f"n{number}")
    with pytest.raises(Expired):
        store.collection(THINGS).read(cursor)


def test_a_revision_that_is_compacted_cannot_be_resumed() -> None:
    store = Store()
    first = create(store, "a")
    create(store, "b")
    collection = store.collection(THINGS)
    collection.compact(first.revision)
    assert [c.now.key[1] for c in collection.read(collection.after(first.revision))] == ["b"]
    with pytest.raises(Expired):
        collection.after(first.revision - 1)


def test_listeners_hear_every_change_in_order() -> None:
    store = Store()
    heard: list[tuple[str, str]] = []

    def listen(resource: tuple[str, str], change: Change) -> None:
        heard.append((change.type, change.now.key[1]))

    store.subscribe(listen)
    first = create(store, "a")
    store.delete(THINGS, thing("a"), expected=first)
    assert heard == [("ADDED", "a"), ("DELETED", "a")]


async def test_those_who_wait_are_woken_by_a_change() -> None:
    store = Store()
    collection = store.collection(THINGS)
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(collection.wait(collection.end(), 5)) for _ in range(3)]
        await asyncio.sleep(0)
        create(store, "a")
    assert [task.result() for task in waiting] == [True, True, True]
    assert await collection.wait(0, 5)
    assert not await collection.wait(collection.end(), 0)


@given(st.lists(st.tuples(st.sampled_from(["put", "delete"]), NAMES)))
def test_replaying_the_history_gives_the_state(operations: list[tuple[str, str]]) -> None:
    store = Store()
    collection = store.collection(THINGS)
    for number, (operation, name) in enumerate(operations):
        live = collection.get(("x", name))
        if operation == "put":
            if live is None:
                create(store, name, n=number)
            else:
                store.update(THINGS, thing(name, n=number), expected=live)
        elif live is not None:
            store.delete(THINGS, thing(name), expected=live)
    replayed: dict[tuple[str, str], Stored] = {}
    for change in collection.read(collection.after(0)):
        assert (change.before is None) == (change.type == "ADDED")
        assert change.before is replayed.get(change.now.key)
        if change.type == "DELETED":
            del replayed[change.now.key]
        else:
            replayed[change.now.key] = change.now
    assert sorted(replayed) == [stored.key for stored in collection.select()]
