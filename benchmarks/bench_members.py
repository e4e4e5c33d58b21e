"""Measure the reader of members: memory, CPU, start and the age of a change.

usage: python -m benchmarks.bench_members [--clusters 100] [--nodes 500] [--pods 500] [--seconds 60]

A process of its own serves the Clusters, and the nodes and pods of each behind the cluster proxy;
then it changes `--changes` pods a second. The reader runs here. Each change creates a pod whose
name has the time, and the age counts until the reader reports it. A placement is of a gang of two
kinds of pods, after the changes of a quarter of a second.
"""

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

import orjson
from aiohttp import web

from hyperjob_controller.members.reader import Members
from hyperjob_core.garbage import collect_rarely
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import CLUSTERS
from hyperjob_core.tasks import cancel
from hyperjob_engine.expansion.expand import demand_of, items_of
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.placement.ground import ground_of
from hyperjob_engine.placement.place import place
from hyperjob_engine.placement.room import Room

GPU: Final = "nvidia.com/gpu"
_PATH: Final = "/apis/cluster.karmada.io/v1alpha1/clusters"
_LABELS: Final = 12  # of each node, as device plugins set them
_SIZES: Final = ("clusters", "nodes", "pods", "changes")
_CONNECTIONS: Final = 4096  # as the controller has for members
Object = dict[str, Any]


def node(cluster: str, number: int) -> Object:
    """Return a node with the labels, conditions and images that a kubelet reports."""
    name = f"{cluster}-node-{number}"
    labels = {f"feature.node.kubernetes.io/x{each}": str(number % 3) for each in range(_LABELS)}
    return {
        "metadata": {
            "name": name,
            "resourceVersion": "1",
            "labels": {"kubernetes.io/hostname": name, "gpu": "H100", **labels},
        },
        "spec": {},
        "status": {
            "allocatable": {GPU: "8", "cpu": "96", "memory": "1Ti", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "message": "kubelet is posting"}],
            "images": [{"names": [f"registry/image-{each}"]} for each in range(20)],
        },
    }


def pod(cluster: str, name: str, where: int, *, job: str = "") -> Object:
    """Return a running pod."""
    amounts = {GPU: str(1 + where % 4), "cpu": "4", "memory": "32Gi"}
    labels = {"app": "train", **({"volcano.sh/job-name": job} if job else {})}
    container = {"name": "main", "image": "train", "resources": {"limits": amounts}}
    environment = [{"name": f"VALUE_{each}", "value": "x" * 30} for each in range(20)]
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "resourceVersion": "1",
            "labels": labels,
        },
        "spec": {
            "nodeName": f"{cluster}-node-{where}",
            "containers": [{**container, "env": environment}],
        },
        "status": {"phase": "Running", "containerStatuses": [{"name": "main", "ready": True}]},
    }


