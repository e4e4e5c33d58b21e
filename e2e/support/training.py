"""Trainings that really run: their documents, what their processes say, and their stories.

A training is a list of documents, of which the last is the HyperJob. Its program prints `starts
after step N` and progress lines, and keeps its checkpoints in a claim that all clusters share.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path

import yaml

from e2e.support.scenario import Scenario, clusters_of
from e2e.support.settings import Settings
from e2e.support.unreachable import unreachable
from e2e.support.world import World, open_world
from hyperjob.api.meta import Object
from hyperjob.install.interpreters import interpreters
from hyperjob.kube.errors import KubeError
from hyperjob.kube.resources import PODS
from tests.support.stack import ROOT, kubectl

CLUSTERS_FILE = ROOT / "e2e/clusters-processes.yaml"
ENDLESS = {"STEPS": "1000000", "PAUSE": "0.02"}
_LOOK_SECONDS = 0.2


@contextlib.contextmanager
def open_process_world(
    settings: Settings, directory: Path, *, controller: Sequence[str] = ()
) -> Iterator[World]:
    """Start clusters whose pods are processes, with all of ours that copies what pods name.

    `controller` are more arguments of the controller.
    """
    with open_world(settings, directory, clusters=CLUSTERS_FILE, controller=controller) as world:
        scripts = yaml.safe_dump_all([item.object for item in interpreters()])
        kubectl(world.kubeconfig, "apply", "-f", "-", stdin=scripts)
        yield world


def training(documents: list[Object], **variables: str) -> list[Object]:
    """Return a training with variables of its containers changed."""
    made = deepcopy(documents)
    for each in containers_of(made[-1]):
        given = {item["name"]: item for item in each.get("env") or ()}
        given |= {name: {"name": name, "value": value} for name, value in variables.items()}
        each["env"] = list(given.values())
    return made


def containers_of(hyperjob: Object) -> Iterator[Object]:
    """Yield the containers of a HyperJob."""
    for group in hyperjob["spec"]["replicatedJobs"]:
        for task in group["templateSpec"]["tasks"]:
            yield from task["template"]["spec"]["containers"]


async def learns(scenario: Scenario, documents: list[Object]) -> list[str]:
    """Train to the end over two clusters: the loss falls. Return all lines."""
    name = documents[-1]["metadata"]["name"]
    await scenario.apply(*documents)
    ended = await scenario.until_phase(name, "Completed", "Failed")
    lines = await said(scenario)
    assert ended["status"]["state"]["phase"] == "Completed", "\n".join(lines)
    assert len(set(clusters_of(ended).values())) == 2
    starts = {line for line in lines if "starts after step 0" in line}
    assert len(starts) == 4, "\n".join(lines)
    losses = losses_of(lines)
    assert losses[-1] < losses[0] / 2, losses
    return lines


async def goes_on_after_a_kill(scenario: Scenario, documents: list[Object]) -> None:
    """Kill a process in the middle: the failurePolicy restarts all, from the last checkpoint."""
    name = documents[-1]["metadata"]["name"]
    await scenario.apply(*training(documents, **ENDLESS, SCENARIO=scenario.namespace))
    saved = await until_saved(scenario)
    os.kill(processes_of(scenario, f"{name}-trainer-1")[-1], signal.SIGKILL)
    assert await until_started_again(scenario) >= saved
    found = await scenario.until_phase(name, "Running")
    assert found["status"]["restarts"] == 1
    assert {job["attempt"] for job in found["status"]["jobs"]} == {1}


async def goes_on_after_a_suspension(scenario: Scenario, documents: list[Object]) -> None:
    """Suspend: no process is left. Resume: training goes on from the last checkpoint."""
    name = documents[-1]["metadata"]["name"]
    await scenario.apply(*training(documents, **ENDLESS, SCENARIO=scenario.namespace))
    saved = await until_saved(scenario)
    await _suspend(scenario, name, on=True)
    await scenario.until_phase(name, "Suspended")
    await scenario.until_members_have(0)
    assert processes_of(scenario) == []
    await _suspend(scenario, name, on=False)
    assert await until_started_again(scenario) >= saved
    found = await scenario.until_phase(name, "Running")
    assert found["status"].get("restarts", 0) == 0


async def stops_without_loss(scenario: Scenario, documents: list[Object], times: int) -> None:
    """Restart a training over and over: by its own journal, no step is made twice or left out."""
    name = documents[-1]["metadata"]["name"]
    await scenario.apply(*training(documents, **ENDLESS, SCENARIO=scenario.namespace))
    await until_saved(scenario)
    steps = 0
    for turn in range(1, times + 1):
        await scenario.kubectl(
            "annotate", "hyperjob", name, f"training.volcano.sh/restart=t{turn}", "--overwrite"
        )
        line = await heard(scenario, rf"attempt {turn}: (\d+) steps made, (\d+) of them twice")
        assert int(line[1]) > steps
        assert int(line[2]) == 0, line[0]
        steps = int(line[1])
        start = await heard(scenario, r"starts after step (\d+)")
        assert int(start[1]) == steps, "a step was made and not saved"
        await heard(scenario, r'"saved": (\d+)')
    found = await scenario.until_phase(name, "Running")
    assert {job["attempt"] for job in found["status"]["jobs"]} == {times}
    assert found["status"].get("restarts", 0) == 0
    lost = {each["cause"]: each["steps"] for each in found["status"].get("lostWork") or ()}
    assert set(lost) <= {"Restarted"}
    assert sum(lost.values()) == 0, lost


async def moves_from_a_lost_cluster(scenario: Scenario, documents: list[Object]) -> None:
    """Lose the cluster of the first process: training goes on elsewhere from its checkpoint."""
    name = documents[-1]["metadata"]["name"]
    await scenario.apply(*training(documents, **ENDLESS, SCENARIO=scenario.namespace))
    saved = await until_saved(scenario)
    before = clusters_of(await scenario.until_phase(name, "Running"))
    lost = before[f"{name}-trainer-0"]
    async with unreachable(scenario, lost):
        assert await until_started_again(scenario, without=lost) >= saved
        after = clusters_of(await scenario.until_phase(name, "Running"))
        assert lost not in after.values()
        assert len(set(after.values())) == 2
    await scenario.kubectl("delete", "hyperjob", name)
    await scenario.until_members_have(0)
    assert processes_of(scenario) == []


async def goes_on(scenario: Scenario, *, without: str = "", steps: int = 5) -> None:
    """Wait until the processes outside one member have made further steps."""
    before = max(steps_of(await said(scenario, without=without)))
    deadline = time.monotonic() + scenario.world.settings.timeout
    while (now := max(steps_of(await said(scenario, without=without)))) < before + steps:
        assert time.monotonic() < deadline, f"still at step {now}{scenario.logs()}"
        await asyncio.sleep(_LOOK_SECONDS)


def kill(scenario: Scenario, job: str) -> None:
    """End all processes of a sub-job at once, as the loss of its machine does."""
    marks = {f"HYPERJOB_JOB_NAME={job}".encode(), f"SCENARIO={scenario.namespace}".encode()}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and marks <= set((entry / "environ").read_bytes().split(b"\0")):
                os.kill(int(entry.name), signal.SIGKILL)


async def until_saved(scenario: Scenario) -> int:
    """Wait for the first checkpoint; return its step."""
    return int((await heard(scenario, r'"saved": (\d+)'))[1])


async def until_started_again(scenario: Scenario, *, without: str = "") -> int:
    """Wait until a process starts from a checkpoint; return the checkpoint's step."""
    return int((await heard(scenario, r"starts after step ([1-9]\d*)", without=without))[1])


