"""HyperJobs whose pods end late, in virtual time: what runs, what it prints, what the members show.

The whole controller runs on an API server in memory and reads pods, nodes and logs of two members
through Karmada's proxy. What truly runs is known here alone, in `Process`.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import orjson

from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options, Tuning
from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.api.wire import at, rfc3339
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import from_status, make_status
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    NODES,
    PODS,
    PROPAGATION_POLICIES,
    QUEUES,
    VCJOBS,
    key_of,
)
from hyperjob_core.kube.transport import Params, Response
from hyperjob_core.tasks import cancel
from hyperjob_core.virtualtime import moment, now
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.parse import pinned_clusters
from hyperjob_sandbox.member.jobpods import build_pod
from hyperjob_sandbox.simulate.karmada import Karmada
from hyperjob_sandbox.simulate.member import Member, Pods
from hyperjob_sandbox.simulate.nodes import Nodes
from hyperjob_sandbox.simulate.sites import queue, site
from tests.support.podenv import environment
from tests.unit.engine.builders import GPU, group, hyperjob, task, template

CLUSTER_NAMES: Final = ("a", "b")
NODE: Final = {"cpu": "64", "memory": "512Gi", GPU: "64", "pods": "110"}
SLOWEST: Final = 40.0
STEP_SECONDS: Final = 2.0
SAVE_EVERY: Final = 5
HEARTBEAT_SECONDS: Final = 3.0
READ_SECONDS: Final = 1.0
"""A controller that has started reads the logs of pods that stop within this time."""


@dataclass(eq=False)
class Process:
    """What runs in a pod: it makes steps, saves them, and prints both if it is the first rank."""

    job: str
    uid: str
    cluster: str
    pod: Object
    step: int
    prints: bool
    began: float = 0.0
    ended: float | None = None
    stopping: bool = False
    stopped: float = 0.0
    lines: list[tuple[float, bytes]] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def owner(self) -> str:
        return self.job.rsplit("-", 2)[0]

    @property
    def runs(self) -> bool:
        return self.began > 0 and self.ended is None


@dataclass(frozen=True)
class Generation:
    """A vcjob with the step that it got, and the last saved step that was printed before it.

    `unread`: no controller could have read it, because none ran when the pod ended.
    """

    job: str
    given: int | None
    saved: int | None
    unread: bool


class MemberApi(MemoryServer):
    """The API server of a member, whose watches end as the client asks for."""

    async def stream(self, path: str, *, params: Params, **how: Any) -> AsyncGenerator[bytes, None]:
        end = asyncio.get_running_loop().time() + float(params["timeoutSeconds"])
        async with aclosing(super().stream(path, params=params, **how)) as events:
            while True:
                try:
                    async with asyncio.timeout_at(end):
                        event = await anext(events)
                except TimeoutError:
                    return
                yield event


class Plane(MemoryServer):
    """Karmada's API server, with its proxy to the members and to the logs of their pods."""

    def __init__(self) -> None:
        super().__init__(now=now)
        self.members = {name: MemberApi(now=now) for name in CLUSTER_NAMES}
        self.processes: dict[tuple[str, str], Process] = {}

    async def request(self, method: str, path: str, **how: Any) -> Response:
        cluster, inner = proxied(path)
        if cluster:
            return await self.members[cluster].request(method, inner, **how)
        return await super().request(method, path, **how)

    def stream(self, path: str, *, params: Params, **how: Any) -> AsyncGenerator[bytes, None]:
        cluster, inner = proxied(path)
        if cluster and inner.endswith("/log"):
            return self.log(cluster, inner, params)
        server = self.members[cluster].stream if cluster else super().stream
        return server(inner, params=params, **how)

    async def log(self, cluster: str, path: str, params: Params) -> AsyncGenerator[bytes, None]:
        _, namespace, _, name, _ = path.rsplit("/", 4)
        process = self.processes.get((cluster, f"{namespace}/{name}"))
        if process is None or not process.began:
            raise from_status(make_status(404, f"no pod {name}", reason="NotFound"), "simulation")
        since = params.get("sinceTime", "")
        found = [line for line in process.lines if rfc3339(moment(line[0])) >= since]
        read = process.lines.index(found[0]) if found else len(process.lines)
        read = max(read, len(process.lines) - int(params.get("tailLines", "1000000")))
        while True:
            process.news.clear()
            for when, text in process.lines[read:]:
                yield f"{moment(when):%Y-%m-%dT%H:%M:%S.%f}Z ".encode() + text + b"\n"
            read = len(process.lines)
            if "follow" not in params or process.ended is not None:
                return
            await process.news.wait()


