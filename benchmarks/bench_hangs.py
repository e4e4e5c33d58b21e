"""Measure how soon and how well the controller names what is wrong with a training.

usage: python -m benchmarks.bench_hangs [--faults 40] [--healthy 40] [--at-once 20] [--seed 1]

Trainings of four real processes in two clusters wait for each other in each step, as in an
all-reduce. In each of FAULTS one seeded rank meets a seeded fault: it waits for a lock that it
holds, for a loader that has died, it gets SIGSTOP, it becomes slow, or it raises. The benchmark
prints how many were found within max(60 s, 5 median steps), and how often the rank, its pod or its
cluster was named. HEALTHY trainings make announced pauses of up to 90 s and unannounced ones of up
to 15 s, with `onNoProgress: Restart`: notices and restarts are false. The baseline of the same run
is the time from the fault to the first stacks of the program's own watchdog.
"""

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from e2e.support.settings import Settings
from e2e.support.training import open_process_world
from e2e.support.world import World
from hyperjob.sdk import progress
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, NAMESPACES, PODS

NAMESPACE = "hangs"
FAULTS = ("deadlock", "loader", "stopped", "slow", "raises")
WORLD = 4
INTERVAL = 30
"""The production default of --progress-interval."""
LOOK = 2.0
ROOT = Path(__file__).parent
CLUSTERS_FILE = """
pods: processes
clusters:
- name: east
  nodes: [{count: 1, allocatable: {cpu: 10000, memory: 10Ti, pods: 10000, nvidia.com/gpu: 2}}]
- name: west
  nodes: [{count: 1, allocatable: {cpu: 10000, memory: 10Ti, pods: 10000, nvidia.com/gpu: 2}}]
karmada: {clusterStatusSeconds: 1}
"""


@dataclass(slots=True, kw_only=True)
class Case:
    """One training, and what was seen of it."""

    name: str
    fault: str
    rank: int
    step: int
    pause: float
    pauses: Sequence[tuple[int, float, str]] = ()
    began: float = 0.0
    found: float = 0.0
    named: bool = False
    near: bool = False
    stacks: float = 0.0
    false_notice: bool = False
    restarts: int = 0
    text: str = ""
    slow: list[tuple[float, str]] = field(default_factory=list)
    """When the status had which straggler."""
    steps: int = 100_000

    @property
    def limit(self) -> float:
        """Return the seconds within which the fault must be found."""
        return max(60.0, 5 * self.pause)

    @property
    def pod(self) -> str:
        """Return the pod of the faulty rank."""
        return f"{self.name}-trainer-{self.rank // 2}-worker-{self.rank % 2}"


def faulty(number: int, chance: random.Random) -> Case:
    """Return a training with a seeded fault."""
    pause = chance.choice([0.3, 0.5, 1.0, 2.0])
    return Case(
        name=f"f{number}",
        fault=FAULTS[number % len(FAULTS)],
        rank=chance.randrange(WORLD),
        step=max(8, int(chance.uniform(20, 45) / pause)),
        pause=pause,
    )


def healthy(number: int, chance: random.Random) -> Case:
    """Return a training with long announced and short unannounced pauses."""
    pause = chance.choice([0.3, 0.5, 1.0, 2.0])
    at, pauses = int(10 / pause), []
    for _ in range(3):
        phase = chance.choice(["compile", "evaluate", "save", ""])
        seconds = chance.uniform(30, 90) if phase else chance.uniform(3, 15)
        pauses.append((at, round(seconds, 1), phase))
        at += int(20 / pause)
    return Case(name=f"h{number}", fault="", rank=0, step=0, pause=pause, pauses=pauses)


