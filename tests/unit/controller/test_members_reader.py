"""The reader of members on API servers in memory: signs of life, refusals, and repeated reads."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from hyperjob_controller.members import member as members_member
from hyperjob_controller.members import reader as members_reader
from hyperjob_controller.members.member import LONGEST_AGE, MOST_BYTES, Budget, Member
from hyperjob_controller.members.reader import Members
from hyperjob_controller.wall import first_error
from hyperjob_controller.watchdog import LONGEST, Place
from hyperjob_core.api.wire import rfc3339
from hyperjob_core.kube.errors import Forbidden, Gone, KubeError
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import (
    CLUSTERS,
    CORE_EVENTS,
    DEVICE_CLASSES,
    DEVICES,
    HYPERNODES,
    NODES,
    PODGROUPS,
    PODS,
    RESOURCE_SLICES,
    Resource,
)
from hyperjob_core.kube.transport import Params
from hyperjob_core.tasks import cancel
from hyperjob_engine.members.fold import MemberFold
from hyperjob_engine.members.weights import Weights
from hyperjob_engine.resources import DEVICE_CLASS
from tests.support.apiserver import ApiServer, refusal
from tests.support.walls import Cpu
from tests.unit.cli.fleet import Fleet
from tests.unit.controller.test_pass import until
from tests.unit.engine.test_members_fold import node, pod

START = datetime(2026, 1, 2, tzinfo=UTC)
ALL = (PODS, PODGROUPS, CORE_EVENTS, NODES, HYPERNODES)


@dataclass
class Clock:
    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def wait(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


@dataclass
class One:
    """One member, its API server and its reader."""

    server: ApiServer = field(default_factory=ApiServer)
    clock: Clock = field(default_factory=Clock)
    resources: tuple[Resource, ...] = ALL
    heard: list[tuple[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.member = Member(
            "east",
            self.server.kube,
            resources=self.resources,
            pages=asyncio.Semaphore(1),
            now=self.clock,
            heard=lambda name, news: self.heard.append((name, news)),
            budget=Budget(),
        )

    def state(self) -> dict[str, Any]:
        return self.member.state(self.clock.now)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["asyncio.Task[None]"]:
        task = asyncio.ensure_future(self.member.run())
        try:
            yield task
        finally:
            await cancel([task])


def refusing(resource: Resource, error: KubeError) -> One:
    one = One()
    one.server.fails = lambda verb, asked, _: (
        error if (verb, asked.plural) == ("list", resource.plural) else None
    )
    return one


async def test_a_member_is_known_when_all_its_resources_are_listed() -> None:
    one = One()
    assert one.state() == {"known": False, "asOf": None, "errors": {}}
    one.server.put(NODES, node("n1"))
    one.server.put(PODS, pod("p", "n1", 3, job="hj-a-0"))
    one.server.put(PODS, pod("q", "", 1))
    async with one.running():
        await until(lambda: one.member.is_known(START))
        assert one.member.tried.is_set()
        state = one.state()
        assert (state["known"], state["asOf"], state["errors"]) == (True, rfc3339(START), {})
        assert (state["waiting"], state["jobs"]) == (1, {"default/hj-a-0": 1})
        assert state["nodes"]["n1"] | {"free": []} == {"state": "Ready", "free": [], "pods": 1}
        one.server.remove(PODS, "default/p")
        await until(lambda: one.state()["jobs"] == {})
    assert "default/hj-a-0" in one.heard[-1][1].jobs
    assert {name for name, _ in one.heard} == {"east"}


async def test_slices_and_claims_are_read_from_the_first_device_class_on() -> None:
    one = One(resources=(*ALL, *DEVICES))
    of_classes = {each.plural for each in DEVICES} - {DEVICE_CLASSES.plural}
    asked = set[str]()
    one.server.fails = lambda _, resource, __: asked.add(resource.plural)
    devices = [{"name": f"d{number}"} for number in range(2)]
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.x", "nodeName": "n1", "pool": pool, "devices": devices}
    one.server.put(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": spec})
    one.server.put(NODES, node("n1"))

    def free(name: str) -> object:
        return one.state()["nodes"]["n1"]["free"].get(f"{DEVICE_CLASS}{name}")

    async with one.running():
        await until(lambda: one.member.is_known(START))
        assert (free(""), asked & of_classes) == ("0", set())
        drivers = [{"cel": {"expression": 'device.driver == "gpu.x"'}}]
        one.server.put(DEVICE_CLASSES, {"metadata": {"name": "x"}, "spec": {"selectors": drivers}})
        await until(lambda: free("x") == "2" and asked >= of_classes)


async def test_a_member_whose_hypernodes_take_too_much_is_known_without_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one = One()
    one.server.put(NODES, node("n1"))
    selector = {"regexMatch": {"pattern": "(((){999}){999}){999}"}}
    members = [{"type": "Node", "selector": selector}]
    one.server.put(HYPERNODES, {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": members}})
    async with one.running():
        await until(lambda: one.member.is_known(START))
        state = one.state()
        assert (state["known"], list(state["nodes"]), state["hyperNodes"]) == (True, ["n1"], {})
        assert "take too much work" in state["errors"][HYPERNODES.group_resource]
        one.server.put(NODES, node("n2"))
        await until(lambda: len(one.state()["nodes"]) == 2)
        said = "The HyperNodes of a member are not known: its nodes count without them"
        assert [each.message for each in caplog.records].count(said) == 1
        one.server.remove(HYPERNODES, "h")
        await until(lambda: one.state()["errors"] == {})


async def test_knowledge_is_as_old_as_its_oldest_resource_and_unknown_after_a_minute() -> None:
    one = One(resources=(PODS, NODES))
    one.member._alive(PODS)
    assert one.member.as_of is None, "the nodes are not listed yet"
    assert not one.member.tried.is_set()
    one.clock.wait(10)
    one.member._alive(NODES)
    assert one.member.tried.is_set()
    assert one.member.as_of == START
    last = START + LONGEST_AGE
    assert one.member.is_known(last)
    assert one.member.view(last) is not None
    too_old = last + timedelta(microseconds=1)
    assert not one.member.is_known(too_old)
    assert one.member.view(too_old) is None
    one.member.forget()
    assert one.member.as_of is None


def test_a_member_stays_known_when_it_loses_what_is_optional() -> None:
    one = One(resources=(NODES, HYPERNODES))
    for resource in one.resources:
        one.member._alive(resource)
    one.member._said(HYPERNODES, refusal(404, "NotFound"))  # its CustomResourceDefinition is gone
    now = one.clock.wait(600)
    one.member._alive(NODES)
    assert one.member.is_known(now)


@pytest.mark.parametrize("resource", [HYPERNODES, CORE_EVENTS, PODGROUPS])
@pytest.mark.parametrize("code", [403, 404])
async def test_a_member_without_what_is_optional_is_known(resource: Resource, code: int) -> None:
    one = refusing(resource, refusal(code, {403: "Forbidden", 404: "NotFound"}[code]))
    async with one.running():
        await until(lambda: one.member.is_known(START))
    assert list(one.state()["errors"]) == [resource.group_resource]


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (PODS, refusal(403, "Forbidden")),
        (NODES, refusal(404, "NotFound")),
        (HYPERNODES, refusal(500, "InternalError")),
    ],
)
async def test_a_member_that_cannot_be_read_is_tried_and_not_known(
    resource: Resource, error: KubeError
) -> None:
    one = refusing(resource, error)
    async with one.running():
        await asyncio.wait_for(one.member.tried.wait(), 60)
        assert not one.member.is_known(START)
        assert list(one.state()["errors"]) == [resource.group_resource]


async def test_a_refused_member_is_read_again_after_growing_pauses_until_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
        await real(0)

    one = refusing(PODS, refusal(403, "Forbidden"))
    refuses = one.server.fails
    one.server.fails = lambda *call: refuses(*call) if len(pauses) < 8 else None
    monkeypatch.setattr(asyncio, "sleep", sleep)
    async with one.running():
        await asyncio.wait_for(one.member.tried.wait(), 60)
        async with asyncio.timeout(60):
            while not one.member.is_known(START):
                await real(0)
    assert len(pauses) == 8
    assert 5 <= pauses[0] <= 7.5
    assert pauses == sorted(pauses)
    assert pauses[-1] == 300


def test_the_first_failure_of_a_kind_and_the_end_of_failures_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger=members_member.__name__)
    member = One().member
    forbidden, broken = refusal(403, "Forbidden", "no right"), refusal(500, "InternalError", "oh")
    assert isinstance(forbidden, Forbidden)
    gone = refusal(410, "Expired")
    assert isinstance(gone, Gone)
    for failure in (None, gone, forbidden, forbidden, broken, None, None):
        member._said(PODS, failure)
    for failure in (refusal(404, "NotFound"), None):
        member._said(HYPERNODES, failure)  # a member without HyperNodes is no failure
    logged = [(each.levelno, each.getMessage(), vars(each).get("error")) for each in caplog.records]
    cannot = "The controller cannot read a member: decisions use the sums of its Cluster"
    again = "The controller reads a member again"
    assert logged == [
        (logging.WARNING, cannot, str(forbidden)),
        (logging.INFO, cannot, str(broken)),
        (logging.INFO, again, None),
        (logging.INFO, again, None),
    ]
    assert {vars(each)["cluster"] for each in caplog.records} == {"east"}


async def test_a_member_whose_state_is_wrong_ends_its_run_and_is_unknown() -> None:
    one, bug = One(), RuntimeError("the fold is wrong")
    one.member.fail(bug)  # before a run there is nothing to end
    async with one.running() as task:
        await until(lambda: one.member.is_known(START))
        one.member.fail(bug)
        one.member.fail(RuntimeError("a second one changes nothing"))
        assert not one.member.is_known(START)
        with pytest.raises(ExceptionGroup) as raised:
            await task
        assert first_error(raised.value) is bug


class Proxy(Fleet):
    """A Karmada API server that proxies watches of members too."""

    async def stream(
        self, path: str, *, params: Params, **more: Any
    ) -> AsyncGenerator[bytes, None]:
        server: ApiServer = self
        for name, member in self.members.items():
            _, found, rest = path.partition(f"/clusters/{name}/proxy")
            if found:
                server, path = member, rest
        parts = ApiServer.stream(server, path, params=params, **more)
        async with aclosing(parts):
            async for part in parts:
                yield part


@dataclass
class World:
    """Members behind Karmada's proxy, and the reader of all; `raises` fails the next reports."""

    fleet: Fleet = field(default_factory=Proxy)
    clock: Clock = field(default_factory=Clock)
    nodes: bool = True
    told: list[tuple[str, Any]] = field(default_factory=list)
    raises: list[Exception] = field(default_factory=list)
    cpu: Cpu = field(default_factory=Cpu)
    most: int = MOST_BYTES

    def __post_init__(self) -> None:
        def tell(what: str) -> Any:
            def told(about: Any, _of: str = "") -> None:
                if self.raises and what != "faulty":
                    raise self.raises.pop()
                self.told.append((what, about))

            return told

        self.clusters = Informer(self.fleet.kube, CLUSTERS)
        self.reader = Members(
            self.fleet.kube,
            self.clusters,
            nodes=self.nodes,
            now=self.clock,
            freed=tell("freed"),
            shown=lambda jobs: tell("shown")(sorted(jobs)),
            wake=tell("wake"),
            faulty=tell("faulty"),
            turned=tell("turned"),
            in_turn=partial(self.cpu.watchdog.turn, Place.MEMBERS, most=LONGEST),
            most=self.most,
        )

    def join(self, name: str, *nodes: dict[str, Any], ready: bool = True) -> ApiServer:
        server = self.fleet.members[name] = ApiServer()
        for each in nodes:
            server.put(NODES, each)
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        cluster = {"metadata": {"name": name}, "spec": {}, "status": {"conditions": [condition]}}
        self.fleet.put(CLUSTERS, cluster)
        return server

    def has_changed(self, name: str) -> bool:
        return self.reader._members[name].has_changed

    def views(self, only: Collection[str] = ()) -> list[str]:
        return sorted(self.reader.views(self.clock.now, only))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = [asyncio.ensure_future(self.clusters.run())]
        await self.clusters.synced.wait()
        tasks.append(asyncio.ensure_future(self.reader.run()))
        try:
            yield
        finally:
            await cancel(tasks)

    def reported(self, what: str) -> list[Any]:
        return [about for each, about in self.told if each == what]


