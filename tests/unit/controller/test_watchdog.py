"""A turn of the event loop that takes too long is counted, named, and sets aside what caused it.

The CPU time is a number that the tests advance; one test burns real CPU, as much as the timer lets.
"""

import asyncio
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from hyperjob_controller import reconciler, reservations
from hyperjob_controller.admission.engine import Admission
from hyperjob_controller.observe import Observer
from hyperjob_controller.reconciler import Reconciler
from hyperjob_controller.reservations import Reservations
from hyperjob_controller.wake.handlers import Handlers
from hyperjob_controller.watchdog import CUT, LONGEST, Of, Place, SlowTurnError, Watchdog
from hyperjob_core.virtualtime import VirtualLoop
from hyperjob_queueing import round as rounds
from tests.support.counts import Counts
from tests.support.walls import Cpu
from tests.unit.controller.test_wall import key_in
from tests.unit.controller.wholeworld import World, scenario_of, submission

SLOW = LONGEST + 0.5


@pytest.fixture
def cpu() -> Cpu:
    return Cpu()


@pytest.fixture
def watchdog(cpu: Cpu) -> Watchdog:
    return cpu.watchdog


def counted(watchdog: Watchdog) -> list[tuple[str, float]]:
    return [(each.of, each.seconds) for each in watchdog.slowest]


def slow_in(
    watchdog: Watchdog, of: Of, work: Callable[[], object], *, most: float = CUT
) -> SlowTurnError:
    """Return the error of a turn with too much work."""
    with pytest.raises(SlowTurnError) as caught, watchdog.turn(Place.EVENT, of, most=most):
        work()
    return caught.value


def test_a_turn_above_the_longest_raises_after_its_end_and_names_its_object(
    cpu: Cpu, watchdog: Watchdog
) -> None:
    done: list[str] = []

    def work() -> None:
        cpu.spend(SLOW)
        done.append("all")

    error = slow_in(watchdog, "member east", work)
    assert str(error).startswith("member east took 1.5 s of CPU")
    assert (done, error.of) == (["all"], "member east")
    with watchdog.turn(Place.MEMBERS, "member west"):
        cpu.spend(LONGEST)
    assert counted(watchdog) == [("member east", SLOW)]


def test_the_time_of_an_inner_turn_is_that_of_its_object_alone(
    cpu: Cpu, watchdog: Watchdog
) -> None:
    with watchdog.turn(Place.RECONCILE, "default/a"):
        for _ in range(3):
            with watchdog.turn(Place.MEMBERS, "member east"):
                cpu.spend(LONGEST)
        cpu.spend(LONGEST)
    assert counted(watchdog) == []


def test_the_parts_of_a_turn_are_its_own_unless_one_is_slow_by_itself(
    cpu: Cpu, watchdog: Watchdog
) -> None:
    found: list[str] = []

    def round_of(*seconds: float) -> None:
        with watchdog.turn(Place.ROUND, "a round", slow=lambda error: found.append(error.of)):
            for number, each in enumerate(seconds):
                told = f"default/{number}"
                with watchdog.turn(
                    Place.ROUND, told, slow=lambda error: found.append(error.of), part=True
                ):
                    cpu.spend(each)

    round_of(0.5, 0.5)
    assert found == []
    round_of(0.5, SLOW, 0.5)
    assert found == ["default/1"]
    round_of(0.75, 0.75)
    assert found == ["default/1", "a round"]


def test_the_timer_stops_a_turn_once_at_its_limit(cpu: Cpu, watchdog: Watchdog) -> None:
    after: list[str] = []

    def work() -> None:
        try:
            cpu.spend(60.0)
        finally:
            cpu.spend(60.0)
            after.append("what an exception needs is not stopped")

    assert str(slow_in(watchdog, "a", work)).startswith("a was stopped after 3.2 s of CPU")
    assert len(after) == 1
    assert counted(watchdog) == [("a", 63.25)]
    cpu.spend(60.0)


def test_the_timer_stops_a_round_within_a_part_of_it(cpu: Cpu, watchdog: Watchdog) -> None:
    def work() -> None:
        for _ in range(20):
            with watchdog.turn(Place.ROUND, "default/a", part=True):
                cpu.spend(LONGEST)

    assert slow_in(watchdog, "a round", work).of == "a round"
    assert CUT < cpu.seconds < CUT + LONGEST


