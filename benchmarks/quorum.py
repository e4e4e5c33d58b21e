"""Compare a quorum with restarts of all sub-jobs while one of three clusters is lost repeatedly.

The same training in plain Python runs twice on clusters whose pods are processes of this machine.
Every EVERY seconds (30) the next cluster and its processes are lost for AWAY seconds (15), during
SECONDS (300). The results are the steps in the program's journal, relative to the steps in the
same time without losses, and `status.goodput`, which counts a third of the time as lost while one
of three sub-jobs is away. The counted restarts are those of sub-jobs on other clusters.
"""

import asyncio
import os
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from e2e.support import training
from e2e.support.scenario import Scenario, clusters_of, open_scenario
from e2e.support.settings import Settings
from e2e.support.unreachable import unreachable
from e2e.test_quorum import NAME, documents
from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_engine.status.goodput import parse_account

SECONDS, EVERY, AWAY = (
    float(os.environ.get(name, given))
    for name, given in (("SECONDS", "300"), ("EVERY", "30"), ("AWAY", "15"))
)
PAUSE = 0.1


def manifests(*, quorum: bool, namespace: str) -> list[Object]:
    """Return the training; without a quorum it needs all sub-jobs, which restart together."""
    made = documents(
        quorum=2 if quorum else 3, gpus=2, PAUSE=str(PAUSE), SILENT="3", SCENARIO=namespace
    )
    spec = made[-1]["spec"]
    if not quorum:
        del spec["quorum"]
        spec["failurePolicy"] = {"rules": [{"action": "RestartHyperJobAndIgnoreMaxRestarts"}]}
    return made


async def found(scenario: Scenario) -> Object:
    """Read the HyperJob."""
    return await scenario.kube.get(HYPERJOBS, NAME, namespace=scenario.namespace)


def attempts(seen: Object) -> dict[str, int]:
    """Return the attempt of each sub-job."""
    return {job["name"]: job.get("attempt", 0) for job in seen["status"]["jobs"]}


@dataclass(frozen=True, slots=True)
class Result:
    """The shares, from 0 to 1, and counts of a run."""

    steps: float
    goodput: float
    restarts: int
    losses: int


def steps_between(folder: Path, first: float, last: float) -> int:
    """Return the number of steps in the journal between two times, in seconds since the epoch."""
    (journal,) = folder.rglob("journal")
    times = (float(line.split()[2]) for line in journal.read_text().splitlines())
    return sum(first <= each < last for each in times)


def spent(seen: Object) -> tuple[float, float]:
    """Return the productive and all milliseconds so far."""
    account = parse_account(seen["status"]["goodput"])
    assert account is not None
    counted = account.until(datetime.now(UTC)).spent
    return counted.get(TimeUse.PRODUCTIVE, 0), sum(counted.values())


async def run(scenario: Scenario, folder: Path, *, quorum: bool) -> Result:
    """Run the training while clusters are lost."""
    await scenario.apply(*manifests(quorum=quorum, namespace=scenario.namespace))
    await scenario.until_phase(NAME, "Running")
    await training.goes_on(scenario)
    quiet = time.time()
    await asyncio.sleep(EVERY)
    began, lost, others = time.time(), 0, 0
    productive, whole = spent(await found(scenario))
    while time.time() - began < SECONDS:
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
    ended = time.time()
    more, all_of_it = spent(await found(scenario))
    speed = steps_between(folder, quiet, began) / (began - quiet)
    return Result(
        steps=steps_between(folder, began, ended) / (speed * (ended - began)),
        goodput=(more - productive) / (all_of_it - whole),
        restarts=others,
        losses=lost,
    )


async def measure(*, quorum: bool) -> Result:
    """Run the training once on new clusters."""
    with (
        tempfile.TemporaryDirectory() as name,
        training.open_process_world(
            Settings(timeout=180),
            Path(name),
            controller=["--members=logs", "--progress-interval=5"],
        ) as world,
    ):
        async with open_scenario(world) as scenario:
            return await run(scenario, Path(name), quorum=quorum)


def main() -> None:
    """Print the table."""
    print(f"a cluster is lost every {EVERY:g} s for {AWAY:g} s, {SECONDS:g} s in all")
    print(f"{'':12} {'steps':>7} {'goodput':>8} {'restarts of others':>19} {'losses':>7}")
    for title, quorum in (("quorum", True), ("restart all", False)):
        each = asyncio.run(measure(quorum=quorum))
        print(
            f"{title:12} {each.steps:7.1%} {each.goodput:8.1%} {each.restarts:19} {each.losses:7}",
            flush=True,
        )


if __name__ == "__main__":
    main()
