"""List HyperJobs by name or selector, and read other kinds and Events where the user may."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from hyperjob.client.errors import ClientError, NeverError, NotYetError, title
from hyperjob_core.api.field import make_status
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAMESPACE, lease_name
from hyperjob_core.api.trainer import FAILED, RUNS_AS, RUNS_AS_HYPERJOB
from hyperjob_core.api.wire import condition, is_true, mapping, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.reflector import states
from hyperjob_core.kube.resources import (
    CLUSTERS,
    CORE_EVENTS,
    HYPERJOBS,
    LEASES,
    QUEUES,
    TRAINJOBS,
    Resource,
    key_of,
)
from hyperjob_core.tasks import at_once
from hyperjob_core.text import did_you_mean

_R = TypeVar("_R")
_NAMED: Final = {each.plural: each for each in (CLUSTERS, HYPERJOBS, QUEUES)}

Reading = list[Object] | KubeError
"""The objects, or the error of the request: a command works with the objects that it may read."""


@dataclass(frozen=True, slots=True)
class Target:
    """A HyperJob of an API server by its name; it may not exist."""

    kube: Kube
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """Return its name as kubectl prints names."""
        return title(self.name)

    @property
    def why(self) -> str:
        """Return the command that explains its state."""
        return f"kubectl hyperjob why {self.name} -n {self.namespace}"

    async def get(self) -> Object:
        """Read it; raises KubeError."""
        return await self.kube.get(HYPERJOBS, self.name, namespace=self.namespace)

    def states(self) -> AsyncGenerator[Object | None, None]:
        """Yield it now and after each change, None where it does not exist; it has no end."""
        return states(self.kube, HYPERJOBS, self.name, namespace=self.namespace)


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

    async def one(name: str) -> Object:
        try:
            return await kube.get(HYPERJOBS, name, namespace=namespace)
        except NotFound as error:
            raise await with_hint(kube, error, namespace) from None

    found, errors = await answers(one, names)
    return Found([*found.values()], [*errors.values()])


async def answers(
    ask: Callable[[str], Awaitable[_R]], names: Iterable[str], *, most: int = 16
) -> tuple[dict[str, _R], dict[str, KubeError]]:
    """Ask about each name, `most` at a time; return the answers, and the errors of the others."""

    async def one(name: str) -> _R | KubeError:
        try:
            return await ask(name)
        except KubeError as error:
            return error

    names = list(dict.fromkeys(names))
    results = dict(zip(names, await at_once(one, names, most=most), strict=True))
    return (
        {name: each for name, each in results.items() if not isinstance(each, KubeError)},
        {name: each for name, each in results.items() if isinstance(each, KubeError)},
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


def is_ready(cluster: Object) -> bool:
    """Return whether a Cluster is Ready: Karmada's proxy reaches it."""
    return is_true(cluster, "Ready")


def why_not_ready(cluster: Object) -> str:
    """Return the message of a Cluster that is not Ready, else its reason."""
    ready = condition(mapping(cluster.get("status")), "Ready")
    return string(ready.get("message")) or string(ready.get("reason")) or "its status has no reason"


async def events_of(kube: Kube, obj: Object) -> Reading:
    """Read the events about an object."""
    metadata = obj["metadata"]
    selector = f"involvedObject.uid={metadata['uid']}"
    return await listed(kube, CORE_EVENTS, namespace=metadata["namespace"], field_selector=selector)


def event_time(event: Object) -> str:
    """Return the time at which an Event was last observed."""
    series = mapping(event.get("series"))
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        mapping(event.get("metadata")).get("creationTimestamp"),
    )
    return next((string(time) for time in times if string(time)), "")


async def without_hyperjob(kube: Kube, namespace: str, name: str) -> ClientError:
    """Return the reason why a TrainJob has no HyperJob, as an error; raises KubeError."""
    trainjob = await kube.get(TRAINJOBS, name, namespace=namespace)
    failed = condition(mapping(trainjob.get("status")), FAILED)
    who = f"trainjob/{name}"
    if failed.get("status") == "True":
        return NeverError(f"{who} failed ({failed.get('reason')}): {failed.get('message')}")
    events = sorted(items(await events_of(kube, trainjob)), key=event_time)
    warnings = [each for each in events if each.get("type") == "Warning"]
    if warnings:
        return NotYetError(f"{who}: {string(warnings[-1].get('message'))}")
    return NotYetError(
        f"{who} has no HyperJob: the controller makes one of a TrainJob whose label, or that of"
        f" its runtime or namespace, is {RUNS_AS}={RUNS_AS_HYPERJOB}; see hyperjob preflight"
    )
