"""List HyperJobs by name or selector, watch them, and read other kinds where the user may."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType, Kube, WatchEvent
from hyperjob_core.kube.errors import Gone, KubeError, Unavailable
from hyperjob_core.kube.resources import HYPERJOBS, Resource

_PARALLEL = 16
_TRIES = 5
_PAUSE = 0.5

Reading = list[Object] | KubeError
"""The objects, or the error of the request: a command works with the objects that it may read."""


@dataclass(frozen=True, slots=True)
class Found:
    """The requested HyperJobs, and the errors of those that could not be read."""

    items: list[Object]
    errors: list[KubeError]


async def hyperjobs(
    kube: Kube, names: Sequence[str], *, namespace: str | None, selector: str | None = None
) -> Found:
    """Read the named HyperJobs; without names, all that match the label selector."""
    if not names:
        listed = await kube.list(HYPERJOBS, namespace=namespace, label_selector=selector)
        return Found(listed.items, [])
    limit = asyncio.Semaphore(_PARALLEL)

    async def one(name: str) -> Object | KubeError:
        async with limit:
            try:
                return await kube.get(HYPERJOBS, name, namespace=namespace)
            except KubeError as error:
                return error

    results = await asyncio.gather(*(one(name) for name in names))
    return Found(
        [item for item in results if not isinstance(item, KubeError)],
        [item for item in results if isinstance(item, KubeError)],
    )


async def attempt(ask: Callable[[], Awaitable[list[Object]]]) -> Reading:
    """Return the objects or the API error, for objects that a command can do without."""
    try:
        return await ask()
    except KubeError as error:
        return error


def items(reading: Reading) -> list[Object]:
    """Return the objects; an empty list for an error."""
    return [] if isinstance(reading, KubeError) else reading


async def changes(
    kube: Kube,
    resource: Resource,
    *,
    namespace: str | None,
    name: str | None = None,
    selector: str | None = None,
) -> AsyncGenerator[WatchEvent, None]:
    """Yield every object as ADDED and then each change, without end; resume broken watches.

    A BOOKMARK follows the listed objects. Objects deleted between two watches are yielded as
    DELETED. Raises KubeError when the API server refuses, cannot be reached, or closes several
    watches in a row.
    """
    fields = f"metadata.name={name}" if name else None
    known: dict[tuple[str, str], Object] = {}
    failures = 0
    reached = False
    while True:
        try:
            listed = await kube.list(
                resource, namespace=namespace, label_selector=selector, field_selector=fields
            )
            reached = True
            now = {_key(item): item for item in listed.items}
            for key, item in now.items():
                before = known.get(key)
                if before is None:
                    yield WatchEvent(EventType.ADDED, item)
                elif _version(before) != _version(item):
                    yield WatchEvent(EventType.MODIFIED, item)
            for key in known.keys() - now.keys():
                yield WatchEvent(EventType.DELETED, known[key])
            known = now
            yield WatchEvent(EventType.BOOKMARK, {})
            failures = 0
            stream = kube.watch(
                resource,
                namespace=namespace,
                resource_version=listed.resource_version,
                label_selector=selector,
                field_selector=fields,
            )
            async with aclosing(stream) as events:
                async for event in events:
                    if event.type is EventType.BOOKMARK:
                        continue
                    if event.type is EventType.DELETED:
                        known.pop(_key(event.object), None)
                    else:
                        known[_key(event.object)] = event.object
                    yield event
        except (Gone, Unavailable) as error:
            failures += 1
            nobody_there = isinstance(error, Unavailable) and not (reached or error.answered)
            if nobody_there or failures >= _TRIES:
                raise
        await asyncio.sleep(_PAUSE * (1 + failures))


def _key(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])


def _version(obj: Object) -> str:
    return str(obj["metadata"].get("resourceVersion") or "")
