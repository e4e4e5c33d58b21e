"""A thousand HyperJobs of one namespace that change all the time delay no other namespace.

The whole controller runs in virtual time; each request to its API server takes 50 ms.
"""

import asyncio
from typing import Any

import pytest

from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.kube.transport import Response
from tests.unit.controller.wholeworld import Plane, World, scenario_of, submission

pytestmark = pytest.mark.long

NOISY = 1000
LATENCY = 0.05
ARRIVAL = 8.0


class Slow(Plane):
    """Takes its time for each request, and notes the first sub-job of the quiet namespace."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0.0
        self.writes = 0

    async def request(self, method: str, path: str, **more: Any) -> Response:
        await asyncio.sleep(LATENCY)
        if method == "POST" and path.endswith("/namespaces/quiet/jobs") and not self.made:
            self.made = asyncio.get_running_loop().time()
        self.writes += method == "PATCH" and "/noisy/" in path
        return await super().request(method, path, **more)


def played(*, noisy: int) -> Slow:
    """Play some seconds of noise; then the quiet namespace creates a HyperJob."""
    planes: list[Slow] = []

    def plane() -> Slow:
        planes.append(Slow())
        return planes[-1]

    quiet = submission("j", arrival=ARRIVAL, duration=20.0, namespace="quiet")
    world = World(scenario_of([quiet], nodes=1), plane=plane, workers=8)

    async def change() -> None:
        for number in range(noisy):
            raw = submission(f"n{number}", arrival=0.0, namespace="noisy").hyperjob
            raw["spec"]["suspend"] = True
            world.plane.create(HYPERJOBS, raw)
        for seconds in range(60):
            await asyncio.sleep(1.0)
            for number in range(noisy):
                spec = {"spec": {"ttlSecondsAfterFinished": 1000 + seconds}}
                world.plane.change(HYPERJOBS, f"noisy/n{number}", spec)

    world.play(change, hours=(ARRIVAL + 6.0) / 3600.0)
    assert planes[0].made, "the quiet namespace has a sub-job"
    return planes[0]


def test_a_namespace_with_a_thousand_changing_hyperjobs_delays_no_other() -> None:
    alone, beside = played(noisy=0), played(noisy=NOISY)
    assert beside.writes > 1000
    assert beside.made - ARRIVAL <= alone.made - ARRIVAL + 4 * LATENCY
