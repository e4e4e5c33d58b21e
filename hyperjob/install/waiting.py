"""Wait for a state of an object by watching it."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType, Kube
from hyperjob_core.kube.errors import Gone
from hyperjob_core.kube.resources import Resource

_PAUSE_SECONDS: Final = (
    0.2  # a pause between watches, for an API server that closes each watch at once
)


async def until(
    kube: Kube,
    resource: Resource,
    name: str,
    holds: Callable[[Object | None], bool],
    *,
    namespace: str | None = None,
    seconds: float,
) -> bool:
    """Wait until `holds` is true of the object (None: absent); return False after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                with suppress(Gone):
                    if await _look_and_follow(kube, resource, name, holds, namespace):
                        return True
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError:
        return False


async def _look_and_follow(
    kube: Kube,
    resource: Resource,
    name: str,
    holds: Callable[[Object | None], bool],
    namespace: str | None,
) -> bool:
    """Return whether `holds` was true of a version until the API server closed the watch."""
    selector = f"metadata.name={name}"
    listed = await kube.list(resource, namespace=namespace, field_selector=selector)
    if holds(listed.items[0] if listed.items else None):
        return True
    events = kube.watch(
        resource,
        namespace=namespace,
        field_selector=selector,
        resource_version=listed.resource_version,
    )
    async with aclosing(events):
        async for event in events:
            if event.type is EventType.BOOKMARK:
                continue
            if holds(None if event.type is EventType.DELETED else event.object):
                return True
    return False
