"""The debug page of a HyperJob: its observation, and the plan that the controller would make now.

It is served only with `--debug-bind-address`. A request reads memory and causes no API call.
"""

from collections.abc import Callable
from datetime import datetime

import orjson
from aiohttp import web

from hyperjob_controller.insight.explain import QueueState, explain
from hyperjob_controller.memory.reservations import Reservations
from hyperjob_controller.observe import Observer
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_core.telemetry.endpoints import Handler
from hyperjob_engine.plan import plan


def debug_routes(
    observer: Observer,
    reservations: Reservations,
    queue: WorkQueue[str],
    *,
    now: Callable[[], datetime],
) -> dict[str, Handler]:
    """Return the handlers by path."""

    async def show(request: web.Request) -> web.StreamResponse:
        key = f"{request.match_info['namespace']}/{request.match_info['name']}"
        observed = observer.observe(key)
        if observed is None:
            raise web.HTTPNotFound(text=f"no HyperJob {key} is known to this controller\n")
        document = explain(
            observed,
            plan(observed),
            queue=QueueState(failures=queue.failures(key), due_in=queue.due_in(key)),
            reserved=reservations.reserved(now=now()),
        )
        return web.Response(
            body=orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE),
            content_type="application/json",
        )

    return {"/debug/hyperjobs/{namespace}/{name}": show}
