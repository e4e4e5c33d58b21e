"""docs/install.md says what is so: its commands are understood, its tables are whole."""

import re
import shlex
from pathlib import Path

import click
import pytest

from hyperjob.cli import main
from hyperjob.install.objects import Part
from hyperjob.install.preflight import CHECKS

PAGE = (Path(__file__).parents[3] / "docs" / "install.md").read_text(encoding="utf-8")
CONSOLE = "\n".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)).replace("\\\n", " ")
COMMANDS = [
    line.removeprefix("$ ") for line in CONSOLE.splitlines() if line.startswith("$ hyperjob ")
]


def rows(header: str) -> list[str]:
    """Give the first cell of each row of a table, without its ticks."""
    table = PAGE[PAGE.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [line.split("|")[1].strip().strip("`") for line in table]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_is_understood(line: str) -> None:
    _, *arguments = shlex.split(line)
    command: click.Command | None = main
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), arguments.pop(0))
    assert command is not None
    known = {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    given = {word.partition("=")[0] for word in arguments if word.startswith("-")}
    assert given <= known


def test_every_command_is_on_the_page() -> None:
    assert {line.split()[1] for line in COMMANDS} == {
        *("install", "uninstall", "preflight", "credentials")
    }


def test_every_check_is_on_the_page_in_its_order() -> None:
    assert rows("| check |") == list(CHECKS)


def test_every_part_is_on_the_page_in_its_order() -> None:
    assert rows("| part |") == list(Part)
