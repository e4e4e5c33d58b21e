"""List HyperJobs by name or selector, and read other kinds where the user may."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAMESPACE, lease_name
from hyperjob_core.api.wire import mapping, string
from hyperjob_core.hints import did_you_mean
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound, make_status
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, LEASES, QUEUES, Resource, key_of

_PARALLEL = 16
_NAMED: Final = {each.plural: each for each in (CLUSTERS, HYPERJOBS, QUEUES)}

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
            except NotFound as error:
                return await with_hint(kube, error, namespace)
            except KubeError as error:
                return error

    results = await asyncio.gather(*(one(name) for name in names))
    return Found(
        [item for item in results if not isinstance(item, KubeError)],
        [item for item in results if isinstance(item, KubeError)],
    )


async def with_hint(kube: Kube, error: NotFound, namespace: str | None) -> NotFound:
    """Return the error of a missing object, with the name that is probably meant.

    That is a similar name, or the namespace of a HyperJob of just this name.
    """
    details = mapping(error.status.get("details"))
    resource, name = _NAMED.get(string(details.get("kind"))), string(details.get("name"))
    if not resource:
        return error
    namespace = namespace if resource is HYPERJOBS else None
    keys = [key_of(each) for each in items(await listed(kube, resource, namespace=namespace))]
    hint = did_you_mean(name, [key.rpartition("/")[2] for key in keys])
    if namespace and not hint:
        named = f"metadata.name={name}"
        keys = [key_of(each) for each in items(await listed(kube, resource, field_selector=named))]
        hint = "".join(f"; there is one in namespace {key.partition('/')[0]}" for key in keys[:1])
    status = make_status(404, error.message + hint, reason=error.reason)
    return NotFound(status, error.request) if hint else error


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
