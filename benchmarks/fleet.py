"""Measure a whole controller that reads the nodes and pods of many members.

usage: python -m benchmarks.fleet [--clusters 100] [--nodes 500] [--pods 500] [--seconds 60]

The controller runs as a process with `--members nodes` and `--queue-admission builtin`, beside an
embedded API server (a real one if KUBEBUILDER_ASSETS is set) and a process that serves the members
and changes `--changes` pods a second. Memory and CPU are those of the controller, at rest and while
a HyperJob of four sub-jobs is created every two seconds. The last line is the time from a new node
in a member until the controller creates the vcjob that waits for it.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.bench_members import GPU, arguments, served
from benchmarks.scale import Process, processes
from e2e.support.scenario import phase_of
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType, Kube, PatchType
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import HYPERJOBS, QUEUES, VCJOBS
from hyperjob_core.tasks import cancel
from tests.support.controller import set_cluster
from tests.support.controlplane import ControlPlane, control_plane
from tests.support.stack import controller_service

_NAMESPACE: Final = "default"
_HYPERJOBS: Final = 20
_EVERY_SECONDS: Final = 2.0
_LIMIT_SECONDS: Final = 120.0


class Made:
    """The times at which the vcjobs of each HyperJob were created."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._informer = Informer(kube, VCJOBS, namespace=_NAMESPACE)
        self._informer.add_handler(self._note)
        self._times: dict[str, list[float]] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._informer.run()

    async def until(self, name: str, number: int) -> float:
        """Wait until a HyperJob has this many vcjobs; return the time of the last one."""
        async with asyncio.timeout(_LIMIT_SECONDS):
            while len(self._times.get(name, ())) < number:
                self._changed.clear()
                await self._changed.wait()
        return self._times[name][number - 1]

    def _note(self, kind: EventType, _old: Object | None, new: Object | None) -> None:
        if kind is EventType.ADDED and new is not None:
            owner = str(new["metadata"]["name"]).partition("-t-")[0]
            self._times.setdefault(owner, []).append(time.monotonic())
            self._changed.set()


def hyperjob(name: str, replicas: int, selector: dict[str, str]) -> Object:
    """Return a HyperJob whose sub-jobs have a master and eight workers with four GPUs each."""
    tasks = [
        _task("master", 1, {GPU: "1", "cpu": "2"}, selector),
        _task("worker", 8 if replicas > 1 else 1, {GPU: "4", "cpu": "2"}, selector),
    ]
    group = {"name": "t", "replicas": replicas, "templateSpec": {"tasks": tasks}}
    return {
        **HYPERJOBS.head,
        "metadata": {"name": name, "namespace": _NAMESPACE},
        "spec": {"replicatedJobs": [group]},
    }


def _task(name: str, pods: int, amounts: Object, selector: dict[str, str]) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
    spec = {"containers": [container], "nodeSelector": selector}
    return {"name": name, "replicas": pods, "template": {"spec": spec}}


async def run(options: argparse.Namespace, directory: Path, plane: ControlPlane) -> None:
    """Run all cases."""
    async with (
        served(options) as (members, lines),
        Kube.connect(kubeconfig=plane.kubeconfig, user_agent="hyperjob-bench") as kube,
    ):
        await _prepare(kube, options)
        more = ["--members=nodes", f"--members-kubeconfig={members}"]
        controller = controller_service(
            directory, plane.kubeconfig, queue_admission="builtin", more=more
        )
        made = Made(kube)
        watching = asyncio.ensure_future(made.run())
        try:
            await kube.create(HYPERJOBS, hyperjob("first", 4, {"gpu": "H100"}))
            started = time.monotonic()
            controller.start(until_ready=False)
            at = await made.until("first", 4)
            print(f"start until the first HyperJob has its vcjobs: {at - started:.1f} s")
            lines.write(b"\n")
            await asyncio.sleep(10)
            await _rest(options)
            await _stream(kube, made)
            await _late(kube, made, lines)
        finally:
            await cancel([watching])
            controller.stop()


async def _prepare(kube: Kube, options: argparse.Namespace) -> None:
    for number in range(options.clusters):
        await set_cluster(kube, f"c{number:03}", 8 * options.nodes)
    queue = QUEUES.head
    await kube.create(QUEUES, {**queue, "metadata": {"name": "default"}, "spec": {}})
    status = {"status": {"state": "Open"}}
    await kube.patch(QUEUES, "default", status, kind=PatchType.MERGE, subresource="status")


def _controller() -> Process:
    return next(each for each in processes() if each.name == "controller")


async def _rest(options: argparse.Namespace) -> None:
    """Print CPU and memory while only pods of members change."""
    before, started = _controller(), time.monotonic()
    await asyncio.sleep(options.seconds)
    now, took = _controller(), time.monotonic() - started
    print(
        f"{options.clusters} members, {options.changes:.0f} pod changes/s:"
        f" {(now.cpu - before.cpu) / took:.3f} cores, {now.memory:.0f} MB, at most {now.most:.0f}"
    )


async def _stream(kube: Kube, made: Made) -> None:
    """Print the times from the creation of HyperJobs to their vcjobs."""
    before, seconds = _controller(), list[float]()
    for number in range(_HYPERJOBS):
        name, created = f"hj{number}", time.monotonic()
        await kube.create(HYPERJOBS, hyperjob(name, 4, {}))
        seconds.append(await made.until(name, 4) - created)
        await asyncio.sleep(max(0.0, created + _EVERY_SECONDS - time.monotonic()))
    now, used = _controller(), _spread(seconds)
    print(
        f"{_HYPERJOBS} HyperJobs of 4 x 9 pods: {used} until all vcjobs are created,"
        f" {(now.cpu - before.cpu) / _HYPERJOBS * 1000:.0f} ms of CPU for each,"
        f" {now.memory:.0f} MB, at most {now.most:.0f}"
    )


async def _late(kube: Kube, made: Made, lines: asyncio.StreamWriter) -> None:
    """Print the time from a new node to the vcjob that waits for it."""
    seconds = []
    for number in range(5):
        name = f"late{number}"
        await kube.create(HYPERJOBS, hyperjob(name, 1, {"late": "true"}))
        async with asyncio.timeout(_LIMIT_SECONDS):
            while not await _is_queued(kube, name):  # noqa: ASYNC110 - the status is polled
                await asyncio.sleep(0.2)
        await asyncio.sleep(1)
        lines.write(f"c{number:03}\n".encode())
        added = time.monotonic()
        seconds.append(await made.until(name, 1) - added)
    print(f"new node until the vcjob that waits for it is created: {_spread(seconds)}")


async def _is_queued(kube: Kube, name: str) -> bool:
    return phase_of(await kube.get(HYPERJOBS, name, namespace=_NAMESPACE)) == "Queued"


def _spread(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.2f} s (median), {max(seconds):.2f} s (longest)"


def main() -> None:
    """Read the arguments and measure."""
    options = arguments(__doc__).parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as directory,
        control_plane(Path(directory)) as plane,
    ):
        print("real kube-apiserver" if plane.real else "embedded API server")
        asyncio.run(run(options, Path(directory), plane))


if __name__ == "__main__":
    main()
