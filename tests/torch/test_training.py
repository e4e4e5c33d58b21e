"""The example for torch trains for real: to its end, after a kill, a suspension, a lost cluster."""

import os
from copy import deepcopy

import pytest

from e2e.support import training
from e2e.support.scenario import Scenario
from e2e.support.world import documents

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(1200)]
EXAMPLE = documents("torch-training")
JOURNAL = {
    'print(f"rank {rank} of': """if rank == 0:
    made = open(last + ".journal").read().split() if os.path.exists(last + ".journal") else []
    twice = len(made) - len(set(made))
    attempt = os.environ["HYPERJOB_ATTEMPT"]
    print(f"attempt {attempt}: {len(made)} steps made, {twice} of them twice", flush=True)
print(f"rank {rank} of""",
    "    optimizer.step()\n": """    optimizer.step()
    if rank == 0:
        open(last + ".journal", "a").write(f"{step}\\n")
""",
}


async def test_four_processes_over_two_clusters_learn(scenario: Scenario) -> None:
    lines = await training.learns(scenario, EXAMPLE)
    assert sum("has ended with loss" in line for line in lines) == 4


async def test_a_killed_worker_brings_all_back_from_the_checkpoint(scenario: Scenario) -> None:
    await training.goes_on_after_a_kill(scenario, EXAMPLE)


async def test_a_suspended_training_goes_on_when_resumed(scenario: Scenario) -> None:
    await training.goes_on_after_a_suspension(scenario, EXAMPLE)


async def test_no_step_is_lost_in_planned_stops(scenario: Scenario) -> None:
    made = deepcopy(EXAMPLE)
    text = made[0]["data"]["train.py"]
    for before, after in JOURNAL.items():
        assert before in text
        text = text.replace(before, after)
    made[0]["data"]["train.py"] = text
    await training.stops_without_loss(
        scenario, made, int(os.environ.get("HYPERJOB_E2E_STOPS", "2"))
    )


async def test_a_training_leaves_a_lost_cluster(scenario: Scenario) -> None:
    await training.moves_from_a_lost_cluster(scenario, EXAMPLE)
