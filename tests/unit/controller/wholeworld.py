"""The whole controller in virtual time, with an API server in memory and simulated members."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options, Tuning
from hyperjob_controller.watchdog import Place
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.kube.transport import Response
from hyperjob_core.virtualtime import now, run
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_sandbox.simulate.engine import _run_to_end
from hyperjob_sandbox.simulate.sites import queue, site
from hyperjob_sandbox.simulate.workload import Failures, Scenario, Submission
from hyperjob_sandbox.simulate.world import Simulation
from tests.support.counts import Counts
from tests.support.walls import Cpu
from tests.unit.engine.builders import GPU, group, hyperjob


class Plane(MemoryServer):
    """Notes the states that the controller writes to HyperJobs."""

    def __init__(self) -> None:
        super().__init__(now=now)
        self.states: list[tuple[str, Object]] = []

    async def request(self, method: str, path: str, **more: Any) -> Response:
        if method == "PATCH" and path.endswith("/status"):
            state = orjson.loads(more.get("body") or b"{}").get("status", {}).get("state")
            if state:
                self.states.append((path.split("/")[-2], state))
        return await super().request(method, path, **more)


class Logged(logging.Handler):
    """Keeps the records that have an incident number."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.at: list[tuple[float, logging.LogRecord]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "incident"):
            self.records.append(record)
            self.at.append((asyncio.get_running_loop().time(), record))


class World:
    """The controller beside a scenario; `plane` is its API server."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        plane: Callable[[], Plane] | None = None,
        tuning: Tuning | None = None,
        workers: int = 1,
        cpu: Cpu | None = None,
    ) -> None:
        """`cpu` is spent by a test; None: no turn of the event loop takes any time."""
        self.rng = random.Random(scenario.seed)
        self.scenario = scenario
        self.logged = Logged()
        self._plane = plane or Plane
        self._tuning = tuning or Tuning(writes=1, failure_causes=False)
        self._workers = workers
        self._cpu = cpu or Cpu()
        self._counts = Counts()

    def play(self, while_it_runs: Callable[[], Any] | None = None, *, hours: float = 30.0) -> None:
        logger = logging.getLogger("hyperjob_controller")
        logger.addHandler(self.logged)
        try:
            run(self._play(while_it_runs, hours))
        finally:
            logger.removeHandler(self.logged)

    async def _play(self, while_it_runs: Callable[[], Any] | None, hours: float) -> None:
        self.plane = self._plane()
        options = Options(
            queue_admission=QueueAdmission.BUILTIN, leader_elect=False, workers=self._workers
        )
        async with Kube(self.plane) as kube:
            self.manager = Manager(
                kube,
                options,
                watchdog=self._cpu.watchdog,
                now=now,
                clock=asyncio.get_running_loop().time,
                tuning=self._tuning,
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

    def counted(self, name: str = "hyperjob_internal_errors_total") -> dict[str, float]:
        """Return the metric of internal errors, or another, by place, without zeros."""
        values = {str(place): self._counts(name, place=str(place)) for place in Place}
        assert None not in values.values()
        return {place: value for place, value in values.items() if value}

    def ended(self) -> set[str]:
        return {
            key.partition("/")[2]
            for key, life in self.simulation.history.lives.items()
            if life.ended is not None
        }


def scenario_of(
    jobs: Sequence[Submission], *, nodes: int, queues: Sequence[Object] = (), seed: int = 0
) -> Scenario:
    """Return a scenario of jobs in two clusters, each with `nodes` nodes of eight GPUs."""
    node = {"cpu": "64", "memory": "512Gi", GPU: "8", "pods": "110"}
    whole = queue("default", {"weight": 1, "capability": {GPU: str(2 * nodes * 8)}})
    return Scenario(
        sites=[site(name, [("gpu", node, nodes)]) for name in "ab"],
        queues=list(queues) or [whole],
        jobs=jobs,
        priority_classes=[],
        failures=Failures(),
        outages=[],
        seed=seed,
    )


def submission(
    name: str,
    *,
    arrival: float,
    duration: float = 900.0,
    namespace: str = "default",
    replicas: int = 2,
    gpus: int = 2,
    into: str = "default",
) -> Submission:
    """Return a HyperJob of `replicas` sub-jobs with `gpus` GPUs each, and its running time."""
    raw = hyperjob(group(replicas=replicas, gpus=gpus), name=name)
    raw["metadata"]["namespace"] = namespace
    for each in raw["spec"]["replicatedJobs"]:
        each["templateSpec"] |= {"runningEstimate": f"{duration:.0f}s", "queue": into}
    for field in ("uid", "creationTimestamp"):
        raw["metadata"].pop(field, None)
    raw.pop("status", None)
    return Submission(
        arrival=arrival, duration=duration, hyperjob=raw, gpus=replicas * gpus, queue=into
    )
