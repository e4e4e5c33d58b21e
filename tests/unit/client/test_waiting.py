"""A wait gives up when the HyperJob waits for something that does not exist, and not before."""

import asyncio

import pytest

from hyperjob.client.errors import NeverError, NotYetError
from hyperjob.client.reading import Target
from hyperjob.client.requests import ask, restart, running_again
from hyperjob.client.waiting import HOPELESS_SECONDS, parse_goal, reach
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.virtualtime import now, run
from hyperjob_engine.reasons.reason import NEVER_RUNS


def state(phase: str, reason: str) -> Object:
    return {"observedGeneration": 1, "state": {"phase": phase, "reason": reason, "message": "why"}}


TOO_LARGE = state("Pending", "ExceedsClusters")


async def plane_with(*times: tuple[float, Object]) -> tuple[MemoryServer, Target]:
    """Return an API server with HyperJob a/one, which has these statuses at these times."""
    plane = MemoryServer(now=now)
    kube = Kube(plane)
    await kube.create(HYPERJOBS, {"metadata": {"namespace": "a", "name": "one"}, "spec": {}})
    for at, status in times:
        asyncio.get_running_loop().call_later(
            at, lambda s=status: plane.change(HYPERJOBS, "a/one", {"status": s}, status=True)
        )
    return plane, Target(kube, "a", "one")


def waits(goal: str, *times: tuple[float, Object], seconds: float = 0) -> float:
    """Wait for a goal while the status changes at these times; return how long it took."""

    async def act() -> float:
        _, target = await plane_with(*times)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await reach(target, parse_goal(goal), seconds=seconds)
        return loop.time() - began

    return run(act())


@pytest.mark.parametrize("reason", sorted(NEVER_RUNS))
def test_a_hyperjob_that_never_runs_ends_the_wait(reason: str) -> None:
    with pytest.raises(NeverError, match="is Pending: why: as things are, it never is Completed"):
        waits("phase=Completed", (1, state("Pending", reason)), seconds=3600)


@pytest.mark.parametrize("reason", ["InsufficientCapacity", "WaitingForQueue", "QueueNotOpen"])
def test_a_hyperjob_that_may_run_later_is_waited_for(reason: str) -> None:
    with pytest.raises(NotYetError):
        waits("phase=Completed", (1, state("Pending", reason)), seconds=3600)


def test_a_deletion_is_reached_when_another_hyperjob_has_the_name() -> None:
    async def act() -> object:
        plane, target = await plane_with()
        new = {"metadata": {"namespace": "a", "name": "one", "uid": "new"}, "spec": {}}
        # As a list shows it after a broken watch.
        asyncio.get_running_loop().call_later(5, lambda: plane.put(HYPERJOBS, new))
        return await reach(target, parse_goal("delete"), seconds=60)

    assert run(act()) is None


@pytest.mark.parametrize("before", [0, 1])
def test_a_restart_is_over_when_the_sub_jobs_run_again(before: int) -> None:
    job = {"name": "one-trainer-0", "replicatedJob": "trainer", "phase": "Running"}

    async def act() -> float:
        plane, target = await plane_with((5, {"jobs": [{**job, "attempt": before}]}))
        plane.change(HYPERJOBS, "a/one", {"status": {"jobs": [job] * before}}, status=True)
        asked = await ask(target, restart())
        loop = asyncio.get_running_loop()
        began = loop.time()
        await running_again(target, asked, seconds=60)
        return loop.time() - began

    assert run(act()) == pytest.approx(5)


def test_a_step_that_a_completed_program_has_not_reported_ends_the_wait() -> None:
    ended = {**state("Completed", "JobsCompleted"), "training": {"step": 5}}
    with pytest.raises(NeverError, match="is Completed: why: as things are, it never is at step 9"):
        waits("step=9", (1, ended), seconds=3600)
    late = {**ended, "training": {"step": 9}}
    assert waits("step=9", (1, ended), (5, late), seconds=3600) == pytest.approx(5)


def test_a_cluster_that_joins_meanwhile_lets_the_wait_go_on() -> None:
    times = (
        (0, TOO_LARGE),
        (HOPELESS_SECONDS - 1, state("Running", "JobsRunning")),
        (HOPELESS_SECONDS, TOO_LARGE),
        (2 * HOPELESS_SECONDS - 1, state("Completed", "JobsCompleted")),
    )
    assert waits("phase=Completed", *times) == pytest.approx(2 * HOPELESS_SECONDS - 1)


def test_messages_that_change_do_not_prolong_the_wait() -> None:
    times = [(second, {**TOO_LARGE, "runningPods": second}) for second in range(60)]
    with pytest.raises(NeverError):
        waits("phase=Running", *times, seconds=HOPELESS_SECONDS + 2)


@pytest.mark.parametrize("goal", ["phase=Queued", "delete"])
def test_a_goal_that_needs_no_run_is_waited_for(goal: str) -> None:
    with pytest.raises(NotYetError):
        waits(goal, (1, TOO_LARGE), seconds=3600)
