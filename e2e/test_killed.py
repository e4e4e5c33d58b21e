"""The controller is killed repeatedly: each scenario ends as it does without kills.

The moments are random; `HYPERJOB_CHAOS_SEED` repeats a run, and a failure names its seed.
"""

import asyncio
import contextlib
import os
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from e2e.support.killing import SEED, killing
from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import Scenario, clusters_of, condition_of, phase_of
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import HYPERJOBS, PROPAGATION_POLICIES, VCJOBS

ROUNDS = int(os.environ.get("HYPERJOB_SUSPEND_ROUNDS", "40"))


@pytest.fixture
def controller(world):
    if world.stack is None:
        pytest.skip("the controller is an installed release's, not ours to kill")
    yield world.stack.controller
    if world.stack.controller.process is None:
        world.stack.controller.start()


@dataclass(frozen=True, slots=True)
class Ending:
    """The state that a scenario must reach, with any kills."""

    phase: str
    jobs: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    restarts: int = 0


async def patched(scenario: Scenario, name: str, patch: Object) -> None:
    """Change a HyperJob as kubectl patch does."""
    await scenario.kube.patch(
        HYPERJOBS, name, patch, kind=PatchType.MERGE, namespace=scenario.namespace
    )


def annotated(annotation: str, value: str) -> Object:
    """Return a patch with a request annotation."""
    return {"metadata": {"annotations": {annotation: value}}}


async def a_job_that_fails_for_good(scenario: Scenario) -> Ending:
    world = scenario.world
    await scenario.apply(
        hyperjob(
            "hj",
            group(world, "failing", seconds=1, exit_code=3, maxRetry=1),
            failurePolicy={"maxRestarts": 1, "rules": [{"action": "RestartJob"}]},
        )
    )
    await scenario.until_phase("hj", "Failed")
    return Ending("Failed", {"hj-failing-0": "Failed"}, {"hj-failing-0": 1}, restarts=1)


async def a_restart_of_all(scenario: Scenario) -> Ending:
    world = scenario.world
    await scenario.apply(hyperjob("hj", group(world, "one", replicas=3, seconds=10)))
    await scenario.until_phase("hj", "Starting", "Running")
    await patched(scenario, "hj", annotated(RESTART_REQUEST, "again"))
    await scenario.until_phase("hj", "Completed")
    names = [f"hj-one-{index}" for index in range(3)]
    return Ending("Completed", dict.fromkeys(names, "Completed"), dict.fromkeys(names, 1))


async def a_move(scenario: Scenario) -> Ending:
    world = scenario.world
    first, _ = world.pair
    await scenario.apply(
        hyperjob("hj", group(world, "one", accelerators=1, seconds=20, first_on=[first]))
    )
    await scenario.until_phase("hj", "Starting", "Running")
    await patched(scenario, "hj", annotated(MIGRATE_REQUEST, "away hj-one-0"))
    ended = await scenario.until_phase("hj", "Completed")
    assert clusters_of(ended)["hj-one-0"] != first
    return Ending("Completed", {"hj-one-0": "Completed"}, {"hj-one-0": 1})


async def a_rest_and_a_resumption(scenario: Scenario) -> Ending:
    world = scenario.world
    await scenario.apply(hyperjob("hj", group(world, "one", replicas=2, seconds=10)))
    await scenario.until_phase("hj", "Running")
    await patched(scenario, "hj", {"spec": {"suspend": True}})
    await scenario.until_phase("hj", "Suspended")
    await scenario.until_members_have(0)
    await patched(scenario, "hj", {"spec": {"suspend": False}})
    await scenario.until_phase("hj", "Completed")
    names = [f"hj-one-{index}" for index in range(2)]
    return Ending("Completed", dict.fromkeys(names, "Completed"), dict.fromkeys(names, 1))


