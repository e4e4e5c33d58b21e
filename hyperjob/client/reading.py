"""List HyperJobs by name or selector, and read other kinds where the user may."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import HYPERJOBS

_PARALLEL = 16

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
