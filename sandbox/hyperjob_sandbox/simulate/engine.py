"""Run a scenario: the controller's own manager, on virtual time and in memory."""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options, Tuning
from hyperjob_core.garbage import collect_rarely
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.tasks import cancel
from hyperjob_core.virtualtime import now, run
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_sandbox.simulate.breakage import Breakage
from hyperjob_sandbox.simulate.history import History
from hyperjob_sandbox.simulate.policies import OURS, POLICIES
from hyperjob_sandbox.simulate.workload import Scenario
from hyperjob_sandbox.simulate.world import Simulation

Progress = Callable[[int, int, float], None]
"""Gets the number of ended jobs, the number of all jobs, and the virtual time in seconds."""

_REPORT_SECONDS: Final = 3600.0
_MESSAGES_PER_SECOND: Final = 1 / 300
"""The rate of status messages in a simulation: low, since no code reads or needs them."""
_STANDSTILL: Final = 48
"""Hours without progress after the last arrival after which a simulation ends."""


def simulate(
    scenario: Scenario, *, policy: str = OURS, progress: Progress = lambda *_: None
) -> History:
    """Run a scenario with a policy until every job has ended, or no job can make progress."""
    _, change = POLICIES[policy]
    with _rare_collections(), _without_warnings():
        return run(_run(change(scenario), progress))


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect reference cycles less often than the controller does, within the block."""
    before = gc.get_threshold()
    collect_rarely(100_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress warnings in the logs, not errors of the controller, within the block."""
    log = logging.getLogger("hyperjob_controller")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


async def _run(scenario: Scenario, progress: Progress) -> History:
    """Run the controller's manager on an API server in memory, in the simulated world."""
    plane = MemoryServer(now=now)
    options = Options(
        queue_admission=QueueAdmission.BUILTIN,
        usage_half_life_time=scenario.half_life,
        leader_elect=False,
        workers=1,
    )
    world = Simulation(scenario, plane)
    async with Kube(plane) as kube:
        manager = Manager(
            kube,
            options,
            now=now,
            clock=asyncio.get_running_loop().time,
            views=world.karmada.views,
            messages_per_second=_MESSAGES_PER_SECOND,
            tuning=Tuning(writes=1, failure_causes=False),
        )
        return await _run_to_end(world, progress, manager)


async def _run_to_end(world: Simulation, progress: Progress, manager: Manager) -> History:
    """Run a simulation until it ends; an error of the manager ends it too."""
    world.begin()
    Breakage(world, world.scenario.failures, seed=world.scenario.seed).begin(world.scenario.outages)
    tasks = [asyncio.create_task(_watch(world, progress)), asyncio.create_task(manager.run())]
    ended: asyncio.Task[object] = asyncio.create_task(world.ended.wait())
    try:
        await asyncio.wait({*tasks, ended}, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
    finally:
        await cancel([*tasks, ended])
    return world.history


async def _watch(world: Simulation, progress: Progress) -> None:
    """Report the progress once an hour; end a simulation without progress."""
    loop, idle = asyncio.get_running_loop(), 0
    while not world.ended.is_set():
        await asyncio.sleep(_REPORT_SECONDS)
        progress(*world.progress, loop.time())
        idle = idle + 1 if world.is_idle else 0
        if idle > _STANDSTILL:
            world.history.end = loop.time()
            world.ended.set()
