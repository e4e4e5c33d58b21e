"""When the items of a workqueue are due."""

from typing import Any

from hyperjob_core.kube.workqueue import WorkQueue


def due_in(queue: WorkQueue[Any], item: Any) -> float | None:
    """Return the seconds until an item is queued; 0 if it waits, None if it is not due."""
    if item in queue._dirty:
        return 0.0
    timer = queue._timers.get(item)
    return None if timer is None else max(0.0, timer.when() - queue._now())
