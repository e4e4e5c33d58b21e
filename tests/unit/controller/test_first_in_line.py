"""Room that is kept for the first of those that wait, in the modes without queues of ours."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controller.firstinline import FirstInLine
from controller.model.observed import Cluster, Kept, Observed, QueueAdmission
from controller.model.planned import CreateChild
from controller.model.resources import Resources, parse_resources
from controller.placement.claim import Claim
from controller.plan import plan
from controller.waiting import SETTLE_SECONDS, Waiting
from tests.unit.controller.builders import (
    GPU,
    Object,
    cluster,
    group,
    hyperjob,
    job,
    observed,
    policy,
    request,
    task,
    template,
)
from tests.unit.controller.gangworld import GangWorld
from tests.unit.controller.histories import made

NONE, THEIRS = QueueAdmission.NONE, QueueAdmission.VOLCANO_GLOBAL


def gpus(number: int) -> Resources:
    return cluster("any", number).free


def claim(*sizes: int, needed: int | None = None, begun: bool = False, **fields: Any) -> Claim:
    requests = tuple(request(f"j-{index}", size) for index, size in enumerate(sizes))
    wanted = len(sizes) if needed is None else needed
    return Claim(requests=requests, needed=wanted, begun=begun, **fields)


class Rig:
    """Those that wait, over clusters that a test sets: free now, and eventually."""

    def __init__(self, **clusters: tuple[int, int]) -> None:
        self.woken: list[str] = []
        self.waiting = Waiting(self._wake)
        self.line = FirstInLine(self.waiting)
        self.line.connect(self._look)
        self.set(**clusters)

    def _wake(self, key: str, delay: float) -> None:
        if delay <= SETTLE_SECONDS:
            self.woken.append(key)

    def _look(self) -> tuple[list[Cluster], dict[str, Resources]]:
        found = [cluster(name, free, total=most) for name, (free, most) in self.sizes.items()]
        return found, {name: gpus(most) for name, (_, most) in self.sizes.items()}

    def set(self, **clusters: tuple[int, int]) -> None:
        self.sizes = clusters
        self.line.look_again()

    def put(self, key: str, wish: Claim | None, *, age: int, priority: int = 0) -> None:
        needs = [each.demand for each in wish.requests] if wish is not None else []
        self.waiting.put((-priority, f"{age:03}", key), needs=needs, claim=wish)
        self.line.look_again()

    def kept_from(self, key: str, *, age: int, priority: int = 0) -> tuple[str, dict[str, int]]:
        kept = self.line.kept_from((-priority, f"{age:03}", key))
        if kept is None:
            return "", {}
        return kept.owner, {name: room[GPU] // 10**9 for name, room in kept.room.items()}


def test_the_oldest_keeps_all_that_it_could_use() -> None:
    rig = Rig(a=(8, 32), b=(0, 16), c=(4, 8))
    assert rig.kept_from("new", age=9) == ("", {})
    rig.put("second", claim(8), age=2)
    rig.put("first", claim(16, 16), age=1)
    assert rig.kept_from("new", age=9) == ("first", {"a": 32, "b": 16})
    assert rig.kept_from("first", age=1) == ("", {})
    assert rig.kept_from("older", age=0) == ("", {}), "it comes before the first"
    assert rig.kept_from("urgent", age=9, priority=1) == ("", {})


def test_the_most_urgent_is_first() -> None:
    rig = Rig(a=(8, 32))
    rig.put("old", claim(16), age=1)
    rig.put("urgent", claim(24), age=2, priority=5)
    assert rig.kept_from("old", age=1) == ("urgent", {"a": 24})


@pytest.mark.parametrize(
    "wish",
    [
        claim(33),
        claim(16, 16, 16),
        claim(24, 24, needed=2, max_domains=1),
        claim(16, 16, standing=(("g", "lost"),), max_domains=1),
        None,
    ],
)
def test_one_that_could_never_stand_keeps_nothing_and_contends_with_nobody(
    wish: Claim | None,
) -> None:
    rig = Rig(a=(8, 32))
    rig.put("never", wish, age=1)
    assert rig.kept_from("new", age=9) == ("", {})
    assert rig.line.is_contended("new") is (wish is None), "of what nothing is known counts"
    rig.put("next", claim(32), age=2)
    assert rig.kept_from("new", age=9) == ("next", {"a": 32})
    assert rig.line.is_contended("new")
    assert rig.line.is_contended("next") is (wish is None)


def test_of_a_gang_that_must_stand_on_one_cluster_only_its_least_number_counts() -> None:
    rig = Rig(a=(8, 32), b=(8, 8))
    rig.put("first", claim(16, 16, 16, needed=2, max_domains=1), age=1)
    assert rig.kept_from("new", age=9) == ("first", {"a": 32})


def test_what_is_let_go_wakes_those_that_it_kept_waiting() -> None:
    rig = Rig(a=(8, 32))
    rig.put("first", claim(32), age=1)
    rig.put("small", claim(8), age=2)
    rig.put("large", claim(16), age=3)
    rig.put("begun", claim(4, begun=True), age=4)
    rig.woken.clear()
    rig.line.wake("a", gpus(8))
    assert rig.woken == ["begun"]
    rig.woken.clear()
    rig.set(a=(8, 24))
    assert rig.kept_from("new", age=9) == ("small", {"a": 8}), "the first could not stand any more"
    assert set(rig.woken) == {"small", "begun"}
    rig.woken.clear()
    rig.waiting.drop("small")
    rig.line.look_again()
    assert rig.kept_from("new", age=9) == ("large", {"a": 16})


def test_nothing_is_looked_at_for_those_that_do_not_wait() -> None:
    rig = Rig(a=(8, 32))
    rig.line.connect(lambda: pytest.fail("looked at the clusters"))
    rig.line.changed()
    assert rig.line.kept_from((0, "1", "new")) is None
    assert not rig.line.is_contended("new")


def behind(raw: Object, *others: Object | Cluster) -> Observed:
    """Look at a HyperJob that comes after the first; `others` are clusters and its objects."""
    clusters = tuple(each for each in others if isinstance(each, Cluster))
    objects = [each for each in others if not isinstance(each, Cluster)]
    return replace(observed(raw, *objects, clusters=clusters), kept=KEPT)


KEPT = Kept(owner="ns/first", room={"a": parse_resources({GPU: "16", "cpu": "64"})})


def test_whoever_is_behind_takes_only_what_is_left_and_is_told() -> None:
    decided = plan(behind(hyperjob(), cluster("a", 16), cluster("b", 8)))
    assert decided.actions == ()
    assert decided.claim is not None
    assert decided.claim.needed == 2
    assert decided.status is not None
    text = "a has room, but it is kept for ns/first, which is first in line for it"
    assert text in decided.status["state"]["message"]
    larger = behind(hyperjob(), cluster("a", 24), cluster("b", 8))
    assert len(plan(larger).actions) == 2


def test_a_gang_of_which_some_stand_goes_before_the_first() -> None:
    """Else the two could wait for each other for ever."""
    standing = job("hj-trainer-0"), policy("hj-trainer-0", cluster="a")
    decided = plan(behind(hyperjob(), *standing, cluster("a", 16)))
    assert [type(action) for action in decided.actions] == [CreateChild]
    optional = plan(behind(hyperjob(minAvailable=1), *standing, cluster("a", 16)))
    assert optional.actions == (), "it can do without the rest"


def automatic(accelerators: int) -> Object:
    split = {"mode": "auto", "accelerators": accelerators, "acceleratorType": GPU}
    one = group(replicas=1, templateSpec=template(task(replicas=1)), splitPolicy=split)
    return hyperjob(one)


def test_an_automatic_split_takes_only_what_is_left_and_claims_in_pieces() -> None:
    two = cluster("a", 24), cluster("b", 16)
    found = plan(behind(automatic(24), *two))
    assert [each.cluster for each in found.actions if isinstance(each, CreateChild)] == ["b", "a"]
    decided = plan(behind(automatic(28), *two))
    assert decided.actions == ()
    assert decided.claim is not None
    assert decided.claim.needed == len(decided.claim.requests) == 28


# the whole: small ones come for ever


def pass_time(world: GangWorld) -> None:
    """Let everybody work until all is quiet, then let a minute go by."""
    for _ in range(50):
        world.bind()
        world.release()
        world.schedule()
        world.dispatch()
        for name in list(world.hyperjobs):
            world.deliver(name)
        world.time_is_up()
        if not world.due:
            break
        for name in list(world.due):
            world.work(name)
    world.delete_ended()
    world.now += timedelta(minutes=1)
    world.finish_jobs()


def submit(world: GangWorld, number: int, shape: Any) -> None:
    raw = made(number, shape)
    raw["metadata"]["creationTimestamp"] = f"2026-01-01T00:{number:02}:00Z"
    world.submit(raw)


def stream(world: GangWorld, first: int, number: int) -> Iterable[None]:
    """Submit two small ones a minute, which would fill the clusters for ever."""
    for each in range(number):
        for one in range(2):
            submit(world, first + 2 * each + one, ([(1, 8, "q0", False)], None, None))
        pass_time(world)
        yield


@pytest.mark.parametrize("admission", [NONE, THEIRS])
def test_small_ones_that_come_for_ever_do_not_starve_a_large_one(admission: QueueAdmission) -> None:
    world = GangWorld.of([16, 16], [999, 999], admission=admission)
    for _ in stream(world, 1, 4):
        pass
    submit(world, 10, ([(2, 16, "q1", False)], None, None))
    for _ in stream(world, 11, 6):
        if world.phase("hj10") == "Running":
            break
    assert world.phase("hj10") == "Running"


@pytest.mark.parametrize("admission", [NONE, THEIRS])
def test_one_that_could_never_stand_holds_nobody_up(admission: QueueAdmission) -> None:
    world = GangWorld.of([16, 16], [999, 999], admission=admission)
    submit(world, 1, ([(3, 16, "q1", False)], None, None))
    for number, _ in enumerate(stream(world, 2, 5)):
        running = sum(world.phase(name) == "Running" for name in world.hyperjobs)
        assert running or not number
    assert world.phase("hj1") == "Pending"
    assert len(world.hyperjobs) <= 5, "the small ones end one after the other"


@pytest.mark.parametrize("admission", [NONE, THEIRS])
def test_a_first_whose_cluster_is_lost_lets_the_others_pass(admission: QueueAdmission) -> None:
    world = GangWorld.of([16, 16], [999, 999], admission=admission)
    submit(world, 1, ([(2, 8, "q0", False)], None, None))
    pass_time(world)
    submit(world, 2, ([(2, 16, "q0", False)], None, None))
    submit(world, 3, ([(1, 8, "q0", False)], None, None))
    pass_time(world)
    assert world.phase("hj3") == "Pending"
    world.lost.add("c1")
    world.clusters_change()
    pass_time(world)
    pass_time(world)
    assert "hj3" in {name for name in world.hyperjobs if world.phase(name) == "Running"}
