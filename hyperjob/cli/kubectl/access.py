"""Which API server and which namespace a command is about: kubectl's own flags.

It never reads anything but the kubeconfig.
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
    """A span of time in seconds, written as kubectl's flags are: 30s, 5m."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read it; a usage error says how it is written."""
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where a command looks; `namespace` None is the kubeconfig context's."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False
    request_timeout: float | None = None

    def connect(self) -> AbstractAsyncContextManager[Kube]:
        """Open a client; ConfigError when there is no way to the API server."""
        limit = TIME_LIMIT if self.request_timeout is None else self.request_timeout
        return Kube.connect(
            kubeconfig=self.kubeconfig,
            context=self.context,
            user_agent=_USER_AGENT,
            time_limit=limit or _UNLIMITED,
            one_shot=True,
        )

    def scope(self, kube: Kube) -> str | None:
        """Give the namespace to look in; None for all of them."""
        return None if self.all_namespaces else self.home(kube)

    def home(self, kube: Kube) -> str:
        """Give the one namespace that named objects are in."""
        return self.namespace or kube.namespace

    def command(self, words: str) -> str:
        """Give a command to type that reaches the same API server."""
        program, _, rest = words.partition(" ")
        flags = [
            f"--{name} {value}"
            for name, value in (("kubeconfig", self.kubeconfig), ("context", self.context))
            if value
        ]
        if program != "kubectl" or not flags:
            return words
        plugin, _, verb = rest.partition(" ")
        # kubectl takes no flag before the name of a plugin
        if plugin == "hyperjob":
            return f"kubectl hyperjob {verb} {' '.join(flags)}"
        return f"kubectl {' '.join(flags)} {rest}"


def access(*, everywhere: bool = False, flag: str = "-n") -> Callable[[_F], _F]:
    """Give a command kubectl's flags of access, as one argument `access`."""

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


_everywhere = click.option("-A", "--all-namespaces", is_flag=True, help="Look in every namespace.")
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
    help="How long one request may take, such as 5s; 0 is for ever.  [default: 30s]",
)