async def test_a_new_cluster_is_read_and_a_deleted_one_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(members_reader, "_TURN_SECONDS", 0.01)
    world = World()
    world.join("east", node("n1"))
    async with world.running():
        await until(lambda: world.views() == ["east"])
        world.join("west", node("n2"))
        await until(lambda: world.views() == ["east", "west"])
        assert world.views(["west", "gone"]) == ["west"]
        await until(lambda: world.reported("turned") == ["east", "west"])
        world.fleet.remove(CLUSTERS, "east")
        await until(lambda: world.reported("turned") == ["east", "west", "east"])
        assert world.views() == ["west"]
        assert sorted(world.reader.state(world.clock.now)) == ["west"]
        assert world.reader.pods_of("east", "default/a") is None
        assert world.reader.failure("east", "default/a") is None
    assert world.reported("faulty") == []


async def test_without_the_nodes_the_pods_count_and_only_freed_room_is_reported() -> None:
    world = World(nodes=False)
    server = world.join("east", node("n1"))
    server.put(PODS, pod("p", "n1", job="hj-a-0"))
    async with world.running():
        await until(lambda: world.reader.pods_of("east", "default/hj-a-0") == 1)
        assert world.reader.counted("east", "default/hj-a-0") is None
        assert world.views() == []
        world.told.clear()
        server.put(PODS, pod("q", "n1", job="hj-a-0"))
        server.remove(PODS, "default/p")
        await until(lambda: world.reported("freed") == ["east"])
    assert world.reported("shown") == []


