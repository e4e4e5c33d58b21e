"""Follow the HyperJobs and Clusters of a control plane."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from hyperjob.client.summary import Summary, read
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS
from hyperjob_core.tasks import cancel


class Follower:
    """Informers of HyperJobs and Clusters, and an event that is set at every change."""

    def __init__(self, kube: Kube) -> None:
        self._hyperjobs = Informer(kube, HYPERJOBS)
        self._clusters = Informer(kube, CLUSTERS)
        self._changed = asyncio.Event()
        for informer in (self._hyperjobs, self._clusters):
            informer.add_handler(lambda *_: self._changed.set())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Follower"]:
        """Run both informers for the length of the block."""
        tasks = [asyncio.create_task(i.run()) for i in (self._hyperjobs, self._clusters)]
        try:
            yield self
        finally:
            await cancel(tasks)

    async def changed(self, *, seconds: float) -> bool:
        """Wait for a change; return False when none came within the time."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    @property
    def hyperjobs(self) -> list[Summary]:
        """HyperJobs in order of creation, then of name."""
        found = [read(item) for item in self._hyperjobs.items()]
        return sorted(found, key=lambda summary: (summary.created, summary.key))

    @property
    def clusters(self) -> list[Object]:
        """Clusters by name."""
        return sorted(self._clusters.items(), key=lambda o: str(o["metadata"]["name"]))