def hyperjob(case: Case, folder: Path) -> Object:
    """Return the HyperJob of a training: two sub-jobs of two processes."""
    env = {
        "PROGRESS_FOLDER": str(Path(progress.__code__.co_filename).parent),
        "MEETING": str(folder / case.name),
        "FAULT": case.fault,
        "FAULT_RANK": str(case.rank),
        "FAULT_STEP": str(case.step),
        "PAUSE": str(case.pause),
        "STEPS": str(case.steps),
        "PAUSES": json.dumps(case.pauses),
    }
    container = {
        "name": "main",
        "image": "python",
        "command": ["python", str(ROOT / "programs/collective.py")],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": {"requests": {"cpu": "1"}},
    }
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    task = {"name": "worker", "replicas": 2, "template": {"spec": pod}}
    template = {
        "tasks": [task],
        "policies": [{"event": "PodFailed", "action": "AbortJob"}],
    }
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": case.name, "namespace": NAMESPACE},
        "spec": {
            "plugins": {"env": []},
            "onNoProgress": "Notify" if case.fault else "Restart",
            "failurePolicy": {"maxRestarts": 0 if case.fault else 5},
            "replicatedJobs": [{"name": "trainer", "replicas": 2, "templateSpec": template}],
        },
    }


class Bench:
    """The trainings of a run, in batches."""

    def __init__(self, kube: Kube, folder: Path, seconds: float) -> None:
        self._kube = kube
        self._folder = folder
        self._seconds = seconds

    async def run(self, cases: Sequence[Case]) -> None:
        """Run trainings at once until each fault is found, or the time is over."""
        for case in cases:
            made = hyperjob(case, self._folder)
            await self._kube.create(HYPERJOBS, made, namespace=NAMESPACE)
        end = time.monotonic() + self._seconds
        while time.monotonic() < end:
            listed = await self._kube.list(HYPERJOBS, namespace=NAMESPACE)
            seen = {each["metadata"]["name"]: each.get("status") or {} for each in listed.items}
            for case in cases:
                self._look(case, seen.get(case.name, {}))
            if all(case.found for case in cases):
                break
            await asyncio.sleep(LOOK)
        for case in cases:
            await self._read(case)
            await self._kube.delete(HYPERJOBS, case.name, namespace=NAMESPACE)
        while (await self._kube.list(HYPERJOBS, namespace=NAMESPACE)).items:  # noqa: ASYNC110
            await asyncio.sleep(LOOK)

    def _look(self, case: Case, status: Object) -> None:
        state = status.get("state") or {}
        case.restarts = max(case.restarts, status.get("restarts", 0))
        stall, training = status.get("stall") or {}, status.get("training") or {}
        slow = training.get("straggler")
        if not case.fault:
            case.false_notice = case.false_notice or bool(stall)
            case.text = case.text or stall.get("message", "")
            return
        if case.found:
            return
        names = {each["pod"] for each in stall.get("suspects") or ()}
        if case.fault == "slow" and slow:
            case.slow.append((time.time(), slow["pod"]))
            return
        failures = [job.get("failure") for job in status.get("jobs") or () if job.get("failure")]
        if case.fault == "raises" and state.get("phase") == "Failed":
            names = {each["pod"] for each in failures if "no labels" in each.get("message", "")}
        if (stall and case.fault != "slow") or names or state.get("phase") == "Failed":
            case.found = time.time()
            case.named, case.near = names == {case.pod}, _is_near(case, names)
            case.text = stall.get("message", "") or str(slow or state.get("message", ""))

    async def _read(self, case: Case) -> None:
        """Read from the log when the fault began, and when the first stacks were printed."""
        if not case.fault:
            return
        await self._read_logs(case)
        after = [each for each in case.slow if each[0] >= case.began]
        if after and case.began:
            case.found, pod = after[0]
            case.named, case.near = pod == case.pod, _is_near(case, {pod})
            case.text = pod

    async def _read_logs(self, case: Case) -> None:
        for number in range(WORLD):
            where = f"{case.name}-trainer-{number // 2}-worker-{number % 2}"
            for cluster in ("east", "west"):
                path = CLUSTERS.path(None, cluster, "proxy") + PODS.path(NAMESPACE, where, "log")
                try:
                    reply = await self._kube.raw(
                        "GET", path, params={"timestamps": "true"}, accept="*/*"
                    )
                except KubeError:
                    continue
                for line in reply.body.decode(errors="replace").splitlines():
                    stamp, _, text = line.partition(" ")
                    if text.startswith("fault at"):
                        case.began = float(text.split()[2])
                    elif '"stacks"' in text and not case.stacks:
                        case.stacks = _seconds(stamp)


