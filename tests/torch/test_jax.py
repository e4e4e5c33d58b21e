"""The example for JAX trains for real: to its end, and through planned stops."""

import os
from importlib.util import find_spec

import pytest

from e2e.support import training
from e2e.support.scenario import Scenario
from e2e.support.world import documents
from tests.torch.journal import with_journal

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        find_spec("jax") is None, reason="jax has no build for this version of Python"
    ),
]
EXAMPLE = documents("jax-training")


async def test_four_processes_over_two_clusters_learn(scenario: Scenario) -> None:
    lines = await training.learns(scenario, EXAMPLE)
    assert sum("has ended with loss" in line for line in lines) == 4


async def test_no_step_is_lost_in_planned_stops(scenario: Scenario) -> None:
    made = with_journal(EXAMPLE, makes_a_step='.astype("float32")\n    time.sleep(pause)\n')
    times = int(os.environ.get("HYPERJOB_E2E_STOPS", "2"))
    await training.stops_without_loss(scenario, made, times)
