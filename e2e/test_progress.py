"""Progress and goodput of running trainings, compared with the programs' own journals."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator

import pytest

from e2e.support import training
from e2e.support.scenario import Scenario
from e2e.support.settings import from_environment
from e2e.support.world import ROOT, World, documents
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import HYPERJOBS

NAME = "torch-training"
STEPS = int(os.environ.get("HYPERJOB_E2E_STEPS", "300"))
PAUSE = 0.05
# The tolerance covers late reports on a busy machine; an idle machine is within 0.02.
TOLERANCE = float(os.environ.get("HYPERJOB_E2E_GOODPUT_TOLERANCE", "0.1"))
AWAY = 5.0  # seconds for which the training is suspended


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield clusters whose pods are processes, and a controller that reads their logs."""
    settings = from_environment()
    if not settings.embedded:
        pytest.skip("the program is not in the images of a Karmada at hand")
    directory = tmp_path_factory.mktemp("progress")
    reading = ["--members=logs", "--progress-interval=1"]
    with training.open_process_world(settings, directory, controller=reading) as opened:
        yield opened


@pytest.fixture(scope="module")
def plain() -> list[Object]:
    """Return a training of one process."""
    config_map, hyperjob = documents(NAME)
    config_map["data"] = {"train.py": (ROOT / "e2e/programs/goodput.py").read_text()}
    hyperjob["spec"]["plugins"] = {"env": []}
    group = hyperjob["spec"]["replicatedJobs"][0]
    group["replicas"] = 1
    for task in group["templateSpec"]["tasks"]:
        task["replicas"] = 1
    for container in training.containers_of(hyperjob):
        container["command"] = ["sh", "-c", 'exec python "$PROGRAM"']
        container["env"].append({"name": "LOAD", "value": "1"})
    return training.training([config_map, hyperjob], STEPS=str(STEPS), PAUSE=str(PAUSE))


async def undisturbed(scenario: Scenario) -> None:
    """Do nothing."""


async def killed(scenario: Scenario) -> None:
    """Kill the training between two checkpoints: its sub-job fails and restarts."""
    await reaches(scenario, STEPS // 4)
    os.kill(training.processes_of(scenario)[0], signal.SIGKILL)
    await tells(scenario, lambda status: status.get("restarts") == 1)


async def killed_twice(scenario: Scenario) -> None:
    """Kill the training, and again before its next checkpoint."""
    await killed(scenario)
    while not (running := training.processes_of(scenario)):  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0.1)
    os.kill(running[0], signal.SIGKILL)
    await tells(scenario, lambda status: status.get("restarts") == 2)


async def suspended(scenario: Scenario) -> None:
    """Suspend the training for a while: it saves a checkpoint at SIGTERM."""
    await reaches(scenario, STEPS // 4)
    await patch(scenario, {"spec": {"suspend": True}})
    asleep = await scenario.until_phase(NAME, "Suspended")
    await training.stays_away(scenario, asleep, AWAY)
    await patch(scenario, {"spec": {"suspend": False}})


async def restarted(scenario: Scenario) -> None:
    """Request a restart."""
    await reaches(scenario, STEPS // 4)
    request = {"training.volcano.sh/restart": "once"}
    await patch(scenario, {"metadata": {"annotations": request}})
    await tells(scenario, lambda status: status.get("requests", {}).get("restart") == "once")


STORIES = [undisturbed, killed, killed_twice, suspended, restarted]


@pytest.mark.parametrize("story", STORIES, ids=[story.__name__ for story in STORIES])
async def test_goodput_is_what_the_program_wrote_down(
    scenario: Scenario, plain: list[Object], story: Callable[[Scenario], object]
) -> None:
    await scenario.apply(*training.training(plain, SCENARIO=scenario.namespace))
    await story(scenario)
    await scenario.until_phase(NAME, "Completed")
    ended = await tells(scenario, lambda status: "finishing" in status["goodput"]["milliseconds"])
    found = ended["status"]
    assert found["training"]["progress"] == "100%"
    assert found["training"]["step"] == found["training"]["savedStep"] == STEPS
    lines = [line for line in await training.said(scenario) if line.startswith("truth ")]
    written = [json.loads(part) for part in lines[0].removeprefix("truth ").split(";") if part]
    assert {step for step, _ in written} == set(range(1, STEPS + 1))
    truth = sum(dict(written).values())
    wasted = sum(seconds for _, seconds in written) - truth
    spent = {use: number / 1000 for use, number in found["goodput"]["milliseconds"].items()}
    sys.stdout.write(
        f"{story.__name__}: productive {spent['productive']:.2f} s, truth {truth:.2f} s"
        f" ({100 * (spent['productive'] / truth - 1):+.2f} %), repeated {wasted:.2f} s, {spent}\n"
    )
    assert spent["productive"] == pytest.approx(truth, rel=TOLERANCE), spent
    lost = spent.get("lostToFailures", 0) + spent.get("lostToPlannedStops", 0)
    assert lost > wasted - TOLERANCE * truth
    if story is suspended:
        assert spent["suspended"] >= AWAY


async def test_progress_arrives_while_it_runs(scenario: Scenario, plain: list[Object]) -> None:
    await scenario.apply(*training.training(plain, SCENARIO=scenario.namespace))
    await reaches(scenario, STEPS // 6)
    found = await tells(scenario, lambda status: status["training"]["step"] >= STEPS // 2)
    told = found["status"]["training"]
    assert told["steps"] == STEPS
    assert told["progress"] == f"{told['percent']}%"
    assert STEPS // 2 <= told["step"] <= STEPS
    assert told["savedStep"] <= told["step"]
    # The program makes twenty steps a second, and fewer on a busy machine.
    assert 2 < float(told["stepsPerSecond"]) <= 1 / PAUSE
    assert told["estimatedCompletionTime"]
    column = await scenario.kubectl("get", "hj", NAME)
    assert "PROGRESS" in column
    assert "%" in column


async def tells(scenario: Scenario, holds: Callable[[Object], object]) -> Object:
    """Wait until `holds` is true of the status of the training."""
    return await scenario.until(
        HYPERJOBS,
        NAME,
        lambda found: found is not None and holds(found.get("status") or {}),
        what="what it should be",
    )


async def reaches(scenario: Scenario, step: int) -> None:
    """Wait until the status has reached a step."""
    await tells(scenario, lambda status: status.get("training", {}).get("step", 0) >= step)


async def patch(scenario: Scenario, body: Object) -> None:
    """Change the HyperJob."""
    await scenario.kubectl("patch", "hyperjob", NAME, "--type=merge", "-p", json.dumps(body))
