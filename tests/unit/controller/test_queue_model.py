"""Gangs behind our own queues in any history: never above a limit, never in parts, all of them end.

HYPERJOB_MODEL_EXAMPLES is the number of histories, 75 unless set.
"""

import os
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from hyperjob_core.api.wire import timestamp
from hyperjob_engine.queueing.state import Settings, admitted
from tests.unit.controller.histories import (
    Events,
    StuckError,
    made,
    run_out,
    settings_of,
    shapes,
    told,
)
from tests.unit.controller.queuedgangs import QueuedGangs
from tests.unit.engine.builders import Object

pytestmark = pytest.mark.long

EXAMPLES = int(os.environ.get("HYPERJOB_MODEL_EXAMPLES", "75"))


queue_specs = st.fixed_dictionaries(
    {
        "weight": st.integers(1, 4),
        "priority": st.integers(0, 1),
        "dequeueStrategy": st.sampled_from(["traverse", "traverse", "fifo"]),
        "parent": st.sampled_from(["root", "up", "up"]),
    }
)


class QueuedHistories(Events):
    """Submissions, losses, restarts, late or repeated messages, and queues that change.

    They are closed, made smaller, moved in the tree, ordered anew, and take back what they lent.
    """

    world: QueuedGangs

    @initialize(
        sizes=st.lists(st.integers(8, 24), min_size=1, max_size=3),
        spare=st.tuples(st.sampled_from([0, 0, 4, 12]), st.sampled_from([0, 0, 4, 12])),
        first=st.lists(shapes, min_size=2, max_size=3),
        heals=st.booleans(),
        lending=st.sets(st.sampled_from(["q0", "q1"])),
        specs=st.tuples(queue_specs, queue_specs),
    )
    def begin(
        self,
        sizes: list[int],
        spare: tuple[int, int],
        first: list[Any],
        heals: bool,
        lending: set[str],
        specs: tuple[Any, Any],
    ) -> None:
        self.start(QueuedGangs, sizes, spare, first)
        most = self.world.quotas.values()
        self.world.granted_first = {**self.world.quotas, "up": sum(most)}
        self.world.quotas["up"] = max(most)
        self.world.specs = dict(zip(("q0", "q1"), specs, strict=True))
        self.world.heals = heals
        self.world.lending = lending
        self.world.queues_arrive()

    @rule()
    def a_round_is_played(self) -> None:
        self.world.release()

    @rule(dispatches=st.booleans())
    def karmada_works(self, dispatches: bool) -> None:
        self.world.bind()
        self.world.schedule()
        if dispatches:
            self.world.dispatch()

    @rule(data=st.data(), gpus=st.integers(0, 32), arrives=st.booleans())
    def a_capability_changes(self, data: st.DataObject, gpus: int, arrives: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.world.quotas)))
        self.world.quotas[name] = gpus
        if arrives:
            self.world.queues_arrive()

    @rule(data=st.data(), arrives=st.booleans())
    def a_queue_is_closed_or_opened(self, data: st.DataObject, arrives: bool) -> None:
        self.world.closed ^= {data.draw(st.sampled_from(sorted(self.world.quotas)))}
        if arrives:
            self.world.queues_arrive()

    @rule(data=st.data(), arrives=st.booleans())
    def a_queue_lends_what_can_be_taken_back_or_not(
        self, data: st.DataObject, arrives: bool
    ) -> None:
        self.world.lending ^= {data.draw(st.sampled_from(sorted(self.world.quotas)))}
        if arrives:
            self.world.queues_arrive()

    @rule(name=st.sampled_from(["q0", "q1"]), spec=queue_specs, arrives=st.booleans())
    def a_queue_moves_in_the_tree_or_orders_anew(self, name: str, spec: Any, arrives: bool) -> None:
        self.world.specs[name] = spec
        if arrives:
            self.world.queues_arrive()

    @rule(data=st.data(), priority=st.integers(0, 2))
    def a_hyperjob_becomes_more_or_less_urgent(self, data: st.DataObject, priority: int) -> None:
        name = self.pick(data, self.world.hyperjobs)
        if name is not None:
            self.world.urgency[name] = priority
            self.world.due[name] = None

    @rule()
    def a_message_about_queues_arrives_again(self) -> None:
        self.world.queues_arrive()

    @rule(data=st.data())
    def karmada_cannot_schedule_on_a_cluster_or_can_again(self, data: st.DataObject) -> None:
        self.world.refused ^= {data.draw(st.sampled_from(sorted(self.world.sizes)))}

    @rule(data=st.data())
    def karmada_cannot_schedule_a_hyperjob(self, data: st.DataObject) -> None:
        name = self.pick(data, self.world.hyperjobs)
        if name is not None and not any(job.startswith(f"{name}-") for job in self.world.jobs):
            self.world.unschedulable.add(name)

    def teardown(self) -> None:
        """All end once everything heals; with queues as they are, all that the rules allow."""
        if not hasattr(self, "world"):
            return
        if self.world.heals:
            run_out(self.world)
            return
        try:
            run_out(self.world, patience=timedelta(hours=6))
        except StuckError:
            vain = [name for name in self.world.hyperjobs if self.world.waits_in_vain(name)]
            assert not vain, f"{vain} of {told(self.world)}"


