"""The actions of a scenario: kubectl as a user runs it, and watches of Karmada and members."""

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

import yaml

from e2e.support.manifests import group, hyperjob
from e2e.support.world import World
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LABEL_HYPERJOB, binding_name
from hyperjob_core.kube.client import EventType, Kube
from hyperjob_core.kube.errors import NotFound, Unavailable
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.reflector import states
from hyperjob_core.kube.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    HYPERJOBS,
    PODS,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
    Resource,
    key_of,
)
from tests.support.stack import kubectl

_PASSING = "passing-"
"""How the names of the HyperJobs begin that only show that others before them are handled."""
_ENDED = frozenset({"Completed", "Failed", "Aborted", "Terminated"})


@dataclass(frozen=True, slots=True)
class Sighting:
    """A state of a vcjob in a member; `phase` is empty at first, and `Gone` after deletion."""

    at: float
    member: str
    job: str
    phase: str

    @property
    def is_alive(self) -> bool:
        """Return whether the vcjob exists and has not ended."""
        return self.phase not in _ENDED and self.phase != "Gone"


@dataclass(slots=True)
class Sightings:
    """All states of vcjobs in members, in the order of events."""

    seen: list[Sighting] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, member: str, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Record an event."""
        obj = new or old or {}
        state = ((obj.get("status") or {}).get("state") or {}).get("phase") or ""
        phase = "Gone" if kind is EventType.DELETED else state
        self.seen.append(Sighting(time.monotonic(), member, obj["metadata"]["name"], phase))
        self.changed.set()

    @property
    def jobs(self) -> set[str]:
        """Return the names of all vcjobs that a member has had."""
        return {each.job for each in self.seen}

    def together(self) -> list[frozenset[str]]:
        """Return the living vcjobs of all members after each event."""
        alive: dict[tuple[str, str], None] = {}
        states: list[frozenset[str]] = []
        for each in self.seen:
            if each.is_alive:
                alive[each.member, each.job] = None
            else:
                alive.pop((each.member, each.job), None)
            states.append(frozenset(job for _, job in alive))
        return states


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario in its own namespace."""

    world: World
    namespace: str
    kube: Kube
    members: Mapping[str, Kube]

    async def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True, timeout: float = 60
    ) -> str:
        """Run kubectl in the namespace; return its output, with standard error if it may fail."""
        done = await asyncio.to_thread(
            kubectl,
            self.world.kubeconfig,
            f"--namespace={self.namespace}",
            *arguments,
            stdin=stdin,
            check=check,
            timeout=timeout,
        )
        return done.stdout if check else done.stdout + done.stderr

    async def hyperjob(self, *arguments: str) -> str:
        """Run `hyperjob` in the namespace as a user does; return its output."""
        end = arguments.index("--") if "--" in arguments else len(arguments)
        flags = ["--namespace", self.namespace, "--kubeconfig", str(self.world.kubeconfig)]
        words = [*arguments[:end], *flags, *arguments[end:]]
        command = [sys.executable, "-m", "hyperjob", *words]
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, timeout=120
        )
        return str(done.stdout)

    async def apply(self, *objects: Object) -> None:
        """Apply objects as a user does."""
        await self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    async def refused(self, obj: Object) -> str:
        """Apply an object that must be refused; return kubectl's error."""
        said = await self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(obj), check=False)
        with contextlib.suppress(NotFound):
            await self.kube.get(HYPERJOBS, obj["metadata"]["name"], namespace=self.namespace)
            raise AssertionError(f"{obj['metadata']['name']} was accepted: {said}")
        return said

    async def until(
        self,
        resource: Resource,
        name: str,
        holds: Callable[[Object | None], object],
        *,
        what: str,
        kube: Kube | None = None,
        seconds: float | None = None,
    ) -> Object:
        """Wait until `holds` is true of an object (None: absent); return the object."""
        last: list[Object | None] = [None]
        limit = self.world.settings.timeout if seconds is None else seconds
        try:
            async with asyncio.timeout(limit):
                while True:  # an outage may last longer than the patience of a command
                    stream = states(kube or self.kube, resource, name, namespace=self.namespace)
                    with contextlib.suppress(Unavailable):
                        async with contextlib.aclosing(stream) as found_states:
                            async for last[0] in found_states:
                                if holds(last[0]):
                                    return last[0] or {}
        except TimeoutError:
            pass
        shown = yaml.safe_dump((last[0] or {}).get("status")) if last[0] else "there is none"
        raise AssertionError(f"{name} is not {what} after {limit:g} s:\n{shown}{self.logs()}")

    async def until_phase(self, name: str, *phases: str, seconds: float | None = None) -> Object:
        """Wait until a HyperJob is in one of the phases."""
        return await self.until(
            HYPERJOBS,
            name,
            lambda found: found is not None and phase_of(found) in phases,
            what=" or ".join(phases),
            seconds=seconds,
        )

    async def until_gone(self, resource: Resource, name: str) -> None:
        """Wait until an object is gone from the control plane."""
        await self.until(resource, name, lambda found: found is None, what="gone")

    @contextlib.asynccontextmanager
    async def queue(
        self, suffix: str = "", *, annotations: Mapping[str, str] | None = None, **spec: object
    ) -> AsyncIterator[str]:
        """Yield a new Queue named after the namespace; delete HyperJobs, then the Queue."""
        name = f"{self.namespace}{suffix}"
        queue: Object = {
            **QUEUES.head,
            "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {"weight": 1, **spec},
        }
        await self.kube.create(QUEUES, queue)
        try:
            yield name
        finally:
            await self.clear()
            await self.until_members_have(0)
            await self.kube.delete(QUEUES, name)

    @contextlib.asynccontextmanager
    async def priority(
        self, value: int, *, policy: str = "PreemptLowerPriority"
    ) -> AsyncIterator[str]:
        """Yield a new PriorityClass, also in members, which refuse pods of unknown classes."""
        name = f"{self.namespace}-{value}"
        made: Object = {
            **PRIORITY_CLASSES.head,
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": policy,
        }
        await self.kube.create(PRIORITY_CLASSES, made)
        try:
            async with self._copied(made):
                yield name
        finally:
            await self.kube.delete(PRIORITY_CLASSES, name)

    @contextlib.asynccontextmanager
    async def _copied(self, made: Object) -> AsyncIterator[None]:
        """Let Karmada copy a cluster-scoped object to each member, as docs/tasks/queues.md does."""
        name = made["metadata"]["name"]
        policy: Object = {
            **CLUSTER_PROPAGATION_POLICIES.head,
            "metadata": {"name": name},
            "spec": {
                "resourceSelectors": [
                    {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": name}
                ],
                "placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
            },
        }
        await self.kube.create(CLUSTER_PROPAGATION_POLICIES, policy)
        try:
            for member in self.members.values():
                await self.until(PRIORITY_CLASSES, name, bool, what="in each member", kube=member)
            yield
        finally:
            await self.kube.delete(CLUSTER_PROPAGATION_POLICIES, name)

    async def clear(self) -> None:
        """Delete all HyperJobs, and wait until they are gone."""
        # kubectl deletes objects one after the other, which takes minutes for hundreds of
        # HyperJobs.
        every = ("delete", HYPERJOBS.group_resource, "--all", "--wait=false")
        await self.kubectl(*every, timeout=600)
        deadline = time.monotonic() + self.world.settings.timeout
        while left := (await self.kube.list(HYPERJOBS, namespace=self.namespace)).items:
            assert time.monotonic() < deadline, f"{len(left)} HyperJobs are not gone{self.logs()}"
            await asyncio.sleep(0.2)

    async def children(self, name: str, resource: Resource = VCJOBS) -> dict[str, Object]:
        """Return the objects of a HyperJob in the control plane, by name."""
        found = await self.kube.list(
            resource, namespace=self.namespace, label_selector=f"{LABEL_HYPERJOB}={name}"
        )
        return {item["metadata"]["name"]: item for item in found.items}

    async def versions(self) -> dict[str, str]:
        """Return the resourceVersions of the objects of all HyperJobs, except temporary ones."""
        kinds = (HYPERJOBS, VCJOBS, PROPAGATION_POLICIES, RESOURCE_BINDINGS)
        lists = [await self.kube.list(kind, namespace=self.namespace) for kind in kinds]
        return {
            f"{item['kind']} {key_of(item)}": item["metadata"]["resourceVersion"]
            for found in lists
            for item in found.items
            if not item["metadata"]["name"].startswith(_PASSING)
        }

    async def settled(self) -> dict[str, str]:
        """Wait until a HyperJob completes without a write to others; return the versions."""
        before = await self.versions()
        deadline = time.monotonic() + self.world.settings.timeout
        while True:
            await self.passed_through()
            now = await self.versions()
            if now == before:
                return now
            assert time.monotonic() < deadline, "no end of writes"
            before = now

    async def passed_through(self) -> None:
        """Run a small HyperJob from its creation to its end and delete it.

        Afterwards webhook, controller, Karmada and a member have handled all changes before this
        call.
        """
        name = f"{_PASSING}{uuid4().hex[:8]}"
        await self.apply(hyperjob(name, group(self.world, "one", seconds=0.1)))
        await self.until_phase(name, "Completed")
        await self.kubectl("delete", "hyperjob", name, "--timeout=60s")
        await self.until_gone(RESOURCE_BINDINGS, binding_name(f"{name}-one-0"))

    async def remains(self) -> list[str]:
        """Return the names of the vcjobs and pods of members in the namespace."""
        return [
            f"{member}: {item['kind']} {item['metadata']['name']}"
            for member, kube in self.members.items()
            for kind in (VCJOBS, PODS)
            for item in (await kube.list(kind, namespace=self.namespace)).items
        ]

    async def until_members_have(self, count: int) -> None:
        """Wait until the members have `count` vcjobs and pods in the namespace."""
        deadline = time.monotonic() + self.world.settings.timeout
        while len(left := await self.remains()) != count:
            assert time.monotonic() < deadline, f"not {count} but {len(left)}: {left}"
            await asyncio.sleep(0.2)

    async def until_rest(self, jobs: set[tuple[str, str]]) -> None:
        """Wait until the members have these vcjobs (member and name) alone, and no pod runs."""
        deadline = time.monotonic() + self.world.settings.timeout
        while True:
            found, busy = set(), []
            for member, kube in self.members.items():
                listed = (await kube.list(VCJOBS, namespace=self.namespace)).items
                found |= {(member, item["metadata"]["name"]) for item in listed}
                pods = (await kube.list(PODS, namespace=self.namespace)).items
                busy += [
                    each["metadata"]["name"]
                    for each in pods
                    if (each.get("status") or {}).get("phase") not in {"Succeeded", "Failed"}
                ]
            if found == jobs and not busy:
                break
            assert time.monotonic() < deadline, (found ^ jobs, busy)
            await asyncio.sleep(0.2)
        for kind, suffix in ((VCJOBS, ""), (PROPAGATION_POLICIES, ""), (RESOURCE_BINDINGS, "-job")):
            listed = (await self.kube.list(kind, namespace=self.namespace)).items
            assert {item["metadata"]["name"] for item in listed} == {
                f"{name}{suffix}" for _, name in jobs
            }

    async def until_free(self) -> None:
        """Wait until the Clusters report the free resources of the beginning."""
        deadline = time.monotonic() + self.world.settings.timeout
        while not await asyncio.to_thread(self.world.is_free):
            assert time.monotonic() < deadline, "the clusters stay taken"
            await asyncio.sleep(0.5)

    @contextlib.asynccontextmanager
    async def sightings(self) -> AsyncIterator[Sightings]:
        """Watch the vcjobs of all members for the length of the block."""
        sightings = Sightings()
        informers = []
        for member, kube in self.members.items():
            informer = Informer(kube, VCJOBS, namespace=self.namespace)
            informer.add_handler(partial(sightings.note, member))
            informers.append(informer)
        tasks = [asyncio.create_task(informer.run()) for informer in informers]
        try:
            async with asyncio.timeout(30):
                await asyncio.gather(*(informer.synced.wait() for informer in informers))
            yield sightings
        finally:
            for running in tasks:
                running.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def logs(self, *, lines: int = 12) -> str:
        """Return the last log lines of webhook and controller, if the tests run them."""
        stack = self.world.stack
        services = (stack.controller, stack.webhook) if stack is not None else ()
        return "".join(
            f"\n-- {service.name}:\n" + "\n".join(service.text().splitlines()[-lines:])
            for service in services
        )


@contextlib.asynccontextmanager
async def open_scenario(world: World) -> AsyncIterator[Scenario]:
    """Yield a scenario in a new namespace; at the end no member has objects of it."""
    namespace = f"e2e-{uuid4().hex[:8]}"
    async with contextlib.AsyncExitStack() as stack:
        kube = await stack.enter_async_context(Kube.connect(kubeconfig=world.kubeconfig))
        members = {
            name: await stack.enter_async_context(Kube.connect(kubeconfig=path))
            for name, path in world.members.items()
        }
        made = Scenario(world, namespace, kube, members)
        kubectl(world.kubeconfig, "create", "namespace", namespace)
        try:
            yield made
        finally:
            await made.clear()
            # Deleting the namespace also deletes vcjobs without a HyperJob.
            kubectl(world.kubeconfig, "delete", "namespace", namespace, "--wait=false")
            await made.until_members_have(0)


def phase_of(hyperjob: Object) -> str:
    """Return the phase of a HyperJob, empty when it has no status."""
    return str(((hyperjob.get("status") or {}).get("state") or {}).get("phase") or "")


def condition_of(hyperjob: Object, kind: str) -> Object:
    """Return a condition of a HyperJob by type, empty if absent."""
    conditions = (hyperjob.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})


def clusters_of(hyperjob: Object) -> dict[str, str]:
    """Return the cluster of every sub-job."""
    jobs = (hyperjob.get("status") or {}).get("jobs") or ()
    return {job["name"]: job.get("cluster", "") for job in jobs}
