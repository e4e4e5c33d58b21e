"""The example for torch trains for real: to its end, after a kill, a suspension, a lost cluster."""

import os

import pytest

from e2e.support import training
from e2e.support.scenario import Scenario
from e2e.support.world import documents
from hyperjob_core.api.meta import Object
from tests.torch.journal import with_journal

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(1200)]
EXAMPLE = documents("torch-training")
STOPS = int(os.environ.get("HYPERJOB_E2E_STOPS", "2"))
INTERVAL = 20
"""Steps between two checkpoints of the example."""


async def test_four_processes_over_two_clusters_learn(scenario: Scenario) -> None:
    lines = await training.learns(scenario, EXAMPLE)
    assert sum("has ended with loss" in line for line in lines) == 4


async def test_a_killed_worker_brings_all_back_from_the_checkpoint(scenario: Scenario) -> None:
    await training.goes_on_after_a_kill(scenario, EXAMPLE)


async def test_a_suspended_training_goes_on_when_resumed(scenario: Scenario) -> None:
    await training.goes_on_after_a_suspension(scenario, EXAMPLE)


def journaled() -> list[Object]:
    return with_journal(EXAMPLE, makes_a_step="    optimizer.step()\n")


@pytest.mark.timeout(600 + 120 * STOPS)
async def test_no_step_is_lost_in_planned_stops(scenario: Scenario) -> None:
    await training.stops_without_loss(scenario, journaled(), STOPS)


async def test_a_lost_cluster_costs_at_most_one_interval(scenario: Scenario) -> None:
    times = int(os.environ.get("HYPERJOB_E2E_LOSSES", "1"))
    await training.moves_from_a_lost_cluster(scenario, journaled(), interval=INTERVAL, times=times)


async def test_no_step_is_lost_when_a_world_becomes_smaller_and_larger(scenario: Scenario) -> None:
    await training.changes_its_size(scenario, journaled())


async def test_it_goes_on_in_two_small_clusters_when_its_large_one_is_lost(
    scenario: Scenario,
) -> None:
    await training.takes_another_alternative(scenario, journaled(), interval=INTERVAL)
