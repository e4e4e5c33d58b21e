"""The external splitter of the examples: its program, and an application of aiohttp."""

import importlib.util
from pathlib import Path
from typing import Any

from aiohttp import web

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "splitter.py"


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("example_splitter", PROGRAM)
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


answer = _loaded().answer
"""Return the SplitResponse to a SplitRequest."""


def application(token: str = "") -> web.Application:
    """Return an application that answers as the example, to requests with the token if any."""

    async def split(request: web.Request) -> web.Response:
        if token and request.headers.get("Authorization") != f"Bearer {token}":
            return web.Response(status=401)
        return web.json_response(answer(await request.json()))

    made = web.Application()
    made.router.add_post("/", split)
    return made
