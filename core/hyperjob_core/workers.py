"""The workers: they take keys from the workqueue, reconcile them, and requeue them when due.

An error of one key neither ends a worker nor delays other keys.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from hyperjob_core.kube.errors import KubeError, TooManyRequests, Unavailable
from hyperjob_core.kube.resources import split_key
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_core.registry import REGISTRY
from hyperjob_core.telemetry.logs import bound

log = logging.getLogger(__name__)

CONTROLLER = "hyperjob"
PASS_SECONDS = 120.0

_NAME: Final = "controller_runtime_"
_LABELS: Final = ("controller",)
_PASSES: Final = Counter(
    f"{_NAME}reconcile_total",
    "Reconciliations by result",
    ("controller", "result"),
    registry=REGISTRY,
)
_ERRORS: Final = Counter(
    f"{_NAME}reconcile_errors_total", "Reconciliations that failed", _LABELS, registry=REGISTRY
)
_SECONDS: Final = Histogram(
    f"{_NAME}reconcile_time_seconds",
    "Duration of a reconciliation",
    _LABELS,
    buckets=(
        *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8),
        *(0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25),
        *(30, 40, 50, 60),
    ),
    registry=REGISTRY,
)
_ACTIVE: Final = Gauge(f"{_NAME}active_workers", "Active workers", _LABELS, registry=REGISTRY)
_WORKERS: Final = Gauge(
    f"{_NAME}max_concurrent_reconciles",
    "Maximum number of concurrent reconciliations",
    _LABELS,
    registry=REGISTRY,
)


class SetAsideError(Exception):
    """The pass of an object failed by a bug, and the next one is due after `wait`."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(wait)
        self.wait = wait


class ReconcileResult(StrEnum):
    """The result of a reconciliation."""

    SUCCESS = "success"
    ERROR = "error"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"


Reconcile = Callable[[str], Awaitable[timedelta | None]]


async def run_workers(
    queue: WorkQueue[str],
    reconcile: Reconcile,
    *,
    workers: int,
    controller: str = CONTROLLER,
) -> None:
    """Work until cancelled; `controller` is the name of the kind in metrics and in the log."""
    _WORKERS.labels(controller).set(workers)
    _ERRORS.labels(controller)
    passes = {result: _PASSES.labels(controller, result) for result in ReconcileResult}
    async with asyncio.TaskGroup() as group:
        for number in range(workers):
            group.create_task(_work(queue, reconcile, passes, controller), name=f"worker {number}")


async def _work(
    queue: WorkQueue[str],
    reconcile: Reconcile,
    passes: Mapping[ReconcileResult, Counter],
    controller: str,
) -> None:
    """Reconcile one key after the other until cancelled."""
    active, seconds = _ACTIVE.labels(controller), _SECONDS.labels(controller)
    while True:
        key = await queue.get()
        try:
            namespace, name = split_key(key)
            with (
                bound(**{controller: {"namespace": namespace, "name": name}}),
                active.track_inprogress(),
                seconds.time(),
            ):
                result = await _pass(queue, reconcile, key)
            passes[result].inc()
            if result is ReconcileResult.ERROR:
                _ERRORS.labels(controller).inc()
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
        # A bug must not stop the controller for all other objects.
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
