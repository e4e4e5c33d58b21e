"""Real torchft over three clusters: a lost group neither restarts nor stops the others."""

import re
from copy import deepcopy
from importlib.util import find_spec

import pytest

from e2e.support import training
from e2e.support.scenario import Scenario, clusters_of
from e2e.support.world import documents

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        find_spec("torchft") is None, reason="torchft has no build for this version of Python"
    ),
]
EXAMPLE = documents("torchft-training")
NAME = "torchft-training"


def attempts(found: dict) -> dict[str, int]:
    return {job["name"]: job.get("attempt", 0) for job in found["status"]["jobs"]}


async def test_three_groups_train_to_the_end(scenario: Scenario) -> None:
    await scenario.apply(*EXAMPLE)
    ended = await scenario.until_phase(NAME, "Completed", "Failed")
    lines = await training.said(scenario)
    assert ended["status"]["state"]["phase"] == "Completed", "\n".join(lines)
    trainers = {name: c for name, c in clusters_of(ended).items() if "trainer" in name}
    assert len(set(trainers.values())) == 3
    assert sum("has ended at step 200" in line for line in lines) >= 2, "\n".join(lines)
    losses = training.losses_of(lines)
    assert min(losses) < max(losses) / 4


@pytest.mark.parametrize("lost", ["trainer-1", "lighthouse-0"])
async def test_a_lost_sub_job_comes_back_and_no_other_is_restarted(
    scenario: Scenario, lost: str
) -> None:
    made = training.training(EXAMPLE, STEPS="1000000", SCENARIO=scenario.namespace)
    await scenario.apply(*made)
    await scenario.until_phase(NAME, "Running")
    await training.heard(scenario, r'"groups": 3')
    name = f"{NAME}-{lost}"
    training.kill(scenario, name)
    await scenario.until_phase(NAME, "Degraded")
    found = await scenario.until_phase(NAME, "Running")
    assert attempts(found) == {each: int(each == name) for each in attempts(found)}
    await training.goes_on(scenario)
    for group in range(3):  # the process of the sub-job that was lost may still import torch
        await training.heard(scenario, rf"group {group} starts in")
    again = [line for line in await training.said(scenario) if "starts in" in line]
    assert len(again) == 3, again


async def test_groups_come_and_go_and_none_starts_again(scenario: Scenario) -> None:
    """Three, one, three, two and three groups: the first has made each step once."""
    timed = 'print(f"made {step} at {time.time()} by {group}", flush=True)'
    example = deepcopy(EXAMPLE)
    program = example[0]["data"]["train.py"]
    assert program.count("    time.sleep(pause)\n") == 1
    program = program.replace("    time.sleep(pause)\n", f"    time.sleep(pause)\n    {timed}\n")
    example[0]["data"]["train.py"] = program
    example[-1]["spec"]["quorum"] = 1
    made = training.training(example, STEPS="1000000", PAUSE="0.2", SCENARIO=scenario.namespace)

    async def steps() -> list[tuple[int, float]]:
        lines = await training.said(scenario)
        found = [re.match(r"made (\d+) at ([\d.]+) by 0", line) for line in lines]
        return [(int(each[1]), float(each[2])) for each in found if each]

    await training.comes_and_goes(scenario, made, steps)
