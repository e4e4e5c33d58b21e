"""The workers: they take keys from the workqueue, reconcile them, and requeue them when due.

An error of one key neither ends a worker nor delays other keys.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from hyperjob_controller.wake.guard import SetAsideError
from hyperjob_core.kube.errors import KubeError, TooManyRequests, Unavailable
from hyperjob_core.kube.resources import split_key
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_core.telemetry.logs import bound
from hyperjob_core.telemetry.metrics import Metrics, ReconcileResult

log = logging.getLogger(__name__)

CONTROLLER = "hyperjob"
PASS_SECONDS = 120.0

Reconcile = Callable[[str], Awaitable[timedelta | None]]


async def run_workers(
    queue: WorkQueue[str],
    reconcile: Reconcile,
    *,
    workers: int,
    metrics: Metrics,
    controller: str = CONTROLLER,
) -> None:
    """Work until cancelled; `controller` is the name of the kind in metrics and in the log."""
    metrics.controller_started(controller, workers=workers)
    async with asyncio.TaskGroup() as group:
        for number in range(workers):
            group.create_task(_work(queue, reconcile, metrics, controller), name=f"worker {number}")


async def _work(
    queue: WorkQueue[str], reconcile: Reconcile, metrics: Metrics, controller: str
) -> None:
    """Reconcile one key after the other until cancelled."""
    while True:
        key = await queue.get()
        try:
            namespace, name = split_key(key)
            with (
                bound(**{controller: {"namespace": namespace, "name": name}}),
                metrics.reconciling(controller),
            ):
                metrics.reconciled(controller, await _pass(queue, reconcile, key))
        finally:
            queue.done(key)
        await asyncio.sleep(0)  # a pass without requests never yields to other tasks by itself


async def _pass(queue: WorkQueue[str], reconcile: Reconcile, key: str) -> ReconcileResult:
    """Make one pass within PASS_SECONDS and requeue its key when due; never raise an error."""
    try:
        async with asyncio.timeout(PASS_SECONDS):
            again = await reconcile(key)
    except SetAsideError as aside:
        queue.forget(key)
        queue.add_after(key, aside.wait.total_seconds())
        return ReconcileResult.ERROR
    except (KubeError, TimeoutError) as error:
        _retry(queue, key, error)
        return ReconcileResult.ERROR
    except Exception:
        # A bug must not stop the controller for all other HyperJobs.
        log.exception("Reconciliation failed")
        queue.add_rate_limited(key)
        return ReconcileResult.ERROR
    if again is not None and not again:
        queue.add_rate_limited(key)
        return ReconcileResult.REQUEUE
    queue.forget(key)
    if again is not None:
        queue.add_after(key, again.total_seconds())
        return ReconcileResult.REQUEUE_AFTER
    return ReconcileResult.SUCCESS


def _retry(queue: WorkQueue[str], key: str, error: Exception) -> None:
    """Requeue a key after an error: when the API server asks for it, else with a back-off."""
    expected = isinstance(error, Unavailable | TooManyRequests | TimeoutError)
    level = logging.INFO if expected else logging.WARNING
    log.log(level, "Reconciliation is tried again", extra={"error": str(error) or "time limit"})
    wait = error.retry_after if isinstance(error, KubeError) else None
    if wait is not None:
        queue.add_after(key, wait)
    else:
        queue.add_rate_limited(key)
