"""List HyperJobs by name or selector, and read other kinds where the user may."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAMESPACE, lease_name
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.resources import HYPERJOBS, LEASES, Resource

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


async def listed(
    kube: Kube,
    resource: Resource,
    *,
    namespace: str | None = None,
    label_selector: str | None = None,
    field_selector: str | None = None,
) -> Reading:
    """List the objects of a kind that a command can do without: an API error is a result."""
    try:
        found = await kube.list(
            resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
        )
    except KubeError as error:
        return error
    return found.items


async def lease(kube: Kube, *, of: str = "") -> Reading:
    """Read the Lease of the leading controller, in the same way; empty without a Lease.

    Without a controller of all namespaces it is that of the controller of the namespace `of`.
    """
    for name in dict.fromkeys((lease_name(), lease_name(of))):
        try:
            return [await kube.get(LEASES, name, namespace=LEASE_NAMESPACE)]
        except NotFound:
            continue
        except KubeError as error:
            return error
    return []


def items(reading: Reading) -> list[Object]:
    """Return the objects; an empty list for an error."""
    return [] if isinstance(reading, KubeError) else reading
