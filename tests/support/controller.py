"""A controller in the test's own event loop, against an existing control plane."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hyperjob_controller.__main__ import follow_trainjobs
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options, Tuning
from hyperjob_controller.reconciler import START_SECONDS
from hyperjob_controller.wake.handlers import LONGEST_REST
from hyperjob_core.api.duration import utc_now
from hyperjob_core.api.names import LABEL_HYPERJOB
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import (
    CLUSTERS,
    HYPERJOBS,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    VCJOBS,
    Resource,
    key_of,
)
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.queues import due_in

Object = dict[str, Any]
TIME_LIMIT = 30.0
WAITS = max(LONGEST_REST, START_SECONDS)
"""The longest wait of a controller that has work left, in seconds."""


@contextlib.asynccontextmanager
async def running_controller(
    kubeconfig: Path,
    namespace: str,
    *,
    admission: QueueAdmission | None = QueueAdmission.NONE,
    now: Callable[[], datetime] = utc_now,
    tuning: Tuning | None = None,
    trainjobs: timedelta | None = None,
    **options: Any,
) -> AsyncIterator[Manager]:
    """Run a controller for one namespace with its own client; it is ready inside the block.

    `now` returns the time: with a constant time no wait ends. `trainjobs` is the time between two
    requests whether TrainJobs can be followed. The controller reads in members only if `options`
    have `members`.
    """
    settings = Options(
        namespace=namespace, queue_admission=admission, **{"leader_elect": False, **options}
    )
    async with Kube.connect(kubeconfig=kubeconfig, user_agent="hyperjob-controller/test") as kube:
        members = kube if "members" in options else None
        manager = Manager(kube, settings, now=now, tuning=tuning, members=members)
        if trainjobs is not None:
            follow_trainjobs(manager, kube, look_again=trainjobs)
        task = asyncio.create_task(manager.run())
        working = asyncio.create_task(manager.working.wait())
        try:
            async with asyncio.timeout(TIME_LIMIT):
                await asyncio.wait({task, working}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            yield manager
        finally:
            for pending in (working, task):
                pending.cancel()
            await asyncio.gather(working, task, return_exceptions=True)


@contextlib.asynccontextmanager
async def queue(kube: Kube, name: str, **spec: Any) -> AsyncIterator[None]:
    """Create a Queue, and delete it at the end."""
    document = {
        **QUEUES.head,
        "metadata": {"name": name},
        "spec": spec,
    }
    await kube.create(QUEUES, document)
    try:
        yield
    finally:
        await kube.delete(QUEUES, name)


async def eventually(look: Callable[[], Awaitable[Any]], *, what: str) -> Any:
    """Call `look` until its result is true, and return the result."""
    try:
        async with asyncio.timeout(TIME_LIMIT):
            while not (found := await look()):  # noqa: ASYNC110 - the server sends no event
                await asyncio.sleep(0.05)
            return found
    except TimeoutError:
        raise AssertionError(f"never seen: {what}") from None


def at_rest(manager: Manager) -> bool:
    """Return whether no reconciliation and no round of the queue engine runs or is due."""
    queue = manager.queue
    dues = (due_in(queue, key_of(obj)) for obj in manager.caches.hyperjobs.items())
    return not (
        round_is_due(manager)
        or len(queue)
        or queue.longest_running_seconds()
        or any(due is not None and due <= WAITS for due in dues)
    )


def round_is_due(manager: Manager) -> bool:
    """Return whether the queue cache has changed since the last round."""
    return manager.admission._changed.is_set()


async def settled(manager: Manager, kube: Kube, namespace: str) -> None:
    """Wait until the controller has observed all objects and is idle."""
    caches, looks = manager.caches, list[dict[str, int]]()
    followed = {
        HYPERJOBS: caches.hyperjobs,
        VCJOBS: caches.jobs,
        PROPAGATION_POLICIES: caches.policies,
        RESOURCE_BINDINGS: caches.bindings,
        CLUSTERS: caches.clusters,
        QUEUES: caches.queues,
    }

    async def quiet() -> bool:
        there: dict[str, int] = {}
        held: dict[str, int] = {}
        for resource, informer in followed.items():
            scope = namespace if resource.namespaced else None
            selector = LABEL_HYPERJOB if resource in (VCJOBS, PROPAGATION_POLICIES) else None
            listed = await kube.list(resource, namespace=scope, label_selector=selector)
            there |= _versions(resource, listed.items)
            held |= _versions(resource, informer.items())
        looks.append(there)
        # A reconciliation may write after the list: two successive lists must agree.
        return looks[-2:] == [held, held] and at_rest(manager)

    await eventually(quiet, what="a controller at rest")


def _versions(resource: Resource, items: Iterable[Object]) -> dict[str, int]:
    return {
        f"{resource.kind} {key_of(obj)}": int(obj["metadata"]["resourceVersion"]) for obj in items
    }


@contextlib.asynccontextmanager
async def clusters(kube: Kube, **gpus: int) -> AsyncIterator[None]:
    """Create Clusters with these numbers of free GPUs, and delete them at the end."""
    for name, number in gpus.items():
        await set_cluster(kube, name.replace("_", "-"), number)
    try:
        yield
    finally:
        for name in gpus:
            with contextlib.suppress(NotFound):
                await kube.delete(CLUSTERS, name.replace("_", "-"))


async def set_cluster(kube: Kube, name: str, gpus: int) -> None:
    """Create a Cluster, or change its resources."""
    document = {
        **CLUSTERS.head,
        "metadata": {"name": name},
        "spec": {"syncMode": "Push"},
    }
    await kube.apply(CLUSTERS, document, field_manager="test")
    status = {
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "ClusterReady",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
        "apiEnablements": [
            {
                "groupVersion": "batch.volcano.sh/v1alpha1",
                "resources": [{"name": "jobs", "kind": "Job"}],
            }
        ],
        "resourceSummary": {
            "allocatable": {
                "cpu": "10k",
                "memory": "100Ti",
                "pods": "100k",
                "nvidia.com/gpu": str(gpus),
            }
        },
    }
    await kube.patch(CLUSTERS, name, {"status": status}, kind=PatchType.MERGE, subresource="status")
