"""One of three clusters is lost again and again: a quorum that trains on, beside restarting all.

The same training in plain Python runs twice on clusters whose pods are processes of this machine.
Every EVERY seconds (30) the next cluster is lost, with its processes, for AWAY seconds (15); that
goes on for SECONDS (300). Goodput is the share of the time in which steps were made, each as long
as a step takes while nothing is lost. The restarts are those of sub-jobs whose own cluster was not
lost.
"""

import asyncio
import os
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from e2e.support import training
from e2e.support.scenario import Scenario, clusters_of, open_scenario
from e2e.support.settings import Settings
from e2e.support.unreachable import unreachable
from e2e.test_quorum import NAME, documents
from hyperjob.api.meta import Object
from hyperjob.kube.resources import HYPERJOBS

SECONDS, EVERY, AWAY = (
    float(os.environ.get(name, given))
    for name, given in (("SECONDS", "300"), ("EVERY", "30"), ("AWAY", "15"))
)
PAUSE = 0.1


def manifests(*, quorum: bool, namespace: str) -> list[Object]:
    """Return the training; without a quorum all groups must be there, and restart together."""
    made = documents(
        quorum=2 if quorum else 3, gpus=2, PAUSE=str(PAUSE), SILENT="3", SCENARIO=namespace
    )
    spec = made[-1]["spec"]
    if not quorum:
        del spec["quorum"]
        spec["failurePolicy"] = {"rules": [{"action": "RestartHyperJobAndIgnoreMaxRestarts"}]}
    return made


async def furthest(scenario: Scenario) -> int:
    """Return the last step that any group has printed."""
    return max(training.steps_of(await training.said(scenario)))


async def found(scenario: Scenario) -> Object:
    """Read the HyperJob."""
    return await scenario.kube.get(HYPERJOBS, NAME, namespace=scenario.namespace)


def attempts(seen: Object) -> dict[str, int]:
    """Return the attempt of each sub-job."""
    return {job["name"]: job.get("attempt", 0) for job in seen["status"]["jobs"]}


async def run(scenario: Scenario, *, quorum: bool) -> tuple[float, int, int]:
    """Train and lose clusters; return goodput, restarts of the others, and losses."""
    await scenario.apply(*manifests(quorum=quorum, namespace=scenario.namespace))
    await scenario.until_phase(NAME, "Running")
    await training.goes_on(scenario)
    began, first = time.monotonic(), await furthest(scenario)
    await asyncio.sleep(EVERY / 2)
    speed = (await furthest(scenario) - first) / (time.monotonic() - began)
    began, first, lost, others = time.monotonic(), await furthest(scenario), 0, 0
    while time.monotonic() - began < SECONDS:
        turn = time.monotonic()
        before = await found(scenario)
        placed = clusters_of(before)
        name = f"{NAME}-trainer-{lost % 3}"
        away = placed.get(name) or "east"
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(unreachable(scenario, away))
            for job, cluster in placed.items():
                if cluster == away:
                    training.kill(scenario, job)
            await asyncio.sleep(AWAY)
        lost += 1
        await asyncio.sleep(max(0.0, turn + EVERY - time.monotonic()))
        after = attempts(await found(scenario))
        others += sum(
            after[job] - attempt
            for job, attempt in attempts(before).items()
            if placed.get(job) != away
        )
    steps = await furthest(scenario) - first
    return steps / (speed * (time.monotonic() - began)), others, lost


async def measure(*, quorum: bool) -> tuple[float, int, int]:
    """Run once in a world of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        training.open_process_world(Settings(timeout=180), Path(folder)) as world,
    ):
        async with open_scenario(world) as scenario:
            return await run(scenario, quorum=quorum)


def main() -> None:
    """Print the table."""
    print(f"a cluster is lost every {EVERY:g} s for {AWAY:g} s, {SECONDS:g} s in all")
    print(f"{'':12} {'goodput':>8} {'restarts of others':>20} {'losses':>7}")
    for title, quorum in (("quorum", True), ("restart all", False)):
        goodput, others, lost = asyncio.run(measure(quorum=quorum))
        print(f"{title:12} {goodput:8.1%} {others:20} {lost:7}", flush=True)


if __name__ == "__main__":
    main()
