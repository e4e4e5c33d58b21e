"""Two clusters in virtual seconds: true pods, late Cluster summaries and reports, and a controller.

The controller is the real memory of reservations with the real queue rounds. What it believes is
compared with the pods that the members truly have.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hyperjob_controller.reservations import Reservations
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.resources import NODES, PODS
from hyperjob_engine.members.facts import node_fact, pod_fact
from hyperjob_engine.members.fold import view_of
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.queueing.evict import evicted_for
from hyperjob_engine.queueing.queues import Queue
from hyperjob_engine.queueing.round import schedule
from hyperjob_engine.queueing.state import admitted, new_state, set_queues, update
from hyperjob_engine.queueing.workload import QueuedHyperJob
from tests.unit.engine.builders import (
    GPU,
    NOW,
    VCJOB_APIS,
    Object,
    binding,
    hyperjob,
    job,
    policy,
    vcjob_status,
)
from tests.unit.engine.queueworld import LAG, Settings, queue, unit

GPUS = 16
CLUSTERS = ("a", "b")
QUEUES: tuple[Queue, ...] = (queue("x", reclaimable=True), queue("y"))
EVERY = 10


class Clusters:
    """An informer that a test drives."""

    tell: Callable[[EventType, Object | None, Object | None], None]

    def add_handler(self, handler: Callable[..., None]) -> None:
        self.tell = handler


@dataclass
class Pods:
    """A vcjob in a member; times in seconds. `gone` is when its pods vanish, if that is known."""

    name: str
    cluster: str
    gpus: int
    there: float
    reported: float
    gone: float | None = None
    completed: bool = False
    deleted: bool = False

    def exist(self, now: float) -> bool:
        return self.there <= now and (self.gone is None or now < self.gone)

    def live(self, now: float) -> bool:
        """Return whether the vcjob needs its room, now or in a moment."""
        return not self.deleted and not (
            self.completed and self.gone is not None and now >= self.gone
        )


@dataclass
class Fleet:
    """The world; `sees`: the controller reads nodes and pods of the members.

    `changing`: other workloads come and go too, where there is room.
    """

    seed: int
    sees: bool = False
    others: dict[str, int] = field(default_factory=dict)
    changing: bool = False
    now: int = 0
    jobs: dict[str, Pods] = field(default_factory=dict)
    past: list[Pods] = field(default_factory=list)
    units: dict[str, QueuedHyperJob] = field(default_factory=dict)
    needless: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    evicted: int = 0
    number: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.objects: dict[str, dict[str, Object]] = {"jobs": {}, "policies": {}, "bindings": {}}
        self.raw: dict[str, Object] = {}
        self.informer = Clusters()
        self.coming: list[tuple[float, str, int]] = []
        self.shown: dict[str, int] = {}
        self.views: dict[str, MemberView] = {}
        self.offset = {name: self.rng.randrange(EVERY) for name in CLUSTERS}
        self.informer.tell = lambda *_: None
        for name in CLUSTERS:
            self.others.setdefault(name, 0)
            self.show(name, self.others[name])
        self.lead()

    def lead(self) -> None:
        """Let a new leader take over: it knows the objects and summaries, and no past."""
        owner = hyperjob()
        self.reservations = Reservations(
            hyperjob=lambda _key: owner,
            job=self.objects["jobs"].get,
            policy=self.objects["policies"].get,
            binding=self.objects["bindings"].get,
            lag=LAG,
            pods_of=self.pods_of,
            views=lambda *_: self.views if self.sees else {},
        )
        self.informer.add_handler(self.reservations.follow)
        for raw in self.raw.values():
            self.informer.tell(EventType.ADDED, None, raw)
        self.state = new_state(Settings(lag=LAG))
        set_queues(self.state, QUEUES)
        for path in self.objects["jobs"]:
            self.reservations.update(path, now=self.time())
        for key, known in self.units.items():
            update(self.state, key, known, now=self.time())

    def time(self) -> datetime:
        return NOW + timedelta(seconds=self.now)

    def all(self) -> list[Pods]:
        return [*self.jobs.values(), *self.past]

    def show(self, name: str, used: int) -> None:
        self.shown[name] = used
        raw: Object = {
            "metadata": {"name": name},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "apiEnablements": VCJOB_APIS,
                "resourceSummary": {
                    "allocatable": {GPU: str(GPUS), "pods": "110"},
                    "allocated": {GPU: str(used), "pods": str(used)},
                },
            },
        }
        before, self.raw[name] = self.raw.get(name), raw
        self.informer.tell(EventType.MODIFIED, before, raw)

    def pods_of(self, cluster: str, key: str) -> int | None:
        if not self.sees or cluster not in self.views:
            return None
        return self.views[cluster].jobs.get(key, 0)

    # what happens

    def submit(self, gpus: int, queue_: str, priority: int = 0) -> None:
        name = f"j{self.number}"
        self.number += 1
        made = unit(name, gpus, queue=queue_, priority=priority, age=self.number)
        self.units[made.key] = made
        update(self.state, made.key, made, now=self.time())

    def tick(self) -> None:
        """Let a second pass: members, reports, summaries, then one round."""
        self.now += 1
        now = self.now
        for pods in list(self.jobs.values()):
            if not pods.completed and pods.there + 3 <= now and self.rng.random() < 0.03:
                pods.completed, pods.gone = True, now
                pods.reported = now + self.rng.choice((0, 1, 2))
            if pods.completed and pods.reported <= now:
                self.report(pods, "Completed")
                self.finish(pods)
            elif not pods.completed and pods.reported == now:
                self.report(pods, "Running")
        for name in CLUSTERS:
            if self.changing and self.rng.random() < 0.1:
                self.others[name] = self.rng.randint(0, min(6, max(0, GPUS - self.own(name))))
            if now % EVERY == self.offset[name]:
                self.coming.append((now + self.rng.choice((0, 1, 2, 4)), name, self.used(name)))
            self.look(name)
        for each in [each for each in self.coming if each[0] <= now]:
            self.coming.remove(each)
            _, name, used = each
            if used != self.shown[name]:
                self.show(name, used)
                self.reservations.summarised(name, now=self.time())
        self.past = [each for each in self.past if each.gone is None or now < each.gone]
        self.reservations.expire(now=self.time())
        self.decide()

    def own(self, name: str) -> int:
        return sum(each.gpus for each in self.all() if each.cluster == name)

    def used(self, name: str) -> int:
        own = sum(each.gpus for each in self.all() if each.cluster == name and each.exist(self.now))
        return self.others[name] + own

    def look(self, name: str) -> None:
        """Let the reader of members see the nodes as they are."""
        if not self.sees:
            return
        pods = [
            self.pod(each, i)
            for each in self.all()
            if each.cluster == name and each.exist(self.now)
            for i in range(each.gpus)
        ]
        pods += [self.foreign(name, i) for i in range(self.others[name])]
        node = node_fact(
            {
                "metadata": {"name": "n"},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "allocatable": {GPU: str(GPUS), "pods": "110"},
                },
            }
        )
        self.views = {
            **self.views,
            name: view_of({PODS: map(pod_fact, pods), NODES: [node]}, as_of=self.time()),
        }
        for key in list(self.jobs):
            self.reservations.update(f"default/{key}", now=self.time())

    def pod(self, each: Pods, number: int) -> Object:
        metadata: Object = {
            "name": f"{each.name}-{number}-{each.there}",
            "namespace": "default",
            "labels": {"volcano.sh/job-name": each.name},
        }
        if each.deleted:
            metadata["deletionTimestamp"] = "2026-01-02T03:04:00Z"
        return self.with_gpu(metadata)

    def foreign(self, name: str, number: int) -> Object:
        return self.with_gpu({"name": f"other-{name}-{number}", "namespace": "elsewhere"})

    @staticmethod
    def with_gpu(metadata: Object) -> Object:
        limits = {"limits": {GPU: "1"}}
        spec = {"nodeName": "n", "containers": [{"name": "c", "resources": limits}]}
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}

    # what the controller does

    def report(self, pods: Pods, phase: str) -> None:
        key = f"default/{pods.name}"
        counts = {"running": pods.gpus} if phase == "Running" else {"succeeded": pods.gpus}
        since = f"{NOW + timedelta(seconds=int(pods.there)):%Y-%m-%dT%H:%M:%SZ}"
        status = vcjob_status(phase, counts, since=since)
        self.objects["bindings"][key] = binding(pods.name, cluster=pods.cluster, status=status)
        self.reservations.update(key, now=self.time())

    def clusters(self) -> tuple[Cluster, ...]:
        return self.reservations.clusters(now=self.time())

    def decide(self) -> None:
        decided = schedule(self.state, self.clusters(), now=self.time())
        for key in decided.keys:
            if evicted_for(self.state, key):
                self.stop(key)
            else:
                self.create(key)

    def create(self, key: str) -> None:
        known = self.units[key]
        (name,) = admitted(self.state, key)
        cluster = self.state.entries[key].reserved_clusters[name]
        gpus = known.parts[0].request.demand[GPU] // 10**9
        there = self.now + self.rng.choice((1, 2, 3))
        self.jobs[name] = Pods(name, cluster, gpus, there, there + self.rng.choice((0, 1, 2)))
        path = f"default/{name}"
        self.objects["jobs"][path] = made = job(name, gpus=gpus)
        made["metadata"]["creationTimestamp"] = f"{self.time():%Y-%m-%dT%H:%M:%SZ}"
        self.objects["policies"][path] = policy(name, cluster=cluster)
        self.objects["bindings"][path] = binding(name, cluster=cluster)
        self.reservations.update(path, now=self.time())
        self.put(key, held=frozenset({name}), made=frozenset({name}), clusters={name: cluster})

    def put(self, key: str, **fields: object) -> None:
        self.units[key] = replace(self.units[key], **fields)  # type: ignore[arg-type]
        update(self.state, key, self.units[key], now=self.time())

    def stop(self, key: str) -> None:
        """Make way: delete the vcjob, whose pods end some seconds later."""
        eviction = self.state.eviction
        self.evicted += 1
        head = self.units[eviction.head].parts[0].request.demand[GPU] // 10**9
        if self.room(known=False) >= head:
            (self.needless if self.room(known=True) >= head else self.unseen).append(key)
        (name,) = self.units[key].made
        if self.sees:  # the controller creates no sub-job while pods of its name are left
            gpus, part = self.jobs[name].gpus, self.units[key].parts[0]
            self.remove(self.jobs[name])
            self.submit(gpus, part.queue)
            return
        self.delete(self.jobs[name])
        self.put(key, held=frozenset(), made=frozenset(), clusters={})

    def room(self, *, known: bool) -> int:
        """Return the most room of a cluster after all ends; `known`: those that reports say."""
        found = {name: GPUS - self.others[name] for name in CLUSTERS}
        for each in self.jobs.values():
            if known or each.live(self.now):
                found[each.cluster] -= each.gpus
        return max(found.values())

    def delete(self, pods: Pods) -> None:
        path = f"default/{pods.name}"
        del self.jobs[pods.name]
        for store in self.objects.values():
            store.pop(path, None)
        pods.deleted = True
        if pods.gone is None:
            pods.gone = max(pods.there, self.now + self.rng.choice((1, 2, 4)))
            pods.gone = pods.gone if pods.there <= self.now else pods.there
        self.past.append(pods)
        self.reservations.update(path, now=self.time())

    def finish(self, pods: Pods) -> None:
        """Let a completed HyperJob go."""
        path = f"default/{pods.name}"
        del self.jobs[pods.name]
        key = f"ns/{pods.name.rpartition('-')[0]}"
        del self.units[key]
        update(self.state, key, None, now=self.time())
        for store in self.objects.values():
            store.pop(path, None)
        self.reservations.update(path, now=self.time())

    def remove(self, pods: Pods) -> None:
        """Let a user delete a HyperJob."""
        self.delete(pods)
        key = f"ns/{pods.name.rpartition('-')[0]}"
        del self.units[key]
        update(self.state, key, None, now=self.time())

    # what is true

    def truth(self, name: str) -> int:
        """Return the room beside all pods, and beside those that vcjobs will have in a moment."""
        own = sum(
            each.gpus
            for each in self.all()
            if each.cluster == name
            and (each.exist(self.now) or (each.there > self.now and not each.deleted))
        )
        return GPUS - self.others[name] - own

    def ended_unseen(self, name: str) -> int:
        """Return the pods of vcjobs that the controller has deleted."""
        return sum(each.gpus for each in self.past if each.cluster == name and each.exist(self.now))
