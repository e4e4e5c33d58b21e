"""The API servers of `benchmarks.flood` in memory: Karmada, its members, and what is hostile there.

It binds and runs the honest HyperJobs, and writes random objects past any admission. The members
`endless` have lists without an end, and lines of watches that do not end; each object is odd.
"""

import asyncio
import contextlib
import random
import re
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson
from aiohttp import web

from benchmarks.bench_members import GPU
from benchmarks.bench_storm import vcjob_status
from benchmarks.scale import bound
from e2e.support.scenario import phase_of
from hyperjob_core.api.names import GATE, GATE_OPEN
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.memory import Call, MemoryServer
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    HYPERNODES,
    NAMESPACES,
    NODES,
    PODS,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
    Resource,
    key_of,
)
from hyperjob_core.kube.transport import Params, Response
from tests.support.hostile import hostile, ordinary

Object = dict[str, Any]

_PROXY: Final = re.compile(r"/apis/cluster\.karmada\.io/v1alpha1/clusters/([^/]+)/proxy(/.*)")
_HONEST: Final = [f"honest-{number}" for number in range(8)]
_QUEUE: Final = "team-honest"
_NODES: Final = 20
_BIND_SECONDS: Final = 0.05
_RARE: Final = 0.02
_DELETED: Final = 0.1
_ENDLESS: Final = "endless-"
_ODD: Final = b"{}," * 20_000
_LINE: Final = b'{"type":"MODIFIED"' + b" " * (8 * 1024 * 1024 - 100)
SHARES: Final[dict[Resource, tuple[float, int]]] = {
    CLUSTERS: (0.02, 100),
    QUEUES: (0.15, 2000),
    RESOURCE_BINDINGS: (0.23, 3000),
    NODES: (0.2, 30),
    PODS: (0.3, 60),
    HYPERNODES: (0.1, 10),
}
"""The part of each kind in the flood, and how many names its objects share; of members, in each."""


class Store(MemoryServer):
    """An API server in memory that answers lists by pages and keeps all changes for watches."""

    def __init__(self) -> None:
        super().__init__(now=lambda: datetime.now(UTC))
        self._past = deque()

    def answer(self, call: Call) -> Object:
        """Return the object, or the page of a list."""
        found = super().answer(call)
        if call.method == "GET" and not call.name and "limit" in call.params:
            first, items = int(call.params.get("continue") or 0), found["items"]
            last = first + int(call.params["limit"])
            found["items"] = items[first:last]
            if last < len(items):
                found["metadata"]["continue"] = str(last)
        return found


