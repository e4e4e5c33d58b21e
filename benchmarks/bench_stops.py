"""Compare `status.checkpoint.resumeStep` after planned stops with what the programs had saved.

usage: python -m benchmarks.bench_stops [--stops 40] [--at-once 10] [--longest 60] [--seed 1]

Each training is suspended at a seeded time after the start of its first process: 0.5 to LONGEST
seconds, evenly on a logarithmic scale. It has one pod, or four in two clusters, of which one, or
each, prints progress lines, some among many other lines. The programs save now and then, and at
SIGTERM, and write down each step that they have saved: the least of all pods that report is the
truth. The baseline of the same run is what the programs had saved before SIGTERM.
"""

import argparse
import asyncio
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.support.settings import Settings
from e2e.support.training import open_process_world
from e2e.support.world import World
from hyperjob.sdk import progress
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import HYPERJOBS, NAMESPACES

NAMESPACE = "stops"
LOOK = 0.2
LIMIT = 120.0
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
class Stop:
    """One training, when it is stopped, and what the status then says."""

    name: str
    pods: int
    prints: Sequence[int]
    chatter: int
    after: float
    folder: Path
    stopped: float = 0.0
    resume: int | None = None
    text: str = ""

    def saved(self, *, before: float = math.inf) -> int | None:
        """Return the step that all pods had saved that report; None if one had saved nothing."""
        found = []
        for rank in self.prints:
            path = self.folder / f"{self.name}.{rank}"
            lines = (
                [line.split() for line in path.read_text().splitlines()] if path.exists() else []
            )
            steps = [int(step) for step, moment in lines if float(moment) < before]
            found += steps[-1:]
        return min(found, default=None)

    @property
    def verdict(self) -> str:
        """Return whether the status has what was saved."""
        truth = self.saved()
        if self.resume == truth:
            return "right"
        return "too high" if (self.resume or 0) > (truth or 0) else "too low"


def stop(number: int, chance: random.Random, *, longest: float, folder: Path) -> Stop:
    """Return a training with a seeded stop."""
    pods = (1, 4)[number % 2]
    return Stop(
        name=f"s{number}",
        pods=pods,
        prints=chance.choice([range(pods), [0], [chance.randrange(pods)]]),
        chatter=chance.choice([0, 0, 20]),
        after=math.exp(chance.uniform(math.log(0.5), math.log(longest))),
        folder=folder,
    )


def hyperjob(case: Stop, chance: random.Random) -> Object:
    """Return the HyperJob of a training."""
    env = {
        "PROGRESS_FOLDER": str(Path(progress.__code__.co_filename).parent),
        "SAVED": str(case.folder / case.name),
        "PRINTS": " ".join(map(str, case.prints)),
        "CHATTER": str(case.chatter),
        "PAUSE": str(chance.choice([0.02, 0.1, 0.5])),
        "EVERY": str(chance.choice([10, 50, 100_000])),
    }
    container = {
        "name": "main",
        "image": "python",
        "command": ["python", str(ROOT / "programs/saving.py")],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": {"requests": {"cpu": "1"}},
    }
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 20, "containers": [container]}
    groups = 2 if case.pods > 1 else 1
    task = {"name": "worker", "replicas": case.pods // groups, "template": {"spec": pod}}
    group = {"name": "trainer", "replicas": groups, "templateSpec": {"tasks": [task]}}
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": case.name, "namespace": NAMESPACE},
        "spec": {
            "plugins": {"env": []},
            "checkpoint": {"directory": "/checkpoints"},
            "replicatedJobs": [group],
        },
    }


async def play(kube: Kube, case: Stop, chance: random.Random) -> None:
    """Start a training, suspend it, and read its status."""
    await kube.create(HYPERJOBS, hyperjob(case, chance), namespace=NAMESPACE)
    await until(kube, case, lambda _: any(case.folder.glob(f"{case.name}.*")))
    await asyncio.sleep(case.after)
    case.stopped = time.time()
    body = {"spec": {"suspend": True}}
    await kube.patch(HYPERJOBS, case.name, body, kind=PatchType.MERGE, namespace=NAMESPACE)
    status = await until(
        kube, case, lambda status: phase(status) == "Suspended" and not status.get("stop")
    )
    case.resume = (status.get("checkpoint") or {}).get("resumeStep")
    case.text = (status.get("state") or {}).get("message", "")
    await kube.delete(HYPERJOBS, case.name, namespace=NAMESPACE)


def phase(status: Object) -> str:
    """Return the phase of a HyperJob."""
    return (status.get("state") or {}).get("phase", "")


async def until(kube: Kube, case: Stop, holds: Callable[[Object], bool]) -> Object:
    """Wait until a status holds, and return it."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        status = (await kube.get(HYPERJOBS, case.name, namespace=NAMESPACE)).get("status") or {}
        if holds(status):
            return status
        await asyncio.sleep(LOOK)
    raise TimeoutError(f"{case.name}: {status}")


async def measure(world: World, folder: Path, options: argparse.Namespace) -> list[Stop]:
    """Run all trainings, some at once."""
    chance = random.Random(options.seed)
    cases = [
        stop(number, chance, longest=options.longest, folder=folder)
        for number in range(options.stops)
    ]
    places = asyncio.Semaphore(options.at_once)

    async def one(case: Stop) -> None:
        async with places:
            await play(kube, case, random.Random(f"{options.seed} {case.name}"))
            print(case.name, end=" ", flush=True)

    async with Kube.connect(kubeconfig=world.kubeconfig, user_agent="hyperjob-bench") as kube:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await kube.create(NAMESPACES, namespace)
        await asyncio.gather(*map(one, cases))
    return cases


def report(cases: Sequence[Stop]) -> None:
    """Print how many stops the status has right, and each other one."""
    print()
    for pods in (1, 4):
        mine = [case for case in cases if case.pods == pods]
        found = Counter(case.verdict for case in mine)
        late = sum(case.saved(before=case.stopped) != case.saved() for case in mine)
        counts = ", ".join(f"{found[each]} {each}" for each in ("right", "too low", "too high"))
        print(f"{pods} pods: {counts} of {len(mine)}; saved at SIGTERM: {late}")
    for case in cases:
        if case.verdict != "right":
            prints = f"{list(case.prints)} of {case.pods} print"
            print(
                f"  {case.name} after {case.after:.1f} s, {prints}, chatter {case.chatter}: saved"
                f" {case.saved()}, resumes from {case.resume}: {case.text}"
            )


@contextmanager
def reading_world() -> Iterator[tuple[World, Path]]:
    """Yield two clusters of processes whose logs the controller reads, and a folder."""
    with tempfile.TemporaryDirectory(prefix="hyperjob-bench-") as name:
        folder = Path(name)
        clusters = folder / "clusters.yaml"
        clusters.write_text(CLUSTERS_FILE)
        reading = ["--members=logs", "--progress-interval=30"]
        with open_process_world(Settings(), folder, clusters=clusters, controller=reading) as world:
            yield world, folder


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stops", type=int, default=40)
    parser.add_argument("--at-once", type=int, default=10)
    parser.add_argument("--longest", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with reading_world() as (world, folder):
        report(asyncio.run(measure(world, folder, options)))


if __name__ == "__main__":
    main()
