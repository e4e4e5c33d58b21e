"""Compare `status.goodput` with the journals of programs over random lives.

usage: python -m benchmarks.bench_lives [--lives 50] [--seed 1] [--interval 5] [--lose 70]

Each life is a training of one process that starts slowly, and by its seed crashes, hangs, makes an
announced pause, is suspended or restarted by request, once or twice; with --lose SECONDS one of the
two clusters is lost with its processes at that time, and comes back. The journal of the program has
every executed step. A step counts if no later run repeats it. The benchmark prints the difference
between the productive time in the status and the journal in percent.

Of every look at a running HyperJob it prints the difference in points between the live ratio that
users see and the journal of the same interval: from the creation to the last progress line while
steps are made, else to the look. Steps that a later run repeats count until their run has ended:
no live number foresees a failure. "by the end" counts them as lost from the begin. The baseline of
the same run is a ratio that counts all time in phase Running.
"""

import argparse
import asyncio
import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import yaml

from benchmarks.bench_stops import CLUSTERS_FILE, ROOT
from e2e.support.settings import Settings
from e2e.support.world import open_world
from hyperjob.client.training import goodput_of, training_of
from hyperjob.sdk import progress
from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import HYPERJOBS, NAMESPACES
from hyperjob_engine.status.goodput import parse_account
from hyperjob_install.interpreters import interpreters
from hyperjob_sandbox.outages import lose
from tests.support.stack import kubectl

NAMESPACE = "lives"
STEPS, PAUSE = 240, 0.5
LOOK = 2.0
LOST = 40.0
"""For how many seconds a lost cluster is away."""
YOUNG = 60.0
"""The age in seconds from which the live ratio is compared."""
KINDS = ("crash", "hang", "pause", "suspend", "restart", "none")


@dataclass(slots=True, kw_only=True)
class Life:
    """One training: its fate, the looks at its status, and its end."""

    name: str
    fates: Sequence[tuple[str, int, float]]
    load: float
    asked: dict[str, float]
    looks: list[tuple[float, float, float, float]] = field(default_factory=list)
    """The end of the interval, the live ratio, the seconds in phase Running, those suspended."""
    running: float = 0.0
    seen: float = 0.0
    ended: Object | None = None
    stopped: float = 0.0

    @property
    def title(self) -> str:
        """Return what happens in it."""
        fates = [f"{kind} at {step}" for kind, step, _ in self.fates]
        return ", ".join([*fates, *self.asked]) or "nothing"


def life(number: int, chance: random.Random) -> Life:
    """Return a random life."""
    fates: list[tuple[str, int, float]] = []
    asked: dict[str, float] = {}
    for _ in range(chance.choice([1, 1, 2])):
        kind = KINDS[number % len(KINDS)] if not fates and not asked else chance.choice(KINDS)
        if kind in ("crash", "hang", "pause"):
            seconds = chance.uniform(40, 70) if kind == "hang" else chance.uniform(10, 40)
            fates.append((kind, chance.randrange(40, STEPS - 20), round(seconds, 1)))
        elif kind != "none":
            asked.setdefault(kind, chance.uniform(30, 90))
    return Life(name=f"l{number}", fates=fates, load=chance.uniform(1, 15), asked=asked)


def hyperjob(made: Life, folder: Path) -> Object:
    """Return the HyperJob of a life."""
    journal = folder / made.name
    journal.mkdir()
    env = {
        "PROGRESS_FOLDER": str(Path(progress.__code__.co_filename).parent),
        "JOURNAL": str(journal),
        "FATE": json.dumps(made.fates),
        "LOAD": f"{made.load:.1f}",
        "STEPS": str(STEPS),
        "PAUSE": str(PAUSE),
        "EVERY": "20",
    }
    container = {
        "name": "main",
        "image": "python",
        "command": ["python", str(ROOT / "programs/life.py")],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": {"requests": {"cpu": "1"}},
    }
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 10, "containers": [container]}
    task = {"name": "worker", "replicas": 1, "template": {"spec": pod}}
    policies = [{"event": "PodFailed", "action": "AbortJob"}]
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": made.name, "namespace": NAMESPACE},
        "spec": {
            "plugins": {"env": []},
            "checkpoint": {"directory": str(journal), "gracePeriodSeconds": 10},
            "failurePolicy": {
                "maxRestarts": 5,
                "rules": [{"action": "MigrateJob", "onClusterLost": True}],
            },
            "replicatedJobs": [
                {"name": "t", "templateSpec": {"tasks": [task], "policies": policies}}
            ],
        },
    }