async def test_changes_of_a_moment_are_reported_together() -> None:
    world = World()
    server = world.join("east", node("n1"))
    async with world.running():
        await until(lambda: world.views() == ["east"])
        await until(lambda: world.reported("freed") == ["east"])
        world.told.clear()
        for name in ("a", "b", "c"):
            server.put(PODS, pod(name, "n1", job=f"hj-{name}-0"))
        await until(lambda: world.reported("shown"))
        assert world.reported("shown") == [[f"default/hj-{name}-0" for name in "abc"]]
        assert world.reader.counted("east", "default/hj-a-0") == 1


async def test_an_unexpected_exception_makes_the_reader_list_the_member_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(members_reader, "_FIRST_PAUSE", 0.0)
    bug = RuntimeError("a bug")
    world = World()
    server = world.join("east", node("n1"))
    async with world.running():
        await until(lambda: world.views() == ["east"])
        world.reader._owners["default/hj-a-0"] = "default/hj"
        server.put(PODS, pod("p", "n1", job="hj-a-0"))
        await until(lambda: world.reader.pods_of("east", "default/hj-a-0") == 1)
        world.raises.append(bug)
        server.remove(PODS, "default/p")
        await until(lambda: world.reported("faulty"))
        assert [first_error(each) for each in world.reported("faulty")] == [bug]
        await until(lambda: world.reader.pods_of("east", "default/hj-a-0") == 0)


