"""Events about a HyperJob."""

from hyperjob.client.reading import Reading, attempt
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import mapping, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import CORE_EVENTS, HYPERJOBS


async def events_in(kube: Kube, namespace: str) -> Reading:
    """Read the events about all HyperJobs of a namespace."""

    async def ask() -> list[Object]:
        selector = f"involvedObject.kind={HYPERJOBS.kind}"
        return (await kube.list(CORE_EVENTS, namespace=namespace, field_selector=selector)).items

    return await attempt(ask)


async def events_of(kube: Kube, obj: Object) -> Reading:
    """Read the events about an object."""
    metadata = obj["metadata"]

    async def ask() -> list[Object]:
        listed = await kube.list(
            CORE_EVENTS,
            namespace=metadata["namespace"],
            field_selector=f"involvedObject.uid={metadata['uid']}",
        )
        return listed.items

    return await attempt(ask)


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


def event_begin(event: Object) -> str:
    """Return the time at which an Event was first observed."""
    times = (event.get("eventTime"), event.get("firstTimestamp"))
    return next((string(time) for time in times if string(time)), "") or event_time(event)