async def change(kube: Kube, made: Life, body: Object) -> None:
    """Change a HyperJob."""
    await kube.patch(HYPERJOBS, made.name, body, kind=PatchType.MERGE, namespace=NAMESPACE)


async def act(kube: Kube, made: Life, since: float) -> None:
    """Suspend and resume, or restart, when it is time."""
    age = time.time() - since
    if 0 < made.asked.get("suspend", 0) < age:
        made.asked["suspend"], made.stopped = -1, time.time()
        await change(kube, made, {"spec": {"suspend": True}})
    if made.stopped and time.time() - made.stopped > 15:
        made.stopped = 0.0
        await change(kube, made, {"spec": {"suspend": False}})
    if 0 < made.asked.get("restart", 0) < age:
        made.asked["restart"] = -1
        marks = {"annotations": {"training.volcano.sh/restart": "once"}}
        await change(kube, made, {"metadata": marks})


def look(made: Life, seen: Object) -> None:
    """Record the live ratio of a HyperJob, and its time in phase Running."""
    status, now = seen.get("status") or {}, time.time()
    account = parse_account(status.get("goodput"))
    phase = (status.get("state") or {}).get("phase", "")
    if made.seen and phase == "Running":
        made.running += now - made.seen
    made.seen = now
    if phase in ("Completed", "Failed"):
        made.ended = made.ended or seen
        if account is not None and TimeUse.FINISHING in account.spent:
            made.ended = seen
    elif account is not None:
        moment = datetime.fromtimestamp(now, UTC)
        live = goodput_of(status.get("goodput"), training_of(status), moment)
        assert live is not None
        suspended = live.seconds.get(TimeUse.SUSPENDED, 0)
        made.looks.append((now - live.unreported, live.ratio, made.running, suspended))


@dataclass(frozen=True, slots=True)
class Executed:
    """A step of the journal, and when it was lost: at the end of its run; never if it is kept."""

    begin: float
    end: float
    lost: float = math.inf


def executed(folder: Path, made: Life) -> list[Executed]:
    """Return the executed steps of a life."""
    lines = [
        json.loads(line) for line in (folder / made.name / "journal").read_text().split("\n")[:-1]
    ]
    last = {step: pid for step, _, _, pid in lines}
    ends: dict[int, float] = {}
    for _, _, end, pid in lines:
        ends[pid] = max(end, ends.get(pid, 0.0))
    return [
        Executed(begin, end, math.inf if last[step] == pid else ends[pid])
        for step, begin, end, pid in lines
    ]


def done(steps: Sequence[Executed], at: float, *, foreseen: bool) -> float:
    """Return the seconds of work up to a time; `foreseen` leaves out what a later run repeats."""
    kept = [each for each in steps if each.lost > at or each.lost == math.inf]
    if foreseen:
        kept = [each for each in steps if each.lost == math.inf]
    return sum(max(0.0, min(each.end, at) - each.begin) for each in kept)


