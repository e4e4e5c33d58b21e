"""Events about a HyperJob."""

from hyperjob.client.reading import Reading, listed
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import mapping, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import CORE_EVENTS


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
