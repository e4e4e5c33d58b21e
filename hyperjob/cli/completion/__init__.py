"""Shell completion: for `hyperjob` by the shell's own means, for `kubectl hyperjob` by kubectl's.

kubectl calls a program `kubectl_complete-hyperjob` with the words after the plugin's name and reads
one candidate a line, then a directive.
"""

import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

_VARIABLE = "_HYPERJOB_COMPLETE"
_NO_FILES = ":4"
_FILES = ":0"
_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print a script that completes `hyperjob` in a shell.

    `kubectl hyperjob` is completed by kubectl's own completion: kubectl finds the program
    kubectl_complete-hyperjob, which is installed beside hyperjob.

    Example: source <(hyperjob completion bash)
    """
    from hyperjob.cli import main

    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"no completion is known for {shell}")
    # Bash's own way would first ask the bash on PATH for its version, and there may be none.
    script = ShellComplete.source(found(main, {}, "hyperjob", _VARIABLE))
    # For fish click cuts at every comma, also at those of a description.
    click.echo(script.replace('(string split "," ', '(string split -m 1 "," '))


def candidates(words: Sequence[str]) -> list[CompletionItem]:
    """Give what may follow; the last word is the one being typed."""
    from hyperjob.cli import main

    *args, incomplete = words or [""]
    return ShellComplete(main, {}, "hyperjob", _VARIABLE).get_completions(list(args), incomplete)


def kubectl_complete() -> None:
    """Answer kubectl's question, as cobra's programs do."""
    os.environ.setdefault("NO_COLOR", "1")
    items = candidates(sys.argv[1:])
    files = any(item.type in ("file", "dir") for item in items)
    for item in items:
        if item.type == "plain":
            text = " ".join((item.help or "").split())
            click.echo(f"{item.value}\t{text}" if text else item.value)
    click.echo(_FILES if files else _NO_FILES)
