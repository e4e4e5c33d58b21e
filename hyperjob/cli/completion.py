"""Shell completion: click completes `hyperjob`, kubectl completes `kubectl hyperjob`.

kubectl runs the program `kubectl_complete-hyperjob` with the arguments after the plugin's name and
reads one candidate per line, then a directive.
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

    kubectl's own completion completes `kubectl hyperjob`: kubectl runs the program
    kubectl_complete-hyperjob, which is installed beside hyperjob.

    Example: source <(hyperjob completion bash)
    """
    from hyperjob.cli import main

    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"there is no completion script for {shell}")
    # click's class for bash runs the bash on PATH to read its version, and PATH may have no bash.
    script = ShellComplete.source(found(main, {}, "hyperjob", _VARIABLE))
    # click's script for fish splits at every comma, also at those of a description.
    click.echo(script.replace('(string split "," ', '(string split -m 1 "," '))


def candidates(words: Sequence[str]) -> list[CompletionItem]:
    """Return the completions of the last of `words`, the word that the user is typing."""
    from hyperjob.cli import main

    *args, incomplete = words or [""]
    return ShellComplete(main, {}, "hyperjob", _VARIABLE).get_completions(list(args), incomplete)


def kubectl_complete() -> None:
    """Print the completions and the directive in the format of cobra, which kubectl reads."""
    os.environ.setdefault("NO_COLOR", "1")
    items = candidates(sys.argv[1:])
    files = any(item.type in ("file", "dir") for item in items)
    for item in items:
        if item.type == "plain":
            text = " ".join((item.help or "").split())
            click.echo(f"{item.value}\t{text}" if text else item.value)
    click.echo(_FILES if files else _NO_FILES)
