"""What the API server answers for a pod beyond reading and writing: its log."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

from hyperjob_sandbox.apiserver.core.core import Core
from hyperjob_sandbox.apiserver.state.store import Stored
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, Stream
from hyperjob_sandbox.apiserver.verbs import podlogs

_FOLLOW_SECONDS = 0.5


def log(core: Core, call: Call, *, closing: Callable[[], bool]) -> Reply | Stream:
    """Print a container's log: no container runs here, so it is made from the pod's times."""
    query = call.info.query
    pod, now = _pod(core, call).obj, _utc_now()
    container = podlogs.container_of(pod, query.get("container", ""))
    options = podlogs.Options.read(query, now)
    previous = call.info.flag("previous")
    found = podlogs.entries(pod, container, now, previous=previous)
    if previous or not call.info.flag("follow"):
        return Reply(200, podlogs.text(found, options), "text/plain")
    return Stream(_follow(core, call, container, options, closing=closing), "text/plain")


async def _follow(
    core: Core,
    call: Call,
    container: str,
    options: podlogs.Options,
    *,
    closing: Callable[[], bool],
) -> AsyncIterator[bytes]:
    """Go on with the log of one run of a container until that has ended, or its pod is gone."""
    told, run = 0, None
    while not closing():
        live = core.find(call.resource, call.info.namespace, call.info.name)
        if live is None:
            return
        restarts = podlogs.restarts(live.obj, container)
        run = restarts if run is None else run
        over = restarts > run
        found = podlogs.entries(live.obj, container, _utc_now(), previous=over)
        if len(found) > told:
            yield podlogs.text(found[told:], options if not told else options.rest)
            told = len(found)
        if over or podlogs.has_ended(live.obj, container):
            return
        await asyncio.sleep(_FOLLOW_SECONDS)


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _pod(core: Core, call: Call) -> Stored:
    live = core.find(call.resource, call.info.namespace, call.info.name)
    if live is None:
        raise call.not_found()
    return live
