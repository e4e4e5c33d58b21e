"""Measure a controller with thousands of HyperJobs, and its requests to the API server.

usage: python -m benchmarks.scale [--hyperjobs 5000] [--replicas 4] [--clusters 100]
       [--one 1000] [--churn-seconds 600] [--queue-admission builtin]

An API server (a real one if KUBEBUILDER_ASSETS is set) and the controller run as processes; with
the queue admission `none` there is no gate. This process simulates Karmada: it creates the
ResourceBinding of every vcjob, placed, and writes the status of vcjobs. The cases run one after the
other on one control plane: many HyperJobs, a storm in which every sub-job changes its phase, the
restart of a killed controller with all these objects, a HyperJob of many sub-jobs, and steady
churn. The ratios are to two plain loops of this process on 8 connections, over copies of at most
2,000 of the sub-jobs: a loop of the creates only, and a loop of all requests for a sub-job until
its gate is open.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.bench_expansion import hyperjobs
from benchmarks.bench_storm import vcjob_status
from benchmarks.plainloop import CONNECTIONS, copies_of, parallel, plain_loop
from e2e.support.scenario import phase_of
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import GATE, GATE_OPEN, binding_name
from hyperjob_core.kube.client import EventType, Kube, PatchType
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    NAMESPACES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
)
from tests.support.controller import set_cluster
from tests.support.controlplane import ControlPlane, control_plane
from tests.support.stack import Service, controller_service

TIME_LIMIT = 3600.0
NOT_OURS = {
    ("POST", "hyperjobs", ""),
    ("POST", "resourcebindings", ""),
    ("PUT", "resourcebindings", ""),
}
MADE = (PROPAGATION_POLICIES, VCJOBS, RESOURCE_BINDINGS)
PER_SECOND = 20.0
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """The CPU seconds, and the present and maximum memory in MB, of a process."""

    name: str
    cpu: float
    memory: float
    most: float


@dataclass(slots=True)
class Times:
    """The times at which each sub-job was requested, created and released, by `namespace/name`."""

    submitted: dict[str, float] = field(default_factory=dict)
    created: dict[str, float] = field(default_factory=dict)
    released: dict[str, float] = field(default_factory=dict)
    phases: dict[str, str] = field(default_factory=dict)
    status_writes: Counter[str] = field(default_factory=Counter)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, holds: Callable[[], bool]) -> float:
        """Wait until `holds` is true of the recorded times; return the time."""
        async with asyncio.timeout(TIME_LIMIT):
            while not holds():
                self.changed.clear()
                await self.changed.wait()
        return time.monotonic()


class Karmada:
    """Binds every vcjob and follows its policy, as Karmada does, and records the times."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.times = Times()
        self._kube, self._namespace = kube, namespace
        self._unbound: asyncio.Queue[Object] = asyncio.Queue()
        self._opened: asyncio.Queue[str] = asyncio.Queue()
        self._policies: dict[str, Object] = {}

    @asynccontextmanager
    async def working(self) -> AsyncIterator[Times]:
        """Bind vcjobs for the length of the block."""
        handlers = {
            HYPERJOBS: self._hyperjob,
            PROPAGATION_POLICIES: self._policy,
            VCJOBS: self._vcjob,
        }
        informers = []
        for resource, handler in handlers.items():
            informer = Informer(self._kube, resource, namespace=self._namespace)
            informer.add_handler(handler)
            informers.append(informer)
        tasks = [asyncio.create_task(each.run()) for each in informers]
        tasks += [asyncio.create_task(self._bind()) for _ in range(CONNECTIONS)]
        tasks += [asyncio.create_task(self._dispatch()) for _ in range(CONNECTIONS)]
        try:
            for informer in informers:
                await informer.synced.wait()
            yield self.times
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _hyperjob(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        if new is not None and kind is not EventType.DELETED:
            name = new["metadata"]["name"]
            if old is not None and old.get("status") != new.get("status"):
                self.times.status_writes[name] += 1
            self.times.phases[name] = phase_of(new)
            self.times.changed.set()
        elif old is not None:
            self.times.phases.pop(old["metadata"]["name"], None)

    def _policy(self, kind: EventType, _old: Object | None, new: Object | None) -> None:
        if kind is EventType.DELETED or new is None:
            return
        name = new["metadata"]["name"]
        if kind is EventType.ADDED:
            self._policies[name] = new["spec"]
        is_open = "suspension" not in new["spec"]
        is_open = is_open or (new["metadata"].get("annotations") or {}).get(GATE) == GATE_OPEN
        if is_open and name not in self.times.released:
            self.times.released[name] = time.monotonic()
            if kind is not EventType.ADDED:
                self._opened.put_nowait(name)
            self.times.changed.set()

    def _vcjob(self, kind: EventType, _old: Object | None, new: Object | None) -> None:
        if kind is EventType.ADDED and new is not None:
            self.times.created[new["metadata"]["name"]] = time.monotonic()
            self._unbound.put_nowait(new)
            self.times.changed.set()

    async def _bind(self) -> None:
        while True:
            job = await self._unbound.get()
            metadata, name = job["metadata"], job["metadata"]["name"]
            policy = self._policies.get(name)
            if policy is None:  # the policy was written first, and its watch event arrives soon
                await asyncio.sleep(0.01)
                self._unbound.put_nowait(job)
                continue
            await self._kube.create(RESOURCE_BINDINGS, bound(metadata, policy, self._namespace))

    async def _dispatch(self) -> None:
        while True:
            name = await self._opened.get()
            known = await self._kube.get(
                RESOURCE_BINDINGS, binding_name(name), namespace=self._namespace
            )
            del known["spec"]["suspension"]
            await self._kube.replace(RESOURCE_BINDINGS, known)


def bound(job: Object, policy: Object, namespace: str) -> Object:
    """Return the ResourceBinding of a vcjob from its metadata and its policy, placed."""
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job["name"]}
    (affinity,) = policy["placement"]["clusterAffinities"]
    suspension = {"suspension": policy["suspension"]} if "suspension" in policy else {}
    return {
        **RESOURCE_BINDINGS.head,
        "metadata": {
            "name": binding_name(job["name"]),
            "namespace": namespace,
            "ownerReferences": [{**owner, "uid": job["uid"], "controller": True}],
        },
        "spec": {
            "resource": {**owner, "namespace": namespace, "uid": job["uid"]},
            "placement": policy["placement"],
            "replicas": 1,
            "replicaRequirements": {"resourceRequest": {"nvidia.com/gpu": "1"}},
            "clusters": [{"name": affinity["clusterNames"][0], "replicas": 1}],
            **suspension,
        },
    }


