"""Measure the start and the end of 200 pods that are processes, and check for leftovers.

The latency is the time from the creation of a pod to its phase Running in the API server, for pods
that are created at once. The baseline is a loop that starts the same number of processes in the
same run. The benchmark asserts no times; leftover processes, pod folders, addresses and open files
are errors.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import PODS
from hyperjob_sandbox.clusters import parse
from hyperjob_sandbox.topology import Topology

PODS_COUNT = int(os.environ.get("HYPERJOB_BENCH_PODS", "200"))
COMMAND = ["sleep", "1000"]
CLUSTERS = """
pods: processes
clusters:
- name: a
  nodes: [{count: 1, name: n, allocatable: {cpu: 1000, memory: 1000Gi, pods: 1000}}]
"""


def pod(number: int) -> dict:
    container = {"name": "c", "image": "i", "command": COMMAND}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": "default"},
        "spec": {
            "nodeName": "a-n-1",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }


def bare() -> tuple[float, float]:
    """Start and end the processes in a loop; return the seconds of each half."""
    began = time.perf_counter()
    running = [subprocess.Popen(COMMAND, start_new_session=True) for _ in range(PODS_COUNT)]
    started = time.perf_counter()
    for process in running:
        process.terminate()
    for process in running:
        process.wait()
    return started - began, time.perf_counter() - started


def sleepers() -> int:
    """Return the number of visible container processes of sandboxes."""
    found = 0
    for entry in Path("/proc").iterdir():
        try:
            found += (
                entry.name.isdigit()
                and b"HYPERJOB_SANDBOX_CONTAINER=" in (entry / "environ").read_bytes()
            )
        except OSError:
            continue
    return found


def open_files() -> tuple[int, int]:
    """Return the number of open files of the sandbox, and of the parent of all containers."""
    (host,) = [
        entry
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit()
        and f"\nPPid:\t{os.getpid()}\n" in (entry / "status").read_text()
        and b"host.py" in (entry / "cmdline").read_bytes()
    ]
    return len([*Path("/proc/self/fd").iterdir()]), len([*(host / "fd").iterdir()])


async def measure(folder: Path) -> tuple[list[float], float, float]:
    """Return the latencies, and the seconds until all pods run and until all are deleted."""
    created: dict[str, float] = {}
    running: dict[str, float] = {}
    changed = asyncio.Event()
    present: set[str] = set()

    def note(event: EventType, old: dict | None, new: dict | None) -> None:
        seen = new or old
        assert seen is not None
        name = seen["metadata"]["name"]
        if event is EventType.DELETED:
            present.discard(name)
        else:
            present.add(name)
            if (seen.get("status") or {}).get("phase") == "Running":
                running.setdefault(name, time.perf_counter())
        changed.set()

    async def until(number_running: int | None) -> None:
        async with asyncio.timeout(300):
            while len(running) < number_running if number_running is not None else present:
                changed.clear()
                await changed.wait()

    async with Topology(parse(CLUSTERS), folder) as topology:
        kube = topology.clusters["a"].kube
        informer = Informer(kube, PODS, namespace="default")
        informer.add_handler(note)
        watching = asyncio.create_task(informer.run())
        await informer.synced.wait()
        files = open_files()
        began = time.perf_counter()
        for number in range(PODS_COUNT):
            created[f"p{number}"] = time.perf_counter()
            await kube.create(PODS, pod(number))
        await until(PODS_COUNT)
        all_run = time.perf_counter() - began
        assert sleepers() >= PODS_COUNT
        began = time.perf_counter()
        for number in range(PODS_COUNT):
            await kube.delete(PODS, f"p{number}", namespace="default")
        await until(None)
        all_gone = time.perf_counter() - began
        assert topology.machine is not None
        left = list((folder / "pods/a/pods").iterdir())
        assert not left, f"{len(left)} folders of pods are left"
        hosts = topology.machine.network.hosts_file("a", "default").read_text()
        assert "127.64." not in hosts, "addresses are left"
        assert sleepers() == 0, f"{sleepers()} processes are left"
        now = open_files()
        # The sandbox keeps some connections between its parts open, independent of the number of
        # pods.
        assert now[0] <= files[0] + PODS_COUNT // 4, f"sandbox: {files[0]} files, then {now[0]}"
        assert now[1] == files[1], f"parent of the containers: {files[1]} files, then {now[1]}"
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    return [running[name] - created[name] for name in created], all_run, all_gone


def main() -> None:
    start, end = bare()
    with tempfile.TemporaryDirectory() as folder:
        latencies, all_run, all_gone = asyncio.run(measure(Path(folder)))
    quantiles = statistics.quantiles(latencies, n=100)
    print(f"pods                  {PODS_COUNT}")
    print(f"bare loop             start {start:.3f} s, end {end:.3f} s")
    print(f"all Running           {all_run:.2f} s = {all_run / PODS_COUNT * 1000:.1f} ms a pod,")
    print(f"                      {all_run / start:.1f} times the bare loop")
    print(f"created to Running    p50 {quantiles[49]:.2f} s, p99 {quantiles[98]:.2f} s")
    print(f"all gone              {all_gone:.2f} s, {all_gone / end:.1f} times the bare loop")
    print("left over             no process, no folder, no address, no open file")


if __name__ == "__main__":
    sys.exit(main())
