"""The benchmark of a start beside running HyperJobs, at a small size."""

import asyncio

import pytest

from benchmarks.scale_start import run, seeded
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
)
from tests.support.controller import TIME_LIMIT


async def test_a_start_is_measured_beside_hyperjobs_with_all_their_objects() -> None:
    async with asyncio.timeout(TIME_LIMIT):
        server = await seeded(20, 4, 5)
    assert {kind: len(objects) for kind, objects in server.seeds.items()} == {
        HYPERJOBS: 1,
        VCJOBS: 4,
        PROPAGATION_POLICIES: 4,
        RESOURCE_BINDINGS: 4,
    }


async def test_a_started_controller_writes_nothing_to_running_hyperjobs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with asyncio.timeout(TIME_LIMIT):
        await run(20, 4, 5)
    printed = capsys.readouterr().out
    assert "start beside 80 sub-jobs of 20 HyperJobs, 5 clusters" in printed
    assert "writes to what was there: 0\n" in printed
