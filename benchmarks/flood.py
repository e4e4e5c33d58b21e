"""Flood a controller with random objects beside honest HyperJobs, and print what these lose.

usage: python -m benchmarks.flood [--objects 20000] [--endless 4] [--honest 20] [--seed 1]

The controller runs as a process with `--members nodes` and `--queue-admission builtin`. A second
process is the API server of Karmada in memory, with the members behind the cluster proxy: it binds
and runs the honest HyperJobs, and writes random Clusters, Queues, ResourceBindings, nodes, pods and
HyperNodes into its stores, past any admission. Members `endless` send lists and lines of watches
without an end. Each honest HyperJob needs four of eight clusters, and its time is from its creation
until its status says Running. Both runs, without and with the flood, are of fresh processes. The
longest turn is the CPU time, and the wall time, of one callback of the controller's event loop.
Exit code 1: the controller ended, or a figure is beyond the aim.
"""

import argparse
import asyncio
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from asyncio import events
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any, Final

import aiohttp

from benchmarks.bench_members import kubeconfig
from benchmarks.floodserver import serve
from tests.support.stack import Service, controller_service

Object = dict[str, Any]

_EVERY_SECONDS: Final = 2.0
_LIMIT_SECONDS: Final = 60.0
_STACK_SECONDS: Final = 0.5
_STATISTICS: Final[dict[str, Callable[[list[float]], float]]] = {
    "median": median,
    "longest": max,
}
_AIM_TURN: Final = 1.0
_AIM_RATIO: Final = 2.0
_AIM_MEMORY: Final = 1024.0
"""The chart's limit of the controller, in MiB."""


def control(path: Path, arguments: list[str]) -> int:
    """Run the controller, and keep the longest callback of its event loop in a file.

    A second file gets the stacks of callbacks that take more than half a second.
    """
    from hyperjob_controller.__main__ import main as controller

    run, longest, began = events.Handle._run, [0.0, 0.0], [0.0]  # noqa: SLF001

    def look(_number: int, frame: FrameType | None) -> None:
        took = time.thread_time() - began[0]
        if took > _STACK_SECONDS:
            with path.with_suffix(".stacks").open("a") as stacks:
                words = traceback.format_stack(frame)[-12:]
                stacks.write(f"{took:.1f} s\n{''.join(words)}\n")

    signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, _STACK_SECONDS, _STACK_SECONDS)

    def timed(handle: events.Handle) -> None:
        cpu, wall = time.thread_time(), time.monotonic()
        began[0] = cpu
        try:
            run(handle)  # type: ignore[no-untyped-call]
        finally:
            took = time.thread_time() - cpu, time.monotonic() - wall
            if took[0] > longest[0] or took[1] > longest[1]:
                longest[:] = [max(pair) for pair in zip(longest, took, strict=True)]
                path.write_text(f"{longest[0]:.3f} {longest[1]:.3f} {handle!r}\n")

    events.Handle._run = timed  # type: ignore[method-assign]  # noqa: SLF001
    return controller(arguments)


@dataclass(frozen=True, slots=True)
class Usage:
    """The CPU seconds of a process, and its maximum memory in MiB."""

    cpu: float
    most: float


def usage(process: int) -> Usage:
    """Read the usage of a process from /proc."""
    folder = Path("/proc") / str(process)
    stat = (folder / "stat").read_text().rpartition(")")[2].split()
    (most,) = re.findall(r"VmHWM:\s+(\d+) kB", (folder / "status").read_text())
    ticks = int(stat[11]) + int(stat[12])
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), int(most) / 1024)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one run."""

    exit: int | None
    times: dict[str, float]
    turn: tuple[float, float]
    process: "Usage"
    slow: dict[str, int]
    errors: dict[str, int]
    told: Object
    server: Usage = Usage(0.0, 0.0)


async def played(options: argparse.Namespace, directory: Path, *, count: int) -> Outcome:
    """Run both processes, with a flood of `count` objects."""
    directory.mkdir(parents=True)
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.flood", "--serve"), stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(await server.stdout.readline())}"
        config, turns = directory / "kubeconfig", directory / "turns"
        config.write_bytes(kubeconfig(int(url.rpartition(":")[2])))
        turns.write_text("0 0\n")
        more = [
            "--members=nodes",
            f"--members-kubeconfig={config}",
            "--debug-bind-address=127.0.0.1:0",
        ]
        controller = controller_service(directory, config, queue_admission="builtin", more=more)
        _through(controller, turns)
        async with aiohttp.ClientSession(url, timeout=aiohttp.ClientTimeout(900)) as session:
            how = {"count": str(count), "seed": str(options.seed), "without": options.without}
            how["endless"] = str(options.endless if count else 0)
            (await session.post("/flood/prepare", params=how)).raise_for_status()
            controller.start()
            try:
                found = await _beside(options, controller, session, turns, count=count)
                return replace(found, server=usage(server.pid))
            finally:
                controller.kill()
    finally:
        server.kill()
        await server.wait()


def _through(controller: Service, turns: Path) -> None:
    """Run the controller's command with its turns timed."""
    words = controller._command  # noqa: SLF001
    where = words.index("hyperjob_controller")
    words[where : where + 1] = ["benchmarks.flood", "--turns", str(turns), "hyperjob_controller"]