QueuedHistories.TestCase.settings = settings_of(EXAMPLES)
TestQueuedHistories = QueuedHistories.TestCase


def test_a_gang_that_karmada_cannot_schedule_makes_way_for_ever() -> None:
    """The first holds the queue's whole share and can never start; the second goes before it."""
    world = QueuedGangs.of([16, 16], [16, 16])
    world.heals, world.unschedulable = False, {"hj0"}
    world.submit(made(0, ([(2, 8, "q0", False)], None, None)))
    for _ in range(4):
        world.release()
        for name in list(world.due):
            world.work(name)
        world.bind()
        world.schedule()
        world.deliver("hj0")
    assert world.holding()["q0"] == 16
    world.submit(made(1, ([(2, 8, "q0", False)], None, None)))
    with pytest.raises(StuckError):
        run_out(world, patience=timedelta(hours=6))
    assert list(world.hyperjobs) == ["hj0"], "the second has ended and is gone"
    assert world.given_back["hj0"] == 1, "it keeps its share while no other HyperJob waits"


def test_queues_of_one_parent_never_hold_more_than_it_may() -> None:
    world = QueuedGangs.of([16, 16], [16, 16])
    world.quotas["up"] = 24
    world.specs = {"q0": {"parent": "up"}, "q1": {"parent": "up"}}
    world.queues_arrive()
    for number in range(2):
        world.submit(made(number, ([(2, 8, f"q{number}", False)], None, None)))
    for _ in range(4):
        go_on(world)
    assert world.holding()["up"] == 16
    run_out(world)


def test_what_gives_back_below_one_parent_holds_until_it_is_gone() -> None:
    """The decision is recorded first; a controller may die before it deletes anything."""
    world = QueuedGangs.of([8, 8], [8, 8])
    world.quotas["up"], world.lending = 8, {"q0"}
    world.specs = {"q0": {"parent": "up"}, "q1": {"parent": "up", "priority": 1}}
    world.queues_arrive()
    world.submit(made(0, ([(1, 8, "q0", False)], None, None)))
    for _ in range(6):
        go_on(world)
    world.now += timedelta(minutes=1)
    world.submit(made(1, ([(1, 4, "q1", False)], None, None)))
    for _ in range(8):
        world.release()  # looks at what each queue holds then
        world.work("hj1")
        world.work("hj0", dies_after=0 if world.phase("hj0") == "Restarting" else None)
    assert world.phase("hj0") == "Restarting"
    assert "hj0-g0-0" in world.jobs
    assert not admitted(world.state, "default/hj1")
    run_out(world)


