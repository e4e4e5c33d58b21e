"""More HyperJobs than fit on the clusters, without a TTL: all of them complete by themselves.

Environment variables enlarge the test: `HYPERJOB_CROWD` HyperJobs whose pods run for
`HYPERJOB_CROWD_SECONDS` (`from-to`), `HYPERJOB_CROWD_KILLS=1` to kill the controller at random
moments, `HYPERJOB_CROWD_KILL_SECONDS` (`from-to`) apart, and `HYPERJOB_CROWD_KILL_COMMAND`, a
command that kills Volcano Global's dispatcher and starts it again, half as often.
`HYPERJOB_CROWD_ADMISSION=none` runs without queue admission. `HYPERJOB_CROWD_SIZES` HyperJobs of
open size run for `HYPERJOB_CROWD_SIZES_SECONDS` (`from-to`) and grow once in
`HYPERJOB_CROWD_GROWTH_SECONDS`, while `HYPERJOB_CROWD_URGENT` urgent ones come and a cluster is
lost as often. `pytest -rP` shows what was measured.
"""

import asyncio
import contextlib
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise

import pytest
import yaml

from e2e.support.crowd import ENDED, Crowd, asks, crowd, sizes, watched
from e2e.support.killing import SEED, killing
from e2e.support.manifests import both, group, hyperjob
from e2e.support.scenario import Scenario
from e2e.support.settings import from_environment
from e2e.support.unreachable import unreachable
from e2e.support.world import CLUSTERS_FILE, World, open_world
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import timestamp
from hyperjob_install.interpreters import interpreters
from tests.support.processes import wait_for
from tests.support.stack import Service, kubectl

COUNT = int(os.environ.get("HYPERJOB_CROWD", "24"))
SECONDS = tuple(float(each) for each in os.environ.get("HYPERJOB_CROWD_SECONDS", "1-2").split("-"))
KILLS = os.environ.get("HYPERJOB_CROWD_KILLS") == "1"
KILL_SECONDS = tuple(
    float(each) for each in os.environ.get("HYPERJOB_CROWD_KILL_SECONDS", "1-15").split("-")
)
ADMISSION = os.environ.get("HYPERJOB_CROWD_ADMISSION", "auto")
KILL_COMMAND = os.environ.get("HYPERJOB_CROWD_KILL_COMMAND", "")
NODES = 4  # of each embedded cluster: the same crowd waits for fewer accelerators
SIZES = int(os.environ.get("HYPERJOB_CROWD_SIZES", "6"))  # HyperJobs of open size
SIZES_SECONDS = tuple(map(float, os.environ.get("HYPERJOB_CROWD_SIZES_SECONDS", "3-6").split("-")))
GROWTH_SECONDS = int(os.environ.get("HYPERJOB_CROWD_GROWTH_SECONDS", "2"))
URGENT = int(os.environ.get("HYPERJOB_CROWD_URGENT", "1"))
STANDSTILL = max(180.0, 3 * SECONDS[1])  # the test fails after this time without an ended HyperJob
_AT_ONCE = 50  # of one `kubectl apply`
IN_PART = 60.0  # the maximum time for which a gang may hold a part of its quota


