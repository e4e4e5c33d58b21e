"""The debug pages: observation and plan of a HyperJob, the members, the controller's memory.

It is served only with `--debug-bind-address`. A request reads memory and causes no API call.
"""

from collections.abc import Callable
from datetime import datetime

import orjson
from aiohttp import web

from hyperjob_controller.insight.explain import QueueState, explain
from hyperjob_controller.members.reader import Members
from hyperjob_controller.memory.memory import Memory
from hyperjob_controller.observe import Observer
from hyperjob_controller.wall import Wall
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_core.telemetry.endpoints import Handler
from hyperjob_engine.plan import plan


def debug_routes(
    observer: Observer,
    memory: Memory,
    queue: WorkQueue[str],
    wall: Wall,
    *,
    now: Callable[[], datetime],
    members: Members | None = None,
) -> dict[str, Handler]:
    """Return the handlers by path."""

    async def show(request: web.Request) -> web.StreamResponse:
        key = f"{request.match_info['namespace']}/{request.match_info['name']}"
        seen = observer.objects_of(key)
        if seen is None:
            raise web.HTTPNotFound(text=f"no HyperJob {key} is known to this controller\n")
        observed = observer.observe(seen)
        document = explain(
            observed,
            plan(observed),
            queue=QueueState(failures=queue.failures(key), due_in=queue.due_in(key)),
            reserved=memory.reservations.reserved(now=now()),
        )
        return _json(document)

    async def show_members(_request: web.Request) -> web.StreamResponse:
        return _json({} if members is None else members.state(now()))

    async def remember(_request: web.Request) -> web.StreamResponse:
        return web.Response(text=f"{memory}\nIncidents: {wall}\n")

    return {
        "/debug/hyperjobs/{namespace}/{name}": show,
        "/debug/members": show_members,
        "/debug/memory": remember,
    }


def _json(document: object) -> web.Response:
    return web.Response(
        body=orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE),
        content_type="application/json",
    )
