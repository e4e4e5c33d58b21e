"""Count the stops of HyperJobs that were in vain, in random histories with late summaries.

usage: python -m benchmarks.bench_vain [--histories 1000] [--seed 1] [--leader 25]

A history has two small clusters with whole nodes, and a minute in which urgent HyperJobs and others
come and end. A stop is in vain where each urgent HyperJob that has no vcjob yet finds enough free
nodes without it, beside the vcjobs that are on their way; without such a HyperJob it is, too. The
histories are played by the nodes of members, and by the sums of their Clusters, which Karmada
collects every ten seconds. With `--leader` a new leader comes after so many seconds, again and
again. The baseline is by the sums.
"""

import argparse
import asyncio
import logging
import random
from typing import Final

from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options, Tuning
from hyperjob_core.api.wire import at
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import HYPERJOBS, PROPAGATION_POLICIES, VCJOBS, key_of
from hyperjob_core.tasks import cancel
from hyperjob_core.virtualtime import now, run
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.parse import controller_of, pinned_clusters
from hyperjob_sandbox.simulate.jobs import JobNumbers, submission
from hyperjob_sandbox.simulate.sites import URGENT, queue, site, urgent_class
from hyperjob_sandbox.simulate.workload import Scenario, Submission
from hyperjob_sandbox.simulate.world import Simulation

GPUS: Final = 8
NODE: Final = {"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": str(GPUS), "pods": "110"}
MINUTE: Final = 60.0
JOBS: Final = 14


def scenario(seed: str) -> Scenario:
    """Return a random history."""
    rnd = random.Random(seed)
    sites = [site(name, [("gpu", NODE, rnd.randint(3, 4))]) for name in ("a", "b")]
    numbers = [
        JobNumbers(
            name=f"j{number}",
            arrival=rnd.uniform(0, MINUTE),
            duration=rnd.uniform(5, 40),
            gpus=GPUS * rnd.choice((1, 1, 2, 3)),
            priority=URGENT if rnd.random() < 0.4 else "",
        )
        for number in range(JOBS)
    ]
    return Scenario(
        sites=sites,
        queues=[queue("default")],
        jobs=[submission(each, max_domains=1) for each in numbers],
        priority_classes=[urgent_class()],
        startup=2.0,
        checkpoint=0.0,
    )


class Watched(Simulation):
    """A simulated Karmada that judges each stop."""

    stops = vain = 0

    def _gone(self, key: str, cluster: str) -> None:
        owner = self.owners.get(key, "")
        life, ran = self.history.lives.get(owner), self.runs.get(owner)
        if life is not None and ran is not None and key in ran.jobs and not ran.broken:
            self.stops += 1
            self.vain += self._is_in_vain(life.job)
        super()._gone(key, cluster)

    def _is_in_vain(self, stopped: Submission) -> bool:
        """Return whether all urgent HyperJobs that wait have room without a stop."""
        owned, free = {_owner(each) for each in self.plane.items(VCJOBS)}, self._free()
        return is_urgent(stopped) or all(
            any(nodes * GPUS >= life.job.gpus for nodes in free.values())
            for key, life in self.history.lives.items()
            if life.ended is None and key not in owned and is_urgent(life.job)
        )

    def _free(self) -> dict[str, int]:
        """Return the free nodes of each cluster beside the vcjobs that have none yet."""
        found = {
            name: sum(node.free_devices == GPUS for node in member.nodes.all)
            for name, member in self.members.items()
        }
        for job in self.plane.items(VCJOBS):
            key = key_of(job)
            policy = self.plane.get(PROPAGATION_POLICIES, key)
            for cluster in pinned_clusters(at(policy, "spec", "placement")):
                pods = self.members[cluster].jobs.get(key)
                if pods is None or not pods.spots:
                    found[cluster] -= at(job, "spec", "tasks")[0]["replicas"]
        return found


def is_urgent(job: Submission) -> bool:
    """Return whether a HyperJob has the higher priority."""
    group = job.hyperjob["spec"]["replicatedJobs"][0]
    return bool(group["templateSpec"].get("priorityClassName") == URGENT)


def _owner(job: dict[str, object]) -> str:
    metadata = job["metadata"]
    assert isinstance(metadata, dict)
    return f"{metadata['namespace']}/{controller_of(metadata).get('name')}"


async def _play(seed: str, *, nodes: bool, leader: float | None) -> tuple[int, int]:
    """Play one history; return its stops, and how many were in vain."""
    plane = MemoryServer(now=now)
    world = Watched(scenario(seed), plane)
    options = Options(queue_admission=QueueAdmission.BUILTIN, leader_elect=False, workers=1)
    world.begin()
    async with Kube(plane) as kube:
        while not world.ended.is_set():
            manager = Manager(
                kube,
                options,
                now=now,
                clock=asyncio.get_running_loop().time,
                views=world.karmada.views if nodes else None,
                messages_per_second=1 / 300,
                tuning=Tuning(writes=1, failure_causes=False),
            )
            tasks = [asyncio.create_task(manager.run()), asyncio.create_task(world.ended.wait())]
            try:
                await asyncio.wait(tasks, timeout=leader, return_when=asyncio.FIRST_COMPLETED)
                if tasks[0].done():
                    tasks[0].result()
            finally:
                await cancel(tasks)
            if len(plane.items(HYPERJOBS)) == 0 and world.progress[0] == JOBS:
                break
    return world.stops, world.vain


def main() -> None:
    """Play all histories in both ways."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--leader", type=float, help="seconds after which a new leader comes")
    options = parser.parse_args()
    logging.getLogger("hyperjob_controller").setLevel(logging.ERROR)
    shares = {}
    for name in ("sums", "nodes"):
        stops = vain = 0
        for number in range(options.histories):
            seed = f"{options.seed}/{number}"
            some, of_them = run(_play(seed, nodes=name == "nodes", leader=options.leader))
            stops, vain = stops + some, vain + of_them
        shares[name] = vain / max(1, stops)
        print(f"by {name}: {vain} of {stops} stops in vain ({shares[name]:.1%})", flush=True)
    if shares["sums"]:
        print(f"nodes to sums: {shares['nodes'] / shares['sums']:.2f}")


if __name__ == "__main__":
    main()
