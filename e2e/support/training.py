"""Trainings that run as processes: their manifests, their logs, and common scenarios.

A training is a list of documents, of which the last is the HyperJob. Its program prints `starts
after step N` and progress lines, and keeps its checkpoints in an export that all clusters share.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path

import yaml

from e2e.support.manifests import hyperjob
from e2e.support.scenario import Scenario, clusters_of, phase_of
from e2e.support.settings import Settings
from e2e.support.unreachable import unreachable
from e2e.support.world import World, open_world
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import timestamp
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import HYPERJOBS, PODS
from hyperjob_install.interpreters import interpreters
from tests.support.stack import ROOT, kubectl

CLUSTERS_FILE = ROOT / "e2e/clusters-processes.yaml"
ENDLESS = {"STEPS": "1000000", "PAUSE": "0.02"}
SIZE_STEPS = int(os.environ.get("HYPERJOB_E2E_SIZE_STEPS", "5"))
"""Steps for which a training stays at each size; its rate needs hundreds."""
_LOOK_SECONDS = 0.2
_STARTS = re.compile(r"rank \d+ of (\d+) in \S+ starts after step (\d+)")


@contextlib.contextmanager
def open_process_world(
    settings: Settings,
    directory: Path,
    *,
    clusters: Path = CLUSTERS_FILE,
    controller: Sequence[str] = (),
    trainjobs: bool = False,
) -> Iterator[World]:
    """Start clusters whose pods are processes, with webhook and controller.

    `clusters` is the file of these clusters, `controller` are more arguments of the controller.
    With `trainjobs` Trainer's CRDs are there.
    """
    with open_world(
        settings,
        directory,
        clusters=clusters,
        controller=controller,
        trainjobs=trainjobs,
    ) as world:
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
    """Run a training over two clusters; check that the loss falls; return all log lines."""
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
    """Kill a process: the failurePolicy restarts all sub-jobs, from the last checkpoint."""
    name = documents[-1]["metadata"]["name"]
    await scenario.apply(*training(documents, **ENDLESS, SCENARIO=scenario.namespace))
    saved = await until_saved(scenario)
    os.kill(processes_of(scenario, f"{name}-trainer-1")[-1], signal.SIGKILL)
    assert await until_started_again(scenario) >= saved
    found = await scenario.until_phase(name, "Running")
    assert found["status"]["restarts"] == 1
    assert attempts_of(found) == {1}


async def goes_on_after_a_suspension(scenario: Scenario, documents: list[Object]) -> None:
    """Suspend: no process is left. Resume: the training continues from the last checkpoint."""
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
    """Restart a training repeatedly: its journal has every step exactly once."""
    name = documents[-1]["metadata"]["name"]
    await scenario.apply(*training(documents, **ENDLESS, SCENARIO=scenario.namespace))
    await until_saved(scenario)
    steps = 0
    for turn in range(1, times + 1):
        # The controller counts two stops as one if it has read no progress line between them.
        await scenario.until(
            HYPERJOBS, name, partial(_trains_in, turn - 1), what=f"training in attempt {turn - 1}"
        )
        await scenario.kubectl(
            "annotate", "hyperjob", name, f"training.volcano.sh/restart=t{turn}", "--overwrite"
        )
        begun = await _begun(scenario, turn)
        assert begun.made > steps
        assert begun.twice == 0, f"stop {turn}: {begun}"
        assert begun.start == begun.made, f"stop {turn}: a step was made and not saved: {begun}"
        steps = begun.made
        await heard(scenario, r'"saved": (\d+)')
    found = await scenario.until(
        HYPERJOBS,
        name,
        lambda now: now is not None and lost_work(now).get("Restarted", (0, 0))[0] == times,
        what=f"{times} stops counted",
    )
    assert lost_work(found) == {"Restarted": (times, 0)}
    assert attempts_of(found) == {times}
    assert found["status"].get("restarts", 0) == 0
    print(f"{times} planned stops in {steps} steps: 0 lost")  # noqa: T201 - `pytest -rP` shows it


async def moves_from_a_lost_cluster(
    scenario: Scenario, documents: list[Object], *, interval: int, times: int = 1
) -> None:
    """Lose the cluster of the first process repeatedly: the training continues elsewhere.

    Each time all processes start from one checkpoint, at most `interval` steps before the loss.
    """
    name = documents[-1]["metadata"]["name"]
    await scenario.apply(*training(documents, **ENDLESS, SCENARIO=scenario.namespace))
    attempt, lost = 0, [0]
    for turn in range(1, times + 1):
        await _saves_again(scenario)
        found = await scenario.until_phase(name, "Running")
        assert attempts_of(found) == {attempt}
        member = clusters_of(found)[f"{name}-trainer-0"]
        async with unreachable(scenario, member):
            kill(scenario, f"{name}-trainer-0")
            found = await scenario.until(
                HYPERJOBS,
                name,
                partial(_runs_without, member),
                what=f"Running without {member}",
            )
            attempt = max(attempts_of(found))
            begun = await _begun(scenario, attempt, without=member)
            assert len(set(clusters_of(found).values())) == 2
        lost.append(begun.lost)
        assert 0 <= lost[-1] - lost[-2] <= interval, f"loss {turn}: {begun}, before: {lost}"
    each = [after - before for before, after in pairwise(lost)]
    print(f"steps lost by each lost cluster, of {interval} at most: {each}")  # noqa: T201
    await scenario.kubectl("delete", "hyperjob", name)
    await scenario.until_members_have(0)
    assert processes_of(scenario) == []


async def takes_another_alternative(
    scenario: Scenario, documents: list[Object], *, interval: int
) -> None:
    """Lose the cluster of a training on H100: it goes on from its checkpoint in two of A100.

    It has one sub-job in the first alternative, and two in the second.
    """
    first, *others = list(scenario.world.members)
    made = training(documents, **ENDLESS, SCENARIO=scenario.namespace)
    name, (group,) = made[-1]["metadata"]["name"], made[-1]["spec"]["replicatedJobs"]
    (task,) = group["templateSpec"]["tasks"]
    group["alternatives"] = []
    for kind, replicas in (("h100", 1), ("a100", 2)):
        nodes = {"name": task["name"], "template": {"spec": {"nodeSelector": {"gpu": kind}}}}
        shape = {"name": kind, "replicas": replicas, "templateSpec": {"tasks": [nodes]}}
        group["alternatives"].append(shape)
    await scenario.apply(*made)
    await _saves_again(scenario)
    found = await scenario.until(
        HYPERJOBS, name, lambda now: bool(_speeds_of(now or {})), what="at a measured speed"
    )
    assert set(_speeds_of(found)) == {"trainer=h100"}
    assert set(clusters_of(found).values()) == {first}
    assert alternatives_of(found) == {"trainer": ("h100", "FirstWithRoom")}
    async with unreachable(scenario, first):
        kill(scenario, f"{name}-trainer-0")
        found = await scenario.until(
            HYPERJOBS, name, partial(_runs_without, first), what=f"Running without {first}"
        )
        begun = await _begun(scenario, *attempts_of(found), without=first)
    assert set(clusters_of(found).values()) == set(others)
    assert alternatives_of(found) == {"trainer": ("a100", "FirstWithRoom")}
    assert begun.start > 0, begun
    assert 0 <= begun.lost <= interval, begun
    await scenario.kubectl("delete", "hyperjob", name)
    await scenario.until_members_have(0)
    assert processes_of(scenario) == []


async def changes_its_size(scenario: Scenario, documents: list[Object]) -> None:
    """Let one world of two sub-jobs make way with one, and take the room again: no step is lost."""
    places = list(scenario.world.members)[:2]
    made = training(documents, **ENDLESS, SCENARIO=scenario.namespace)
    name, (group,) = made[-1]["metadata"]["name"], made[-1]["spec"]["replicatedJobs"]
    group |= {"clusterPolicy": "Required", "clusterNames": places, "minReplicas": 1}
    async with scenario.priority(1000) as urgent:
        await scenario.apply(*made)
        await _saves_again(scenario)
        await scenario.apply(sleeps("urgent", urgent, only_on=places))
        found = await until_size(scenario, name, 1)
        begun = await _begun(scenario, *attempts_of(found))
        assert (begun.twice, begun.lost) == (0, 0), begun
        await heard(scenario, r'"saved": (\d+)')
        await scenario.kubectl("delete", "hyperjob", "urgent")
        found = await until_size(scenario, name, 2)
        begun = await _begun(scenario, *attempts_of(found))
        assert (begun.twice, begun.lost) == (0, 0), begun
    counted = {"Preempted": (1, 0), "Resized": (1, 0)}
    found = await scenario.until(
        HYPERJOBS, name, lambda now: lost_work(now or {}) == counted, what="two stops counted"
    )
    assert alternatives_of(found) == {"trainer": ("2", "Grew")}
    assert found["status"].get("restarts", 0) == 0, "no program has failed"


async def comes_and_goes(
    scenario: Scenario,
    documents: list[Object],
    made: Callable[[], Awaitable[list[tuple[int, float]]]],
) -> None:
    """Let urgent HyperJobs take the clusters of sub-jobs: 3, 1, 3, 2 and 3 of them train.

    `made` returns the steps with their times. Of the steps that a size allows, by its rate in the
    second half of its time, it prints how many were made: the changes took the others.
    """
    name, group = documents[-1]["metadata"]["name"], documents[-1]["spec"]["replicatedJobs"][-1]
    others = len(documents[-1]["spec"]["replicatedJobs"]) - 1
    group["minReplicas"] = 1
    turns: list[tuple[int, float, float]] = []

    async def stays(number: int, since: float) -> None:
        found = await until_size(scenario, name, number + others)
        assert attempts_of(found) == {0}, yaml.safe_dump(found["status"]["jobs"])
        assert "lostWork" not in found["status"]
        await goes_on(scenario, steps=SIZE_STEPS)
        turns.append((number, since, time.time()))

    async with scenario.priority(1000) as urgent:
        await scenario.apply(*documents)
        await until_size(scenario, name, 3 + others)
        await goes_on(scenario, steps=SIZE_STEPS)
        for taken in (2, 1):
            since = time.time()
            await scenario.apply(sleeps(f"urgent-{taken}", urgent, replicas=taken))
            await stays(3 - taken, since)
            since = time.time()
            await scenario.kubectl("delete", "hyperjob", f"urgent-{taken}")
            await stays(3, since)
    steps = await made()
    gaps = [each for each in pairwise(steps) if each[1][0] != each[0][0] + 1]
    assert not gaps, f"each step, and once: {gaps}, turns {turns}"

    def within(begin: float, end: float) -> int:
        return sum(begin <= at < end for _, at in steps)

    shares = [
        (number, within(begin, end) / (2 * within((begin + end) / 2, end)))
        for number, begin, end in turns
    ]
    print(f"{len(steps)} steps, none twice; by size, of what it allows:", shares)  # noqa: T201


def sleeps(
    name: str, priority_class: str, *, replicas: int = 1, only_on: Sequence[str] = ()
) -> Object:
    """Return a HyperJob each of whose sub-jobs takes the two GPUs of a cluster."""
    container = {"name": "main", "image": "python", "command": ["sleep", "600"]}
    container |= {"resources": {"limits": {"nvidia.com/gpu": 2}}}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    template = {"priorityClassName": priority_class}
    template |= {"tasks": [{"name": "worker", "replicas": 1, "template": {"spec": pod}}]}
    group = {"name": "trainer", "replicas": replicas, "templateSpec": template}
    if only_on:
        group |= {"clusterPolicy": "Required", "clusterNames": list(only_on)}
    return hyperjob(name, group)


async def until_size(scenario: Scenario, name: str, number: int) -> Object:
    """Wait until a HyperJob runs with so many sub-jobs, and wants no more."""
    return await scenario.until(
        HYPERJOBS,
        name,
        lambda found: (found or {}).get("status", {}).get("jobsReady") == f"{number}/{number}",
        what=f"Running with {number} sub-jobs",
    )


def alternatives_of(hyperjob: Object) -> dict[str, tuple[str, str]]:
    """Return the alternative of each replicatedJob, with the reason of its choice."""
    found = hyperjob["status"]["alternatives"]
    return {each["replicatedJob"]: (each["name"], each["reason"]) for each in found}


def _speeds_of(hyperjob: Object) -> dict[str, str]:
    found = (hyperjob.get("status") or {}).get("speeds") or ()
    return {
        each["alternatives"]: each["stepsPerSecond"] for each in found if each.get("stepsPerSecond")
    }


def _runs_without(member: str, found: Object | None) -> bool:
    return (
        found is not None
        and phase_of(found) == "Running"
        and member not in clusters_of(found).values()
    )


@dataclass(frozen=True, slots=True)
class Begun:
    """The start of an attempt: the steps of earlier attempts, repeated steps, its first step."""

    made: int
    twice: int
    start: int

    @property
    def lost(self) -> int:
        """Return the number of steps that were repeated, or will be."""
        return self.made - self.start


async def _begun(scenario: Scenario, *attempts: int, without: str = "") -> Begun:
    """Wait until all processes have started after the same step, and those before are gone.

    Rank 0 may be in a sub-job of any of the attempts.
    """
    known = "|".join(map(str, attempts))
    pattern = re.compile(rf"attempt (?:{known}): (\d+) steps made, (\d+) of them twice")
    deadline = time.monotonic() + scenario.world.settings.timeout
    while True:
        lines = await said(scenario, without=without)
        made = [found for each in lines if (found := pattern.search(each))]
        started = [found.groups() for each in lines if (found := _STARTS.search(each))]
        worlds, starts = {int(each[0]) for each in started}, {int(each[1]) for each in started}
        if made and worlds == {len(started)}:
            break
        text = f"{pattern.pattern}, and all of {worlds}:"
        assert time.monotonic() < deadline, "\n".join([text, *lines]) + scenario.logs()
        await asyncio.sleep(_LOOK_SECONDS)
    assert len(starts) == 1, f"processes started after different steps: {starts}"
    return Begun(made=int(made[0][1]), twice=int(made[0][2]), start=starts.pop())


async def _saves_again(scenario: Scenario) -> None:
    """Wait until only the present attempt has pods, and has saved a checkpoint."""
    deadline = time.monotonic() + scenario.world.settings.timeout
    while True:
        lines = await said(scenario)
        worlds = [int(found[1]) for line in lines if (found := _STARTS.search(line))]
        if set(worlds) == {len(worlds)} and any('"saved": ' in line for line in lines):
            return
        assert time.monotonic() < deadline, "\n".join(lines) + scenario.logs()
        await asyncio.sleep(_LOOK_SECONDS)


def _trains_in(attempt: int, hyperjob: Object | None) -> bool:
    """Return whether the status has the progress of an attempt that runs."""
    jobs = ((hyperjob or {}).get("status") or {}).get("jobs") or []
    shown = {(job.get("training") or {}).get("attempt") for job in jobs}
    return attempt in shown and _runs_in(attempt, hyperjob)


def _runs_in(attempt: int, hyperjob: Object | None) -> bool:
    found = hyperjob or {}
    return phase_of(found) == "Running" and attempts_of(found) == {attempt}


def attempts_of(hyperjob: Object) -> set[int]:
    """Return the attempts of the sub-jobs."""
    return {job.get("attempt", 0) for job in hyperjob["status"]["jobs"]}


def lost_work(hyperjob: Object) -> dict[str, tuple[int, int]]:
    """Return the counted stops and their lost steps, by cause."""
    found = (hyperjob.get("status") or {}).get("lostWork") or ()
    return {each["cause"]: (each["stops"], each["steps"]) for each in found}


async def goes_on(scenario: Scenario, *, without: str = "", steps: int = 5) -> None:
    """Wait until the processes outside `without` have made more steps."""
    before = max(steps_of(await said(scenario, without=without)))
    deadline = time.monotonic() + scenario.world.settings.timeout
    while (now := max(steps_of(await said(scenario, without=without)))) < before + steps:
        assert time.monotonic() < deadline, f"still at step {now}{scenario.logs()}"
        await asyncio.sleep(_LOOK_SECONDS)


async def stays_away(scenario: Scenario, hyperjob: Object, seconds: float) -> None:
    """Check until a HyperJob has been in its phase for some seconds that it has no processes."""
    since = timestamp(hyperjob["status"]["state"]["lastTransitionTime"])
    assert since is not None
    end = since + timedelta(seconds=seconds + 1)  # it has whole seconds
    while datetime.now(UTC) < end:
        assert processes_of(scenario) == []
        await asyncio.sleep(_LOOK_SECONDS)


def kill(scenario: Scenario, job: str) -> None:
    """Kill all processes of a sub-job at once, like the loss of its machine."""
    kill_with(scenario, f"HYPERJOB_JOB_NAME={job}")


def kill_with(scenario: Scenario, variable: str) -> None:
    """Kill all processes of a scenario with a variable of their environment."""
    marks = {variable.encode(), f"SCENARIO={scenario.namespace}".encode()}
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
    """Return the log lines of all pods in all members except `without`."""
    lines: list[str] = []
    for member, kube in scenario.members.items():
        if member == without:
            continue
        for pod in (await kube.list(PODS, namespace=scenario.namespace)).items:
            path = f"{PODS.path(scenario.namespace, pod['metadata']['name'])}/log"
            with contextlib.suppress(
                KubeError
            ):  # the container has not started, or the pod was deleted
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
    """Return the training processes of a scenario on this machine, in the order of their start."""
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
