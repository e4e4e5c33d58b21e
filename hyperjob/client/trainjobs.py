"""Why a TrainJob has no HyperJob: its condition, or its last Event."""

from hyperjob.client.errors import ClientError, NeverError, NotYetError
from hyperjob.client.events import event_time, events_of
from hyperjob.client.reading import items
from hyperjob_core.api.trainer import FAILED, RUNS_AS, RUNS_AS_HYPERJOB
from hyperjob_core.api.wire import condition, mapping, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import TRAINJOBS


async def without_hyperjob(kube: Kube, namespace: str, name: str) -> ClientError:
    """Return the reason why a TrainJob has no HyperJob, as an error; raises KubeError."""
    trainjob = await kube.get(TRAINJOBS, name, namespace=namespace)
    failed = condition(mapping(trainjob.get("status")), FAILED)
    title = f"trainjob/{name}"
    if failed.get("status") == "True":
        return NeverError(f"{title} failed ({failed.get('reason')}): {failed.get('message')}")
    events = sorted(items(await events_of(kube, trainjob)), key=event_time)
    warnings = [each for each in events if each.get("type") == "Warning"]
    if warnings:
        return NotYetError(f"{title}: {string(warnings[-1].get('message'))}")
    return NotYetError(
        f"{title} has no HyperJob: the controller makes one of a TrainJob whose label, or that of"
        f" its runtime or namespace, is {RUNS_AS}={RUNS_AS_HYPERJOB}; see hyperjob preflight"
    )
