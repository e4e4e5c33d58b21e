"""The simulated world around HyperJob's real controller, which sees only the control plane."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Final

from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.meta import Object
from hyperjob_core.api.overlay import BOUNDS
from hyperjob_core.api.phases import JobPhase, Phase
from hyperjob_core.api.wire import at, integer, objects, string, timestamp
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PRIORITY_CLASSES,
    QUEUES,
    VCJOBS,
    key_of,
)
from hyperjob_core.virtualtime import START, now
from hyperjob_sandbox.simulate.history import History, Life, StartForecast, Steps
from hyperjob_sandbox.simulate.karmada import Karmada
from hyperjob_sandbox.simulate.member import Member, Pods
from hyperjob_sandbox.simulate.nodes import Node, Nodes
from hyperjob_sandbox.simulate.runs import Runs, SubJob
from hyperjob_sandbox.simulate.workload import DURATION, Scenario, Submission

CLEAN_UP: Final = 60.0
"""Seconds from the end of a HyperJob until it is deleted."""


class Simulation:
    """The members, the jobs and the control plane of a simulation, in which the controller decides.

    `ended` is set once every job has ended.
    """

    def __init__(self, scenario: Scenario, plane: MemoryServer) -> None:
        self.scenario = scenario
        self.ended = asyncio.Event()
        self.members = {
            site.name: Member(
                site.name,
                Nodes(site.nodes),
                placed=partial(self._placed, site.name),
            )
            for site in scenario.sites
        }
        sizes = {name: member.nodes.accelerators for name, member in self.members.items()}
        self.history = History(sizes, used={name: Steps() for name in sizes})
        self.runs = Runs(checkpoint=scenario.checkpoint, time=self.time, finished=self._finished)
        self.owners: dict[str, str] = {}  # the job of each vcjob, by their keys
        self._left = self._coming = len(scenario.jobs)  # jobs that have not ended, or not arrived
        # By cluster: free accelerators, and free accelerators on nodes in partial use.
        self._levels: dict[str, tuple[int, int]] = {}
        self.plane = plane
        self.karmada = Karmada(
            plane,
            self.members,
            now=now,
            status_period=scenario.status_period,
            sent=self._sent,
            gone=self._gone,
        )
        plane.listen(self._changed)

    @property
    def progress(self) -> tuple[int, int]:
        """Return the number of ended jobs and of all jobs."""
        total = len(self.scenario.jobs)
        return total - self._left, total

    @property
    def is_idle(self) -> bool:
        """Return whether all jobs have arrived and no job makes progress."""
        return self._coming == 0 and not self.runs.any_progress

    @staticmethod
    def time() -> float:
        """Return the virtual seconds since the start."""
        return asyncio.get_running_loop().time()

    def begin(self) -> None:
        """Create Clusters and Queues in the control plane, and schedule the arrivals."""
        for site in self.scenario.sites:
            self.plane.create(CLUSTERS, site.cluster)
        for queue in self.scenario.queues:
            self.plane.create(QUEUES, queue)
        for each in self.scenario.priority_classes:
            self.plane.create(PRIORITY_CLASSES, each)
        for name in self.members:
            self._level(name)
        self._next(iter(sorted(self.scenario.jobs, key=lambda job: (job.arrival, job.key))))
        if not self._left:
            self.ended.set()

    def set_node(self, cluster: str, node: Node, *, out: bool) -> None:
        """Fail a node with its pods, or bring it back."""
        node.out = out
        if out:
            for key in list(node.held):
                self.fail(key, cause="node")
        self.members[cluster].schedule()
        self._level(cluster)
        self.karmada.touch(cluster)

    def fail(self, key: str, *, cause: str) -> None:
        """End a vcjob as Failed."""
        cluster = self.karmada.where(key)
        if cluster:
            self._stop(key, cluster, JobPhase.FAILED, cause)

    def set_cluster(self, cluster: str, *, down: bool) -> None:
        """Disconnect a cluster and end its pods, or bring it back, empty."""
        member = self.members[cluster]
        if member.down == down:
            return
        member.down = down
        if down:
            for key in list(member.jobs):
                self._release(key, cluster)
                self._lost(key, "cluster")
        else:
            for key in self.karmada.sent_to(cluster):
                self.karmada.report(key, JobPhase.FAILED, pods=1, state="failed")
            member.schedule()
        self._level(cluster)
        self.karmada.touch(cluster)

    def _changed(self, kind: str, old: Object | None, new: Object | None) -> None:
        """Record what the status of a HyperJob has; delete an ended one a minute later."""
        if kind != HYPERJOBS.kind or new is None:
            return
        key = key_of(new)
        run = self.runs.get(key)
        if run is None:
            return
        own = sum(job.own for job in run.jobs.values())
        expected = len(objects(at(new, "status", "jobs"))) - own
        if expected != run.expected:
            run.expected = expected
            self._settle(key)
        if run.life.forecast is None:
            self._note_forecast(run.life, new)
        phase = string(at(new, "status", "state", "phase"))
        run.life.message = string(at(new, "status", "state", "message"))
        if phase in (Phase.COMPLETED, Phase.FAILED):
            self._over(run.life, phase)
            loop = asyncio.get_running_loop()
            loop.call_later(CLEAN_UP, self.plane.remove, HYPERJOBS, key)
            if not self._left:
                loop.call_later(2 * CLEAN_UP, self.ended.set)

    def _note_forecast(self, life: Life, hyperjob: Object) -> None:
        expected = timestamp(at(hyperjob, "status", "expectedStart", "time"))
        if expected is not None and life.started is None:
            life.forecast = StartForecast(self.time(), (expected - START).total_seconds())

    def _sent(self, key: str, _uid: str, cluster: str) -> None:
        """Count a dispatched vcjob as a sub-job of its HyperJob."""
        job = self.plane.get(VCJOBS, key)
        owner = _owner(job)
        run = self.runs.get(owner)
        self.owners[key] = owner
        if run is not None:
            own = at(job, "metadata", "annotations", DURATION) is not None
            run.jobs[key] = SubJob(cluster=cluster, own=own)

    def _running(self, key: str, uid: str, cluster: str) -> None:
        """Report that the pods of a vcjob run, and let their sub-job train."""
        pods = self.members[cluster].jobs.get(key)
        if pods is None or pods.uid != uid or not pods.spots:
            return
        self.karmada.report(key, JobPhase.RUNNING, pods=pods.number, state="running")
        owner = self.owners.get(key, "")
        run = self.runs.get(owner)
        if run is None or key not in run.jobs:
            return
        job = run.jobs[key]
        job.devices, job.speed, job.running = pods.devices, pods.speed, True
        run.broken.pop(key, None)
        if job.own:
            raw = string(at(self.plane.get(VCJOBS, key), "metadata", "annotations", DURATION))
            loop = asyncio.get_running_loop()
            loop.call_later(nanoseconds(raw) / 1e9, self._completed, key, uid, cluster)
        self._settle(owner)

    def _completed(self, key: str, uid: str, cluster: str) -> None:
        """Complete a sub-job with a duration of its own."""
        pods = self.members[cluster].jobs.get(key)
        if pods is not None and pods.uid == uid:
            self._stop(key, cluster, JobPhase.COMPLETED, "")

    def _finished(self, owner: str) -> None:
        """Complete the sub-jobs of a job that has done its work."""
        run = self.runs.get(owner)
        for key, job in list(run.jobs.items()) if run is not None else ():
            if not job.own:
                self._stop(key, job.cluster, JobPhase.COMPLETED, "")

    def _stop(self, key: str, cluster: str, phase: str, cause: str) -> None:
        """End a vcjob in a phase; `cause` is why it does not complete."""
        pods = self._release(key, cluster)
        if pods is not None:
            state = "succeeded" if phase == JobPhase.COMPLETED else "failed"
            self.karmada.report(key, phase, pods=pods.number, state=state)
        self._lost(key, cause)

    def _gone(self, key: str, cluster: str) -> None:
        """Remove a vcjob from its member after its deletion from the control plane.

        The controller has deleted it since another sub-job failed, or else for another HyperJob.
        """
        self._release(key, cluster)
        owner = self.owners.pop(key, "")
        run = self.runs.get(owner)
        if run is not None and key in run.jobs:
            run.jobs[key].running = False
            cause = next(iter(run.broken.values()), "preempted")
            self.runs.take_back(owner, cause)
            self._settle(owner, cause=cause)
            run.jobs.pop(key, None)

    def _lost(self, key: str, cause: str) -> None:
        """Stop the training of a sub-job whose pods ended; `cause` is empty if it completed."""
        owner = self.owners.get(key, "")
        run = self.runs.get(owner)
        if run is not None and key in run.jobs:
            run.jobs[key].running = False
            if cause:
                run.broken.setdefault(key, cause)
            self._settle(owner, cause=cause)

    def _next(self, jobs: Iterator[Submission]) -> None:
        """Create the due jobs, and schedule the next arrival."""
        for job in jobs:
            if job.arrival > self.time():
                asyncio.get_running_loop().call_at(job.arrival, self._submit_and_next, job, jobs)
                return
            self._submit(job)

    def _submit_and_next(self, job: Submission, jobs: Iterator[Submission]) -> None:
        self._submit(job)
        self._next(jobs)

    def _submit(self, job: Submission) -> None:
        self._coming -= 1
        life = self.history.lives[job.key] = Life(job)
        self._asked(job, job.gpus)
        spec = job.hyperjob["spec"]
        group = spec["replicatedJobs"][0]
        shapes = [group, *group.get("alternatives", ())]
        is_elastic = any(each.get(bound) is not None for each in shapes for bound in BOUNDS)
        whole = group.get("replicas", 1) if is_elastic else None
        minimum = integer(spec.get("minAvailable")) or integer(spec.get("quorum"))
        self.runs.begin(life, minimum=minimum, whole=whole)
        self.plane.create(HYPERJOBS, job.hyperjob)

    def _asked(self, job: Submission, change: int) -> None:
        """Record that a job begins or ceases to wait for its accelerators."""
        self.history.asked.setdefault(job.queue, Steps()).add(self.time(), change)

    def _settle(self, owner: str, *, cause: str = "") -> None:
        """Update the progress of a job; record its first start."""
        run = self.runs.get(owner)
        if run is None:
            return
        waited = run.life.started is None
        self.runs.update(owner, cause=cause)
        if waited and run.life.started is not None:
            self._asked(run.life.job, -run.life.job.gpus)

    def _over(self, life: Life, outcome: str) -> None:
        """Record the end of a job, once for each; after the last one the caller sets `ended`."""
        self.runs.end(life.job.key)
        life.ended, life.outcome = self.time(), outcome
        if life.started is None:
            self._asked(life.job, -life.job.gpus)
        self._left -= 1
        self.history.end = max(self.history.end, life.ended)

    def _placed(self, cluster: str, pods: Pods) -> None:
        """Record pods that got nodes; they train after their start-up time."""
        self._note_use(cluster, pods, 1)
        self._level(cluster)
        self.karmada.touch(cluster)
        asyncio.get_running_loop().call_later(
            self.scenario.startup, self._running, pods.key, pods.uid, cluster
        )

    def _release(self, key: str, cluster: str) -> Pods | None:
        """Remove pods from their nodes; return them, or None if absent."""
        member = self.members[cluster]
        known = member.jobs.get(key)
        if known is None:
            return None
        if known.spots:
            self._note_use(cluster, known, -1)
        member.drop(key)
        self._level(cluster)
        self.karmada.touch(cluster)
        return known

    def _level(self, cluster: str) -> None:
        """Record the free accelerators of a cluster, and those on nodes in partial use."""
        nodes, before = self.members[cluster].nodes, self._levels.get(cluster, (0, 0))
        down = self.members[cluster].down
        after = (0, 0) if down else (nodes.free(), nodes.splinters())
        self._levels[cluster] = after
        self.history.free.add(self.time(), after[0] - before[0])
        self.history.splinters.add(self.time(), after[1] - before[1])

    def _note_use(self, cluster: str, pods: Pods, sign: int) -> None:
        """Record the accelerators of pods that got nodes (1) or lost them (-1)."""
        change, time = sign * pods.devices, self.time()
        self.history.used[cluster].add(time, change)
        life = self.history.lives.get(self.owners.get(pods.key, ""))
        if life is not None:
            self.history.queues.setdefault(life.job.queue, Steps()).add(time, change)


def _owner(job: Object | None) -> str:
    """Return the key of the HyperJob of a vcjob; empty without an owner."""
    for reference in objects(at(job, "metadata", "ownerReferences")):
        return f"{string(at(job, 'metadata', 'namespace'))}/{string(reference.get('name'))}"
    return ""