async def test_one_call_renews_the_views_of_few_members_and_counts_pods_as_views_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, names = World(), [f"m{number}" for number in range(9)]
    servers = {name: world.join(name, node("n1")) for name in names}

    def counted(name: str) -> int | None:
        return world.reader.counted(name, f"default/hj-{name}-0")

    async with world.running():
        await until(lambda: world.views() == names and not any(map(world.has_changed, names)))
        monkeypatch.setattr(members_reader, "_GATHER_SECONDS", 3600.0)
        await until(lambda: not world.reader._due)
        for name, server in servers.items():
            server.put(PODS, pod("p", "n1", job=f"hj-{name}-0"))
        await until(lambda: all(map(world.has_changed, names)))
        for late in (6, 3, 0):
            assert world.views() == names
            assert [counted(name) for name in names] == [1] * (9 - late) + [0] * late
            assert sum(map(world.has_changed, names)) == late
        assert world.reader.pods_of(names[-1], f"default/hj-{names[-1]}-0") == 1


SLOW: dict[str, tuple[Any, str]] = {
    "facts": (Weights, "of_fact"),
    "fold": (MemberFold, "news"),
    "view": (MemberFold, "_resolve"),
}


@pytest.mark.parametrize(("owner", "name"), SLOW.values(), ids=SLOW)
async def test_a_member_with_an_object_that_takes_too_long_is_not_known_and_tried_again(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members_reader, "_FIRST_PAUSE", 0.01)
    world, real, slow = World(), getattr(owner, name), {"x"}

    def slowed(found: Any, *args: Any) -> Any:
        key = getattr(args[-1], "key", "") if args else ""
        facts = getattr(found, "_facts", {HYPERNODES: ()})
        if slow & {key, *facts[HYPERNODES]}:
            world.cpu.spend(600.0)
        return real(found, *args)

    monkeypatch.setattr(owner, name, slowed)
    world.join("west", node("n2"))
    east = world.join("east", node("n1"))
    async with world.running():
        await until(lambda: world.views() == ["east", "west"])
        east.put(HYPERNODES, {"metadata": {"name": "x"}, "spec": {"tier": 1, "members": []}})
        await until(lambda: world.views() == ["west"] and len(world.reported("faulty")) > 2)
        state = world.reader.state(world.clock.now)
        assert state["east"]["known"] is False
        assert "member east" in str(state["east"]["trouble"])
        assert "trouble" not in state["west"]
        slow.clear()
        await until(lambda: world.views() == ["east", "west"])
        assert "trouble" not in world.reader.state(world.clock.now)["east"]


