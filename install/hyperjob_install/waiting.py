"""Wait for a state of an object by watching it."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.following import states
from hyperjob_core.kube.resources import Resource


async def until(
    kube: Kube,
    resource: Resource,
    name: str,
    holds: Callable[[Object | None], bool],
    *,
    seconds: float,
) -> bool:
    """Wait until `holds` is true of a cluster-wide object (None: absent); False after `seconds`."""
    try:
        async with (
            asyncio.timeout(seconds),
            aclosing(states(kube, resource, name)) as stream,
        ):
            async for state in stream:
                if holds(state):
                    return True
    except TimeoutError:
        return False
    raise AssertionError("the states of an object do not end")