class Karmada(Store):
    """The API server of Karmada, with the members of its Clusters."""

    def __init__(self) -> None:
        super().__init__()
        self.members: dict[str, Store] = {}
        self.submitted: dict[str, float] = {}
        self.running: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.listen(self._changed)
        self.put(NAMESPACES, {"metadata": {"name": "default"}})
        self.put(QUEUES, {**_queue(), "metadata": {"name": _QUEUE}})
        for name in _HONEST:
            self.join(name)

    def join(self, name: str) -> None:
        """Add a Ready cluster with nodes of eight GPUs each."""
        member = self.member(name)
        for number in range(_NODES):
            node = ordinary(NODES, f"{name}-{number}")
            member.put(NODES, {**node, "spec": {}})
        made = ordinary(CLUSTERS, name)
        amounts = {GPU: str(8 * _NODES), "cpu": "10000", "memory": "80Ti", "pods": "10000"}
        made["status"]["resourceSummary"] = {"allocatable": amounts}
        self.put(CLUSTERS, made)

    def member(self, name: str) -> Store:
        """Return the API server of a member, a new one if there is none."""
        if name not in self.members:
            self.members[name] = Store()
        return self.members[name]

    async def request(self, method: str, path: str, **more: Any) -> Response:  # noqa: ANN401
        """Answer a request, of the proxy by the member."""
        if found := _PROXY.fullmatch(path):
            return await self.member(found[1]).request(method, found[2], **more)
        return await super().request(method, path, **more)

    async def stream(
        self,
        path: str,
        *,
        params: Params,
        **more: Any,  # noqa: ANN401
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events of a watch, of the proxy from the member."""
        if found := _PROXY.fullmatch(path):
            source = self.member(found[1]).stream(found[2], params=params, **more)
        else:
            source = super().stream(path, params=params, **more)
        async with contextlib.aclosing(source) as parts:
            async for part in parts:
                yield part

    def _changed(self, kind: str, old: Object | None, new: Object | None) -> None:
        """Bind each vcjob, run it once its gate is open, and note which HyperJobs run."""
        if new is None or new["metadata"].get("namespace") != "default":
            return
        key = key_of(new)
        if kind == VCJOBS.kind and old is None:
            self._soon(self._bind, key)
        elif kind == PROPAGATION_POLICIES.kind and old is not None and _is_open(new):
            self._soon(self._start, key)
        elif kind == HYPERJOBS.kind and phase_of(new) == "Running":
            self.running.setdefault(key, time.monotonic())

    def _soon(self, work: Any, key: str) -> None:  # noqa: ANN401
        async def later() -> None:
            await asyncio.sleep(_BIND_SECONDS)
            work(key)

        task = asyncio.ensure_future(later())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _bind(self, key: str) -> None:
        job, policy = self.get(VCJOBS, key), self.get(PROPAGATION_POLICIES, key)
        if job is not None and policy is not None:
            self.create(RESOURCE_BINDINGS, bound(job["metadata"], policy["spec"], "default"))
            if _is_open(policy):
                self._start(key)

    def _start(self, key: str) -> None:
        """Take the suspension from the ResourceBinding, and run the vcjob in its cluster."""
        found = self.get(RESOURCE_BINDINGS, f"{key}-job")
        job = self.get(VCJOBS, key)
        if found is None or job is None or job.get("status"):
            return
        spec = {each: value for each, value in found["spec"].items() if each != "suspension"}
        status = vcjob_status("Running")
        cluster = spec["clusters"][0]["name"]
        shown = [{"clusterName": cluster, "applied": True, "status": status}]
        self.replace(RESOURCE_BINDINGS, f"{key}-job", {**found, "spec": spec})
        self.change(
            RESOURCE_BINDINGS, f"{key}-job", {"status": {"aggregatedStatus": shown}}, status=True
        )
        self.change(VCJOBS, key, {"status": status}, status=True)
        pod = ordinary(PODS, f"{job['metadata']['name']}-worker-1", "default")
        pod["metadata"]["labels"] = {"volcano.sh/job-name": job["metadata"]["name"]}
        pod["spec"] |= {"nodeName": f"{cluster}-0", "affinity": {}, "nodeSelector": {}}
        self.member(cluster).put(PODS, pod)


def _queue() -> Object:
    """Return a Queue that takes HyperJobs; its guarantee precedes the claims of random Queues."""
    amounts = {GPU: "1000", "cpu": "10000"}
    return {
        "spec": {"weight": 1, "guarantee": {"resource": amounts}, "deserved": amounts},
        "status": {"state": "Open"},
    }


def _is_open(policy: Object) -> bool:
    annotations = policy["metadata"].get("annotations") or {}
    return "suspension" not in policy["spec"] or annotations.get(GATE) == GATE_OPEN


def honest(number: int) -> Object:
    """Return a HyperJob of four sub-jobs, each with a GPU, on the clusters of honest members."""
    resources = {"requests": {GPU: "1", "cpu": "1"}, "limits": {GPU: "1", "cpu": "1"}}
    container = {"name": "c", "image": "i", "resources": resources}
    task = {"name": "w", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    group = {
        "name": "t",
        "replicas": 4,
        "clusterNames": _HONEST,
        "clusterPolicy": "Required",
        "templateSpec": {"queue": _QUEUE, "minAvailable": 1, "tasks": [task]},
    }
    return {
        "metadata": {"name": f"h{number}", "namespace": "default"},
        "spec": {"replicatedJobs": [group], "minAvailable": 4},
    }


class Write(NamedTuple):
    """One change: of Karmada's objects, or of those of a member; `delete` needs only the name."""

    member: str
    resource: Resource
    obj: Object
    delete: bool


def writes(count: int, *, seed: int, without: Collection[str] = ()) -> Iterator[Write]:
    """Yield random changes; each name is written many times, and sometimes deleted.

    A few are of honest members, which stay in use by the sums of their Clusters.
    """
    rng = random.Random(seed)
    kinds = [each for each in SHARES if each.plural not in without]
    for _ in range(count):
        (resource,) = rng.choices(kinds, [SHARES[each][0] for each in kinds])
        number, member = rng.randrange(SHARES[resource][1]), ""
        name = f"{'q' if resource == QUEUES else 'x'}{number}"
        if resource == RESOURCE_BINDINGS:
            long, like = f"{'-'.join('h' * 100)}-{number}-job", f"h{number % 40}-t-0x-job"
            name = rng.choice((long, like, name))
        if resource in (NODES, PODS, HYPERNODES):
            rare = rng.random() < _RARE
            member = rng.choice(_HONEST[4:]) if rare else f"x{rng.randrange(SHARES[CLUSTERS][1])}"
        made = hostile(rng, resource, name)
        if resource == QUEUES and isinstance(made.get("spec"), dict):
            made["spec"].pop("guarantee", None)  # a guarantee takes room from other Queues
        yield Write(member, resource, made, delete=rng.random() < _DELETED)


class Flood:
    """Writes the changes that it was made with."""

    def __init__(self, karmada: Karmada, changes: Sequence[Write]) -> None:
        self.written: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._karmada = karmada
        self._changes = changes

    async def run(self, seconds: float) -> None:
        """Make all changes within some seconds, a few at a time."""
        began, made, count = time.monotonic(), 0, len(self._changes)
        while made < count:
            due = min(count, 1 + int(count * (time.monotonic() - began) / seconds))
            for each in self._changes[made:due]:
                self._write(each)
            made = max(made, due)
            await asyncio.sleep(0.01)

    def _write(self, change: Write) -> None:
        store = self._karmada.member(change.member) if change.member else self._karmada
        try:
            if change.delete:
                store.remove(change.resource, key_of(change.obj))
            else:
                store.put(change.resource, change.obj)
            self.written[change.resource.plural] += 1
        except Exception as error:  # noqa: BLE001 - the store in memory reads some fields
            self.failed[f"{change.resource.plural} {type(error).__name__}"] += 1


async def serve() -> None:
    """Serve until killed; print the port."""
    karmada = Karmada()
    changes: list[Write] = []

    async def submit(request: web.Request) -> web.Response:
        made = honest(int(request.query["number"]))
        karmada.submitted[key_of(made)] = time.monotonic()
        karmada.create(HYPERJOBS, made)
        return web.json_response({})

    async def prepare(request: web.Request) -> web.Response:
        count, seed = int(request.query["count"]), int(request.query["seed"])
        without = request.query["without"].split(",")
        for each in range(int(request.query["endless"])):
            karmada.join(f"{_ENDLESS}{each}")
        changes.extend(writes(count, seed=seed, without=without))
        return web.json_response({})

    async def begin(request: web.Request) -> web.Response:
        flood = Flood(karmada, changes)
        task = asyncio.ensure_future(flood.run(float(request.query["seconds"])))
        request.app["flood"].append((flood, task))
        return web.json_response({})

    async def told(request: web.Request) -> web.Response:
        floods = request.app["flood"]
        times = {
            key: karmada.running[key] - at
            for key, at in karmada.submitted.items()
            if key in karmada.running
        }
        states = {
            key_of(each): each.get("status", {}).get("state") for each in karmada.items(HYPERJOBS)
        }
        over = all(task.done() for _, task in floods)
        for _, task in floods:
            if task.done():
                task.result()
        written = dict(floods[0][0].written) if floods else {}
        failed = dict(floods[0][0].failed) if floods else {}
        return web.json_response(
            {"times": times, "states": states, "over": over, "written": written, "failed": failed}
        )

    app = web.Application(client_max_size=16 << 20)
    app["flood"] = []
    app.router.add_post("/flood/submit", submit)
    app.router.add_post("/flood/prepare", prepare)
    app.router.add_post("/flood/begin", begin)
    app.router.add_get("/flood/told", told)
    app.router.add_route("*", "/{path:.*}", lambda request: _answer(karmada, request))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
    await site.start()
    sockets = site._server.sockets if site._server is not None else []  # type: ignore[attr-defined]  # noqa: SLF001
    print(sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


async def _answer(karmada: Karmada, request: web.Request) -> web.StreamResponse:
    """Answer a request of the controller."""
    params = dict(request.query)
    member = _PROXY.fullmatch(request.path)
    if member and member[1].startswith(_ENDLESS):
        return await _endless(request, int(member[1].removeprefix(_ENDLESS)))
    try:
        if params.get("watch") in ("true", "1"):
            return await _watch(karmada, request, params)
        found = await karmada.request(
            request.method,
            request.path,
            params=params,
            body=await request.read(),
            content_type=request.content_type,
        )
    except KubeError as error:
        return web.json_response(error.status, status=error.http_code or 500)
    return web.Response(body=found.body, content_type="application/json")


async def _endless(request: web.Request, number: int) -> web.StreamResponse:
    """Answer for a hostile member: one of two has endless lists, the other one endless lines."""
    if "watch" in request.query:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(_LINE)
        await asyncio.sleep(30.0)
        return response
    page = int(request.query.get("continue") or 0)
    each = b'{"metadata":{"name":"%d-%d"},"spec":{"taints":[%s{}],"tolerations":[%s{}]}}'
    few = _ODD[: 3 * 2500]
    items = [each % (page, item, _ODD, few) for item in range(100)] if number % 2 else []
    token = str(page + 1) if number % 2 else ""
    start = b'{"metadata":{"resourceVersion":"1","continue":"%s"},"items":[' % token.encode()
    body = start + b",".join(items) + b"]}"
    return web.Response(body=body, content_type="application/json")


async def _watch(karmada: Karmada, request: web.Request, params: Params) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    source = karmada.stream(request.path, params=params, idle_limit=None, time_limit=None)
    await response.prepare(request)
    with contextlib.suppress(TimeoutError, ConnectionResetError):
        async with (
            asyncio.timeout(min(60.0, float(params.get("timeoutSeconds") or 300))),
            contextlib.aclosing(source) as parts,
        ):
            try:
                async for part in parts:
                    await response.write(part)
            except KubeError as error:
                gone = {"type": "ERROR", "object": error.status}
                await response.write(orjson.dumps(gone) + b"\n")
    return response
