"""The debug pages: the members, and what the controller remembers between passes.

It is served only with `--debug-bind-address`. A request reads memory and causes no API call.
"""

from collections.abc import Callable
from datetime import datetime

import orjson
from aiohttp import web

from hyperjob_controller.members.reader import Members
from hyperjob_controller.memory.memory import Memory
from hyperjob_controller.wall import Wall
from hyperjob_core.telemetry.endpoints import Handler

_FORM = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def debug_routes(
    memory: Memory, wall: Wall, *, now: Callable[[], datetime], members: Members | None = None
) -> dict[str, Handler]:
    """Return the handlers by path."""

    async def show_members(_request: web.Request) -> web.StreamResponse:
        body = orjson.dumps({} if members is None else members.state(now()), option=_FORM)
        return web.Response(body=body, content_type="application/json")

    async def remember(_request: web.Request) -> web.StreamResponse:
        return web.Response(text=f"{memory}\nIncidents: {wall}\n")

    return {"/debug/members": show_members, "/debug/memory": remember}
