"""What a first mistake is answered with: a mistyped command, a server that is not there."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from hyperjob.cli import main
from tests.support.kubeconfigs import UNREACHABLE


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("lnit", "No such command 'lnit'; did you mean 'lint'?"),
        ("restrat", "No such command 'restrat'; did you mean 'restart'?"),
        ("xyzzy", "error: No such command 'xyzzy'\n"),
        ("list", "error: No such command 'list'; use: hyperjob get\n"),
        ("delete", "error: No such command 'delete'; use: kubectl delete hj NAME\n"),
        ("version", "error: No such command 'version'; use: hyperjob --version\n"),
    ],
)
def test_a_mistyped_command_names_the_nearest(typed: str, said: str) -> None:
    done = CliRunner().invoke(main, [typed])
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    "command",
    [["get"], ["get", "-w"], ["wait", "llm", "--for=phase=Running", "--timeout=0"], ["top"]],
    ids=" ".join,
)
def test_a_server_that_is_not_there_is_told_at_once_in_plain_words(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(UNREACHABLE, encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1
    assert done.stderr == (
        "Unable to connect to the server: could not talk to http://127.0.0.1:1:"
        " Connection refused\n"
    )
