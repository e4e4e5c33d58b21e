"""The API server and the namespace of a command, from kubectl's own flags.

This module reads the kubeconfig and nothing else.
"""

import functools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from hyperjob import __version__
from hyperjob.cli.files import file_option
from hyperjob.cli.kubectl.offers import NAMESPACE
from hyperjob.client.durations import parse_duration
from hyperjob.kube.client import TIME_LIMIT, Kube

_UNLIMITED = 86_400.0
_USER_AGENT = f"kubectl-hyperjob/{__version__}"

_F = TypeVar("_F", bound=Callable[..., Any])

lease_namespace_option = click.option(
    "--lease-namespace",
    metavar="NAME",
    default="karmada-system",
    show_default=True,
    help="Namespace of the controller's Lease.",
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The flags of access; `namespace` None is the namespace of the kubeconfig's context."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False
    request_timeout: float | None = None

    def connect(self) -> AbstractAsyncContextManager[Kube]:
        """Open a client; raises ConfigError where no kubeconfig or service account is found."""
        limit = TIME_LIMIT if self.request_timeout is None else self.request_timeout
        return Kube.connect(
            kubeconfig=self.kubeconfig,
            context=self.context,
            user_agent=_USER_AGENT,
            time_limit=limit or _UNLIMITED,
            one_shot=True,
        )

    def scope(self, kube: Kube) -> str | None:
        """Return the namespace to list; None for all namespaces."""
        return None if self.all_namespaces else self.home(kube)

    def home(self, kube: Kube) -> str:
        """Return the namespace of objects that the command line names."""
        return self.namespace or kube.namespace

    def command(self, words: str) -> str:
        """Return the command `words` with the flags for the same API server."""
        program, _, rest = words.partition(" ")
        flags = [
            f"--{name} {value}"
            for name, value in (("kubeconfig", self.kubeconfig), ("context", self.context))
            if value
        ]
        if program != "kubectl" or not flags:
            return words
        plugin, _, verb = rest.partition(" ")
        # kubectl accepts no flag before the name of a plugin
        if plugin == "hyperjob":
            return f"kubectl hyperjob {verb} {' '.join(flags)}"
        return f"kubectl {' '.join(flags)} {rest}"


def access(*, everywhere: bool = False, flag: str = "-n") -> Callable[[_F], _F]:
    """Return a decorator that adds kubectl's flags of access, as the argument `access`."""

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def wrapped(**given: Any) -> Any:  # noqa: ANN401 - click's own parameters
            given["access"] = Access(
                kubeconfig=given.pop("kubeconfig"),
                context=given.pop("context"),
                namespace=given.pop("namespace"),
                all_namespaces=given.pop("all_namespaces", False),
                request_timeout=given.pop("request_timeout"),
            )
            return function(**given)

        options = [
            click.option(
                flag,
                "--namespace",
                type=NAMESPACE,
                metavar="NAME",
                help="Namespace.  [default: that of the kubeconfig's context]",
            ),
            *([_everywhere] if everywhere else []),
            _kubeconfig,
            _context,
            _timeout,
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
_timeout = click.option(
    "--request-timeout",
    type=Duration(),
    metavar="DURATION",
    help="Time limit of one request, such as 5s; 0 is no limit.  [default: 30s]",
)
