"""An exception about one HyperJob touches that HyperJob alone, wherever the controller meets it.

The whole controller runs in virtual time, on an API server in memory and simulated members, while
exceptions are raised within its functions.
"""

import asyncio
import functools
import logging
from collections import Counter
from typing import Any

import pytest

from hyperjob_controller import reconciler
from hyperjob_controller.admission import engine
from hyperjob_controller.apply.applier import Applier
from hyperjob_controller.memory import Memory
from hyperjob_controller.observe import Observer
from hyperjob_controller.reconciler import Events, StatusWriter
from hyperjob_controller.reservations import Reservations
from hyperjob_controller.wake.handlers import Handlers
from hyperjob_controller.wall import Incidents
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_queueing import reserve
from hyperjob_queueing import round as rounds
from hyperjob_queueing import state as queue_state
from hyperjob_queueing.forecast import CapacityTimeline
from tests.unit.controller.wholeworld import World, scenario_of, submission
from tests.unit.engine.builders import NOW

INJECTED = 50
JOBS = 10
STAGES: tuple[tuple[Any, str], ...] = (
    (Observer, "objects_of"),
    (Memory, "update"),
    (Memory, "decided"),
    (Observer, "observe"),
    (reconciler, "plan"),
    (Applier, "apply"),
    (Applier, "_do"),
    (StatusWriter, "write"),
    (Events, "record"),
    (Reservations, "update"),
    (Handlers, "_hyperjob"),
    (Handlers, "_child"),
    (Handlers, "_binding"),
    (Handlers, "_cluster"),
    (Informer, "_take"),
    (engine, "unit_of"),
    (engine, "verdict_of"),
    (engine, "schedule"),
    (engine, "stale_messages"),
    (engine, "next_change"),
    (rounds, "try_to_admit"),
    (reserve, "reserve"),
    (rounds, "admit"),
    (rounds, "ends"),
    (rounds, "renew_forecast"),
    (CapacityTimeline, "earliest"),
    (queue_state, "_hold"),
    (queue_state, "_line_up"),
)


class InjectedError(Exception):
    """What a test raises in the controller."""


class Stage:
    """Makes the next call of a function raise, once for each `arm`."""

    trial = False
    """The queue engine looks for the HyperJob at which a round has failed, and expects failures."""

    def __init__(self, owner: Any, name: str, patch: pytest.MonkeyPatch) -> None:
        self.name = f"{getattr(owner, '__name__', owner)}.{name}"
        self.armed = 0
        self.raised = 0
        real = getattr(owner, name)

        @functools.wraps(real)
        def wrapper(*args: Any, **named: Any) -> Any:
            if self.armed and not Stage.trial:
                self.armed -= 1
                self.raised += 1
                raise InjectedError(self.name)
            return real(*args, **named)

        patch.setattr(owner, name, wrapper)


def four_at_a_time(*, jobs: int, seed: int) -> World:
    """Return a world of 16 GPUs in two clusters, and HyperJobs of four GPUs."""
    return World(
        scenario_of(
            [submission(f"j{number}", arrival=150.0 * number) for number in range(jobs)],
            nodes=1,
            seed=seed,
        )
    )


