"""A live copy that survives everything a server can do, and tells exactly what changed."""

import asyncio
import itertools
import logging
import random
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.kube import errors
from hyperjob_core.kube.client import EventType, Kube, WatchEvent
from hyperjob_core.kube.informer import Informer, RestoredError, end_when_restored
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.paging import ObjectList
from hyperjob_core.kube.ratelimit import Backoff
from hyperjob_core.kube.reflector import SHORT_WATCHES
from hyperjob_core.kube.resources import HYPERJOBS, NODES
from hyperjob_core.virtualtime import now
from tests.support.virtually import virtually

PATH = "/api/v1/nodes"


def node(name, version="1", uid="", **labels):
    metadata = {"name": name, "resourceVersion": version, "uid": uid or name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


def listing(version, *items):
    return {"metadata": {"resourceVersion": version}, "items": list(items)}


def event(kind, obj):
    return {"type": kind, "object": obj}


def bookmark(version):
    return event("BOOKMARK", {"metadata": {"resourceVersion": version}})


EXPIRED = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "old"})


class Log:
    """Records what an informer tells, and lets a test await it."""

    def __init__(self, informer):
        self.told = []
        self.changed = asyncio.Condition()
        self._tasks = set()
        informer.add_handler(self)

    def __call__(self, kind, old, new):
        seen = (old or new)["metadata"]["name"], (new or old)["metadata"]["resourceVersion"]
        self.told.append((str(kind), *seen))
        task = asyncio.ensure_future(self._notify())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self):
        async with self.changed:
            self.changed.notify_all()

    async def until(self, count):
        async with asyncio.timeout(30), self.changed:
            await self.changed.wait_for(lambda: len(self.told) >= count)
        return self.told


@asynccontextmanager
async def running(informer):
    task = asyncio.create_task(informer.run())
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def quick(kube, resource=NODES, **options):
    """An informer whose pauses take no time; they are bounded in other tests."""
    backoff = Backoff(base=0.01, cap=0.01)
    return Informer(kube, resource, backoff=backoff, **options)


async def told(count, kube, **options):
    """Run an informer until it has told so many changes, and return them."""
    informer = quick(kube, **options)
    log = Log(informer)
    async with running(informer):
        return await log.until(count)


async def test_it_lists_then_follows(server, kube):
    server.on(
        PATH,
        server.reply(listing("5", node("a"), node("b"))),
        server.stream(
            event("ADDED", node("c", "6")),
            event("MODIFIED", node("a", "7")),
            event("DELETED", node("b", "8")),
            then="hang",
        ),
    )
    informer = quick(kube)
    log = Log(informer)
    async with running(informer):
        assert await log.until(5) == [
            ("ADDED", "a", "1"),
            ("ADDED", "b", "1"),
            ("ADDED", "c", "6"),
            ("MODIFIED", "a", "7"),
            ("DELETED", "b", "8"),
        ]
        assert informer.synced.is_set()
        assert {obj["metadata"]["name"] for obj in informer.items()} == {"a", "c"}
        assert informer.get("a")["metadata"]["resourceVersion"] == "7"
        assert informer.get("b") is None
        assert len(informer) == 2
    assert server.seen[1].query["resourceVersion"] == "5"
    assert 300 <= int(server.seen[1].query["timeoutSeconds"]) <= 600


async def test_it_resumes_from_the_last_bookmark(server, kube):
    server.on(
        PATH,
        server.reply(listing("5", node("a"))),
        server.stream(event("MODIFIED", node("a", "6")), bookmark("42")),
        server.stream(event("MODIFIED", node("a", "50")), then="hang"),
    )
    await told(3, kube)
    assert [seen.query.get("resourceVersion") for seen in server.seen] == [None, "5", "42"]


@pytest.mark.parametrize(
    "broken",
    [
        lambda s: s.reset(),
        lambda s: s.stream(then="reset"),
        lambda s: s.stream(b"<html>"),
        lambda s: s.failure(503, "ServiceUnavailable"),
        lambda s: s.failure(429, "TooManyRequests", Retry_After="1"),
    ],
    ids=["refused", "reset", "garbage", "unavailable", "too many requests"],
)
async def test_it_resumes_where_it_was_after(broken, server, kube):
    server.on(
        PATH,
        server.reply(listing("5", node("a"))),
        server.stream(event("MODIFIED", node("a", "6"))),
        broken(server),
        server.stream(event("MODIFIED", node("a", "7")), then="hang"),
    )
    changes = [("ADDED", "a", "1"), ("MODIFIED", "a", "6"), ("MODIFIED", "a", "7")]
    assert await told(3, kube) == changes
    assert server.seen[-1].query["resourceVersion"] == "6"


