"""Options of several commands, and the files that ship with the package: CRDs and examples."""

import dataclasses
import functools
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, cast

import click

_F = TypeVar("_F", bound=Callable[..., Any])


def options(*made: Callable[[Any], Any]) -> Callable[[_F], _F]:
    """Return a decorator that adds several options, in this order."""
    return lambda command: functools.reduce(lambda inner, one: one(inner), reversed(made), command)


def gathered(name: str, kind: type[Any]) -> Callable[[_F], _F]:
    """Return a decorator by which a command gets the values of several options as one argument.

    The argument is of the dataclass `kind`, whose fields have the names of these options. Its
    ValueError is a usage error.
    """
    known = {each.name for each in dataclasses.fields(kind)}

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def wrapped(**given: Any) -> Any:  # noqa: ANN401 - click's own parameters
            taken = {key: given.pop(key) for key in known & given.keys()}
            try:
                argument = kind(**taken)
            except ValueError as error:
                raise click.UsageError(str(error)) from None
            return function(**given, **{name: argument})

        return cast("_F", wrapped)

    return decorate


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


def data_file(name: str) -> Path:
    """Return the path of `crds/…` or `examples/…`, in the wheel or in a checkout.

    Raises FileNotFoundError when the file is in neither.
    """
    packaged = Path(str(files("hyperjob"))) / "_data" / name
    # An editable install resolves to the checkout, which has both folders at its root.
    checkout = Path(str(files("hyperjob"))).parent / name
    for path in (packaged, checkout):
        if path.exists():
            return path
    raise FileNotFoundError(f"{name} is not part of this installation; reinstall hyperjob")
