"""The HyperJob at which rounds fail, and what the queue engine knows of it meanwhile."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from hyperjob_engine.queueing.workload import QueuedHyperJob


def held_only(workload: QueuedHyperJob | None) -> QueuedHyperJob | None:
    """Return a HyperJob with only the sub-jobs that hold a share: it neither waits nor evicts.

    Its running sub-jobs stay in the account of their queue. None if it holds nothing.
    """
    if workload is None:
        return None
    parts = tuple(part for part in workload.parts if part.name in workload.held)
    if not parts:
        return None
    return replace(workload, minimum=0, parts=parts, preempts=False, estimate=None, variants=())


async def culprit(keys: Sequence[str], fails: Callable[[Sequence[str]], bool]) -> str | None:
    """Return the HyperJob because of which a round fails; None if it fails for another reason.

    `fails` plays a round with some HyperJobs alone. The search plays about log2 of their number,
    and other tasks run between these.
    """
    if fails(()) or not fails(keys):
        return None
    fine, failing = 0, len(keys)  # the first `fine` do not fail together, the first `failing` do
    while failing - fine > 1:
        middle = (fine + failing) // 2
        await asyncio.sleep(0)
        if fails(keys[:middle]):
            failing = middle
        else:
            fine = middle
    return keys[failing - 1]