async def heard(scenario: Scenario, pattern: str, *, without: str = "") -> re.Match[str]:
    """Wait until a process of the scenario has printed a line."""
    deadline = time.monotonic() + scenario.world.settings.timeout
    while True:
        lines = await said(scenario, without=without)
        for line in lines:
            if found := re.search(pattern, line):
                return found
        text = "\n".join(lines)
        assert time.monotonic() < deadline, f"no {pattern}:\n{text}{scenario.logs()}"
        await asyncio.sleep(_LOOK_SECONDS)


async def said(scenario: Scenario, *, without: str = "") -> list[str]:
    """Return the log lines of all pods in all members but one, as far as there are any."""
    lines: list[str] = []
    for member, kube in scenario.members.items():
        if member == without:
            continue
        for pod in (await kube.list(PODS, namespace=scenario.namespace)).items:
            path = f"{PODS.path(scenario.namespace, pod['metadata']['name'])}/log"
            with contextlib.suppress(KubeError):  # its container has not started, or it has gone
                reply = await kube.raw("GET", path, accept="*/*")
                lines += reply.body.decode(errors="replace").splitlines()
    return lines


def losses_of(lines: list[str]) -> list[float]:
    """Return the losses of progress lines."""
    found = [json.loads(line)["hyperjob"] for line in lines if line.startswith('{"hyperjob"')]
    return [each["metrics"]["loss"] for each in found if "metrics" in each]


def steps_of(lines: list[str]) -> list[int]:
    """Return the steps of progress lines; 0 where there is none."""
    found = [json.loads(line)["hyperjob"] for line in lines if line.startswith('{"hyperjob"')]
    return [0, *(each["step"] for each in found)]


def processes_of(scenario: Scenario, job: str = "") -> list[int]:
    """Return the training processes of a scenario on this machine, as they were started."""
    marks = {f"SCENARIO={scenario.namespace}".encode()}
    if job:
        marks.add(f"HYPERJOB_JOB_NAME={job}".encode())
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and marks <= set((entry / "environ").read_bytes().split(b"\0")):
                words = (entry / "cmdline").read_bytes()
                if b"train.py" in words and b"torchrun" not in words:
                    found.append(int(entry.name))
    return sorted(found)


async def _suspend(scenario: Scenario, name: str, *, on: bool) -> None:
    patch = json.dumps({"spec": {"suspend": on}})
    await scenario.kubectl("patch", "hyperjob", name, "--type=merge", "-p", patch)