def proxied(path: str) -> tuple[str, str]:
    """Return the cluster and the path in it; no cluster for a path of Karmada itself."""
    before, found, inner = path.partition("/proxy/")
    return (before.rpartition("/")[2], f"/{inner}") if found else ("", path)


class SlowEnds:
    """Members, processes and a controller that may be killed; `late`: what members show late."""

    def __init__(
        self,
        seed: int,
        *,
        jobs: int = 6,
        access: MemberAccess = MemberAccess.LOGS,
        late: dict[str, float] | None = None,
    ) -> None:
        self.rng = random.Random(seed)
        self.access = access
        self.late = late or {}
        self.names = [f"j{number}" for number in range(jobs)]
        self.plane = Plane()
        self.all: list[Process] = []
        self.generations: list[Generation] = []
        self.down: list[tuple[float, float]] = []
        self.waits: dict[str, list[float]] = {}
        self.asked: dict[str, float] = {}
        self.bare: dict[str, list[float]] = {}
        self.left: dict[str, tuple[str, str]] = {}
        self.stops = 0
        self.requested = 0
        self.sites = {name: site(name, [("gpu", NODE, 1)]) for name in CLUSTER_NAMES}
        self.members = {
            name: Member(name, Nodes(each.nodes), placed=partial(self.placed, name))
            for name, each in self.sites.items()
        }
        self.karmada = Karmada(
            self.plane,
            self.members,
            now=now,
            status_period=10.0,
            sent=lambda *_: None,
            gone=self.gone,
        )
        self.plane.listen(self.created)

    # the world

    def begin(self) -> None:
        """Create Clusters, their nodes, a Queue and the HyperJobs."""
        self.plane.create(QUEUES, queue("default", {"weight": 1, "capability": {GPU: "128"}}))
        node = {
            "metadata": {"name": "n"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": NODE},
        }
        for name, each in self.sites.items():
            self.plane.create(CLUSTERS, each.cluster)
            self.plane.members[name].create(NODES, node)
        self.beat()
        for number, name in enumerate(self.names):
            jobs = group(replicas=1 + number % 2, templateSpec=template(task(replicas=2)))
            grace = self.rng.choice((10, 60)) if not self.late else 60
            checkpoint = {"directory": "s3://bucket/run", "gracePeriodSeconds": grace}
            raw = hyperjob(jobs, name=name, checkpoint=checkpoint, plugins={"env": []})
            for of_server in ("uid", "creationTimestamp"):
                raw["metadata"].pop(of_server)
            self.plane.create(HYPERJOBS, raw)

    def beat(self) -> None:
        """Let the kubelets report their nodes, as one of several hundred does at any time."""
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": rfc3339(now())}
        node = {
            "metadata": {"name": "n"},
            "status": {"conditions": [ready], "allocatable": NODE},
        }
        for name, server in self.plane.members.items():
            self.after(self.late.get(name, 0.0), server.put, NODES, node)
        self.after(HEARTBEAT_SECONDS, self.beat)

    def created(self, kind: str, old: Object | None, new: Object | None) -> None:
        """Compare the resume step of a new vcjob with the last step that was saved."""
        if kind == VCJOBS.kind and new is None and old is not None:
            policy = self.plane.get(PROPAGATION_POLICIES, key_of(old))
            cluster = "".join(pinned_clusters(at(policy, "spec", "placement")))
            self.left[key_of(old)] = old["metadata"]["uid"], cluster
        if kind != VCJOBS.kind or old is not None or new is None:
            return
        env = environment(
            build_pod(new, new["spec"]["tasks"][0], 0)["spec"]["containers"][0]["env"],
            build_pod(new, new["spec"]["tasks"][0], 0),
            "10.0.0.1",
        )
        step, key = env.get("HYPERJOB_RESUME_STEP"), key_of(new)
        printed = [
            (when, orjson.loads(text)["hyperjob"]["saved"], process)
            for process in self.all
            if process.owner == key.rsplit("-", 2)[0]
            for when, text in process.lines
            if b"saved" in text
        ]
        self.note(key)
        _, saved, process = max(printed, key=lambda each: each[0], default=(0.0, None, None))
        unread = process is not None and self.unread(process)
        given = None if step is None else int(step)
        self.generations.append(Generation(key, given, saved, unread))

    def note(self, key: str) -> None:
        """Note for how long a HyperJob has waited whose last vcjobs were in one cluster.

        `bare` has the waits after a vcjob that was deleted before it had pods: its member must
        first show something that happened later.
        """
        owner = key.rsplit("-", 2)[0]
        before = [each for each in self.all if each.owner == owner]
        last = max((each.ended or 0.0 for each in before), default=0.0)
        uids = {each.uid for each in before if (each.ended or 0.0) > last - SLOWEST}
        where = {each.cluster for each in before if each.uid in uids}
        left = [each for job, each in self.left.items() if job.rsplit("-", 2)[0] == owner]
        where |= {cluster for _, cluster in left}
        bare = {uid for uid, _ in left} - {each.uid for each in before}
        if owner in self.asked and len(where) == 1:
            (self.bare if bare else self.waits).setdefault(where.pop(), []).append(
                self.time() - max(last, self.asked[owner])
            )

    def unread(self, process: Process) -> bool:
        """Return whether no controller can have read the last lines of a process."""
        end = process.ended
        if end is None:
            return True  # `together` has the processes that have not ended
        return any(
            killed <= end + 1.0 and again + READ_SECONDS >= end for killed, again in self.down
        )

    def placed(self, cluster: str, pods: Pods) -> None:
        job = self.plane.get(VCJOBS, pods.key)
        if job is None:
            return
        made = []
        for each in job["spec"]["tasks"]:
            for index in range(each["replicas"]):
                pod = build_pod(job, each, index)
                pod["spec"]["nodeName"] = "n"
                pod["metadata"]["uid"] = f"{pods.uid}-{each['name']}-{index}"
                pod["metadata"]["creationTimestamp"] = rfc3339(now())
                env = environment(pod["spec"]["containers"][0]["env"], pod, "10.0.0.1")
                prints = pods.key.endswith("-0") and index == 0
                step = int(env.get("HYPERJOB_RESUME_STEP", "0"))
                made.append(Process(pods.key, pods.uid, cluster, pod, step, prints))
        self.all += made
        for process in made:
            self.show(process, "Pending")
        self.after(self.rng.uniform(0.5, 3.0), self.start, pods, made)

    def start(self, pods: Pods, made: list[Process]) -> None:
        if any(process.stopping for process in made):
            return
        for process in made:
            process.began = self.time()
            self.plane.processes[process.cluster, key_of(process.pod)] = process
            self.show(process, "Running")
            self.say(process)
            self.after(STEP_SECONDS, self.train, process)
        self.karmada.report(pods.key, "Running", pods=len(made), state="running")

    def train(self, process: Process) -> None:
        if process.ended is None:
            process.step += 1
            self.say(process, saved=process.step % SAVE_EVERY == 0)
            self.after(STEP_SECONDS, self.train, process)

    def say(self, process: Process, *, saved: bool = False) -> None:
        if process.prints:
            line = {"step": process.step, **({"saved": process.step} if saved else {})}
            process.lines.append((self.time(), orjson.dumps({"hyperjob": line})))
            process.news.set()

    def gone(self, key: str, cluster: str) -> None:
        """Let the pods of a deleted vcjob end after 0 to 40 seconds, many with a last save."""
        mine = [each for each in self.all if each.job == key and each.cluster == cluster]
        mine = [each for each in mine if each.ended is None and not each.stopping]
        self.stops += any(each.prints and each.began for each in mine)
        for process in mine:
            process.stopping, process.stopped = True, self.time()
            if process.began:
                self.show(process, "Running")
                self.after(self.rng.uniform(0.0, SLOWEST), self.end, process)
            else:
                self.end(process)
        if not mine:
            self.members[cluster].drop(key)

    def end(self, process: Process) -> None:
        if process.began and self.rng.random() < 0.7:
            self.say(process, saved=True)
        process.ended = self.time()
        process.news.set()
        key, name = key_of(process.pod), process.cluster
        if self.plane.processes.get((name, key)) is process:
            del self.plane.processes[name, key]
        self.after(self.late.get(name, 0.0), self.plane.members[name].remove, PODS, key)
        known = self.members[name].jobs.get(process.job)
        left = [each for each in self.all if each.uid == process.uid and each.ended is None]
        if known is not None and known.uid == process.uid and not left:
            self.members[name].drop(process.job)

    def show(self, process: Process, phase: str) -> None:
        raw = {**process.pod, "status": {"phase": phase}}
        if process.stopping:
            deleted = {"deletionTimestamp": rfc3339(now())}
            raw["metadata"] = {**raw["metadata"], **deleted}
        server = self.plane.members[process.cluster]
        self.after(self.late.get(process.cluster, 0.0), server.put, PODS, raw)

    # what is done

    async def play(self, stops: int, *, kills: bool = False) -> None:
        """Request stops at random until so many have been made, then wait until all run."""
        async with Kube(self.plane) as kube:
            self.begin()
            running = asyncio.create_task(self.control(kube, kills=kills))
            asking = asyncio.create_task(self.ask(stops))
            try:
                await asyncio.wait({running, asking}, return_when=asyncio.FIRST_COMPLETED)
                for each in (running, asking):
                    if each.done():
                        each.result()
            finally:
                await cancel([running, asking])

    async def control(self, kube: Kube, *, kills: bool) -> None:
        while True:
            controller = asyncio.create_task(self.controller(kube).run())
            seconds = self.rng.uniform(10.0, 90.0) if kills else None
            done, _ = await asyncio.wait({controller}, timeout=seconds)
            if done:
                controller.result()
            killed = self.time()
            await cancel([controller])
            await asyncio.sleep(self.rng.uniform(0.0, 10.0))
            self.down.append((killed, self.time()))

    def controller(self, kube: Kube) -> Manager:
        options = Options(
            queue_admission=QueueAdmission.BUILTIN,
            leader_elect=False,
            workers=1,
            members=self.access,
        )
        clock = asyncio.get_running_loop().time
        return Manager(
            kube,
            options,
            now=now,
            clock=clock,
            members=kube,
            tuning=Tuning(writes=1),
        )

    async def ask(self, stops: int) -> None:
        while self.stops < stops:
            await asyncio.sleep(self.rng.uniform(1.0, 15.0))
            name = self.rng.choice(self.names)
            kind = self.rng.choice((self.suspend, self.restart, self.move))
            kind(name)
        for _ in range(600):
            await asyncio.sleep(1.0)
            if self.settled():
                return
        raise AssertionError("not every sub-job runs again after 600 seconds")

    def suspend(self, name: str) -> None:
        self.change(name, {"spec": {"suspend": True}})
        self.after(self.rng.uniform(1.0, 60.0), self.change, name, {"spec": {"suspend": False}})

    def restart(self, name: str) -> None:
        self.request(name, RESTART_REQUEST, "")

    def move(self, name: str) -> None:
        jobs = " ".join(each for each in self.jobs() if each.startswith(f"{name}-"))
        self.request(name, MIGRATE_REQUEST, f" {jobs}")

    def request(self, name: str, annotation: str, rest: str) -> None:
        self.requested += 1
        token = {annotation: f"r{self.requested}{rest}"}
        self.change(name, {"metadata": {"annotations": token}})

    def change(self, name: str, patch: Object) -> None:
        self.asked[f"default/{name}"] = self.time()
        self.plane.change(HYPERJOBS, f"default/{name}", patch)

    # what is true

    def jobs(self) -> list[str]:
        sizes = {name: 1 + number % 2 for number, name in enumerate(self.names)}
        return [f"{name}-trainer-{i}" for name, size in sizes.items() for i in range(size)]

    def settled(self) -> bool:
        """Return whether each sub-job runs, no pod stops, and each HyperJob is Running."""
        running = {each.job for each in self.all if each.runs and not each.stopping}
        stopping = any(each.stopping and each.ended is None for each in self.all)
        phases = {at(raw, "status", "state", "phase") for raw in self.plane.items(HYPERJOBS)}
        wanted = {f"default/{name}" for name in self.jobs()}
        return running == wanted and not stopping and phases == {"Running"}

    def together(self) -> list[tuple[Process, Process]]:
        """Return the processes of two generations of one sub-job that ran at the same time."""
        ran = [each for each in self.all if each.began]
        return [
            (first, second)
            for first in ran
            for second in ran
            if first.job == second.job
            and first.uid != second.uid
            and first.began <= second.began
            and (first.ended is None or first.ended > second.began)
        ]

    def delays(self, cluster: str) -> float:
        """Return the longest time from the end of a HyperJob's pods in a cluster to the next."""
        return max(self.waits.get(cluster, [0.0]))

    def bare_delays(self, cluster: str) -> float:
        """Return the longest time from a stop before any pod in a cluster to the next vcjob."""
        return max(self.bare.get(cluster, [0.0]))

    def time(self) -> float:
        return asyncio.get_running_loop().time()

    def after(self, seconds: float, do: Callable[..., Any], *arguments: Any) -> None:
        loop = asyncio.get_running_loop()
        if seconds > 0:
            loop.call_later(seconds, do, *arguments)
        else:
            do(*arguments)
