"""Escape sequences in objects, files and logs, printed by the real command on a terminal."""

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
import yaml

from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.telemetry import logs
from tests.support.cliworld import hyperjob, open_world, status
from tests.support.terminal import shown_on_terminal

pytestmark = [pytest.mark.scenario, pytest.mark.asyncio(loop_scope="module")]

ATTACKS = {
    "the clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "the title": "\x1b]0;evil\x1b\\",
    "the screen": "\x1b[2J\x1b[1;1H",
    "a link": "\x1b]8;;https://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "the clipboard by C1": "\x9d52;c;ZXZpbA==\x9c",
    "the screen by C1": "\x9b2J",
    "the line": "good\rbad\x08\x7f",
    "the direction": "\u202egnp.exe\u2066",
    "what is not seen": "ad\u200bmin\u2060\u00ad\u3164\U000e0041\U000e007f",
}
HYPERJOB = [sys.executable, "-m", "hyperjob"]
ALL = "".join(ATTACKS.values())
FOREIGN = re.compile(
    r"\x1b(?!\[[0-9;]*m|\[\?25[lh]|\[2K|\[1A)|[\x00-\x08\x0b\x0c\x0e-\x1a\x7f-\x9f]"
    r"|[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\u3164\U000e0000-\U000e007f]"
)
"""Controls other than colours and a progress line's cursor, and invisible characters.

A terminal adds CR to NL.
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    async with AsyncExitStack() as stack:
        world = await open_world(stack, tmp_path_factory.mktemp("cli"))
        evil = hyperjob("evil", queue=f"q{ALL}")
        evil["metadata"]["annotations"] = {"example.com/note": ALL}
        told = status(
            "evil",
            "Pending",
            {"cluster": f"east{ALL}", "reason": f"r{ALL}", "message": f"m{ALL}"},
            message=f"waits{ALL}",
        )
        told["queue"] = f"q{ALL}"
        told["state"]["reason"] = f"R{ALL}"
        await world.make(HYPERJOBS, evil, told)
        yield world


def nothing_obeyed(shown):
    assert not (found := FOREIGN.search(shown)), shown[max(0, found.start() - 40) :][:200]
    assert "\u202e" not in shown
    assert re.search(r"[^\n]*\r(?!\r*\n)(?!\x1b)", shown) is None


@pytest.mark.parametrize(
    "words",
    [
        ["get", "-o", "wide"],
        ["get", "evil", "-o", "json"],
        ["get", "evil", "-o", "yaml"],
        ["tree", "evil"],
        ["top"],
    ],
    ids=" ".join,
)
async def test_what_objects_say_is_shown_and_not_obeyed(world, words):
    shown = await world.on_terminal(*words, COLUMNS="5000")
    assert "evil" in shown or words == ["top"]
    nothing_obeyed(shown)
    if words[-1] in ("json", "yaml"):
        parsed = (json.loads if words[-1] == "json" else yaml.safe_load)(shown)
        assert parsed["metadata"]["annotations"]["example.com/note"] == ALL, "and nothing is lost"


@pytest.mark.parametrize("name", ["evil", f"no{ALL}"], ids=["a status", "an error"])
async def test_what_why_says_is_shown_and_not_obeyed(world, name):
    shown = await terminal([*HYPERJOB, "why", name], kubeconfig=world.kubeconfig)
    assert re.search(r"u001b|\^\[|x1b|%1B", shown), shown
    nothing_obeyed(shown)


@pytest.mark.parametrize("command", ["lint", "plan"])
async def test_what_files_say_is_shown_and_not_obeyed(world, tmp_path, command):
    bad = hyperjob(f"bad{ALL}")
    bad["spec"]["replicatedJobs"][0]["name"] = f"job{ALL}"
    bad["spec"][f"field{ALL}"] = 1
    (tmp_path / f"f\x1b]0;x\x07{command}.yaml").write_text(json.dumps(bad))
    (file,) = tmp_path.iterdir()
    words = ["lint", str(file)] if command == "lint" else ["plan", "-f", str(file)]
    shown = await terminal([*HYPERJOB, *words], kubeconfig=world.kubeconfig)
    assert shown.strip()
    nothing_obeyed(shown)


PRINT = """
import sys
from hyperjob.cli import main
from hyperjob.cli.kubectl.terminal import escaped
from hyperjob.cli.logs import Printer
from hyperjob.client.logs.choosing import ContainerLog
import inspect
fields = {name: "x" for name in inspect.signature(ContainerLog).parameters}
printer = Printer(prefix=True, timestamps=False, as_json=sys.argv[1] == "json")
with escaped():
    printer.print(ContainerLog(**fields), sys.stdin.buffer.read())
"""


async def terminal(command, *, stdin=b"", kubeconfig=""):
    """Show what a command writes on a terminal, whatever its exit code."""
    env = {**os.environ, "KUBECONFIG": str(kubeconfig), "TERM": "xterm-256color"}
    return (await asyncio.to_thread(shown_on_terminal, command, env, stdin=stdin))[1]


LINE = f"loss 0.1 \x1b[31mred\x1b[0m {ALL}".encode()


async def test_a_log_line_on_a_terminal_keeps_its_colours_alone():
    shown = await terminal([sys.executable, "-c", PRINT, "text"], stdin=LINE)
    nothing_obeyed(shown)
    assert "\x1b[31mred" in shown
    nothing_obeyed(await terminal([sys.executable, "-c", PRINT, "json"], stdin=LINE))


async def test_a_log_line_is_untouched_where_it_is_piped():
    command = [sys.executable, "-c", PRINT, "text"]
    piped = await asyncio.to_thread(
        subprocess.run, command, input=LINE, capture_output=True, check=True, timeout=60
    )
    assert piped.stdout.rstrip(b"\n").endswith(LINE)


async def test_what_an_encoding_lacks_becomes_simple_text():
    code = "from hyperjob.cli.kubectl.terminal import escaped\nwith escaped(): print('├─ a… é')"
    shown = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert shown.stdout == b"|- a... ?\n"


@pytest.mark.parametrize("form", ["text", "json"])
async def test_the_log_of_a_process_is_one_line_a_record_without_controls(form, capsys):
    before = logging.getLogger().handlers[:]
    try:
        logs.setup(format=form)
        logging.getLogger("x").warning(
            "said %s", f"{ALL}\nforged", extra={"user": f"{ALL}\nforged"}
        )
    finally:
        logging.getLogger().handlers[:] = before
    (line,) = capsys.readouterr().err.splitlines()
    nothing_obeyed(line)
