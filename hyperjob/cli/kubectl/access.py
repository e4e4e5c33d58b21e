"""kubectl's flags for the API server and the namespace of a command."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from hyperjob.cli.files import file_option
from hyperjob.cli.kubectl.connection import Access
from hyperjob.cli.kubectl.offers import NAMESPACE
from hyperjob.client.durations import parse_duration

__all__ = ["Access", "Duration", "access"]

_F = TypeVar("_F", bound=Callable[..., Any])


class Duration(click.ParamType[float]):
    """A duration in seconds, in the form of kubectl's flags: 30s, 5m."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds; a usage error names the form of a duration."""
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def namespace_option(flag: str = "-n") -> Callable[[_F], _F]:
    """Return the option of a command's namespace."""
    return click.option(
        flag,
        "--namespace",
        type=NAMESPACE,
        metavar="NAME",
        help="Namespace.  [default: that of the kubeconfig's context]",
    )


def access(
    *, everywhere: bool = False, flag: str = "-n", namespaced: bool = True
) -> Callable[[_F], _F]:
    """Return a decorator that adds kubectl's flags of access, as the argument `access`.

    A command about objects without a namespace takes none: `namespaced=False`.
    """

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def wrapped(**given: Any) -> Any:  # noqa: ANN401 - click's own parameters
            given["access"] = Access(
                kubeconfig=given.pop("kubeconfig"),
                context=given.pop("context"),
                namespace=given.pop("namespace", None),
                all_namespaces=given.pop("all_namespaces", False),
            )
            return function(**given)

        options = [
            *([namespace_option(flag)] if namespaced else []),
            *([_everywhere] if everywhere else []),
            _kubeconfig,
            _context,
        ]
        command: Any = wrapped
        for option in reversed(options):
            command = option(command)
        return command  # type: ignore[no-any-return]  # click hands back what it was given

    return decorate


_everywhere = click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
_kubeconfig = file_option(
    "--kubeconfig",
    text="kubeconfig of the Karmada API server.  [default: $KUBECONFIG, the pod's own account,"
    " ~/.kube/config]",
)
_context = click.option("--context", metavar="NAME", help="Context of that kubeconfig.")
