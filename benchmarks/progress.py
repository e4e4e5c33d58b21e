"""Measure reading the progress of a thousand trainings: its cost, and the age of the result.

usage: python -m benchmarks.progress [--hyperjobs 1000] [--replicas 2] [--every 10] [--seconds 300]

An API server (a real one if KUBEBUILDER_ASSETS is set) and the controller run as processes; this
process simulates Karmada: it writes the status of vcjobs, and is the cluster proxy that serves the
log of every pod. The first sub-job of each HyperJob prints a progress line every EVERY seconds,
with its own offset, among ten other lines; the other sub-jobs print no progress. Once all
HyperJobs have progress, the benchmark counts requests, writes and CPU for SECONDS. Once a second
it computes the staleness of every HyperJob, the age of the step in its status. Then all sub-jobs
complete, and the benchmark counts requests and writes at rest.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import web

from benchmarks.bench_expansion import hyperjobs
from benchmarks.scale import Times as Seen
from benchmarks.scale import percentiles, report, submit
from e2e.support.scenario import phase_of
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import HYPERJOBS, NAMESPACES, VCJOBS
from tests.support.controller import set_cluster
from tests.support.controlplane import ControlPlane, control_plane
from tests.support.stack import Service, controller_service

CLUSTERS = 10
NAMESPACE = "progress"
TIME_LIMIT = 900.0
OTHER_LINES = 10
REST_SECONDS = 60.0
_PATH = "/apis/cluster.karmada.io/v1alpha1/clusters/{cluster}/proxy/api/v1/namespaces/{namespace}"


@dataclass(slots=True)
class Logs:
    """The logs of all pods behind Karmada's cluster proxy, and the requests by result."""

    every: float
    began: dict[str, float] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    @asynccontextmanager
    async def served(self, directory: Path) -> AsyncIterator[Path]:
        """Serve the logs; yield a kubeconfig for the account that reads them."""
        app = web.Application()
        app.router.add_get(f"{_PATH}/pods/{{pod}}/log", self._log)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port = runner.addresses[0][1]
            named = {"name": "proxy"}
            config = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "proxy",
                "clusters": [{**named, "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                "users": [{**named, "user": {}}],
                "contexts": [{**named, "context": {"cluster": "proxy", "user": "proxy"}}],
            }
            path = directory / "progress.kubeconfig"
            path.write_text(json.dumps(config))
            yield path
        finally:
            await runner.cleanup()

    async def _log(self, request: web.Request) -> web.Response:
        job, _, _ = request.match_info["pod"].rpartition("-worker-")
        began = self.began.get(job)
        if began is None:
            self.asked["missing"] += 1
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        lines = list(self._lines(job, began, request.query.get("sinceTime", "")))
        lines = lines[-int(request.query["tailLines"]) :]
        body = "".join(f"{line}\n" for line in lines)
        self.asked["answered"] += 1
        return web.Response(text=body, content_type="text/plain")

    def _lines(self, job: str, began: float, since: str) -> Iterator[str]:
        """Yield the lines of a log since a second, as a kubelet does: sinceTime has no decimals."""
        after = datetime.fromisoformat(since).timestamp() // 1 if since else 0.0
        gap, now = self.every / (OTHER_LINES + 1), time.time()
        for number in range(max(0, int((after - began) / gap)), int((now - began) / gap) + 1):
            moment = began + number * gap
            if moment < after:
                continue
            step, other = divmod(number, OTHER_LINES + 1)
            text = f"batch {other} of step {step} took {gap:.3f} s"
            if not other and job.endswith("-0"):
                said = {"step": step, "steps": 100_000, "metrics": {"loss": 1 / (step + 1)}}
                text = json.dumps({"hyperjob": said})
            yield f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%S.%fZ} {text}"


@dataclass(slots=True)
class Known:
    """The statuses of all HyperJobs."""

    updated: dict[str, float] = field(default_factory=dict)
    phases: dict[str, str] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, _kind: object, _old: Object | None, new: Object | None) -> None:
        """Handle a watch event."""
        if new is None:
            return
        name, status = new["metadata"]["name"], new.get("status") or {}
        self.phases[name] = phase_of(new)
        if "training" in status:
            moment = datetime.fromisoformat(status["training"]["updateTime"])
            self.updated[name] = moment.timestamp()
        self.changed.set()

    async def until_all(self, count: int, phase: str) -> None:
        """Wait until all HyperJobs have a phase and progress."""
        async with asyncio.timeout(TIME_LIMIT):
            while sum(now == phase for now in self.phases.values()) < count or (
                len(self.updated) < count
            ):
                self.changed.clear()
                await self.changed.wait()


