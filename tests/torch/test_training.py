"""The example for torch trains for real: to its end, after a kill, a suspension, a lost cluster."""

import pytest

from e2e.support import training
from e2e.support.scenario import Scenario
from e2e.support.world import documents

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(1200)]
EXAMPLE = documents("torch-training")


async def test_four_processes_over_two_clusters_learn(scenario: Scenario) -> None:
    lines = await training.learns(scenario, EXAMPLE)
    assert sum("has ended with loss" in line for line in lines) == 4


async def test_a_killed_worker_brings_all_back_from_the_checkpoint(scenario: Scenario) -> None:
    await training.goes_on_after_a_kill(scenario, EXAMPLE)


async def test_a_suspended_training_goes_on_when_resumed(scenario: Scenario) -> None:
    await training.goes_on_after_a_suspension(scenario, EXAMPLE)


async def test_a_training_leaves_a_lost_cluster(scenario: Scenario) -> None:
    await training.moves_from_a_lost_cluster(scenario, EXAMPLE)
