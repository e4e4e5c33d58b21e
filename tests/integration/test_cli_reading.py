"""Commands that only look, against an API server on which Roles decide, and a member behind it."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from hyperjob_core.api.names import QUEUE_ADMISSION
from hyperjob_core.kube.resources import LEASES, NAMESPACES
from tests.support.cliworld import CliWorld

pytestmark = [pytest.mark.scenario, pytest.mark.asyncio(loop_scope="module")]


async def test_the_plugin_under_kubectl_is_the_same_program(world: CliWorld) -> None:
    done = await world.plugin("get", "llm", "--no-headers")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:3] == ["llm", "Running", "2/2"]
    assert "\x1b" not in done.stdout
    usage = await world.plugin("get", "--nonsense")
    assert usage.returncode == 2
    assert usage.stderr.startswith("error: No such option")
    assert "See 'kubectl hyperjob get --help' for usage." in usage.stderr


# The limit of 3 s is for people; a loaded machine may take longer to start Python alone.
COMPLETER = """#!/bin/sh
exec {python} -c '
from hyperjob.cli.completion import kubectl_complete
from hyperjob.cli.kubectl import access
access.SECONDS = 60.0
kubectl_complete()' "$@"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["mi"], "migrate"),
        (["why", "q"], "queued"),
        (["get", "-o", "w"], "wide"),
        (["wait", "llm", "--for", "phase=R"], "phase=Running phase=Restarting"),
        (["migrate", "llm", "trainer-"], "trainer-0 trainer-1"),
        (["get", "-n", ""], ""),  # she may not list namespaces
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_kubectl_completes_commands_flags_and_names(
    world: CliWorld, tmp_path: Path, words: list[str], expected: str
) -> None:
    program = tmp_path / "bin" / "kubectl_complete-hyperjob"
    program.parent.mkdir()
    program.write_text(COMPLETER.format(python=sys.executable))
    program.chmod(0o755)
    done = await world.kubectl("__complete", "hyperjob", *words, path=program.parent)
    *found, directive = [line for line in done.stdout.splitlines() if line]
    assert directive == ":4", done.stdout + done.stderr
    assert [line.split("\t")[0] for line in found] == expected.split()


@pytest.mark.parametrize("words", [["tree", "llm"], ["logs", "llm"]], ids=" ".join)
async def test_colours_are_for_terminals_alone(world: CliWorld, words: list[str]) -> None:
    on_terminal = await world.on_terminal(*words)
    assert "\x1b[" in on_terminal
    without = await world.on_terminal(*words, NO_COLOR="1", COLUMNS="300")
    for colour in ("\x1b[31", "\x1b[32", "\x1b[33", "\x1b[36", "\x1b[1;3"):
        assert colour not in without
    piped = await world.run(*words)
    assert "\x1b" not in piped.stdout


async def test_top_says_that_no_controller_leads_without_a_lease_and_with_an_old_one(
    world: CliWorld,
) -> None:
    await world.kube.create(NAMESPACES, {"metadata": {"name": "karmada-system"}})
    lease = {
        "metadata": {
            "name": "hyperjob-controller",
            "namespace": "karmada-system",
            "annotations": {QUEUE_ADMISSION: "builtin"},
        },
        "spec": {"holderIdentity": "gone", "renewTime": "2026-01-01T00:00:00.000000Z"},
    }
    said = "No controller holds the Lease: only one with --no-leader-elect admits HyperJobs"
    assert said in (await world.run("top")).stdout
    await world.kube.create(LEASES, lease)
    assert said in (await world.run("top")).stdout
    assert "queueAdmission" not in json.loads((await world.run("top", "-o", "json")).stdout)


FORMS = [["get", "-o", "json"], ["logs", "llm"]]


@pytest.mark.parametrize("words", [*FORMS, ["get", "-w"], ["--help"]], ids=" ".join)
async def test_whom_nobody_reads_ends_as_kubectl_does(world: CliWorld, words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    assert await world.into(writer, *words) == (-signal.SIGPIPE, "")


@pytest.mark.parametrize("words", FORMS, ids=" ".join)
async def test_output_that_cannot_be_kept_is_an_error_in_one_line(
    world: CliWorld, words: list[str]
) -> None:
    code, said = await world.into(os.open("/dev/full", os.O_WRONLY), *words)
    assert (code, said) == (1, "error: cannot write the output: No space left on device\n")
