"""docs/install.md says what is so: its commands are understood, its tables are whole."""

import re
import shlex
from pathlib import Path

import click
import pytest

from hyperjob.cli import main
from hyperjob.cli.preflight import CHECK
from hyperjob_certs.__main__ import _parser
from hyperjob_controller import options as controller_options
from hyperjob_install.objects import Component
from hyperjob_install.preflight import CHECKS
from hyperjob_webhook import options as webhook_options
from tests.support.helm import CHART, MAJORS, run, template, unpack

PAGE = (Path(__file__).parents[3] / "docs" / "install.md").read_text(encoding="utf-8")
CONSOLE = "\n".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)).replace("\\\n", " ")
COMMANDS = [
    line.removeprefix("$ ") for line in CONSOLE.splitlines() if line.startswith("$ hyperjob ")
]


def rows(header: str) -> list[str]:
    """Give the first cell of each row of a table, without its ticks."""
    table = PAGE[PAGE.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [line.split("|")[1].strip().strip("`") for line in table]


CERTS = [
    line.removeprefix("$ hyperjob-certs ")
    for line in CONSOLE.splitlines()
    if line.startswith("$ hyperjob-certs ")
]
UNITS = re.findall(r"^ExecStart=/opt/hyperjob/bin/(.*?[^\\])$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("line", CERTS)
def test_a_command_for_certificates_is_understood(line: str) -> None:
    _parser().parse_args(shlex.split(line))


def test_the_units_start_both_processes_with_options_they_have() -> None:
    found = {
        words[0]: words[1:] for words in map(shlex.split, (u.replace("\\\n", " ") for u in UNITS))
    }
    assert controller_options.parse(found["hyperjob-controller"]).kubeconfig
    assert webhook_options.parse(found["hyperjob-webhook"]).kubeconfig
    assert set(found) == {"hyperjob-controller", "hyperjob-webhook"}


def test_the_manifests_of_the_chart_wait_for_the_secrets_that_the_page_makes(
    tmp_path: Path,
) -> None:
    text = str(template(unpack("helm4", tmp_path), {"setup": {"enabled": False}}))
    for secret in ("webhook-tls", "controller-karmada", "webhook-karmada"):
        assert f"hyperjob-{secret}" in text
        assert f"hyperjob-{secret}" in CONSOLE


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
    assert rows("| check |") == [*CHECKS, CHECK]


def test_every_part_is_on_the_page_in_its_order() -> None:
    assert rows("| part |") == list(Component)


def test_the_manifests_by_hand_have_no_hooks_that_kubectl_would_run_at_once(tmp_path: Path) -> None:
    (line,) = (
        line for line in CONSOLE.splitlines() if line.startswith("$ helm template hyperjob ")
    )
    words = shlex.split(line.removeprefix("$ helm ").partition(" > ")[0])
    words[words.index("charts/hyperjob")] = str(CHART)
    for major in MAJORS:
        made = run(unpack(major, tmp_path), *words).stdout
        assert "kind: Deployment" in made
        assert "helm.sh/hook" not in made
