"""Completion in the shells themselves, where the machine has them."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hyperjob.cli import main
from hyperjob.cli.completion import candidates
from tests.support.processes import ran

BASH = """
COMP_WORDS=(hyperjob wh); COMP_CWORD=1; COMPREPLY=()
_hyperjob_completion hyperjob wh
echo "${COMPREPLY[@]}"
"""
FISH = 'complete -C "hyperjob wh"'
ZSH = """
_describe() { print -l "${(P@)3}" }
words=(hyperjob wh); CURRENT=2; _hyperjob_completion
"""
TEXT = "Explain why a HyperJob is not running, and what to do."


@pytest.mark.parametrize(
    ("shell", "flags", "before", "ask", "expected"),
    [
        ("bash", ["--norc"], "", BASH, "why"),
        ("fish", ["--no-config"], "", FISH, f"why\t{TEXT}"),
        ("zsh", ["-f"], "autoload -U compinit; compinit -u -D", ZSH, f"why:{TEXT}"),
    ],
    ids=["bash", "fish", "zsh"],
)
def test_a_shell_completes_a_command_with_its_whole_description(
    tmp_path: Path, shell: str, flags: list[str], before: str, ask: str, expected: str
) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    made = CliRunner().invoke(main, ["completion", shell]).output
    (tmp_path / "script").write_text(f"{before}\n{made}\n{ask}\n")
    done = ran(
        program,
        *flags,
        str(tmp_path / "script"),
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
        },
    )
    assert done.stdout.strip() == expected, done.stderr


@pytest.mark.parametrize(
    "words", [["plan", "-f", "x"], ["lint", "x"], ["get", "--kubeconfig", "x"]]
)
def test_where_a_file_is_meant_files_are_offered(words: list[str]) -> None:
    assert [item.type for item in candidates(words)] == ["file"]