@pytest.mark.parametrize(
    ("expired", "first"),
    [
        (lambda s: s.stream(event("MODIFIED", node("a", "6")), EXPIRED), [("MODIFIED", "a", "6")]),
        (lambda s: s.failure(410, "Expired"), []),
    ],
    ids=["as an event", "as an answer"],
)
async def test_an_expired_version_means_a_new_list_and_its_difference(expired, first, server, kube):
    server.on(
        PATH,
        server.reply(listing("5", node("a"), node("gone"), node("same"))),
        expired(server),
        server.reply(listing("90", node("a", "80"), node("same"), node("new", "85"))),
        server.stream(event("DELETED", node("new", "91")), then="hang"),
    )
    changes = await told(7 + len(first), kube)
    assert changes[3:] == [
        *first,
        ("DELETED", "gone", "1"),
        ("MODIFIED", "a", "80"),
        ("ADDED", "new", "85"),
        ("DELETED", "new", "91"),
    ]
    assert server.seen[-1].query["resourceVersion"] == "90"


async def test_a_recreated_object_is_a_deletion_and_an_addition(server, kube):
    server.on(
        PATH,
        server.reply(listing("5", node("a", uid="first"))),
        server.stream(event("ADDED", node("a", "9", uid="second")), then="hang"),
    )
    changes = [("ADDED", "a", "1"), ("DELETED", "a", "1"), ("ADDED", "a", "9")]
    assert await told(3, kube) == changes


async def test_a_bookmark_after_a_failure_shows_that_the_watch_works(server, kube, caplog):
    server.on(
        PATH,
        server.reply(listing("5", node("a"))),
        server.failure(500, "InternalError"),
        server.reply(listing("5", node("a"))),
        server.stream(bookmark("42"), then="hang"),
    )
    informer = quick(kube)
    with caplog.at_level(logging.INFO, logger="hyperjob_core.kube.informer"):
        async with running(informer):
            async with asyncio.timeout(30):
                while len(caplog.records) < 2:  # noqa: ASYNC110 - a log record is no event
                    await asyncio.sleep(0.01)
    assert caplog.messages[-1] == "Watching again"


async def test_a_replayed_event_is_not_told_again(server, kube):
    server.on(
        PATH,
        server.reply(listing("5", node("a", "5"))),
        server.stream(
            event("ADDED", node("a", "5")),
            event("DELETED", node("never-seen", "6")),
            event("MODIFIED", node("a", "7")),
            then="hang",
        ),
    )
    assert await told(2, kube) == [("ADDED", "a", "5"), ("MODIFIED", "a", "7")]


async def test_a_silent_connection_is_replaced(server, kube):
    server.on(
        PATH,
        server.reply(listing("5")),
        server.stream(then="hang"),
        server.stream(event("ADDED", node("a", "6")), then="hang"),
    )
    assert await told(1, kube, idle_limit=0.1) == [("ADDED", "a", "6")]


async def test_a_missing_crd_is_waited_for_and_said_once(server, kube, caplog):
    path = HYPERJOBS.path()
    missing = [server.failure(404, "NotFound", "the server could not find the resource")] * 4
    job = {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}}
    changed = {"metadata": {**job["metadata"], "resourceVersion": "6"}}
    server.on(
        path,
        *missing,
        server.reply(listing("5", job)),
        server.stream(event("MODIFIED", changed), then="hang"),
    )
    informer = quick(kube, HYPERJOBS)
    with caplog.at_level(logging.INFO, logger="hyperjob_core.kube.informer"):
        log = Log(informer)
        async with running(informer):
            await log.until(1)
            assert isinstance(informer.last_error, errors.NotFound)
            await log.until(2)
            assert informer.last_error is None
    assert [record.message for record in caplog.records] == [
        "Resource is not served, waiting for it: is its CRD installed?",
        "Watching again",
    ]
    assert informer.get("n/a")["metadata"]["resourceVersion"] == "6"


async def test_selectors_and_namespace_reach_both_list_and_watch(server, kube):
    path = HYPERJOBS.path("n")
    server.on(path, server.reply(listing("5")), server.stream(then="hang"))
    informer = quick(kube, HYPERJOBS, namespace="n", label_selector="a=b", field_selector="c=d")
    async with running(informer):
        await server.until(2)
    for seen in server.seen:
        assert seen.path == path
        assert (seen.query["labelSelector"], seen.query["fieldSelector"]) == ("a=b", "c=d")


async def test_a_handler_that_comes_late_hears_of_what_is_there(server, kube):
    server.on(PATH, server.reply(listing("5", node("a"))), server.stream(then="hang"))
    informer = quick(kube)
    async with running(informer):
        await informer.synced.wait()
        assert Log(informer).told == [("ADDED", "a", "1")]