@pytest.mark.parametrize("seed", [1, 28, 29, 30])
def test_no_exception_of_fifty_ends_the_controller_or_loses_a_hyperjob(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = four_at_a_time(jobs=JOBS, seed=seed)
    stages = [Stage(owner, name, monkeypatch) for owner, name in STAGES]

    search = engine.culprit

    async def searching(keys: Any, fails: Any) -> Any:
        def failing(some: Any) -> bool:
            Stage.trial = True
            try:
                return bool(fails(some))
            finally:
                Stage.trial = False

        return await search(keys, failing)

    monkeypatch.setattr(engine, "culprit", searching)

    async def inject() -> None:
        for _ in range(INJECTED):
            await asyncio.sleep(world.rng.uniform(1.0, 70.0))
            stage = world.rng.choice(stages)
            stage.armed += 1

    world.play(inject)
    raised = Counter({stage.name: stage.raised for stage in stages})
    assert raised.total() >= INJECTED * 0.9, raised
    assert world.ended() == {f"j{number}" for number in range(JOBS)}
    stacks = [record.exc_info[1] for record in world.logged.records if record.exc_info]
    assert len(stacks) == len(world.logged.records)
    assert {record.levelno for record in world.logged.records} == {logging.ERROR}
    grouped = sum(len(each.exceptions) - 1 for each in stacks if isinstance(each, ExceptionGroup))
    assert sum(world.counted().values()) == raised.total() - grouped
    numbers = {record.__dict__["incident"] for record in world.logged.records}
    told = {
        (job, incident_of(state))
        for job, state in world.plane.states
        if "incident " in str(state.get("message"))
    }
    assert {number for _, number in told} <= numbers
    # Two exceptions about a HyperJob at one moment: its status names the later one.
    caught: dict[tuple[str, float], list[tuple[str, str]]] = {}
    for moment, record in world.logged.at:
        if "hyperjob" in record.__dict__:
            name = record.__dict__["hyperjob"]["name"]
            ended = world.simulation.history.lives[f"default/{name}"].ended
            if ended is not None and ended <= moment:
                continue  # a HyperJob that has ended keeps its last state
            caught.setdefault((name, moment), []).append((name, record.__dict__["incident"]))
    assert len(caught) > INJECTED // 3
    assert [each for each in caught.values() if not told.intersection(each)] == []
    visible = world.counted()
    features = {record.__dict__["place"] for record in world.logged.records}
    assert features <= visible.keys()


def incident_of(state: Object) -> str:
    return str(state["message"]).partition("incident ")[2].partition(")")[0]


def key_in(values: Any, name: str) -> bool:
    """Return whether one of a function's arguments is about the HyperJob of a name."""
    key = f"default/{name}"
    for value in values:
        for holder in (value, getattr(value, "hyperjob", None), getattr(value, "order", None)):
            if holder == key or getattr(holder, "key", None) == key:
                return True
    return False


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Observer, "objects_of"),
        (Memory, "update"),
        (Observer, "observe"),
        (reconciler, "plan"),
        (StatusWriter, "write"),
        (engine, "unit_of"),
        (engine, "verdict_of"),
        (rounds._Round, "_nominate"),
        (rounds._Round, "_admit"),
    ],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_a_hyperjob_at_which_a_step_always_fails_waits_alone(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = four_at_a_time(jobs=6, seed=1)
    real = getattr(owner, name)

    def fails(*args: Any, **named: Any) -> Any:
        if key_in(args, "j0"):
            raise InjectedError(name)
        return real(*args, **named)

    monkeypatch.setattr(owner, name, fails)
    world.play(hours=1)
    assert world.ended() == {f"j{number}" for number in range(1, 6)}
    named = [state for job, state in world.plane.states if job == "j0"]
    (left,) = (raw for raw in world.left if raw["metadata"]["name"] == "j0")
    assert left["status"]["state"]["reason"] == "InternalError"
    assert 10 < sum(world.counted().values()) < 60  # a back-off that grows to five minutes
    numbers = {record.__dict__["incident"] for record in world.logged.records}
    assert {incident_of(state) for state in named if "incident" in str(state)} <= numbers
    innocent = [job for job, state in world.plane.states if state.get("reason") == "InternalError"]
    assert set(innocent) == {"j0"}


def test_a_changed_spec_gets_its_pass_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = four_at_a_time(jobs=1, seed=3)
    real = reconciler.plan

    def fails(observed: Any) -> Any:
        if observed.hyperjob.generation == 1:
            raise InjectedError
        return real(observed)

    monkeypatch.setattr(reconciler, "plan", fails)

    async def edit() -> None:
        await asyncio.sleep(1000.0)
        world.plane.change(HYPERJOBS, "default/j0", {"spec": {"ttlSecondsAfterFinished": 9000}})

    world.play(edit, hours=2)
    started = world.simulation.history.lives["default/j0"].started
    assert started is not None
    assert 1000.0 < started < 1100.0  # the next try of the same spec is after 1200 seconds


def test_a_second_exception_of_one_try_gets_its_own_number_and_the_same_back_off() -> None:
    incidents = Incidents(lambda _: {}, now=lambda: NOW)
    first = incidents.note("default/j0", ValueError())
    second = incidents.note("default/j0", KeyError(), same_try=True)
    assert second.number != first.number
    assert second.until == first.until
    assert incidents.note("default/j0", ValueError()).until > second.until
