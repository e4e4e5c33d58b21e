"""Events about a HyperJob."""

from typing import Final

from controller.model.wire import mapping, string
from hyperjob.api.meta import Object
from hyperjob.client.reading import Reading, attempt
from hyperjob.kube.client import Kube
from hyperjob.kube.resources import Resource

# Every release serves these field selectors for Events of the core group.
_EVENTS: Final = Resource("", "v1", "events", "Event")


async def events_of(kube: Kube, obj: Object) -> Reading:
    """Read the events about an object."""
    metadata = obj["metadata"]

    async def ask() -> list[Object]:
        listed = await kube.list(
            _EVENTS,
            namespace=metadata["namespace"],
            field_selector=f"involvedObject.uid={metadata['uid']}",
        )
        return listed.items

    return await attempt(ask)


def event_time(event: Object) -> str:
    """Give when an event was last seen."""
    series = mapping(event.get("series"))
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        mapping(event.get("metadata")).get("creationTimestamp"),
    )
    return next((string(time) for time in times if string(time)), "")