async def measure(
    kube: Kube, folder: Path, lives: Sequence[Life], *, seconds: float, lost: float
) -> None:
    """Run all lives at once until they have ended; a cluster is lost at second `lost`, 0: none."""
    named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    await kube.create(NAMESPACES, named)
    for each in lives:
        await kube.create(HYPERJOBS, hyperjob(each, folder), namespace=NAMESPACE)
    since, happened = time.time(), set[float]()
    while time.time() - since < seconds and not all(each.ended for each in lives):
        listed = await kube.list(HYPERJOBS, namespace=NAMESPACE)
        found = {each["metadata"]["name"]: each for each in listed.items}
        for at, gone in ((lost, True), (lost + LOST, False)):
            if lost and at not in happened and time.time() - since > at:
                happened.add(at)
                await lose(kube, "west", lost=gone)
        for each in lives:
            look(each, found[each.name])
            if each.ended is None:
                await act(kube, each, since)
        await asyncio.sleep(LOOK)
    await asyncio.sleep(2 * LOOK)
    listed = await kube.list(HYPERJOBS, namespace=NAMESPACE)
    for seen in listed.items:
        look(next(each for each in lives if each.name == seen["metadata"]["name"]), seen)


def report(folder: Path, lives: Sequence[Life]) -> None:
    """Print the differences between status and journal."""
    finals, lives_off, naive, everything, foreseen = [], [], [], list[float](), list[float]()
    for made in lives:
        if made.ended is None:
            print(f"{made.name} ({made.title}) has not ended")
            continue
        created = datetime.fromisoformat(made.ended["metadata"]["creationTimestamp"]).timestamp()
        steps = executed(folder, made)
        truth = done(steps, math.inf, foreseen=True)
        account = parse_account(made.ended["status"]["goodput"])
        assert account is not None
        productive = account.spent.get(TimeUse.PRODUCTIVE, 0) / 1000
        off = 100 * (productive / truth - 1)
        finals.append(abs(off))
        worst = 0.0
        for at, shown, running, suspended in made.looks:
            whole = at - created - suspended
            if whole < YOUNG:
                continue
            real = done(steps, at, foreseen=False) / whole
            foreseen.append(abs(shown - done(steps, at, foreseen=True) / whole))
            worst = max(worst, abs(shown - real))
            everything.append(abs(shown - real))
            naive.append(abs(running / whole - real))
        lives_off.append(worst)
        print(
            f"{made.name} ({made.title}): productive {productive:.1f} s, journal {truth:.1f} s"
            f" ({off:+.1f} %); live at most {100 * worst:.1f} points off; {dict(account.spent)}"
        )
    if not finals:
        return
    print(
        f"{len(finals)} lives: final within 2 %: {sum(each <= 2 for each in finals)}, median"
        f" {statistics.median(finals):.2f} %, most {max(finals):.2f} %; live within 5 points:"
        f" {sum(each <= 0.05 for each in lives_off)} lives and"
        f" {sum(each <= 0.05 for each in everything) / len(everything):.0%} of the looks, most"
        f" {100 * max(lives_off):.1f}; by the end"
        f" {sum(each <= 0.05 for each in foreseen) / len(foreseen):.0%} of the looks;"
        f" phase Running alone: median {100 * statistics.median(naive):.1f} points off"
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=420.0)
    parser.add_argument("--interval", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lose", type=float, default=0.0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    lives = [life(number, chance) for number in range(options.lives)]

    async def run(folder: Path, kubeconfig: Path) -> None:
        async with Kube.connect(kubeconfig=kubeconfig, user_agent="hyperjob-bench") as kube:
            await measure(kube, folder, lives, seconds=options.seconds, lost=options.lose)

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lives")))
        clusters = folder / "clusters.yaml"
        clusters.write_text(yaml.safe_dump(yaml.safe_load(CLUSTERS_FILE)))
        arguments = ["--members=logs", f"--progress-interval={options.interval:g}"]
        world = stack.enter_context(
            open_world(Settings(), folder, clusters=clusters, controller=arguments)
        )
        scripts = yaml.safe_dump_all([item.object for item in interpreters()])
        kubectl(world.kubeconfig, "apply", "-f", "-", stdin=scripts)
        asyncio.run(run(folder, world.kubeconfig))
        report(folder, lives)


if __name__ == "__main__":
    main()