async def _beside(
    options: argparse.Namespace,
    controller: Service,
    session: aiohttp.ClientSession,
    turns: Path,
    *,
    count: int,
) -> Outcome:
    if count:
        how = {"seconds": str(options.seconds)}
        (await session.post("/flood/begin", params=how)).raise_for_status()
    for number in range(options.honest):
        await asyncio.sleep(_EVERY_SECONDS if not count else options.seconds / options.honest)
        (await session.post("/flood/submit", params={"number": str(number)})).raise_for_status()
    end, told = time.monotonic() + _LIMIT_SECONDS, Object()
    while time.monotonic() < end:
        await asyncio.sleep(0.5)
        told = await (await session.get("/flood/told")).json()
        if told["over"] and len(told["times"]) == options.honest:
            break
    assert controller.process is not None
    code = controller.process.poll()
    words, shown = turns.read_text().split(), ""
    if code is None:
        shown = await (await session.get(f"{controller.url}/metrics")).text()
    return Outcome(
        exit=code,
        times=told["times"],
        turn=(float(words[0]), float(words[1])),
        process=usage(controller.process.pid) if code is None else Usage(0.0, 0.0),
        slow=_counted(shown, "hyperjob_slow_turns_total"),
        errors=_counted(shown, "hyperjob_internal_errors_total"),
        told=told,
    )


def _counted(shown: str, name: str) -> dict[str, int]:
    found = re.findall(rf'{name}{{place="(\w+)"}} ([0-9.e+]+)', shown)
    return {place: int(float(value)) for place, value in found if float(value)}


def report(name: str, found: Outcome, honest: int) -> None:
    """Print the figures of one run."""
    times = sorted(found.times.values())
    middle = f"{median(times):.2f} s, longest {times[-1]:.2f} s" if times else "none"
    print(
        f"{name}: exit {found.exit}; {len(times)} of {honest} HyperJobs run, median {middle};"
        f" longest turn {found.turn[0]:.2f} s of CPU, {found.turn[1]:.2f} s;"
        f" {found.process.cpu:.1f} s of CPU; at most {found.process.most:.0f} MiB;"
        f" the API server took {found.server.cpu:.0f} s of CPU"
    )
    if found.told.get("written"):
        print(f"  written {found.told['written']}; not written {found.told['failed']}")
    if found.slow or found.errors:
        print(f"  slow turns {found.slow}; internal errors {found.errors}")
    missing = {k: v for k, v in found.told["states"].items() if k not in found.times}
    for key, state in missing.items():
        print(f"  {key}: {state}")


def ratios(alone: Outcome, beside: Outcome) -> dict[str, float]:
    """Return how many times as long the honest HyperJobs took beside the flood, by statistic."""
    found = {}
    for name, of in _STATISTICS.items():
        usual, took = (of(sorted(each.times.values())) for each in (alone, beside))
        found[name] = took / usual
    return found


def beyond(alone: Outcome, beside: Outcome, honest: int) -> Iterator[str]:
    """Yield each aim that the run with the flood has missed."""
    if beside.exit is not None:
        yield f"the controller ended with exit code {beside.exit}"
    if len(beside.times) < honest:
        yield f"{honest - len(beside.times)} honest HyperJobs do not run"
    if beside.turn[0] > _AIM_TURN:
        yield f"a turn took {beside.turn[0]:.2f} s of CPU"
    for name, ratio in ratios(alone, beside).items():
        if ratio > _AIM_RATIO:
            yield f"the {name} of the honest HyperJobs took {ratio:.2f} times as long"
    if beside.process.most > _AIM_MEMORY:
        yield f"the controller took {beside.process.most:.0f} MiB"


def main() -> int:
    """Read the arguments and play both runs."""
    if "--turns" in sys.argv[1:2]:
        return control(Path(sys.argv[2]), sys.argv[4:])
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--endless", type=int, default=4, help="members that send without an end")
    parser.add_argument("--honest", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", default="", help="kinds to leave out, such as queues,pods")
    parser.add_argument("--nice", type=int, default=0, help="the priority of all processes")
    parser.add_argument("--keep", type=Path, help="a folder for the controller's logs")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return 0
    os.nice(options.nice)
    with tempfile.TemporaryDirectory() as folder:
        place = options.keep or Path(folder)
        alone = asyncio.run(played(options, place / "alone", count=0))
        report("alone", alone, options.honest)
        beside = asyncio.run(played(options, place / "beside", count=options.objects))
        report(
            f"beside {options.objects} random objects, seed {options.seed}", beside, options.honest
        )
    missed = list(beyond(alone, beside, options.honest))
    found = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios(alone, beside).items())
    print(f"honest HyperJobs beside the flood, in times of alone: {found}")
    for each in missed:
        print(f"MISSED: {each}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
