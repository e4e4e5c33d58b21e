"""An exception about one HyperJob touches that HyperJob alone, wherever the controller meets it.

The whole controller runs in virtual time, on an API server in memory and simulated members, while
exceptions are raised within its functions.
"""

import asyncio
import functools
import logging
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from hyperjob.simulate.engine import _run_to_end
from hyperjob.simulate.sites import queue, site
from hyperjob.simulate.workload import Failures, Scenario, Submission
from hyperjob.simulate.world import Simulation
from hyperjob_controller import reconciler
from hyperjob_controller.admission import engine
from hyperjob_controller.apply.applier import Applier
from hyperjob_controller.events import Events
from hyperjob_controller.manager import Manager
from hyperjob_controller.memory.memory import Memory
from hyperjob_controller.memory.reservations import Reservations
from hyperjob_controller.observe import Observer
from hyperjob_controller.options import Options
from hyperjob_controller.tuning import Tuning
from hyperjob_controller.wake.handlers import Handlers
from hyperjob_controller.write import StatusWriter
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.kube.transport import Params, Response
from hyperjob_core.telemetry.metrics import Place
from hyperjob_core.virtualtime import now, run
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.queueing import round as rounds
from hyperjob_engine.queueing import state as queue_state
from hyperjob_engine.queueing.forecast import CapacityTimeline
from tests.unit.controller.builders import GPU, group, hyperjob

INJECTED = 200
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
    (rounds, "reserve"),
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


class Plane(MemoryServer):
    """Notes the states that the controller writes to HyperJobs."""

    def __init__(self) -> None:
        super().__init__(now=now)
        self.states: list[tuple[str, Object]] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: bytes | None = None,
        **more: Any,
    ) -> Response:
        if method == "PATCH" and path.endswith("/status"):
            state = orjson.loads(body or b"{}").get("status", {}).get("state")
            if state:
                self.states.append((path.split("/")[-2], state))
        return await super().request(method, path, params=params, body=body, **more)


class Logged(logging.Handler):
    """Keeps the records that have an incident number."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "incident"):
            self.records.append(record)


class World:
    """The controller with four HyperJobs at a time for 16 GPUs in two clusters."""

    def __init__(self, *, jobs: int, seed: int) -> None:
        self.rng = random.Random(seed)
        node = {"cpu": "64", "memory": "512Gi", GPU: "8", "pods": "110"}
        self.scenario = Scenario(
            sites=[site(name, [("gpu", node, 1)]) for name in "ab"],
            queues=[queue("default", {"weight": 1, "capability": {GPU: "16"}})],
            jobs=[
                Submission(
                    arrival=150.0 * number,
                    duration=900.0,
                    hyperjob=submitted(f"j{number}"),
                    gpus=4,
                    queue="default",
                )
                for number in range(jobs)
            ],
            priority_classes=[],
            failures=Failures(),
            outages=[],
            seed=seed,
        )
        self.logged = Logged()

    def play(self, while_it_runs: Callable[[], Any] | None = None, *, hours: float = 30.0) -> None:
        logger = logging.getLogger("hyperjob_controller")
        logger.addHandler(self.logged)
        try:
            run(self._play(while_it_runs, hours))
        finally:
            logger.removeHandler(self.logged)

    async def _play(self, while_it_runs: Callable[[], Any] | None, hours: float) -> None:
        self.plane = Plane()
        options = Options(queue_admission=QueueAdmission.BUILTIN, leader_elect=False, workers=1)
        async with Kube(self.plane) as kube:
            self.manager = Manager(
                kube,
                options,
                now=now,
                clock=asyncio.get_running_loop().time,
                tuning=Tuning(writes=1, failure_causes=False),
            )
            self.simulation = Simulation(self.scenario, self.plane)
            beside = asyncio.create_task(while_it_runs()) if while_it_runs else None
            try:
                async with asyncio.timeout(hours * 3600.0):
                    await _run_to_end(self.simulation, lambda *_: None, self.manager)
            except TimeoutError:
                pass
            finally:
                self.left = self.plane.items(HYPERJOBS)
                if beside is not None:
                    beside.cancel()

    def counted(self) -> dict[str, float]:
        """Return the metric of internal errors by place, without zeros."""
        values = {
            str(place): self.manager.metrics.registry.get_sample_value(
                "hyperjob_internal_errors_total", {"place": str(place)}
            )
            for place in Place
        }
        assert None not in values.values()
        return {place: value for place, value in values.items() if value}

    def ended(self) -> set[str]:
        return {
            key.partition("/")[2]
            for key, life in self.simulation.history.lives.items()
            if life.ended is not None
        }


def submitted(name: str) -> Object:
    raw = hyperjob(group(replicas=2, gpus=2), name=name)
    for each in raw["spec"]["replicatedJobs"]:
        each["templateSpec"]["runningEstimate"] = "15m"
    for field in ("uid", "creationTimestamp"):
        raw["metadata"].pop(field, None)
    raw.pop("status", None)
    return raw


def test_no_exception_of_two_hundred_ends_the_controller_or_loses_a_hyperjob(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(jobs=40, seed=28)
    stages = [Stage(owner, name, monkeypatch) for owner, name in STAGES]

    search = engine.culprit

    def searching(*args: Any) -> Any:
        Stage.trial = True
        try:
            return search(*args)
        finally:
            Stage.trial = False

    monkeypatch.setattr(engine, "culprit", searching)

    async def inject() -> None:
        for _ in range(INJECTED):
            await asyncio.sleep(world.rng.uniform(1.0, 70.0))
            stage = world.rng.choice(stages)
            stage.armed += 1

    world.play(inject)
    raised = Counter({stage.name: stage.raised for stage in stages})
    assert raised.total() >= INJECTED * 0.9, raised
    assert sum(world.counted().values()) >= raised.total() * 0.95  # one group may have two
    assert world.ended() == {f"j{number}" for number in range(40)}
    numbers = {record.__dict__["incident"] for record in world.logged.records}
    assert all(record.exc_info for record in world.logged.records)
    told = {
        incident_of(state)
        for _, state in world.plane.states
        if state.get("reason") == "InternalError"
    }
    assert told
    assert told <= numbers


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
    world = World(jobs=6, seed=1)
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


def test_amounts_beyond_floats_and_estimates_beyond_dates_stop_no_other_hyperjob() -> None:
    world = World(jobs=6, seed=2)
    for number, each in enumerate(world.scenario.jobs[:3]):
        template = each.hyperjob["spec"]["replicatedJobs"][0]["templateSpec"]
        if number == 0:
            container = template["tasks"][0]["template"]["spec"]["containers"][0]
            container["resources"] = {"limits": {GPU: "1e400"}, "requests": {GPU: "1e400"}}
        else:
            template["runningEstimate"] = "2562047h"
    world.play(hours=2)
    assert world.ended() >= {f"j{number}" for number in range(1, 6)}


def test_a_changed_spec_gets_its_pass_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(jobs=1, seed=3)
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
