"""Names of HyperJobs on the command line."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hyperjob_core.api.names import GROUP

_PREFIXES = frozenset({"hj", "hyperjob", "hyperjobs", f"hyperjob.{GROUP}", f"hyperjobs.{GROUP}"})

_F = TypeVar("_F", bound=Callable[..., Any])


class HyperJobName(click.ParamType[str]):
    """The name of a HyperJob, or `hyperjob/NAME` as `kubectl get -o name` prints it."""

    name = "name"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the name without its kind; another kind is a usage error."""
        kind, slash, name = str(value).rpartition("/")
        if (slash and kind.lower() not in _PREFIXES) or not name:
            self.fail(f"{value!r} is not the name of a HyperJob: give NAME or hj/NAME", param, ctx)
        return name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """List the HyperJobs of the namespace; empty if the API server does not answer in time."""
        from hyperjob.cli.kubectl.offers import HYPERJOB, offered

        return offered(ctx, param, incomplete, HYPERJOB)


def name_argument() -> Callable[[_F], _F]:
    """Return a decorator that adds the argument NAME of one HyperJob."""
    return click.argument("name", type=HyperJobName())


def names_argument(*, required: bool) -> Callable[[_F], _F]:
    """Return a decorator that adds the argument NAME, given once for each HyperJob."""
    return click.argument(
        "names", metavar="[NAME]..." if not required else "NAME...", nargs=-1, required=required,
        type=HyperJobName(),
    )  # fmt: skip
