"""How commands follow objects: what they yield, how often they ask, and when they give up."""

import asyncio
from contextlib import aclosing
from itertools import pairwise

import pytest

from hyperjob_core.kube import errors
from hyperjob_core.kube.client import EventType, WatchEvent
from hyperjob_core.kube.paging import ObjectList
from hyperjob_core.kube.reflector import changes, states
from hyperjob_core.kube.resources import NODES
from hyperjob_core.virtualtime import run


def node(name, version):
    return {"metadata": {"name": name, "resourceVersion": version}}


class Server:
    """Answers each list and each watch by the next of a script, the last one from then on."""

    def __init__(self, lists, watches):
        self.scripts = {"list": lists, "watch": watches}
        self.asked = []
        self.moments = []

    def _next(self, verb, version=None):
        self.asked.append((verb, version))
        self.moments.append(asyncio.get_running_loop().time())
        script = self.scripts[verb]
        return script.pop(0) if len(script) > 1 else script[0]

    async def list(self, resource, *, transform, **options):
        answer = self._next("list")
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def watch(self, resource, *, resource_version, opened, **options):
        for each in self._next("watch", resource_version):
            if isinstance(each, Exception):
                raise each
            if isinstance(each, float):
                await asyncio.sleep(each)
            else:
                opened()
                if each is not None:
                    yield each


def told(stream, count, seconds=1e6):
    """Collect from a stream until it has yielded `count` values, or until the time is over."""

    async def collect():
        found = []
        try:
            async with asyncio.timeout(seconds), aclosing(stream) as values:
                async for value in values:
                    found.append(value)
                    if len(found) == count:
                        break
        except TimeoutError:
            pass
        return found

    return collect()


def added(name, version):
    return WatchEvent(EventType.ADDED, node(name, version))


GONE = errors.Gone({"code": 410, "message": "old"})
BROKEN = errors.unreachable("WATCH", "broken")
ANSWERED = errors.Unavailable({"code": 503}, "GET")
FORBIDDEN = errors.Forbidden({"code": 403, "message": "no"})
EMPTY = ObjectList([], "5")


def test_it_lists_follows_and_gives_the_difference_of_another_list():
    server = Server(
        [ObjectList([node("a", "1"), node("b", "2"), node("c", "3")], "5"),
         ObjectList([node("a", "1"), node("b", "8")], "9")],
        [[WatchEvent(EventType.MODIFIED, node("c", "6")), GONE], [None, 1e6]],
    )  # fmt: skip
    found = run(told(changes(server, NODES), 8))
    shown = [(str(one.type), one.object.get("metadata", {}).get("name")) for one in found]
    assert shown == [
        ("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c"), ("BOOKMARK", None), ("MODIFIED", "c"),
        ("MODIFIED", "b"), ("DELETED", "c"), ("BOOKMARK", None),
    ]  # fmt: skip
    assert server.asked == [("list", None), ("watch", "5"), ("list", None)]


def test_an_object_that_was_replaced_between_two_lists_is_deleted_and_added():
    old, new = ({"metadata": {**node("a", v)["metadata"], "uid": v}} for v in "14")
    server = Server([ObjectList([old], "2"), ObjectList([new], "5")], [[GONE], [None, 1e5]])
    found = run(told(changes(server, NODES), 5))
    assert [(each.type, each.object) for each in found if each.type is not EventType.BOOKMARK] == [
        (EventType.ADDED, old),
        (EventType.DELETED, old),
        (EventType.ADDED, new),
    ]


def test_a_broken_watch_resumes_from_the_last_version_without_another_list():
    bookmark = WatchEvent(EventType.BOOKMARK, node("", "7"))
    server = Server([EMPTY], [[None, bookmark, BROKEN], [added("a", "8"), 1e6]])
    run(told(changes(server, NODES), 2))
    assert server.asked == [("list", None), ("watch", "5"), ("watch", "7")]


@pytest.mark.parametrize("watch", [[None], [None, BROKEN]], ids=["closed", "broken"])
def test_where_watches_end_at_once_it_asks_less_and_less(watch):
    server = Server([EMPTY], [watch])
    run(told(changes(server, NODES), 1000, seconds=600))
    assert len(server.asked) < 150
    gaps = [later - earlier for earlier, later in pairwise(server.moments)]
    assert max(gaps) == pytest.approx(10)


REFUSED = {
    "not allowed": ([FORBIDDEN], 1),
    "no API server at first": ([BROKEN], 1),
    "an API server that answers that it is down": ([ANSWERED], 5),
    "an API server that goes down": ([EMPTY, BROKEN], 6),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_gives_up(case):
    lists, asked = REFUSED[case]
    server = Server(lists, [[BROKEN]])
    with pytest.raises(errors.KubeError):
        run(told(changes(server, NODES), 10, seconds=600))
    assert len(server.asked) == asked


def test_the_states_of_one_object_begin_with_the_present_one():
    server = Server(
        [EMPTY],
        [[added("a", "6"), WatchEvent(EventType.DELETED, node("a", "7")), added("a", "8"), 1e6]],
    )
    found = run(told(states(server, NODES, "a"), 4))
    assert found == [None, node("a", "6"), None, node("a", "8")]
