"""The parts of every simulation, under every policy: members, arrivals, and the record of use."""

import abc
import asyncio
from collections.abc import Iterator
from functools import partial

from hyperjob.simulate.history import History, Life, Steps
from hyperjob.simulate.member import Member, Pods
from hyperjob.simulate.nodes import Node, Nodes
from hyperjob.simulate.runs import Runs
from hyperjob.simulate.workload import Scenario, Submission


class Scene(abc.ABC):
    """The members and jobs of one simulation; `ended` is set once every job has ended."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.ended = asyncio.Event()
        self.members = {
            site.name: Member(
                site.name,
                Nodes(site.nodes),
                placed=partial(self._placed, site.name),
                reorder=self._reorder,
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
        """Schedule the arrivals of the jobs."""
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
        self._touch(cluster)

    @abc.abstractmethod
    def _reorder(self, waiting: list[Pods]) -> None:
        """Change the order in which a member tries waiting pods."""

    @abc.abstractmethod
    def fail(self, key: str, *, cause: str) -> None:
        """Fail a pod of the vcjob `key` permanently."""

    @abc.abstractmethod
    def set_cluster(self, cluster: str, *, down: bool) -> None:
        """Disconnect a cluster and end its pods, or bring it back, empty."""

    @abc.abstractmethod
    def _arrived(self, job: Submission) -> None:
        """Create an arrived job."""

    @abc.abstractmethod
    def _running(self, key: str, uid: str, cluster: str) -> None:
        """Start the training of pods after their start-up time."""

    @abc.abstractmethod
    def _finished(self, owner: str) -> None:
        """Complete a job that has done its work."""

    @abc.abstractmethod
    def _touch(self, cluster: str) -> None:
        """React to a change of the pods in a cluster."""

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
        self.history.lives[job.key] = Life(job)
        self._asked(job, job.gpus)
        self._arrived(job)

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
        self._touch(cluster)
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
        self._touch(cluster)
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
