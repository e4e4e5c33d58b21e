"""A plain client that creates the same objects of sub-jobs, for the API server's maximum rate."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeAlias, TypeVar

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import GATE, GATE_OPEN, LABEL_HYPERJOB
from hyperjob_core.api.wire import at
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import VCJOBS, Resource

CONNECTIONS: Final = 8
SAMPLE: Final = 2000
"""Maximum number of sub-jobs that a plain loop copies."""

Copy: TypeAlias = list[tuple[Resource, Object]]
T = TypeVar("T")


async def copies_of(kube: Kube, namespace: str, *, kinds: Sequence[Resource]) -> list[Copy]:
    """Read the objects of these kinds of each of the first 2,000 sub-jobs."""
    found: dict[str, Copy] = {}
    for kind in kinds:
        for obj in (await kube.list(kind, namespace=namespace)).items:
            obj["metadata"].setdefault("labels", {})
            owner = at(obj, "spec", "resource", "name") or obj["metadata"]["name"]
            found.setdefault(owner, []).append((kind, obj))
    return list(found.values())[:SAMPLE]


async def plain_loop(
    kube: Kube, copies: Sequence[Copy], target: str, *, life: bool = False
) -> tuple[float, int]:
    """Copy sub-jobs into another namespace; return the seconds and the number of requests.

    With `life`, the loop makes the requests of the controller, of Karmada and of the gate: get the
    vcjob, create policy, vcjob and binding, open the gate in policy and binding.
    """
    requests = 0

    async def one(copy: Copy) -> None:
        nonlocal requests
        if life:
            requests += 1
            with suppress(NotFound):
                await kube.get(VCJOBS, copy[1][1]["metadata"]["name"], namespace=target)
        for kind, obj in copy:
            requests += 1
            await kube.create(kind, copied(obj, target))
        for kind, obj in copy if life else ():
            if kind is VCJOBS:
                continue
            requests += 1
            body = {"metadata": {"annotations": {GATE: GATE_OPEN}}, "spec": {"suspension": None}}
            name = obj["metadata"]["name"]
            await kube.patch(kind, name, body, kind=PatchType.MERGE, namespace=target)

    began = time.monotonic()
    await parallel(copies, one)
    took = time.monotonic() - began
    return took, requests


def copied(obj: Object, namespace: str) -> Object:
    """Return a copy of an object without its owner, which no controller reconciles."""
    spec = obj["spec"]
    if "resourceSelectors" in spec:
        selectors = [{**each, "namespace": namespace} for each in spec["resourceSelectors"]]
        spec = {**spec, "resourceSelectors": selectors}
    labels = {
        key: value
        for key, value in obj["metadata"]["labels"].items()
        if key != LABEL_HYPERJOB and "karmada.io/" not in key
    }
    metadata = {"name": obj["metadata"]["name"], "namespace": namespace, "labels": labels}
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": metadata,
        "spec": spec,
    }


async def parallel(items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Run `work` for each item, over several connections."""
    waiting: Iterator[T] = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(worker())