STORIES = (
    a_job_that_fails_for_good,
    a_restart_of_all,
    a_move,
    a_rest_and_a_resumption,
)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
async def test_the_end_is_the_same_with_a_controller_killed_at_random(
    scenario, controller, story: Callable[[Scenario], Awaitable[Ending]]
):
    print(f"HYPERJOB_CHAOS_SEED={SEED}")  # noqa: T201 - shown when the test fails
    moments = random.Random(f"{SEED} {story.__name__}")
    async with killing(controller, moments):
        ending = await story(scenario)
    if controller.process is None:
        await asyncio.to_thread(controller.start)
    found = await scenario.until_phase("hj", ending.phase)
    status = found["status"]
    jobs = {job["name"]: job for job in status["jobs"]}
    for name, phase in ending.jobs.items():
        assert jobs[name]["phase"] == phase, status
    for name, job in jobs.items():
        assert job.get("attempt", 0) == ending.attempts.get(name, 0), status
    assert status.get("restarts", 0) == ending.restarts, status
    assert condition_of(found, ending.phase)["status"] == "True"
    await nothing_runs(scenario)


async def test_a_hyperjob_that_cleans_itself_up_is_gone_though_the_controller_was_killed(
    scenario, controller
):
    world = scenario.world
    async with killing(controller, random.Random(f"{SEED} ttl")):
        await scenario.apply(
            hyperjob("hj", group(world, "one", seconds=1), ttlSecondsAfterFinished=2)
        )
        await scenario.until_gone(HYPERJOBS, "hj")
    for kind in (VCJOBS, PROPAGATION_POLICIES):
        await scenario.until_gone(kind, "hj-one-0")
    await scenario.until_members_have(0)


async def test_many_rounds_of_suspending_and_resuming_leave_the_job_healthy(scenario):
    world = scenario.world
    await scenario.apply(
        hyperjob("hj", group(world, "one", replicas=2, accelerators=1, seconds=600))
    )
    await scenario.until_phase("hj", "Running")
    for number in range(ROUNDS):
        await patched(scenario, "hj", {"spec": {"suspend": True}})
        if number % 10 == 0:  # other rounds do not wait, and interrupt the change in progress
            await until_seen(scenario, "Suspended")
            assert not await scenario.children("hj")
        await patched(scenario, "hj", {"spec": {"suspend": False}})
        if number % 10 == 5:
            await until_seen(scenario, "Starting", "Running")
    healthy = await until_seen(scenario, "Running")
    assert healthy["status"].get("restarts", 0) == 0
    # A creation after a run is a new attempt and no restart.
    assert all(job.get("attempt", 0) <= ROUNDS for job in healthy["status"]["jobs"])
    await scenario.until(
        HYPERJOBS,
        "hj",
        lambda found: found is not None and found["status"].get("jobsReady") == "2/2",
        what="2/2 ready",
    )
    assert set(await scenario.children("hj")) == {"hj-one-0", "hj-one-1"}
    await scenario.until_members_have(4)


async def until_seen(scenario: Scenario, *phases: str) -> Object:
    """Wait until the status is about the present generation, and in one of the phases."""

    def seen(found: Object | None) -> bool:
        if found is None or phase_of(found) not in phases:
            return False
        return bool(found["status"]["observedGeneration"] == found["metadata"]["generation"])

    return await scenario.until(HYPERJOBS, "hj", seen, what=" or ".join(phases))


async def nothing_runs(scenario: Scenario) -> None:
    """Wait until no pod of the HyperJob runs in any member; ended vcjobs may stay."""

    async def running() -> list[str]:
        found = []
        for member, kube in scenario.members.items():
            for job in (await kube.list(VCJOBS, namespace=scenario.namespace)).items:
                state = ((job.get("status") or {}).get("state") or {}).get("phase") or ""
                if state not in {"Completed", "Failed", "Aborted", "Terminated"}:
                    found.append(f"{member}: {job['metadata']['name']} {state}")
        return found

    deadline = time.monotonic() + scenario.world.settings.timeout
    while left := await running():
        if time.monotonic() > deadline:
            here = await scenario.kubectl("get", "hyperjobs,jobs.batch.volcano.sh,pp,rb", "-o=yaml")
            raise AssertionError(f"still there: {left}\n{here}{scenario.logs()}")
        await asyncio.sleep(0.2)
    with contextlib.suppress(NotFound):
        found = await scenario.kube.get(HYPERJOBS, "hj", namespace=scenario.namespace)
        assert phase_of(found) in {"Completed", "Failed"}
