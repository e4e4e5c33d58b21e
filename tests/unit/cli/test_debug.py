"""`hyperjob debug` prints what the controller answers, and says how to reach one that does not."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner, Result

from hyperjob.cli import main

KNOWN = {"hyperjob": "ml/llm", "decision": {"actions": []}}


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async def show(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name == "page":
            return web.Response(text="<html>")
        if name != "llm" or request.match_info["namespace"] != "ml":
            raise web.HTTPNotFound(text="no such HyperJob is known to this controller\n")
        return web.json_response(KNOWN)

    app = web.Application()
    app.router.add_get("/debug/hyperjobs/{namespace}/{name}", show)
    async with TestServer(app, host="127.0.0.1") as server:
        yield f"127.0.0.1:{server.port}"


async def run(*words: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, main, ["debug", "-n", "ml", *words])


async def test_the_answer_is_printed_as_yaml_or_json(address: str) -> None:
    shown = await run("llm", "--address", address)
    assert (shown.exit_code, yaml.safe_load(shown.stdout)) == (0, KNOWN)
    as_json = await run("hj/llm", "--address", address, "-o", "json")
    assert json.loads(as_json.stdout) == KNOWN


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("other", "answers 404: no such HyperJob is known"),
        ("page", "is no debug address of a HyperJob controller"),
    ],
)
async def test_another_answer_is_an_error(address: str, name: str, said: str) -> None:
    shown = await run(name, "--address", address)
    assert shown.exit_code == 1
    assert said in shown.stderr


async def test_where_nobody_answers_it_says_how_to_reach_the_controller() -> None:
    shown = await run("llm", "--address", "127.0.0.1:1")
    assert shown.exit_code == 1
    assert "no controller answers at http://127.0.0.1:1/debug/hyperjobs/ml/llm" in shown.stderr
    assert "port-forward" in shown.stderr