def test_a_gang_of_which_karmada_schedules_one_half_is_not_opened() -> None:
    world = QueuedGangs.of([8, 8], [16, 16])
    world.refused = {"c1"}
    world.submit(made(0, ([(2, 8, "q0", False)], None, None)))
    for _ in range(6):
        world.release()
        for name in list(world.due):
            world.work(name)
        world.bind()
        world.schedule()
        world.dispatch()
        world.deliver("hj0")
    assert len(world.jobs) == 2
    assert not any(raw.get("status") for raw in world.jobs.values()), "no member has seen it"
    run_out(world)


GROWS_AFTER = Settings(lag=timedelta()).grows_after
SAVES: Object = {"directory": "/c", "intervalSeconds": 60}
STEPS = ("round", "pass", "dies", "restarts", "karmada", "members", "messages", "minute", "lost")


@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=30))
@example(steps=[])
def test_what_was_lent_is_taken_back_whatever_happens_meanwhile(
    steps: list[tuple[str, int]],
) -> None:
    """One runs on both clusters, the half of it lent; then somebody asks for that half."""
    world = lent_half(made(0, ([(2, 8, "q0", False)], None, None)))
    for step, number in steps:
        happens(world, step, number)
    until_the_lender_runs(world)
    if not steps:
        attempts = [job["attempt"] for job in world.hyperjobs["hj0"]["status"]["jobs"]]
        assert attempts == [1, 1], "it gave way long before its end"
        assert not world.hyperjobs["hj0"]["status"].get("restarts")
    run_out(world)


@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=30))
@example(steps=[])
def test_an_elastic_one_gives_back_the_lent_half_and_goes_on_with_the_other(
    steps: list[tuple[str, int]],
) -> None:
    raw = made(0, ([(2, 8, "q0", False)], None, None))
    raw["spec"]["replicatedJobs"][0]["minReplicas"] = 1
    world = lent_half(raw)
    for step, number in steps:
        happens(world, step, number)
        assert 1 <= len(world.hyperjobs["hj0"]["status"]["jobs"]) <= 2
    until_the_lender_runs(world)
    if not steps:
        for _ in range(6):
            go_on(world)
            world.now += timedelta(seconds=1)
        status = world.hyperjobs["hj0"]["status"]
        assert (status["state"]["phase"], status["jobsReady"]) == ("Running", "1/1")
        assert [job["attempt"] for job in status["jobs"]] == [1]
        assert world.holding()["q0"] == 8
    run_out(world)


@given(
    sizes=st.lists(st.sampled_from([8, 16]), min_size=2, max_size=3),
    bounds=st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(1, 4)).map(sorted),
    others=st.lists(st.integers(1, 2), max_size=2),
    kind=st.sampled_from([{}, {"quorum": 1}, {"checkpoint": SAVES}]),
    steps=st.lists(st.tuples(st.sampled_from([*STEPS, "all"]), st.integers(0, 3)), max_size=40),
)
def test_an_elastic_one_is_within_its_bounds_and_ends_whatever_is_lost_or_dies(
    sizes: list[int],
    bounds: list[int],
    others: list[int],
    kind: Object,
    steps: list[tuple[str, int]],
) -> None:
    world = QueuedGangs.of(sizes, [32, 32])
    world.lending = {"q0"}
    world.queues_arrive()
    least, wish, most = bounds
    raw = elastic(wish, kind)
    raw["spec"]["replicatedJobs"][0] |= {"minReplicas": least, "maxReplicas": most}
    world.submit(raw)
    for number, replicas in enumerate(others, 1):
        world.submit(made(number, ([(replicas, 8, f"q{number % 2}", False)], None, None)))
    grew: list[str] = []
    for step, number in steps:
        if step == "all":
            go_on(world)
        else:
            happens(world, step, number)
        status = world.hyperjobs["hj0"]["status"]
        if status.get("jobs"):
            assert least <= len(status["jobs"]) <= most
        for each in status.get("alternatives", ()):
            if each["reason"] == "Grew" and each["lastTransitionTime"] not in grew:
                grew.append(each["lastTransitionTime"])
    times = [timestamp(each) or world.now for each in grew]
    if "quorum" not in kind:
        assert all(after - before >= GROWS_AFTER for before, after in pairwise(times))
    world.finish_jobs()
    run_out(world)