def _is_near(case: Case, names: set[str]) -> bool:
    """Return whether all named pods are of the faulty sub-job, which is alone in its cluster."""
    job = case.pod.rpartition("-worker-")[0]
    return bool(names) and all(name.startswith(f"{job}-worker-") for name in names)


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def report(cases: Sequence[Case]) -> None:
    """Print the results by fault."""
    wrong = [case for case in cases if case.fault]
    for fault in FAULTS:
        mine = [case for case in wrong if case.fault == fault and case.began]
        if not mine:
            continue
        took = [case.found - case.began for case in mine if case.found]
        soon = sum(bool(case.found) and case.found - case.began <= case.limit for case in mine)
        named = sum(case.named for case in mine)
        own = [case.stacks - case.began for case in mine if case.stacks]
        middle = (
            f"median {statistics.median(took):.0f} s, longest {max(took):.0f} s" if took else ""
        )
        base = f"; first stacks after {statistics.median(own):.0f} s" if own else ""
        near = sum(case.near for case in mine)
        counts = f"{soon} of {len(mine)} in time, rank named {named}, cluster {near}"
        print(f"{fault}: {counts}; {middle}{base}")
    known = [case for case in wrong if case.began]
    soon = sum(bool(case.found) and case.found - case.began <= case.limit for case in known)
    named, near = sum(case.named for case in known), sum(case.near for case in known)
    print(f"all faults: {soon} of {len(known)} in time, rank named {named}, cluster {near}")
    well = [case for case in cases if not case.fault]
    notices = sum(case.false_notice for case in well)
    restarts = sum(case.restarts for case in well)
    print(f"healthy: {len(well)} trainings, {notices} false notices, {restarts} restarts")
    for case in cases:
        if (case.fault and not case.named) or case.false_notice:
            took = f"{case.found - case.began:.0f} s" if case.found else "not found"
            print(f"  {case.name} {case.fault} rank {case.rank} ({took}): {case.text[:300]}")
    print(Counter(case.fault or "healthy" for case in cases))


async def measure(world: World, folder: Path, options: argparse.Namespace) -> list[Case]:
    """Run all trainings."""
    chance = random.Random(options.seed)
    faults = [faulty(number, chance) for number in range(options.faults)]
    well = [healthy(number, chance) for number in range(options.healthy)]
    async with Kube.connect(kubeconfig=world.kubeconfig, user_agent="hyperjob-bench") as kube:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await kube.create(NAMESPACES, namespace)
        for group, seconds in ((faults, options.seconds), (well, options.seconds + 60)):
            for start in range(0, len(group), options.at_once):
                bench = Bench(kube, folder, seconds)
                await bench.run(group[start : start + options.at_once])
                print(f"{min(len(group), start + options.at_once)} of {len(group)}", flush=True)
    return [*faults, *well]


@contextmanager
def reading_world() -> Iterator[tuple[World, Path]]:
    """Yield two clusters of processes whose logs the controller reads, and a folder."""
    with tempfile.TemporaryDirectory(prefix="hyperjob-bench-") as name:
        folder = Path(name)
        clusters = folder / "clusters.yaml"
        clusters.write_text(CLUSTERS_FILE)
        reading = ["--members=logs", f"--progress-interval={INTERVAL}"]
        with open_process_world(Settings(), folder, clusters=clusters, controller=reading) as world:
            yield world, folder


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--healthy", type=int, default=40)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with reading_world() as (world, folder):
        report(asyncio.run(measure(world, folder, options)))


if __name__ == "__main__":
    main()