@pytest.fixture(scope="module", params=[True, False], ids=["volcano-global", "builtin"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Yield a world with or without Volcano Global, and a controller with queue admission auto."""
    settings, directory = from_environment(), tmp_path_factory.mktemp("crowd")
    file = directory / "clusters.yaml"
    content = yaml.safe_load(CLUSTERS_FILE.read_text())
    for cluster, node in ((each, node) for each in content["clusters"] for node in each["nodes"]):
        node["count"] = min(node["count"], NODES)
        cluster["nodes"] = [node]
    content["volcanoGlobal"] = {"enabled": request.param}
    file.write_text(yaml.safe_dump(content))
    with open_world(
        settings,
        directory,
        clusters=file,
        queue_admission=ADMISSION,
        gang_timeout=300,
        controller=[f"--growth-interval={GROWTH_SECONDS}"],
    ) as opened:
        if opened.volcano_global is not request.param:
            pytest.skip(
                "this Karmada has Volcano Global" if opened.volcano_global else "it has not"
            )
        if settings.embedded:  # on other control planes `hyperjob install` has created them
            scripts = yaml.safe_dump_all([item.object for item in interpreters()])
            kubectl(opened.kubeconfig, "apply", "--server-side", "-f", "-", stdin=scripts)
        yield opened


@contextlib.asynccontextmanager
async def killed(service: Service, moments: random.Random) -> AsyncIterator[list[str]]:
    """Kill the controller, and the dispatcher if it has a command, until the block ends."""
    done: list[str] = []
    low, high = KILL_SECONDS

    async def kill() -> None:
        while True:
            await asyncio.sleep(moments.uniform(low, high))
            service.kill()
            await asyncio.to_thread(service.start)
            done.append("controller")

    async def dispatcher() -> None:
        while KILL_COMMAND:
            await asyncio.sleep(moments.uniform(2 * low, 2 * high))
            process = await asyncio.create_subprocess_shell(KILL_COMMAND)
            assert await process.wait() == 0, KILL_COMMAND
            done.append("dispatcher")

    tasks = [asyncio.create_task(kill()), asyncio.create_task(dispatcher())]
    try:
        yield done
    finally:
        for task in tasks:
            task.cancel()
        failed = await asyncio.gather(*tasks, return_exceptions=True)
        if service.process is None:
            await asyncio.to_thread(service.start)
        for each in failed:
            if isinstance(each, Exception):
                raise each


@pytest.mark.timeout(3600)
async def test_a_crowd_of_gangs_ends_completed_with_nobodys_help(scenario):
    print(f"HYPERJOB_CHAOS_SEED={SEED}")  # noqa: T201 - shown when the test fails
    world, moments = scenario.world, random.Random(SEED)
    low, high = SECONDS
    async with contextlib.AsyncExitStack() as stack:
        queue = await stack.enter_async_context(scenario.queue())
        made = list(crowd(world, COUNT, moments, queue=queue, seconds=(low, high)))
        kills: list[str] = []
        if KILLS:
            assert world.stack is not None, "an installed release's controller is not ours to kill"
            kills = await stack.enter_async_context(killed(world.stack.controller, moments))
        seen = await stack.enter_async_context(watched(scenario, made))
        began = time.monotonic()
        for first in range(0, len(made), _AT_ONCE):
            await scenario.apply(*made[first : first + _AT_ONCE])
        await until_all_have_ended(scenario, seen, len(made))
        took = time.monotonic() - began
        times = asks(world, made) / seen.room
        print(  # noqa: T201 - what `pytest -rP` shows
            f"{len(made)} HyperJobs asking {times:.1f} times the accelerators ended in"
            f" {took:.0f} s; while work waited {seen.mean_use:.3f} of all accelerators were used;"
            f" a gang held a part of its quota for at most {seen.in_part:.1f} s;"
            f" {kills.count('controller')} kills of the controller,"
            f" {kills.count('dispatcher')} of the dispatcher"
        )
    assert set(seen.phases.values()) == {"Completed"}, seen.phases
    assert seen.in_part < IN_PART or KILLS


@pytest.mark.timeout(900)
async def test_any_size_ends_right_with_a_lost_cluster_an_urgent_one_and_a_killed_controller(
    scenario,
):
    print(f"HYPERJOB_CHAOS_SEED={SEED}")  # noqa: T201 - shown when the test fails
    world, moments = scenario.world, random.Random(f"{SEED} sizes")
    if world.stack is None:
        pytest.skip("an installed release's controller is not ours to kill")
    lost = moments.choice(world.pair)

    def uses_it(seen: Crowd) -> bool:
        alive = [status for name, status in seen.statuses.items() if seen.phases[name] not in ENDED]
        jobs = [job for status in alive for job in status["jobs"]]
        return any(job.get("cluster") == lost and job["phase"] != "Completed" for job in jobs)

    def uses_nothing(queue: str) -> bool:
        labels = f'{{queue="{queue}",resource="{world.accelerator}"}}'
        return f"hyperjob_queue_resource_usage{labels} 0.0" in world.stack.controller.metrics()

    async with scenario.priority(1000) as urgent, scenario.queue() as queue:
        made = list(sizes(world, SIZES, moments, queue=queue, seconds=SIZES_SECONDS))
        names = [f"urgent-{number}" for number in range(URGENT)]
        asked = {"queue": queue, "priorityClassName": urgent, "accelerators": world.per_pod}
        half = group(world, "g", pods=world.sizes[lost] // 2 or 1, only_on=[lost], **asked)
        whole = both(world, "", queue=queue, priorityClassName=urgent)["spec"]["replicatedJobs"]
        made += [
            hyperjob(name, *(whole if number % 2 else [half])) for number, name in enumerate(names)
        ]
        async with watched(scenario, made) as seen:
            async with killing(world.stack.controller, moments):
                await scenario.apply(*made[:SIZES])
                await until(seen, lambda: "Running" in seen.phases.values())
                for number, name in enumerate(names, start=SIZES):
                    await scenario.apply(made[number])
                    await until(seen, lambda name=name: seen.phases.get(name) in ENDED)
                    await until(seen, lambda now=number: uses_it(seen) or seen.ended > now)
                    async with unreachable(scenario, lost):
                        await until(seen, lambda: not uses_it(seen))
                await until(seen, lambda: seen.ended == len(made))
            done = [
                (job["cluster"], job["name"])
                for status in seen.statuses.values()
                for job in status["jobs"]
                if job["phase"] == "Completed"
            ]
            known = {name: [each["reason"] for each in seen.changes[name]] for name in seen.changes}
            print(f"{len(done)} sub-jobs completed; {known}")  # noqa: T201 - `pytest -rP` shows it
            for name, status in seen.statuses.items():
                ends = [job["phase"] for job in status["jobs"]]
                is_free = name.startswith(("quorum", "mixed"))
                right = {"Completed", "Terminated"} if is_free else {"Completed"}
                assert status["state"]["phase"] == "Completed", (name, status)
                assert {"Completed"} <= set(ends) <= right, (name, status)
            assert not seen.broken, yaml.safe_dump(seen.broken[:3])
            assert not list(too_early(seen)), seen.changes
            await scenario.until_rest(set(done))
            await scenario.passed_through()  # a new leader counts when a HyperJob waits
        await asyncio.to_thread(wait_for, lambda: uses_nothing(queue), what="a queue without use")
    await scenario.until_free()


def too_early(seen: Crowd) -> Iterator[Object]:
    """Yield the growth of worlds that came sooner than the interval after the change before."""
    for name, changes in seen.changes.items():
        for before, after in pairwise(() if name.startswith(("quorum", "mixed")) else changes):
            times = [timestamp(each["lastTransitionTime"]) for each in (before, after)]
            if after["reason"] == "Grew" and (times[1] - times[0]).seconds < GROWTH_SECONDS:
                yield after


async def until(seen: Crowd, holds: Callable[[], bool]) -> None:
    """Wait until what is seen of a crowd holds."""
    try:
        async with asyncio.timeout(STANDSTILL):
            while not holds():
                seen.changed.clear()
                await seen.changed.wait()
    except TimeoutError:
        left = {
            name: seen.statuses[name] for name, each in seen.phases.items() if each not in ENDED
        }
        raise AssertionError(yaml.safe_dump(left)) from None


async def until_all_have_ended(scenario: Scenario, seen: Crowd, count: int) -> None:
    """Wait until every HyperJob has ended; fail after a long time without an ended HyperJob."""
    before, since = 0, time.monotonic()
    while seen.ended < count:
        if seen.ended != before:
            before, since = seen.ended, time.monotonic()
        if time.monotonic() - since > STANDSTILL:
            left = [name for name, phase in seen.phases.items() if phase not in ENDED]
            raise AssertionError(
                f"{before} of {count} ended, then none: {left}\n{await about(scenario, left[0])}"
            )
        seen.changed.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(seen.changed.wait(), 5)


async def about(scenario: Scenario, name: str) -> str:
    """Return a stuck HyperJob, its objects, and the controller's log lines about it."""
    kinds = "hyperjobs,jobs.batch.volcano.sh,propagationpolicies,resourcebindings"
    wide = await scenario.kubectl("get", "hyperjobs", "-o", "wide", check=False)
    found = yaml.safe_load(await scenario.kubectl("get", kinds, "-o", "yaml", check=False))
    items = [each for each in found["items"] if each["metadata"]["name"].startswith(name)]
    stack = scenario.world.stack
    lines = stack.controller.text().splitlines() if stack is not None else []
    said = [line for line in lines if name in line][-40:]
    left = [line for line in wide.splitlines() if "Completed" not in line]
    return "\n".join([*left, yaml.safe_dump_all(items), *said])
