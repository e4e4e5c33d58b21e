"""Simulate Karmada alone: pods divided over clusters by static weights, without queues and gangs.

Each pod takes a node as soon as one is free. A job trains once all its pods run: jobs with a part
of their pods wait for each other, possibly without end.
"""

import asyncio
import random

from hyperjob.simulate.member import Pods
from hyperjob.simulate.runs import SubJob
from hyperjob.simulate.scene import Scene
from hyperjob.simulate.workload import Scenario, Submission
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.wire import objects
from hyperjob_engine.expansion.expand import pod_groups
from hyperjob_engine.model.nodes import PodGroup


class StaticWeights(Scene):
    """A simulation in which static weights decide.

    The weight of a cluster is its number of accelerators; where no cluster has any, all are equal.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._draw = random.Random(f"weights {scenario.seed}")
        super().__init__(scenario)
        sizes = self.history.sizes
        self._weights = {name: size for name, size in sizes.items() if size} or dict.fromkeys(
            sizes, 1
        )
        self._attempts: dict[str, int] = {}

    def _reorder(self, waiting: list[Pods]) -> None:
        """Shuffle the waiting pods: kube-scheduler retries pods that did not fit in any order."""
        self._draw.shuffle(waiting)

    def fail(self, key: str, *, cause: str) -> None:
        """Restart the job of a failed pod."""
        owner = self.owners.get(key, "")
        if self.runs.get(owner) is not None:
            self._clear(owner, cause)
            self._send(self.history.lives[owner].job)

    def set_cluster(self, cluster: str, *, down: bool) -> None:
        """Disconnect a cluster: its pods end, and wait until the cluster is back."""
        member = self.members[cluster]
        if member.down == down:
            return
        member.down = down
        if down:
            for owner in dict.fromkeys(self.owners[key] for key in list(member.jobs)):
                self._clear(owner, "cluster")
                self._send(self.history.lives[owner].job)
        else:
            member.schedule()
        self._level(cluster)

    def _arrived(self, job: Submission) -> None:
        self.runs.begin(self.history.lives[job.key], minimum=None)
        self._send(job)

    def _touch(self, cluster: str) -> None:
        """Do nothing: static weights do not depend on the state of clusters."""

    def _send(self, job: Submission) -> None:
        """Send each pod of a job to a cluster, where the pod waits for a node."""
        attempt = self._attempts[job.key] = self._attempts.get(job.key, -1) + 1
        run = self.runs.get(job.key)
        groups = [
            group
            for each in objects(job.hyperjob["spec"]["replicatedJobs"])
            for _ in range(int(each.get("replicas") or 1))
            for group in pod_groups(each["templateSpec"])
        ]
        names = self._divide(sum(group.number for group in groups))
        number = 0
        made: list[tuple[str, Pods]] = []
        for group in groups:
            for _ in range(group.number):
                pods = Pods(f"{job.key}/{number}", str(attempt), (PodGroup(group.request, 1),))
                made.append((names[number], pods))
                number += 1
        for cluster, pods in made:
            self.owners[pods.key] = job.key
            if run is not None:
                run.jobs[pods.key] = SubJob(cluster=cluster)
        for cluster, pods in made:
            self.members[cluster].take(pods)

    def _divide(self, number: int) -> list[str]:
        """Return the clusters of pods: integer parts by weight, the rest at random by weight."""
        total = sum(self._weights.values())
        names = [
            name for name, size in self._weights.items() for _ in range(number * size // total)
        ]
        rest = number - len(names)
        return names + self._draw.choices(list(self._weights), list(self._weights.values()), k=rest)

    def _running(self, key: str, uid: str, cluster: str) -> None:
        pods, run = self.members[cluster].jobs.get(key), self.runs.get(self.owners.get(key, ""))
        if pods is None or pods.uid != uid or not pods.spots or run is None:
            return
        run.jobs[key].devices, run.jobs[key].running = pods.devices, True
        self._settle(run.life.job.key)

    def _finished(self, owner: str) -> None:
        self._clear(owner, "")
        self._over(self.history.lives[owner], Phase.COMPLETED)
        if not self._left:
            asyncio.get_running_loop().call_later(1.0, self.ended.set)

    def _clear(self, owner: str, cause: str) -> None:
        """Remove all pods of a job."""
        run = self.runs.get(owner)
        for key, job in list(run.jobs.items()) if run is not None else ():
            job.running = False
            self._release(key, job.cluster)
            self.owners.pop(key, None)
        self._settle(owner, cause=cause)
        if run is not None:
            run.jobs.clear()
