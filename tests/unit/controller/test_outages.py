"""An API server that cannot judge vcjobs for some minutes: rooms are given back meanwhile.

The whole controller runs in virtual time; `wholeworld` has its API server and its members.
"""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

from hyperjob_controller.options import Tuning
from hyperjob_core.api.field import make_status
from hyperjob_core.kube.errors import from_status
from hyperjob_core.kube.transport import Response
from hyperjob_sandbox.simulate.workload import Submission
from tests.unit.controller.wholeworld import Plane, World, scenario_of, submission

pytestmark = pytest.mark.long

BEGIN, END = 100.0, 400.0
WEBHOOK = (
    500,
    "InternalError",
    'failed calling webhook "mutatejob.volcano.sh": connect: connection refused',
)
QUOTA = (
    403,
    "Forbidden",
    'jobs "x" is forbidden: exceeded quota: q, requested: count/jobs=1, used: 4, limited: 4',
)
BUSY = (429, "TooManyRequests", "the server has received too many requests")
AWAY = (503, "ServiceUnavailable", "the server is currently unable to handle the request")


class Failing(Plane):
    """An API server that judges no vcjob of a namespace from BEGIN to END."""

    def __init__(
        self, answer: tuple[int, str, str], *, namespace: str = "", after: float = 0.0
    ) -> None:
        """`after`: the seconds until it answers with the error; a webhook may time out."""
        super().__init__()
        self._answer = answer
        self._namespace = namespace
        self._after = after
        self.tries: list[float] = []

    async def request(self, method: str, path: str, **more: Any) -> Response:
        creates = method == "POST" and path.endswith("/jobs")
        time = asyncio.get_running_loop().time
        concerned = not self._namespace or f"/namespaces/{self._namespace}/" in path
        if creates and concerned and BEGIN <= time() < END:
            self.tries.append(time())
            await asyncio.sleep(self._after)
            code, reason, message = self._answer
            raise from_status(make_status(code, message, reason=reason), self.host)
        return await super().request(method, path, **more)


def world_of(jobs: list[Submission], plane: Callable[[], Plane] | None) -> World:
    tuning = Tuning(failure_causes=False)
    return World(scenario_of(jobs, nodes=20), plane=plane, tuning=tuning, workers=8)


def fleet(plane: Callable[[], Plane] | None = None, *, arrival: float = BEGIN) -> World:
    """Return 35 HyperJobs of 28 GPUs for 320 GPUs: 11 fit beside each other."""
    jobs = [
        submission(f"j{number:02}", arrival=arrival + number, duration=1200.0, replicas=2, gpus=14)
        for number in range(35)
    ]
    return world_of(jobs, plane)


def starts(world: World) -> dict[str, float]:
    """Return when each HyperJob began to train, and check that the queue kept its capability."""
    assert max(world.simulation.history.queues["default"].values) <= 320
    found = {key: life.started for key, life in world.simulation.history.lives.items()}
    assert None not in found.values()
    return {key: start for key, start in found.items() if start is not None}


@lru_cache
def usual() -> dict[str, float]:
    """Return the starts of the fleet without an outage."""
    calm = fleet()
    calm.play(hours=5)
    return starts(calm)


def in_order(found: dict[str, float]) -> list[str]:
    return sorted(found, key=found.__getitem__)


@pytest.mark.parametrize(
    ("answer", "after"),
    [(WEBHOOK, 0.0), (WEBHOOK, 10.0), (BUSY, 0.0), (AWAY, 0.0)],
    ids=["refused connections", "timeouts", "busy", "away"],
)
def test_hyperjobs_run_in_the_undisturbed_order_within_seconds_of_an_outage(
    answer: tuple[int, str, str], after: float
) -> None:
    world = fleet(lambda: Failing(answer, after=after))
    world.play(hours=5)
    late = starts(world)
    first = in_order(usual())[:11]
    alone = usual()[first[0]] - BEGIN  # from the creation to the training of one HyperJob
    assert max(late[key] for key in first) <= END + alone + 12.0 + after
    assert min(start for key, start in late.items() if key not in first) > END + 900.0
    assert in_order(late) == in_order(usual())


def test_one_hyperjob_tries_for_all_while_an_outage_lasts() -> None:
    planes: list[Failing] = []

    def plane() -> Failing:
        planes.append(Failing(WEBHOOK))
        return planes[-1]

    fleet(plane).play(hours=0.1)
    tries = [each for each in planes[0].tries if each >= BEGIN + 60.0]
    assert 0 < len(tries) <= 2 * 2 * (END - BEGIN - 60.0) / 10.0  # a gang has two sub-jobs


def crowd(*, arrival: float) -> list[Submission]:
    """Return eleven HyperJobs of namespace `full`, then eleven of namespace `free`."""
    return [
        submission(
            f"j{number:02}",
            arrival=arrival + number,
            duration=600.0,
            namespace="full" if number < 11 else "free",
            gpus=14,
        )
        for number in range(22)
    ]


def test_a_full_quota_of_one_namespace_gives_its_room_to_another() -> None:
    world = world_of(crowd(arrival=BEGIN), lambda: Failing(QUOTA, namespace="full"))
    world.play(hours=2)
    found = starts(world)
    free = [start for key, start in found.items() if key.startswith("free/")]
    full = {key: start for key, start in found.items() if key.startswith("full/")}
    assert max(free) < BEGIN + 90.0
    assert min(full.values()) > BEGIN + 600.0  # after the first of the others has ended
    assert in_order(full) == sorted(full)
    told = [state["message"] for job, state in world.plane.states if job == "j00"]
    assert any("others may use its room meanwhile" in message for message in told)


def test_a_restart_during_an_outage_gives_room_back_and_running_hyperjobs_keep_theirs() -> None:
    jobs = crowd(arrival=10.0)
    jobs[0].hyperjob["spec"]["failurePolicy"] = {"maxRestarts": 3}
    world = world_of(jobs, lambda: Failing(QUOTA, namespace="full"))

    async def fail() -> None:
        await asyncio.sleep(BEGIN + 5.0)
        world.simulation.fail("full/j00-trainer-0", cause="pod")

    world.play(fail, hours=2)
    found = starts(world)
    lives = world.simulation.history.lives
    taken = [key for key, start in found.items() if BEGIN + 10.0 < start < BEGIN + 90.0]
    assert len(taken) == 1
    assert taken[0].startswith("free/")
    assert [key for key, life in lives.items() if life.stops] == ["full/j00"]
    assert all(life.ended is not None for life in lives.values())
    restarted = lives["full/j00"].segments[1].begin
    assert restarted > END
