"""Record the changes of the informers in the history."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from hyperjob.client.events import events_in
from hyperjob.ui.history.backfill import changes_of
from hyperjob.ui.history.recorder import History
from hyperjob.ui.rows import Row
from hyperjob.ui.visitor import EVERYTHING
from hyperjob.ui.world import LiveState
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.tasks import cancel

SAMPLE_SECONDS: Final = 60.0
BETWEEN_SECONDS: Final = 5.0
"""Shortest time between two samples of the use, which each change may cause."""
_USED: Final = ("hyperjobs", "clusters", "queues")
_log = logging.getLogger(__name__)


@asynccontextmanager
async def fed(history: History, world: LiveState, kube: Kube) -> AsyncIterator[History]:
    """Record all changes for the length of the block; enter the block before the world runs."""

    def changed(before: Row | None, after: Row | None) -> None:
        now = datetime.now(UTC)
        if after is not None:
            history.record(now, after.summary)
        if before is not None and (after is None or after.summary.uid != before.summary.uid):
            history.removed(now, before.summary.uid)

    world.add_listener(changed)
    task = asyncio.create_task(_sample(history, world, kube))
    try:
        yield history
    finally:
        await cancel([task])


async def _sample(history: History, world: LiveState, kube: Kube) -> None:
    """Record the present HyperJobs once, then the use after changes and once a minute."""
    await world.synced()
    history.present(datetime.now(UTC), [row.summary.uid for row in world.rows.values()])
    await _fill_in(history, world, kube)
    while True:
        now = datetime.now(UTC)
        history.sample(now, world.cluster_uses(EVERYTHING), world.queue_uses(EVERYTHING))
        await asyncio.sleep(BETWEEN_SECONDS)
        known = world.version(*_USED)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SAMPLE_SECONDS - BETWEEN_SECONDS):
                while world.version(*_USED) == known:
                    await world.changed()


async def _fill_in(history: History, world: LiveState, kube: Kube) -> None:
    """Add changes of phase from Events, which the API server keeps for an hour."""
    for namespace in world.namespaces:
        found = await events_in(kube, namespace)
        if isinstance(found, KubeError):
            _log.info("Reading Events for the history failed", extra={"error": str(found)})
            return
        if changes := changes_of(found):
            history.phases_changed(datetime.now(UTC), changes)