def elastic(most: int, kind: Object) -> Object:
    raw = made(0, ([(most, 8, "q0", False)], None, None))
    raw["spec"] |= kind
    raw["spec"]["replicatedJobs"][0]["minReplicas"] = 1
    return raw


@pytest.mark.parametrize("kind", [{"quorum": 1}, {"checkpoint": SAVES}], ids=["quorum", "world"])
@pytest.mark.parametrize("dies", [None, 0, 1, 2])
def test_an_elastic_one_takes_the_room_of_one_that_ends_also_if_its_controller_dies(
    kind: Object, dies: int | None
) -> None:
    world = QueuedGangs.of([8, 8], [16, 16])
    world.submit(made(1, ([(1, 8, "q1", False)], None, None)))
    go_on(world)
    world.submit(elastic(2, kind))
    for _ in range(8):
        go_on(world)
        world.now += timedelta(seconds=1)
    (small,) = (raw for name, raw in world.jobs.items() if name.startswith("hj0"))
    assert world.hyperjobs["hj0"]["status"]["jobsReady"] == "1/1"
    world.ends[small["metadata"]["uid"]] += timedelta(hours=9)
    world.now += timedelta(hours=1)
    for number in range(60):
        if dies is not None:
            world.work("hj0", dies_after=dies)
            if number % 8 == 1:
                world.restart()
        go_on(world)
        world.delete_ended()
        world.now += timedelta(seconds=20)
        if world.hyperjobs["hj0"]["status"]["jobsReady"] == "2/2":
            break
    status = world.hyperjobs["hj0"]["status"]
    assert (status["jobsReady"], status["alternatives"][0]["reason"]) == ("2/2", "Grew")
    assert not status.get("restarts")
    run_out(world)


def lent_half(raw: Object) -> QueuedGangs:
    """Let a HyperJob run on both clusters, the half of it lent by a queue that now asks for it."""
    world = QueuedGangs.of([8, 8], [16, 16])
    world.lending = {"q0"}
    world.queues_arrive()
    world.submit(raw)
    for _ in range(8):
        go_on(world)
        world.now += timedelta(seconds=1)
    assert world.phase("hj0") == "Running"
    world.now += timedelta(minutes=1)
    world.submit(made(1, ([(1, 8, "q1", False)], None, None)))
    return world


def until_the_lender_runs(world: QueuedGangs) -> None:
    """Let everything heal and go on; fail if the second HyperJob does not start."""
    world.heal()
    for _ in range(40):
        go_on(world)
        world.now += timedelta(seconds=2)
        if "hj1" not in world.hyperjobs or world.phase("hj1") == "Running":
            return
    raise AssertionError(told(world))


def go_on(world: QueuedGangs) -> None:
    """Let each part do what it has to do now, once."""
    world.release()
    world.time_is_up()
    for name in list(world.due):
        world.work(name)
    world.bind()
    world.schedule()
    world.dispatch()
    world.finish_jobs()
    for name in world.hyperjobs:
        world.deliver(name)


def happens(world: QueuedGangs, step: str, number: int) -> None:
    """Let one thing happen."""
    names = sorted(world.hyperjobs)
    match step:
        case "round":
            world.release()
        case "pass" | "dies":
            world.work(names[number % len(names)], dies_after=number if step == "dies" else None)
        case "restarts":
            world.restart()
        case "karmada":
            world.bind()
            world.schedule()
        case "members":
            world.dispatch()
            world.finish_jobs()
        case "messages":
            world.deliver(names[number % len(names)])
        case "minute":
            world.now += timedelta(minutes=1)
            world.woken = True
        case "lost":
            world.lost ^= {f"c{number % 2}"}
            world.clusters_change()
