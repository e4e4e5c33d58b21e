"""Names of HyperJobs on the command line."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hyperjob_core.api.names import GROUP
from hyperjob_core.api.trainer import TRAINER_GROUP

_PREFIXES = frozenset({"hj", "hyperjob", "hyperjobs", f"hyperjob.{GROUP}", f"hyperjobs.{GROUP}"})

_TRAINJOBS = frozenset(
    {"trainjob", "trainjobs", f"trainjob.{TRAINER_GROUP}", f"trainjobs.{TRAINER_GROUP}"}
)

_F = TypeVar("_F", bound=Callable[..., Any])


class TrainJobName(str):
    """The name of a TrainJob, which its HyperJob has too."""

    __slots__ = ()


class HyperJobName(click.ParamType[str]):
    """The name of a HyperJob, or `hyperjob/NAME` as `kubectl get -o name` prints it.

    With `trainjobs` also `trainjob/NAME`, which becomes a TrainJobName.
    """

    name = "name"

    def __init__(self, *, trainjobs: bool = False) -> None:
        self._trainjobs = trainjobs

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the name without its kind; another kind is a usage error."""
        kind, slash, name = str(value).rpartition("/")
        if name and self._trainjobs and kind.lower() in _TRAINJOBS:
            return TrainJobName(name)
        if (slash and kind.lower() not in _PREFIXES) or not name:
            self.fail(f"{value!r} is not the name of a HyperJob: give NAME or hj/NAME", param, ctx)
        return name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """List the HyperJobs of the namespace; empty if the API server does not answer in time."""
        from hyperjob.cli.kubectl.offers import HYPERJOB, offered

        return offered(ctx, param, incomplete, HYPERJOB)


def name_argument(*, trainjobs: bool = False) -> Callable[[_F], _F]:
    """Return a decorator that adds the argument NAME of one HyperJob, or of a TrainJob."""
    return click.argument("name", type=HyperJobName(trainjobs=trainjobs))


def names_argument(*, required: bool, trainjobs: bool = False) -> Callable[[_F], _F]:
    """Return a decorator that adds the argument NAME, given once for each HyperJob or TrainJob."""
    return click.argument(
        "names", metavar="[NAME]..." if not required else "NAME...", nargs=-1, required=required,
        type=HyperJobName(trainjobs=trainjobs), callback=_without_kind,
    )  # fmt: skip


def _without_kind(
    _ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Take `hj NAME` for NAME, as people type it for kubectl."""
    return names[1:] if len(names) > 1 and names[0].lower() in _PREFIXES else names
