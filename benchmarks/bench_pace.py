"""Time the starts of many HyperJobs at once on a real Karmada, and compare them with a base commit.

usage: python -m benchmarks.bench_pace --base main [--hyperjobs 60] [--replicas 2] [--rounds 1]

It needs `HYPERJOB_E2E_*` as the scenarios do, and free accelerators for all HyperJobs. For each
tree it starts the controller and the webhook of that tree, creates the HyperJobs as fast as the API
server takes them, and prints after how many seconds half of them and all of them were Running.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import Scenario, open_scenario
from e2e.support.settings import from_environment
from e2e.support.world import open_world
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import HYPERJOBS
from tests.decisions.__main__ import path_of, worktree
from tests.support.stack import ROOT

_LIMIT_SECONDS = 600.0


@contextmanager
def code_of(tree: Path) -> Iterator[None]:
    """Let the processes that are started in the block run the code of a tree."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = path_of(tree)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


async def starts(scenario: Scenario, count: int, replicas: int) -> list[float]:
    """Create HyperJobs of single-accelerator sub-jobs; return after how long each was Running."""
    found: dict[str, float] = {}
    done = asyncio.Event()
    made = [
        hyperjob(
            f"pace-{number:03}",
            group(scenario.world, "worker", replicas=replicas, accelerators=1, seconds=3600),
        )
        for number in range(count)
    ]

    def changed(_kind: EventType, _old: Object | None, new: Object | None) -> None:
        state = ((new or {}).get("status") or {}).get("state") or {}
        if state.get("phase") == "Running" and new is not None:
            found.setdefault(new["metadata"]["name"], time.monotonic())
            if len(found) == count:
                done.set()

    informer = Informer(scenario.kube, HYPERJOBS, namespace=scenario.namespace)
    informer.add_handler(changed)
    watching = asyncio.create_task(informer.run())
    try:
        began = time.monotonic()
        for each in made:
            metadata = {**each["metadata"], "namespace": scenario.namespace}
            await scenario.kube.create(HYPERJOBS, {**each, "metadata": metadata})
        await asyncio.wait_for(done.wait(), _LIMIT_SECONDS)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    return sorted(at - began for at in found.values())


async def played(options: argparse.Namespace, tree: Path, directory: Path) -> list[float]:
    """Run the processes of a tree; return the times of the starts."""
    settings = from_environment()
    with (
        code_of(tree),
        open_world(
            settings, directory, queue_admission=options.queue_admission, gang_timeout=300
        ) as world,
    ):
        async with open_scenario(world) as scenario:
            return await starts(scenario, options.hyperjobs, options.replicas)


def shown(name: str, times: list[float]) -> str:
    """Return the line of one run."""
    return (
        f"{name}: first {times[0]:.1f} s, half {median(times):.1f} s, all {times[-1]:.1f} s"
        f" (half / all {median(times) / times[-1]:.2f})"
    )


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", help="a commit to compare with")
    parser.add_argument("--hyperjobs", type=int, default=60)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--queue-admission")
    options = parser.parse_args()
    with (
        worktree(options.base) if options.base else nullcontext(None) as base,
        tempfile.TemporaryDirectory() as name,
    ):
        for number in range(options.rounds):
            before: list[float] = []
            for word, tree in (("base", base), ("this tree", ROOT)):
                if tree is None:
                    continue
                directory = Path(name) / f"{word.replace(' ', '-')}-{number}"
                directory.mkdir()
                times = asyncio.run(played(options, tree, directory))
                print(shown(word, times), flush=True)
                if before:
                    half, last = median(times) / median(before), times[-1] / before[-1]
                    print(f"ratio to base: half {half:.2f}, all {last:.2f}", flush=True)
                before = times


if __name__ == "__main__":
    main()