@dataclass(frozen=True, slots=True)
class Effort:
    """The requests, writes and CPU time so far."""

    time: float
    requests: int
    statuses: int
    writes: int
    cpu: float

    @classmethod
    def now(cls, plane: ControlPlane, logs: Logs, controller: Service) -> "Effort":
        """Read all counters."""
        writes = plane.writes()
        text = controller.metrics().splitlines()
        cpu = next(line for line in text if line.startswith("process_cpu_seconds_total "))
        return cls(
            time=time.monotonic(),
            requests=logs.asked.total(),
            statuses=sum(n for (_, what, of), n in writes.items() if (what, of) == _STATUS),
            writes=writes.total(),
            cpu=float(cpu.split()[1]),
        )

    def since(self, before: "Effort") -> str:
        """Return the difference to `before` as text."""
        seconds = self.time - before.time
        statuses = (self.statuses - before.statuses) / seconds * 60
        writes = (self.writes - before.writes) / seconds * 60
        return (
            f"{(self.requests - before.requests) / seconds:.1f} requests/s to the proxy,"
            f" {statuses:.0f} status writes and {writes - statuses:.0f} other writes a minute,"
            f" controller {(self.cpu - before.cpu) / seconds:.1%} of a core"
        )


_STATUS = (HYPERJOBS.plural, "status")


async def stale(known: Known, seconds: float) -> list[float]:
    """Return the age of the step in each status, sampled once a second."""
    found, began = [], time.monotonic()
    for turn in range(int(seconds)):
        await asyncio.sleep(began + turn - time.monotonic())
        now = time.time()
        found += [now - updated for updated in known.updated.values()]
    return found


async def measure(options: argparse.Namespace, directory: Path, plane: ControlPlane) -> None:
    """Run all trainings, measure, and complete them."""
    count, logs, known = options.hyperjobs, Logs(options.every), Known()
    async with (
        Kube.connect(kubeconfig=plane.kubeconfig, user_agent="hyperjob-bench") as kube,
        logs.served(directory) as kubeconfig,
    ):
        for number in range(CLUSTERS):
            await set_cluster(kube, f"c{number}", 10 * count * options.replicas)
        await kube.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        watching = Informer(kube, HYPERJOBS, namespace=NAMESPACE)
        watching.add_handler(known)
        task = asyncio.create_task(watching.run())
        reading = ["--members=logs", f"--members-kubeconfig={kubeconfig}"]
        controller = controller_service(
            directory, plane.kubeconfig, queue_admission="none", more=reading
        )
        try:
            await asyncio.to_thread(controller.start)
            await submit(kube, hyperjobs(NAMESPACE, count, options.replicas), Seen())
            jobs: list[Object] = []
            async with asyncio.timeout(TIME_LIMIT):
                while len(jobs) < count * options.replicas:
                    await asyncio.sleep(1)
                    jobs = (await kube.list(VCJOBS, namespace=NAMESPACE)).items
            began = time.time()
            for number, job in enumerate(jobs):  # each training prints with its own offset
                logs.began[job["metadata"]["name"]] = began + options.every * number / len(jobs)
            await report(kube, NAMESPACE, jobs, "Running")
            began = time.monotonic()
            await known.until_all(count, "Running")
            print(
                f"progress of all {count} known {time.monotonic() - began:.0f} s after Running",
                flush=True,
            )
            # Within a minute the controller searches logs without progress at its slow rate.
            await asyncio.sleep(60)
            before = await asyncio.to_thread(Effort.now, plane, logs, controller)
            ages = await stale(known, options.seconds)
            after = await asyncio.to_thread(Effort.now, plane, logs, controller)
            print(f"while all train: {after.since(before)}", flush=True)
            print(f"staleness: {percentiles(ages)}, lines every {options.every:g} s", flush=True)
            await report(kube, NAMESPACE, jobs, "Completed")
            await known.until_all(count, "Completed")
            # Within a minute the controller reads the last lines and writes its Events.
            await asyncio.sleep(60)
            before = await asyncio.to_thread(Effort.now, plane, logs, controller)
            await asyncio.sleep(REST_SECONDS)
            after = await asyncio.to_thread(Effort.now, plane, logs, controller)
            print(f"at rest: {after.since(before)}", flush=True)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(controller.stop)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hyperjobs", type=int, default=1000)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--every", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=300.0)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as directory,
        control_plane(Path(directory)) as plane,
    ):
        print("real kube-apiserver" if plane.real else "embedded API server", flush=True)
        asyncio.run(measure(options, Path(directory), plane))


if __name__ == "__main__":
    main()