@dataclass(slots=True)
class Bench:
    """The control plane, the controller, and the plain loop's namespace."""

    plane: ControlPlane
    kube: Kube
    controller: Service

    def processes(self) -> dict[str, Process]:
        """Return the processes of this benchmark."""
        return {each.name: each for each in processes()}

    async def many(self, namespace: str, count: int, replicas: int) -> None:
        """Submit HyperJobs all at once, and print the results, by quarter."""
        wanted = hyperjobs(namespace, count, replicas)
        total, karmada = count * replicas, Karmada(self.kube, namespace)
        writes, before = self.plane.writes(), self.processes()
        calls = self.calls()
        async with karmada.working() as times:
            began = time.monotonic()
            submitting = asyncio.create_task(submit(self.kube, wanted, times))
            marks, last = [], before["controller"]
            for quarter in range(1, 5):
                at = await times.until(
                    lambda quarter=quarter: len(times.released) >= total * quarter // 4
                )
                now = self.processes()["controller"]
                cost = (now.cpu - last.cpu) / (total / 4) * 1000
                marks.append(f"{cost:.2f} ms, {now.memory:.0f} MB")
                last = now
            await submitting
            print(
                f"{namespace}: {total} sub-jobs of {count} HyperJobs created and released in"
                f" {at - began:.1f} s, {total / (at - began):.0f}/s"
            )
            print(f"  CPU per sub-job and memory of the controller, by quarter: {'; '.join(marks)}")
            self.latencies(times)
            made = self.requests(writes, total)
            calls = self.calls() - calls
            methods = ", ".join(
                f"{number / total:.2f} {method}" for method, number in sorted(calls.items())
            )
            print(f"  all requests of the controller per sub-job, by method: {methods}")
        self.usage(before, total)
        took, speed = at - began, total / (at - began)
        copies = await copies_of(self.kube, namespace, kinds=MADE)
        targets = f"{namespace}-plain", f"{namespace}-life"
        for target in targets:
            await self.kube.create(NAMESPACES, {"metadata": {"name": target}})
        spent = time.process_time()
        plain, creates = await plain_loop(self.kube, copies, targets[0])
        spent = time.process_time() - spent
        print(
            f"  plain loop of the same creates: {creates / plain:.0f}/s at"
            f" {spent / creates * 1000:.2f} ms CPU each: sub-jobs came at"
            f" {speed * plain / len(copies):.2f} of its speed,"
            f" all writes at {made / took / (creates / plain):.2f}"
        )
        plain, requests = await plain_loop(self.kube, copies, targets[1], life=True)
        print(
            f"  plain loop of the same requests: {requests / plain:.0f}/s: sub-jobs came at"
            f" {speed * plain / len(copies):.2f} of its speed"
        )
        for kind in MADE:
            for target in targets:
                await self.kube.raw("DELETE", kind.path(target))

    def calls(self) -> Counter[str]:
        """Read the controller's own count of its API calls, by method."""
        found: Counter[str] = Counter()
        for family in text_string_to_metric_families(self.controller.metrics()):
            for sample in family.samples:
                if sample.name == "rest_client_requests_total":
                    found[sample.labels["method"]] += int(sample.value)
        return found

    def latencies(self, times: Times) -> None:
        """Print the time of sub-jobs between steps."""
        owners = {name: name.partition("-t-")[0] for name in times.created}
        steps = {
            "submit to created": [
                at - times.submitted[owners[name]]
                for name, at in times.created.items()
                if owners[name] in times.submitted
            ],
            "created to released": [
                at - times.created[name]
                for name, at in times.released.items()
                if name in times.created
            ],
        }
        for step, seconds in steps.items():
            print(f"  {step}: {percentiles(seconds)}")

    def requests(self, before: Counter[tuple[str, str, str]], total: int) -> int:
        """Print the controller's writes per sub-job; return the number of all clients' writes."""
        made = self.plane.writes() - before
        ours = {
            " ".join(filter(None, key)): number / total
            for key, number in sorted(made.items())
            if key[1] in {"propagationpolicies", "jobs", "resourcebindings", "hyperjobs", "events"}
            and key not in NOT_OURS
        }
        text = ", ".join(f"{number:.2f} {name}" for name, number in ours.items())
        print(f"  writes of the controller per sub-job: {sum(ours.values()):.2f} ({text})")
        return made.total()

    def usage(self, before: dict[str, Process], total: int) -> None:
        """Print the CPU time and memory of each process."""
        for name, now in sorted(self.processes().items()):
            cpu = now.cpu - (before[name].cpu if name in before else 0.0)
            print(
                f"  {name}: {cpu:.1f} s CPU, {cpu / total * 1000:.2f} ms per sub-job;"
                f" {now.memory:.0f} MB, at most {now.most:.0f} MB"
            )

    async def storm(self, namespace: str, phase: str) -> None:
        """Change the phase of every sub-job in a namespace at the API server's maximum rate."""
        jobs = (await self.kube.list(VCJOBS, namespace=namespace)).items
        karmada, before = Karmada(self.kube, namespace), self.processes()
        async with karmada.working() as times:
            times.status_writes.clear()
            began = time.monotonic()
            await report(self.kube, namespace, jobs, phase)
            plain = time.monotonic() - began
            at = await times.until(lambda: set(times.phases.values()) == {phase})
            writes = sum(times.status_writes.values())
            print(
                f"storm to {phase}: {len(jobs)} sub-jobs written in {plain:.1f} s, every HyperJob"
                f" right {at - began - plain:.1f} s later ({(at - began) / plain:.2f} of the plain"
                f" loop's time); {writes / len(times.phases):.2f} status writes per HyperJob"
            )
        self.usage(before, len(jobs))

    async def restart(self, namespace: str) -> None:
        """Kill the controller; measure the time to its next decision, and its writes."""
        self.controller.kill()
        await self.kube.create(NAMESPACES, {"metadata": {"name": "first"}})
        karmada, writes = Karmada(self.kube, "first"), self.plane.writes()
        async with karmada.working() as times:
            began = time.monotonic()
            self.controller.start(until_ready=False)
            await submit(self.kube, hyperjobs("first", 1, 1), times)
            at = await times.until(lambda: bool(times.created))
            await times.until(lambda: bool(times.released))
        await asyncio.sleep(5)
        made = self.plane.writes() - writes
        found = {key: n for key, n in made.items() if key[1] in {"hyperjobs", "jobs"}}
        print(
            f"restart with all of {namespace} there: first decision after {at - began:.1f} s;"
            f" writes since: {dict(found)}"
        )
        self.usage({}, 1)

    async def churn(self, namespace: str, seconds: float) -> None:
        """Submit, run, end and delete HyperJobs of one sub-job at a steady rate."""
        karmada, before = Karmada(self.kube, namespace), self.processes()
        async with karmada.working() as times, asyncio.TaskGroup() as group:
            began = time.monotonic()
            for number in range(int(seconds * PER_SECOND)):
                await asyncio.sleep(began + number / PER_SECOND - time.monotonic())
                group.create_task(self._life(namespace, f"hj{number}", times))
                if number and number % int(60 * PER_SECOND) == 0:
                    now = self.processes()["controller"]
                    print(f"  {number} so far: {now.cpu:.1f} s CPU, {now.memory:.0f} MB")
        total = int(seconds * PER_SECOND)
        print(f"churn of {PER_SECOND:.0f}/s for {seconds:.0f} s: {total} HyperJobs")
        self.latencies(times)
        self.usage(before, total)

    async def _life(self, namespace: str, name: str, times: Times) -> None:
        made = hyperjobs(namespace, 1, 1)[0]
        made["metadata"]["name"] = name
        await submit(self.kube, [made], times)
        job = f"{name}-t-0"
        await times.until(lambda: job in times.released)
        for phase in ("Running", "Completed"):
            await report(self.kube, namespace, [{"metadata": {"name": job}}], phase)
        await times.until(lambda: times.phases.get(name) == "Completed")
        await self.kube.delete(HYPERJOBS, name, namespace=namespace)
        for resource, each in (
            (VCJOBS, job),
            (PROPAGATION_POLICIES, job),
            (RESOURCE_BINDINGS, binding_name(job)),
        ):  # a bare API server has no garbage collector
            try:
                await self.kube.delete(resource, each, namespace=namespace)
            except NotFound:
                continue