def endless_expression() -> object:
    return re.match("(a|aa)+$", "a" * 60 + "b")


def endless_loop() -> object:
    while True:
        pass


@pytest.mark.parametrize("endless", [endless_expression, endless_loop])
def test_a_turn_without_end_ends_by_the_timer_of_the_process(endless: Callable[[], object]) -> None:
    watchdog = Watchdog()
    with watchdog.ticking():
        slow_in(watchdog, "member east", endless, most=0.3)


class StandingLoop(VirtualLoop):
    """An event loop in virtual time that stands still while a callback runs."""

    def stand(self, seconds: float) -> None:
        self._virtual += seconds


def test_a_standstill_outside_of_all_turns_is_counted_with_the_longest_turn_meanwhile(
    cpu: Cpu, caplog: pytest.LogCaptureFixture
) -> None:
    watchdog, counts = cpu.watchdog, Counts()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, StandingLoop)
        task = asyncio.ensure_future(watchdog.run())
        await asyncio.sleep(5.0)
        loop.stand(LONGEST)
        await asyncio.sleep(5.0)
        assert counted(watchdog) == []
        with watchdog.turn(Place.EVENT, "clusters east"):
            cpu.spend(0.5)
        loop.stand(4.0)
        await asyncio.sleep(5.0)
        assert counted(watchdog) == [("clusters east", pytest.approx(4.0, abs=0.5))]
        with watchdog.turn(Place.EVENT, "clusters west", slow=lambda _: None):
            cpu.spend(SLOW)
        loop.stand(4.0)
        await asyncio.sleep(5.0)
        assert len(watchdog.slowest) == 2, "that turn explains the standstill"
        task.cancel()

    with asyncio.Runner(loop_factory=StandingLoop) as runner, watchdog.ticking():
        runner.run(main())
    (said,) = caplog.records
    assert said.__dict__["longest"] == "clusters east"
    assert counts("hyperjob_slow_turns_total", place="loop") == 1


@pytest.fixture
def world(cpu: Cpu) -> World:
    jobs = [submission(f"j{number}", arrival=150.0 * number) for number in range(6)]
    return World(scenario_of(jobs, nodes=1, seed=1), cpu=cpu)


STEPS: tuple[tuple[Any, str, Place], ...] = (
    (Observer, "objects_of", Place.RECONCILE),
    (Observer, "observe", Place.RECONCILE),
    (reconciler, "plan", Place.RECONCILE),
    (rounds._Round, "_nominate", Place.ROUND),
    (rounds._Round, "_admit", Place.ROUND),
)


def slowed(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, *, cpu: Cpu, seconds: float, key: str
) -> None:
    """Let a function take CPU time whenever it is called for a HyperJob."""
    real = getattr(owner, name)

    def slow(*args: Any, **named: Any) -> Any:
        if key_in(args, key):
            cpu.spend(seconds)
        return real(*args, **named)

    monkeypatch.setattr(owner, name, slow)


def incidents_of(world: World) -> set[str]:
    return {
        record.__dict__["hyperjob"]["name"]
        for record in world.logged.records
        if "hyperjob" in record.__dict__
    }


