"""Options that name files, with the same form in every command."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])


def file_option(*names: str, text: str, writable: bool = False) -> Callable[[_F], _F]:
    """Return an option whose value is the Path of a file that may be absent; None by default."""
    kind = click.Path(path_type=Path, dir_okay=False, writable=writable)
    return click.option(*names, type=kind, metavar="FILE", help=text)


def manifests_option(text: str) -> Callable[[_F], _F]:
    """Return the option `-f FILE`, which may be repeated; `files` holds the paths as typed."""
    return click.option(
        "-f",
        "--filename",
        "files",
        type=click.Path(allow_dash=True),
        metavar="FILE",
        multiple=True,
        help=text,
    )