async def test_a_handler_that_raises_keeps_no_change_from_the_others(server, kube):
    def broken(kind, old, new):
        raise LookupError("a bug")

    server.on(PATH, server.reply(listing("5", node("a"))), server.stream(then="hang"))
    caught = []
    informer = quick(kube, faulty=lambda *fault: caught.append(fault))
    informer.add_handler(broken)
    heard = Log(informer)
    async with running(informer):
        await informer.synced.wait()
    assert heard.told == [("ADDED", "a", "1")]
    [(resource, obj, error)] = caught
    assert (resource, obj["metadata"]["name"], str(error)) == (informer.resource, "a", "a bug")


@virtually
async def test_a_handler_that_failed_gets_the_object_after_a_back_off_and_no_change_before():
    server, told, bugs = MemoryServer(now=now), [], [LookupError("a bug")] * 3

    def handler(kind, old, new):
        time = round(asyncio.get_running_loop().time())
        size = (new or old)["metadata"]["labels"]["size"]
        told.append((time, str(kind), new["metadata"]["name"] if new else "-", size))
        if bugs and new is not None and new["metadata"]["name"] == "a":
            raise bugs.pop()

    def put(name, size):
        server.put(NODES, {"metadata": {"name": name, "labels": {"size": str(size)}}})

    async with Kube(server) as kube:
        informer = Informer(kube, NODES, faulty=lambda *_: None)
        informer.add_handler(handler)
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        for time in range(36):
            put("a", time)
            await asyncio.sleep(1)
        put("b", 0)
        await asyncio.sleep(1)
        # At 35 the handler succeeds, and gets each further change at once.
        assert told == [
            (0, "ADDED", "a", "0"),
            (5, "ADDED", "a", "4"),
            (15, "ADDED", "a", "14"),
            (35, "ADDED", "a", "34"),
            (35, "MODIFIED", "a", "35"),
            (36, "ADDED", "b", "0"),
        ]
        bugs.append(LookupError("a bug"))
        put("a", 37)
        await asyncio.sleep(1)
        server.remove(NODES, "a")
        await asyncio.sleep(60)
        assert [each[1:] for each in told[6:]] == [("MODIFIED", "a", "37"), ("DELETED", "-", "37")]
        task.cancel()


@pytest.mark.parametrize("changes", [0, 3])
@virtually
async def test_a_handler_that_ends_too_late_gets_the_changes_since_then_after_a_back_off(changes):
    slow, told = [True], []

    @contextmanager
    def in_turn(_resource, _obj):
        yield
        if told and slow:
            slow.pop()
            raise TimeoutError

    server = MemoryServer(now=now)
    async with Kube(server) as kube:
        informer = Informer(kube, NODES, faulty=lambda *_: None, in_turn=in_turn)
        informer.add_handler(lambda kind, old, new: told.append((str(kind), old, new)))
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        for number in range(1 + changes):
            server.put(NODES, {"metadata": {"name": "a", "labels": {"x": str(number)}}})
            await asyncio.sleep(1)
        assert len(told) == 1
        await asyncio.sleep(60)
        task.cancel()
    (_, _, first), *later = told
    assert [(kind, old) for kind, old, _ in later] == [("MODIFIED", first)] * bool(changes)
    assert [new["metadata"]["labels"]["x"] for *_, new in later] == ["3"] * bool(changes)


class Scripted:
    """A client whose watches do what the test says, in virtual time."""

    def __init__(self, watch, *, lists=None):
        self.watch_behaviour = watch
        self.lists = lists or (lambda count: ObjectList([], "1"))
        self.watches = []
        self.listed = []

    async def list(self, resource, **options):
        self.listed.append(asyncio.get_running_loop().time())
        return self.lists(len(self.listed))

    async def watch(self, resource, *, opened=None, **options):
        self.watches.append(asyncio.get_running_loop().time())
        opened()
        async for item in self.watch_behaviour(len(self.watches)):
            yield item


async def ending(count):
    """Close at once."""
    return
    yield


@virtually
async def run_for(kube, seconds):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random, "random", lambda: 0.0)
        async with running(Informer(kube, NODES)):
            await asyncio.sleep(seconds)


def pauses(times):
    return [round(later - earlier, 3) for earlier, later in pairwise(times)]


def test_a_server_that_closes_at_once_is_asked_less_and_less():
    kube = Scripted(ending)
    run_for(kube, 600)
    assert pauses(kube.watches)[:7] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
    assert len(kube.watches) == 6 + (600 - 50) // 30 + 1