class Server:
    """The API server of Karmada with the members behind it."""

    def __init__(self, clusters: int, nodes: int, pods: int) -> None:
        self.names = [f"c{number:03}" for number in range(clusters)]
        self.sizes = {"nodes": nodes, "pods": pods, "hypernodes": 0}
        self.watches: dict[tuple[str, str], set[asyncio.Queue[bytes]]] = {}

    def app(self) -> web.Application:
        """Return the application."""
        app = web.Application()
        app.router.add_get(_PATH, self._clusters)
        app.router.add_get(_PATH + "/{name}/proxy/{path:.*}", self._member)
        return app

    async def change(self, rate: float) -> None:
        """Replace pods by new ones at this rate."""
        rnd = random.Random(3)
        due, last = time.monotonic(), dict[str, Object]()
        while True:
            due += 1 / rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            name = rnd.choice(self.names)
            where = rnd.randrange(self.sizes["nodes"])
            stamp = f"t-{time.time_ns() // 1000}"
            if name in last:
                self._tell(name, "DELETED", last[name])
            last[name] = pod(name, f"{name}-{stamp}", where, job=stamp)
            self._tell(name, "ADDED", last[name])

    def add_node(self, name: str) -> None:
        """Add a node with the label `late` to a member."""
        made = node(name, self.sizes["nodes"])
        made["metadata"]["labels"]["late"] = "true"
        self._tell(name, "ADDED", made, what="nodes")

    def _tell(self, name: str, kind: str, obj: Object, *, what: str = "pods") -> None:
        line = orjson.dumps({"type": kind, "object": obj}) + b"\n"
        for queue in self.watches.get((name, what), ()):
            queue.put_nowait(line)

    async def _clusters(self, request: web.Request) -> web.StreamResponse:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        items = [
            {"metadata": {"name": name, "resourceVersion": "1"}, "status": ready}
            for name in self.names
        ]
        return await self._answer(request, "clusters", "", items)

    async def _member(self, request: web.Request) -> web.StreamResponse:
        name, what = request.match_info["name"], request.path.rpartition("/")[2]
        first, size = int(request.query.get("continue") or 0), self.sizes.get(what, 0)
        last = min(size, first + int(request.query.get("limit") or size or 1))
        make = node if what == "nodes" else lambda c, n: pod(c, f"{c}-pod-{n}", n)
        watching = request.query.get("watch") in ("true", "1")
        items = [] if watching else [make(name, number) for number in range(first, last)]
        more = str(last) if last < size else ""
        return await self._answer(request, what, name, items, more=more)

    async def _answer(
        self, request: web.Request, what: str, name: str, items: list[Object], *, more: str = ""
    ) -> web.StreamResponse:
        if request.query.get("watch") not in ("true", "1"):
            metadata = {"resourceVersion": "1", **({"continue": more} if more else {})}
            body = orjson.dumps({"kind": "List", "metadata": metadata, "items": items})
            return web.Response(body=body, content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        held = self.watches.setdefault((name, what), set())
        held.add(queue)
        try:
            with contextlib.suppress(TimeoutError, ConnectionResetError):
                async with asyncio.timeout(float(request.query.get("timeoutSeconds") or 300)):
                    while True:
                        await response.write(await queue.get())
        finally:
            held.discard(queue)
        return response


async def serve(options: argparse.Namespace) -> None:
    """Serve until killed; print the port, and change pods after a line on standard input.

    Each later line has the name of a member, which gets a node.
    """
    server = Server(options.clusters, options.nodes, options.pods)
    runner = web.AppRunner(server.app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sockets = site._server.sockets if site._server is not None else []  # type: ignore[attr-defined]  # noqa: SLF001
    print(sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.change(options.changes))
        while name := (await asyncio.to_thread(sys.stdin.readline)).strip():
            server.add_node(name)


def arguments(text: str | None) -> argparse.ArgumentParser:
    """Return the arguments of a benchmark with these members."""
    parser = argparse.ArgumentParser(description=(text or "").splitlines()[0])
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--changes", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser


@contextlib.asynccontextmanager
async def served(options: argparse.Namespace) -> AsyncIterator[tuple[Path, asyncio.StreamWriter]]:
    """Run the server as a process; yield its kubeconfig, and its standard input."""
    sizes = [f"--{each}={getattr(options, each)}" for each in _SIZES]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.bench_members", "--serve", *sizes),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        port = int(await process.stdout.readline())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kubeconfig"
            path.write_bytes(kubeconfig(port))
            yield path, process.stdin
    finally:
        process.kill()
        await process.wait()


async def main() -> None:
    """Read arguments, start the server and measure the reader."""
    options = arguments(__doc__).parse_args()
    if options.serve:
        await serve(options)
        return
    collect_rarely()  # as the controller does
    async with (
        served(options) as (path, begin),
        Kube.connect(kubeconfig=path, connections=_CONNECTIONS) as kube,
    ):
        await _measure(kube, options, begin=begin)


async def _measure(kube: Kube, options: argparse.Namespace, *, begin: asyncio.StreamWriter) -> None:
    ages: list[float] = []

    def shown(jobs: Any) -> None:  # noqa: ANN401 - a collection of keys
        now = time.time_ns() // 1000
        ages.extend((now - int(job.rpartition("t-")[2])) / 1e6 for job in jobs)

    clusters = Informer(kube, CLUSTERS)
    empty = _memory()
    reader = Members(
        kube,
        clusters,
        nodes=True,
        now=lambda: datetime.now(UTC),
        freed=lambda _: None,
        shown=shown,
        wake=lambda _: None,
        faulty=_raise,
    )
    started, cpu = time.monotonic(), time.process_time()
    tasks = [asyncio.ensure_future(clusters.run()), asyncio.ensure_future(reader.run())]
    await reader.tried(120)
    while len(reader.views(datetime.now(UTC))) < options.clusters:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.1)
    took = time.monotonic() - started
    print(
        f"{options.clusters} members known after {took:.1f} s,"
        f" {time.process_time() - cpu:.1f} s of CPU"
    )
    _place(reader)
    print(
        f"memory {_memory():.0f} MB,"
        f" {(_memory() - empty) / options.clusters:.2f} MB for each member"
    )
    begin.write(b"\n")
    await asyncio.sleep(5)
    ages.clear()
    cpu, started = time.process_time(), time.monotonic()
    await asyncio.sleep(options.seconds)
    used = (time.process_time() - cpu) / (time.monotonic() - started)
    print(
        f"{len(ages) / options.seconds:.0f} changes/s: {used:.3f} cores, {_memory():.0f} MB;"
        f" seen after {median(ages):.2f} s, 99 % {quantiles(ages, n=100)[98]:.2f} s,"
        f" longest {max(ages):.2f} s"
    )
    times = []
    for _ in range(20):
        await asyncio.sleep(0.25)
        times.append(_place(reader))
    print(f"placement: median {median(times):.1f} ms, longest {max(times):.1f} ms of CPU")
    await cancel(tasks)


def _place(reader: Members) -> float:
    """Place a gang of four sub-jobs with two kinds of pods; return the milliseconds of CPU."""
    begun = time.process_time()
    clusters = [_cluster(name, view) for name, view in reader.views(datetime.now(UTC)).items()]
    template: Object = {"tasks": [_task("master", 1, 1), _task("worker", 8, 4)]}
    wanted = [
        PlacementRequest(
            name=f"j{number}", group="g", demand=demand_of(template), pods=items_of(template)
        )
        for number in range(4)
    ]
    assert len(place(wanted, Room(clusters)).assigned) == len(wanted)
    return (time.process_time() - begun) * 1000


def _cluster(name: str, view: Any) -> Cluster:  # noqa: ANN401 - a MemberView
    ground = ground_of(name, view)
    return Cluster(
        name=name,
        usable=True,
        trouble=None,
        free=ground.free,
        allocatable=ground.allocatable,
        view=view,
    )


def _task(name: str, pods: int, gpus: int) -> Object:
    container = {"name": "c", "resources": {"limits": {GPU: str(gpus), "cpu": "2"}}}
    return {"name": name, "replicas": pods, "template": {"spec": {"containers": [container]}}}


def kubeconfig(port: int) -> bytes:
    cluster: Mapping[str, Any] = {"server": f"http://127.0.0.1:{port}"}
    return orjson.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "x",
            "clusters": [{"name": "x", "cluster": cluster}],
            "users": [{"name": "x", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        }
    )


def _memory() -> float:
    """Return the resident memory in MB."""
    status = Path("/proc/self/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _raise(error: BaseException, _of: str) -> None:
    raise error


if __name__ == "__main__":
    asyncio.run(main())
