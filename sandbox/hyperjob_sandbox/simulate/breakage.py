"""Failures of pods, nodes and whole clusters, at random times from the seed."""

import asyncio
import random
from collections.abc import Callable, Iterable

from hyperjob_sandbox.simulate.workload import Failures, Outage
from hyperjob_sandbox.simulate.world import Simulation

_HOUR = 3600.0


class Breakage:
    """Fails and repairs pods, nodes and clusters of a simulation, independently of each other."""

    def __init__(self, world: Simulation, failures: Failures, *, seed: int) -> None:
        self._world = world
        self._failures = failures
        self._draw = random.Random(f"failures {seed}")
        self._nodes = [
            (name, node) for name, member in world.members.items() for node in member.nodes.all
        ]

    def begin(self, outages: Iterable[Outage]) -> None:
        """Schedule the first failures, and the outages."""
        loop, failures = asyncio.get_running_loop(), self._failures
        for mean, strike in (
            (failures.pod / max(1, len(self._nodes)), self._pod),
            (failures.node / max(1, len(self._nodes)), self._node),
            (failures.cluster / max(1, len(self._world.members)), self._cluster),
        ):
            if mean and self._nodes:
                self._again(mean * _HOUR, strike)
        for outage in outages:
            loop.call_at(outage.at, self._set_cluster, outage.cluster, True)
            if outage.until is not None:
                loop.call_at(outage.until, self._set_cluster, outage.cluster, False)

    def _again(self, mean: float, strike: Callable[[], None]) -> None:
        """Strike at random times, `mean` seconds apart on average."""

        def struck() -> None:
            strike()
            self._again(mean, strike)

        asyncio.get_running_loop().call_later(self._draw.expovariate(1 / mean), struck)

    def _pod(self) -> None:
        """Fail a pod on a random node, if a pod runs there."""
        _, node = self._draw.choice(self._nodes)
        if node.held:
            self._world.fail(self._draw.choice(list(node.held)), cause="pod")

    def _node(self) -> None:
        cluster, node = self._draw.choice(self._nodes)
        if not node.out:
            self._world.set_node(cluster, node, out=True)
            repair = self._failures.node_repair * _HOUR
            asyncio.get_running_loop().call_later(
                repair, lambda: self._world.set_node(cluster, node, out=False)
            )

    def _cluster(self) -> None:
        cluster = self._draw.choice(list(self._world.members))
        if not self._world.members[cluster].down:
            self._set_cluster(cluster, True)
            repair = self._failures.cluster_repair * _HOUR
            asyncio.get_running_loop().call_later(repair, self._set_cluster, cluster, False)

    def _set_cluster(self, cluster: str, down: bool) -> None:
        self._world.set_cluster(cluster, down=down)
