"""A tenth of the benchmark of hangs: real DDP trainings say which rank hangs, and where."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.bench_hangs import FAULTS, Bench, Result
from hyperjob.sdk import AsyncClient

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(3600)]

FAULTY, HEALTHY, AT_ONCE, SEED = 20, 4, 4, 1


async def run(folder: Path) -> list[Result]:
    """Run all trainings in two clusters, some at once."""
    places = asyncio.Semaphore(AT_ONCE)
    async with AsyncClient.local(clusters=2, gpus=4 * AT_ONCE) as client:
        bench = Bench(client, folder, SEED)

        async def one(number: int) -> Result:
            async with places:
                if number < FAULTY:
                    return await bench.fault(number)
                return await bench.healthy(number - FAULTY)

        return await asyncio.gather(*map(one, range(FAULTY + HEALTHY)))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """Give what was seen of each training."""
    return asyncio.run(run(tmp_path_factory.mktemp("trainings")))


@pytest.mark.parametrize("number", range(FAULTY))
def test_the_rank_for_which_the_others_wait_and_its_line_are_named(
    results: list[Result], number: int
) -> None:
    found = results[number]
    assert found.notices == [], "no notice comes before the fault"
    assert found.named, found
    assert found.line or not FAULTS[found.kind], found


@pytest.mark.parametrize("number", range(HEALTHY))
def test_a_healthy_training_has_no_notice_and_the_last_values_of_its_program(
    results: list[Result], number: int
) -> None:
    found = results[FAULTY + number]
    assert found.notices == []
    assert found.right, found.text