@pytest.mark.parametrize(("owner", "name", "place"), STEPS, ids=lambda each: str(each))
def test_a_hyperjob_at_which_a_step_is_slow_is_set_aside_alone_and_gets_on(
    owner: Any, name: str, place: Place, world: World, cpu: Cpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowed(monkeypatch, owner, name, cpu=cpu, seconds=SLOW, key="j0")
    world.play(hours=3)
    assert world.ended() == {f"j{number}" for number in range(6)}
    assert incidents_of(world) == {"j0"}
    assert str(place) in world.counted("hyperjob_slow_turns_total")
    assert str(place) in world.counted()
    said = [job for job, state in world.plane.states if state.get("reason") == "InternalError"]
    assert set(said) == {"j0"}
    numbers = {record.__dict__["incident"] for record in world.logged.records}
    assert len(numbers) == 1, "the same cause has the same number"


@pytest.mark.parametrize(("owner", "name", "place"), STEPS, ids=lambda each: str(each))
def test_a_hyperjob_at_which_a_step_would_never_end_waits_alone(
    owner: Any, name: str, place: Place, world: World, cpu: Cpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowed(monkeypatch, owner, name, cpu=cpu, seconds=600.0, key="j0")
    world.play(hours=1)
    assert world.ended() == {f"j{number}" for number in range(1, 6)}
    assert incidents_of(world) == {"j0"}
    assert str(place) in world.counted("hyperjob_slow_turns_total")
    spent = sum(each.seconds for each in world.manager.watchdog.slowest)
    assert spent / len(world.manager.watchdog.slowest) < CUT + 0.5
    assert sum(world.counted().values()) < 60, "a back-off that grows to five minutes"


def test_a_queue_round_that_is_slow_at_no_hyperjob_blames_none_and_rounds_rest(
    world: World, cpu: Cpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, played = Admission._round, []

    def slow(admission: Admission) -> None:
        played.append(asyncio.get_running_loop().time())
        cpu.spend(600.0 if len(played) % 2 else SLOW)
        real(admission)

    monkeypatch.setattr(Admission, "_round", slow)
    world.play(hours=3)
    assert world.ended() == {f"j{number}" for number in range(6)}
    assert incidents_of(world) == set()
    assert {each.of for each in world.manager.watchdog.slowest} == {"a round"}


def test_a_cluster_at_which_the_handlers_are_slow_gets_nothing_new_and_is_tried_again(
    world: World, cpu: Cpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tried, seen = reservations.summarise, list[float](), list[tuple[float, set[str]]]()

    def slow(raw: Any) -> Any:
        if raw["metadata"]["name"] == "a" and 60.0 < asyncio.get_running_loop().time() < 500.0:
            tried.append(asyncio.get_running_loop().time())
            cpu.spend(600.0)
        return real(raw)

    of = Reservations.clusters

    def clusters(found: Reservations, **how: Any) -> Any:
        names = of(found, **how)
        seen.append((asyncio.get_running_loop().time(), {each.name for each in names}))
        return names

    monkeypatch.setattr(reservations, "summarise", slow)
    monkeypatch.setattr(Reservations, "clusters", clusters)
    world.play(hours=3)
    assert world.ended() == {f"j{number}" for number in range(6)}
    pauses = [after - before for before, after in pairwise(tried)]
    assert pauses[:4] == pytest.approx([5.0, 10.0, 20.0, 40.0])
    meanwhile = [names for time, names in seen if tried[0] < time < 500.0]
    assert meanwhile
    assert {"b"} == set().union(*meanwhile)
    assert {"a", "b"} in [names for time, names in seen if time > 500.0]
    named = {record.__dict__.get("object") for record in world.logged.records}
    assert named == {"clusters.cluster.karmada.io a"}


def test_an_event_that_is_slow_sets_the_hyperjob_of_its_object_aside(
    world: World, cpu: Cpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Handlers._child

    def slow(handlers: Handlers, kind: Any, old: Any, new: Any) -> None:
        if (new or old)["metadata"]["name"].startswith("j0-"):
            cpu.spend(SLOW)
        real(handlers, kind, old, new)

    monkeypatch.setattr(Handlers, "_child", slow)
    world.play(hours=3)
    assert incidents_of(world) == {"j0"}
    assert world.ended() >= {f"j{number}" for number in range(1, 6)}
    assert world.counted("hyperjob_slow_turns_total").keys() == {"event"}


def test_a_slow_pass_carries_its_decision_out(
    world: World, cpu: Cpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowed(monkeypatch, reconciler, "plan", cpu=cpu, seconds=SLOW, key="j0")
    decide = Reconciler._decide
    passes: list[float] = []

    def deciding(made: Reconciler, key: str) -> Any:
        if key == "default/j0":
            passes.append(asyncio.get_running_loop().time())
        return decide(made, key)

    monkeypatch.setattr(Reconciler, "_decide", deciding)
    world.play(hours=3)
    waited = world.simulation.history.lives["default/j0"].waited
    assert waited is not None
    assert waited < 60.0, "the first passes create its sub-jobs"
    assert len(passes) < 60
