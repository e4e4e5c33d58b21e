"""What is told of queues before the first round has been played."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from controller.admission.engine import Admission
from controller.caches.informers import Caches
from controller.model.observed import Cluster, QueueAdmission
from controller.model.resources import Resources
from controller.queueing.cache import QueueCache
from hyperjob.kube.workqueue import WorkQueue
from tests.unit.controller.builders import NOW, cluster, observed


class Nothing:
    """Has no clusters and knows of no HyperJob."""

    def capacity(self) -> tuple[Sequence[Cluster], Mapping[str, Resources]]:
        return (), {}

    def changes_in(self, *, now: datetime) -> timedelta | None:
        return None


async def test_nobody_is_told_that_queues_are_missing_before_a_round_was_played() -> None:
    """Queues that are listed are known with the first round only, which waits for more changes."""
    caches = Caches(None)  # type: ignore[arg-type]  # no call is made
    cache = QueueCache(lag=timedelta(seconds=30))
    admission = Admission(
        caches, WorkQueue(), cache, Nothing(), mode=lambda: QueueAdmission.BUILTIN, now=lambda: NOW
    )
    seen = observed(admission=QueueAdmission.BUILTIN, clusters=(cluster("a"),))
    running = asyncio.create_task(admission.run(lambda _: None))
    try:
        caches.queues.synced.set()
        while not admission.known:
            admission.learn(seen)
            assert admission.verdict(seen.hyperjob.key).undecided
            await asyncio.sleep(0)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
