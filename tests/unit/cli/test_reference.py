"""The page of the command line is made from the commands, and every command has an example."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from docs.generators.rights import RIGHTS
from hyperjob.cli import GROUPS, main

ROOT = Path(__file__).resolve().parents[3]
NAMES = [name for commands in GROUPS.values() for name in commands]


def command(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


def test_the_page_is_current(tmp_path: Path) -> None:
    # In a process of its own: click remembers of each command how its help was first asked for.
    made = tmp_path / "cli.md"
    command = [sys.executable, "-m", "docs.generators.cli", made]
    subprocess.run(command, cwd=ROOT, check=True, timeout=60)
    page = ROOT / "docs" / "reference" / "cli.md"
    assert page.read_text(encoding="utf-8") == made.read_text(encoding="utf-8"), (
        "run: python -m docs.generators.cli docs/reference/cli.md"
    )


def leaves(name: str, found: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(found, click.Group):
        for sub, inner in found.commands.items():
            yield from leaves(f"{name} {sub}", inner)
    else:
        yield name, found


LEAVES = {path: leaf for name in NAMES for path, leaf in leaves(name, command(name))}


@pytest.mark.parametrize("path", [path for path in LEAVES if path != "completion"])
def test_the_example_of_a_command_is_one_that_it_takes(path: str) -> None:
    text = " ".join((LEAVES[path].help or "").split())
    examples = re.findall(rf"Example: (?:kubectl )?hyperjob {path} ?(.*?)(?= Example:|$)", text)
    assert examples, text
    # a file that an example names need not be there
    some_file = str(ROOT / "README.md")
    for example in examples:
        words = [
            some_file if re.search(r"\.(yaml|crt|config)$", word) else word
            for word in shlex.split(example)
        ]
        LEAVES[path].make_context(path, words)


def test_every_command_that_asks_about_hyperjobs_names_its_rights() -> None:
    shown = {*GROUPS["Look at HyperJobs"], *GROUPS["Change running HyperJobs"], "plan", "run"}
    assert shown == set(RIGHTS)


@pytest.mark.parametrize("name", sorted(RIGHTS))
def test_every_such_command_takes_the_flags_of_kubectl(name: str) -> None:
    options = {option for param in LEAVES[name].params for option in param.opts}
    assert {"--kubeconfig", "--context", "-n", "--namespace"} <= options
    if name in ("exec", "port-forward"):
        return  # their output is that of kubectl
    form = next(param for param in command(name).params if param.name == "form")
    assert isinstance(form.type, click.Choice)
    assert "json" in form.type.choices


def test_help_shows_every_command_under_a_heading_and_imports_none() -> None:
    text = main.get_help(click.Context(main, info_name="hyperjob"))
    for title, commands in GROUPS.items():
        assert f"{title}:" in text
        for name, line in commands.items():
            assert re.search(rf"^  {name} +{re.escape(line[:30])}", text, re.MULTILINE)
