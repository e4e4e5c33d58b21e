"""HyperJobs with minReplicas that run, and the queues that they run in."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Observed, QueueVerdict
from hyperjob_queueing.queues import Queue
from hyperjob_queueing.read import unit_of
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.engine.builders import (
    NOW,
    Object,
    child,
    cluster,
    group,
    hyperjob,
    job_status,
    observed,
)
from tests.unit.queueing.queueworld import QueueWorld, world

NAMES = [f"hj-trainer-{index}" for index in range(9)]


def elastic(
    least: int, most: int, *, wish: int | None = None, status: Object | None = None, **spec: Any
) -> Object:
    """Make a HyperJob of at most so many sub-jobs of 8 GPUs; it would like `wish` of them."""
    bounds = {"minReplicas": least} | ({} if wish is None else {"maxReplicas": most})
    return hyperjob(group(replicas=wish or most, **bounds), status=status, **spec)


def size(number: int, reason: str = "LargestWithRoom") -> list[Object]:
    return [
        {"replicatedJob": "trainer", "name": str(number), "reason": reason, "message": "it has"}
    ]


PLACES = "aabbccdd"


def running_objects(number: int) -> list[Object]:
    objects = []
    for name, where in zip(NAMES[:number], PLACES, strict=False):
        objects += child(name, "Running", on=where)
    return objects


def running(
    number: int,
    *,
    least: int = 1,
    most: int | None = None,
    wish: int | None = None,
    reason: str = "LargestWithRoom",
    resized: float = 0,
    step: int | None = None,
    **spec: Any,
) -> Observed:
    """Make a HyperJob of 8 GPUs a sub-job that runs, two sub-jobs on each cluster of 16.

    It has had its number of sub-jobs for `resized` minutes.
    """
    records = []
    for index in range(number):
        where = PLACES[index]
        trained = {"step": step, "startStep": 0, "savedStep": step, "attempt": 0, "uid": "u"}
        trained |= {each: micro_time(NOW) for each in ("updateTime", "startTime", "savedTime")}
        records.append(
            job_status(
                index,
                phase="Running",
                cluster=where,
                admitted=True,
                lastTransitionTime=rfc3339(NOW),
                **{} if step is None else {"training": trained},
            )
        )
    since = rfc3339(NOW - timedelta(minutes=resized))
    sized = [each | {"lastTransitionTime": since} for each in size(number, reason)]
    status = {"alternatives": sized, "jobs": records, "state": {"phase": "Running"}}
    clusters = tuple(cluster(name, 0, total=16) for name in sorted(set(PLACES[:number])))
    raw = elastic(least, most or number, wish=wish, status=status, **spec)
    seen = observed(raw, *running_objects(number), clusters=clusters)
    return replace(seen, verdict=QueueVerdict(admitted=frozenset(NAMES[:number])))


def contest(
    seen: Observed, *others: QueuedHyperJob, queues: tuple[Queue, ...] = (), **gpus: int
) -> QueueWorld:
    """Let an elastic HyperJob and others run in a world of queues, and make some of them wait."""
    queued = unit_of(seen)
    made = world([], *queues, **gpus)
    made.submit(queued)
    made.ends[queued.key] = NOW + timedelta(hours=9)
    for each in others:
        made.submit(each)
    return made