async def submit(kube: Kube, wanted: Sequence[Object], times: Times) -> None:
    """Create HyperJobs."""

    async def one(item: Object) -> None:
        times.submitted[item["metadata"]["name"]] = time.monotonic()
        await kube.create(HYPERJOBS, item)

    await parallel(wanted, one)


async def report(kube: Kube, namespace: str, jobs: Sequence[Object], phase: str) -> None:
    """Write the status of vcjobs."""

    async def one(job: Object) -> None:
        await kube.patch(
            VCJOBS,
            job["metadata"]["name"],
            {"status": vcjob_status(phase)},
            kind=PatchType.MERGE,
            namespace=namespace,
            subresource="status",
        )

    await parallel(jobs, one)


def percentiles(seconds: Sequence[float]) -> str:
    """Return the median and the 99th percentile as text."""
    ordered = sorted(seconds)
    if not ordered:
        return "none seen"
    p50, p99 = (ordered[min(len(ordered) - 1, len(ordered) * p // 100)] for p in (50, 99))
    return f"p50 {p50:.2f} s, p99 {p99:.2f} s"


def processes() -> Iterator[Process]:
    """Read /proc of the children of this process, by program."""
    names = {"kube-apiserver": "kube-apiserver", "etcd": "etcd"}
    names |= {"hyperjob_controller": "controller", "tests.support.embedded": "embedded API server"}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().decode().split("\0")
            status = (folder / "status").read_text()
        except (OSError, ValueError):
            continue
        if int(stat[1]) != os.getpid():
            continue
        words = {word.rpartition("/")[2] for word in command[:3]}
        name = next((shown for word, shown in names.items() if word in words), "")
        sizes = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Vm"))
        if name and "VmRSS" in sizes:
            now, most = (int(sizes[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))
            yield Process(name, (int(stat[11]) + int(stat[12])) / _TICK, now, most)


async def run(options: argparse.Namespace, directory: Path, plane: ControlPlane) -> None:
    """Run all cases."""
    controller = controller_service(
        directory,
        plane.kubeconfig,
        queue_admission=options.queue_admission,
        more=["--members=off"],  # these Clusters have no API server
    )
    async with Kube.connect(kubeconfig=plane.kubeconfig, user_agent="hyperjob-bench") as kube:
        for number in range(options.clusters):
            await set_cluster(kube, f"c{number:03}", 10 * options.hyperjobs * options.replicas)
        queue: Object = QUEUES.head
        await kube.create(QUEUES, {**queue, "metadata": {"name": "default"}, "spec": {}})
        status = {"status": {"state": "Open"}}
        kind = PatchType.MERGE
        await kube.patch(QUEUES, "default", status, kind=kind, subresource="status")
        controller.start()
        try:
            bench = Bench(plane, kube, controller)
            for name in ("many", "one", "churn"):
                await kube.create(NAMESPACES, {"metadata": {"name": name}})
            await bench.many("many", options.hyperjobs, options.replicas)
            await bench.storm("many", "Running")
            await bench.restart("many")
            if options.one:
                await bench.many("one", 1, options.one)
            await bench.storm("many", "Completed")
            if options.churn_seconds:
                await bench.churn("churn", options.churn_seconds)
        finally:
            controller.stop()


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hyperjobs", type=int, default=5000)
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--one", type=int, default=1000)
    parser.add_argument("--churn-seconds", type=float, default=600)
    parser.add_argument("--queue-admission", choices=("builtin", "none"), default="builtin")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as directory,
        control_plane(Path(directory)) as plane,
    ):
        print("real kube-apiserver" if plane.real else "embedded API server")
        asyncio.run(run(options, Path(directory), plane))


if __name__ == "__main__":
    main()
