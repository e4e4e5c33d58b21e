"""Names of HyperJobs on the command line."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hyperjob.api.names import GROUP

_PREFIXES = frozenset({"hj", "hyperjob", "hyperjobs", f"hyperjob.{GROUP}", f"hyperjobs.{GROUP}"})

_F = TypeVar("_F", bound=Callable[..., Any])


class HyperJobName(click.ParamType[str]):
    """A name, also as `kubectl get -o name` prints it."""

    name = "name"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Strip `hyperjob.training.volcano.sh/`; another kind is a usage error."""
        kind, slash, name = str(value).rpartition("/")
        if (slash and kind.lower() not in _PREFIXES) or not name:
            self.fail(f"{value!r} names no HyperJob: give a name, or hj/NAME", param, ctx)
        return name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """List the HyperJobs of the namespace; nothing when they cannot be read in time."""
        from hyperjob.cli.kubectl.offers import HYPERJOB, offered

        return offered(ctx, param, incomplete, HYPERJOB)


def name_argument() -> Callable[[_F], _F]:
    """Give a command one HyperJob."""
    return click.argument("name", type=HyperJobName())


def names_argument(*, required: bool) -> Callable[[_F], _F]:
    """Give a command HyperJobs."""
    return click.argument(
        "names", metavar="[NAME]..." if not required else "NAME...", nargs=-1, required=required,
        type=HyperJobName(),
    )  # fmt: skip