def test_a_server_that_expires_every_version_is_not_listed_in_a_loop():
    async def expired(count):
        raise errors.Gone({"code": 410, "message": "old"})
        yield

    kube = Scripted(expired)
    run_for(kube, 600)
    assert len(kube.listed) < 30


def test_a_watch_that_ended_in_health_is_followed_at_once():
    async def long(count):
        await asyncio.sleep(300)
        return
        yield

    kube = Scripted(long)
    run_for(kube, 1000)
    assert pauses(kube.watches) == [300, 300, 300]


def test_a_watch_that_brings_something_each_time_keeps_the_shortest_pause():
    async def one(count):
        yield WatchEvent(EventType.MODIFIED, node("a", str(count + 1)))

    kube = Scripted(one)
    run_for(kube, 10)
    assert set(pauses(kube.watches)) == {0.8}


@virtually
async def test_only_a_watch_that_brings_nothing_and_ends_at_once_is_a_short_watch():
    before = []  # the count of short ones at the begin of each watch

    async def by_turns(count):
        before.append(SHORT_WATCHES["nodes"])
        if count % 3 == 0:
            yield WatchEvent(EventType.MODIFIED, node("a", str(count + 1)))
        elif count % 3 == 1:
            await asyncio.sleep(60)

    async with running(Informer(Scripted(by_turns), NODES)):
        await asyncio.sleep(100)
    more = [now - was for was, now in itertools.pairwise(before)]
    assert more[:3] == [0, 1, 0], "idle but healthy, empty, brought a change"


def test_health_resets_the_pauses():
    async def at_first_bad(count):
        if count > 5:
            await asyncio.sleep(60)
        if count != 7:
            return
        raise errors.unreachable("WATCH", "broken")
        yield

    kube = Scripted(at_first_bad)
    run_for(kube, 400)
    assert pauses(kube.watches)[:5] == [0.8, 1.6, 3.2, 6.4, 12.8]
    assert pauses(kube.watches)[5:8] == [60, 60, 60]


def test_it_lists_again_when_resuming_never_works():
    async def broken(count):
        raise errors.unreachable("WATCH", "the watch carries garbage")
        yield

    kube = Scripted(broken)
    run_for(kube, 6)
    assert len(kube.watches) == 4
    assert len(kube.listed) == 2


def test_a_list_that_fails_slowly_is_no_health():
    def slow(count):
        raise errors.unreachable("GET", "no answer within 30s", timeout=True)

    kube = Scripted(ending, lists=slow)
    run_for(kube, 100)
    assert pauses(kube.listed)[:3] == [0.8, 1.6, 3.2]


versions = st.dictionaries(
    st.sampled_from("abcde"), st.tuples(st.sampled_from("12"), st.integers(1, 4)), max_size=5
)


@given(st.lists(versions, min_size=1, max_size=6))
def test_whatever_is_listed_the_told_difference_rebuilds_it(snapshots):
    mirror = {}
    informer = Informer(Scripted(ending), NODES)

    def follow(kind, old, new):
        name = (old or new)["metadata"]["name"]
        match kind:
            case EventType.ADDED:
                assert old is None
                assert name not in mirror
                mirror[name] = new
            case EventType.MODIFIED:
                assert mirror[name] == old
                assert new["metadata"]["uid"] == old["metadata"]["uid"]
                mirror[name] = new
            case EventType.DELETED:
                assert new is None
                assert mirror.pop(name) == old

    informer.add_handler(follow)
    for snapshot in snapshots:
        items = [node(name, str(version), uid) for name, (uid, version) in snapshot.items()]
        informer._swap(ObjectList(items, "1"))
        assert mirror == {obj["metadata"]["name"]: obj for obj in items}
        assert mirror == {obj["metadata"]["name"]: obj for obj in informer.items()}


@pytest.mark.parametrize(
    ("second", "ends"),
    [
        (node("a", "7"), False),
        (node("a", "8"), False),
        (node("a", "6"), True),
        (node("a", "6", uid="another"), False),
        (node("a", "x6"), False),
    ],
)
async def test_a_list_with_an_older_object_is_of_an_api_server_that_was_put_back(
    server, kube, second, ends
):
    server.on(
        PATH,
        server.reply(listing("7", node("a", "7"))),
        server.stream(EXPIRED),
        server.reply(listing("9", second, node("b"))),
        server.stream(then="hang"),
    )
    informer = quick(kube, restored=end_when_restored)
    log = Log(informer)
    if ends:
        async with asyncio.timeout(30):
            with pytest.raises(RestoredError, match="nodes a is older than before"):
                await informer.run()
        assert informer.get("a")["metadata"]["resourceVersion"] == "7"
        assert informer.get("b") is None
        return
    async with running(informer):
        await log.until(2)
    assert informer.get("b") is not None