async def test_members_that_are_not_ready_are_not_waited_for() -> None:
    world = World()
    world.join("east", node("n1"))
    world.join("west", ready=False)
    del world.fleet.members["west"]
    async with world.running():
        await asyncio.wait_for(world.reader.tried(60), 30)
        assert world.views() == ["east"]


async def test_each_doubt_about_the_nodes_lasts_longer_than_the_one_before_up_to_an_hour() -> None:
    world = World()
    world.join("east", node("n1"))
    async with world.running():
        await until(lambda: world.views() == ["east"])
        reader, lengths = world.reader, []
        for _ in range(6):
            assert reader._counts_nodes(world.clock.now)
            begun = world.clock.now
            reader.distrust()
            reader.distrust()  # a doubt that lasts already is not prolonged
            assert reader._doubted_until is not None
            lengths.append(int((reader._doubted_until - begun).total_seconds()) // 60)
            assert not reader._counts_nodes(begun)
            state = reader.state(begun)["east"]
            assert state["nodesDoubtedUntil"] == rfc3339(reader._doubted_until)
            world.clock.now = reader._doubted_until
        assert lengths == [5, 10, 20, 40, 60, 60]
        world.clock.wait(3600)
        reader.distrust()
        assert reader._doubted_until == world.clock.now + timedelta(minutes=5), "long after it"
