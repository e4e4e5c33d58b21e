"""Hundreds of concurrent HyperJobs: their requests, and the use of members and queues."""

import asyncio
import contextlib
import random
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import Scenario, phase_of
from e2e.support.world import World
from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import NANO, Quantity
from hyperjob_core.kube.client import EventType, Kube
from hyperjob_core.kube.informer import Handler, Informer
from hyperjob_core.kube.resources import HYPERJOBS, PODS, RESOURCE_BINDINGS, Resource

_FORMS = ((1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (3, 2), (4, 1), (4, 2))  # sub-jobs, their pods
ENDED = frozenset({"Completed", "Failed"})
_WAITING = frozenset({"", "Pending", "Queued"})
_RESIZED = frozenset({"Grew", "MadeWay", "LargestThatIsLeft"})


def crowd(
    world: World, count: int, moments: random.Random, *, queue: str, seconds: tuple[float, float]
) -> Iterator[Object]:
    """Yield HyperJobs of mixed sizes whose sub-jobs must all start together."""
    sizes = (world.per_pod, world.per_pod, max(1, world.per_pod // 2))
    for number in range(count):
        replicas, pods = moments.choice(_FORMS)
        made = group(
            world,
            "g",
            replicas=replicas,
            pods=pods,
            accelerators=moments.choice(sizes),
            seconds=round(moments.uniform(*seconds), 1),
            queue=queue,
        )
        yield hyperjob(f"crowd-{number:04}", made)


def sizes(
    world: World, count: int, moments: random.Random, *, queue: str, seconds: tuple[float, float]
) -> Iterator[Object]:
    """Yield HyperJobs whose size or kind is open, in turns; of a `mixed` one each has its own."""
    checkpoint = {"directory": "/checkpoints", "gracePeriodSeconds": 1, "intervalSeconds": 1}
    lost = {"maxRestarts": 100, "rules": [{"action": "RestartHyperJob", "onClusterLost": True}]}
    kinds = ("world", "quorum", "mixed", "either", "split", "bounded")
    for number in range(count):
        kind, least = kinds[number % len(kinds)], moments.choice((1, 2))
        made = group(
            world,
            "g",
            replicas=2,
            pods=moments.choice((1, 2)),
            accelerators=world.per_pod,
            seconds=round(moments.uniform(*seconds), 1),
            queue=queue,
        )
        if kind == "either":
            made["alternatives"] = [{"name": "4", "replicas": 4}, {"name": "1", "replicas": 1}]
        elif kind in {"mixed", "bounded"}:
            where = [{"name": each, "clusterNames": [each]} for each in world.pair]
            made |= {"clusterPolicy": "Required", **where[0], "name": "g", "alternatives": where}
            made |= {"minReplicas": 1, "maxReplicas": 4}
        elif kind == "split":
            amounts = {"minAccelerators": least, "accelerators": 2, "maxAccelerators": 6}
            split = {name: each * world.per_pod for name, each in amounts.items()}
            made |= {"replicas": 1, "splitPolicy": {"mode": "auto", **split}}
            made["splitPolicy"]["acceleratorType"] = world.accelerator
        else:
            made |= {"minReplicas": least, "maxReplicas": 4}
        more = {"either": {"failurePolicy": lost}, "quorum": {"quorum": least}}
        more["mixed"] = {"quorum": 1}
        yield hyperjob(f"{kind}-{number:02}", made, **more.get(kind, {"checkpoint": checkpoint}))


def least(made: Object) -> int:
    """Return the fewest sub-jobs with which a HyperJob of open size trains."""
    return sum(each.get("minReplicas", 1) for each in made["spec"]["replicatedJobs"])


def asks(world: World, hyperjobs: Sequence[Object]) -> int:
    """Return the accelerators of all pods of HyperJobs."""
    return sum(
        each["replicas"] * task["replicas"] * _accelerators(world, task["template"])
        for made in hyperjobs
        for each in made["spec"]["replicatedJobs"]
        for task in each["templateSpec"]["tasks"]
    )


@dataclass(slots=True)
class Crowd:
    """The observed HyperJobs, bindings and pods of members, with times in seconds.

    `use` integrates the accelerators of running pods over the time in which HyperJobs waited.
    `in_part` is the longest time in which a HyperJob had some, but not all, of its bindings
    released. `statuses` are the last ones. `broken` are those with another number of sub-jobs, or
    of accelerators of a split, than the size in them, and those that say Running with fewer
    sub-jobs than `least`. `changes` are the sizes that each took while it ran.
    """

    world: World
    gangs: dict[str, int]
    least: dict[str, int] = field(default_factory=dict)
    phases: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, Object] = field(default_factory=dict)
    broken: list[Object] = field(default_factory=list)
    changes: dict[str, list[Object]] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    use: float = 0.0
    waited: float = 0.0
    in_part: float = 0.0
    _running: dict[str, int] = field(default_factory=dict)
    _released: dict[str, set[str]] = field(default_factory=dict)
    _partial: dict[str, float] = field(default_factory=dict)
    _at: float = field(default_factory=time.monotonic)

    @property
    def room(self) -> int:
        """Return the accelerators of all members."""
        return sum(self.world.sizes.values()) * self.world.per_pod

    @property
    def ended(self) -> int:
        """Return the number of HyperJobs that have ended."""
        return sum(phase in ENDED for phase in self.phases.values())

    @property
    def mean_use(self) -> float:
        """Return the part of all accelerators that pods used while HyperJobs waited."""
        return self.use / (self.waited * self.room) if self.waited else 0.0

    def saw_hyperjob(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Record the phase of a HyperJob."""
        obj = new or old or {}
        self._pass()
        name, status = obj["metadata"]["name"], obj.get("status") or {}
        self.statuses[name] = status
        self._size(name, phase_of(obj), status)
        self.changed.set()
        if kind is not EventType.DELETED and self.phases.get(name) != phase_of(obj):
            self.phases[name] = phase_of(obj)
            self._weigh(name)

    def _size(self, name: str, phase: str, status: Object) -> None:
        """Record a change of the size, and a size that the sub-jobs do not have."""
        (size,) = status.get("alternatives") or [None]
        if size is None:
            return
        known = self.changes.setdefault(name, [])
        if size["reason"] in _RESIZED and size not in known:
            known.append(size)
        jobs = status.get("jobs") or []
        is_split = name.startswith("split")
        has = sum(job.get("accelerators", 0) for job in jobs) if is_split else len(jobs)
        numbers = [int(found) for found in re.findall(r"(?:^| \+ )(\d+)", size["name"])]
        ready = int(status.get("jobsReady", "0/0").partition("/")[0])
        if phase == "Running" and (has != sum(numbers) or ready < self.least.get(name, 1)):
            self.broken.append({"name": name, **status})

    def saw_binding(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Record whether Volcano Global, or the controller in its place, has released a binding."""
        obj = new or old or {}
        name = obj["metadata"]["name"].partition("-g-")[0]
        suspension = obj["spec"].get("suspension") or {}
        released = self._released.setdefault(name, set())
        if kind is EventType.DELETED or suspension.get("scheduling"):
            released.discard(obj["metadata"]["name"])
        else:
            released.add(obj["metadata"]["name"])
        self._weigh(name)

    def saw_pod(self, member: str, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Record the running pods of a member."""
        obj = new or old or {}
        self._pass()
        name = f"{member}/{obj['metadata']['name']}"
        if kind is not EventType.DELETED and (obj.get("status") or {}).get("phase") == "Running":
            self._running[name] = _accelerators(self.world, obj)
        else:
            self._running.pop(name, None)

    def _pass(self) -> None:
        """Add the use since the last event."""
        before, self._at = self._at, time.monotonic()
        waiting = sum(phase in _WAITING for phase in self.phases.values())
        if waiting and self._running:
            self.waited += self._at - before
            self.use += (self._at - before) * sum(self._running.values())

    def _weigh(self, name: str) -> None:
        """Record whether, and for how long, a HyperJob has only a part of its gang released."""
        released = len(self._released.get(name, ()))
        gang = self.gangs.get(name, 0)
        if 0 < released < gang and self.phases.get(name) not in ENDED:
            self._partial.setdefault(name, time.monotonic())
        elif name in self._partial:
            self.in_part = max(self.in_part, time.monotonic() - self._partial.pop(name))


@contextlib.asynccontextmanager
async def watched(scenario: Scenario, hyperjobs: Sequence[Object]) -> AsyncIterator[Crowd]:
    """Watch a crowd in the control plane and in the members for the length of the block."""
    gangs = {
        made["metadata"]["name"]: sum(each["replicas"] for each in made["spec"]["replicatedJobs"])
        for made in hyperjobs
    }
    bounds = {made["metadata"]["name"]: least(made) for made in hyperjobs}
    seen = Crowd(scenario.world, gangs, bounds)
    wanted: list[tuple[Kube, Resource, Handler]] = [
        (scenario.kube, HYPERJOBS, seen.saw_hyperjob),
        (scenario.kube, RESOURCE_BINDINGS, seen.saw_binding),
    ]
    wanted += [(kube, PODS, partial(seen.saw_pod, name)) for name, kube in scenario.members.items()]
    informers = []
    for kube, resource, handler in wanted:
        informer = Informer(kube, resource, namespace=scenario.namespace)
        informer.add_handler(handler)
        informers.append(informer)
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    try:
        async with asyncio.timeout(60):
            await asyncio.gather(*(informer.synced.wait() for informer in informers))
        yield seen
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _accelerators(world: World, pod: Object) -> int:
    containers = pod["spec"]["containers"]
    limits = [(each.get("resources") or {}).get("limits") or {} for each in containers]
    return sum(Quantity.parse(each.get(world.accelerator) or 0).nano for each in limits) // NANO
