"""The HyperJobs that a command is about: by their names, or all of a namespace and a selector."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import Code
from hyperjob.cli.kubectl.names import names_argument
from hyperjob.client.errors import words
from hyperjob.client.reading import Found, hyperjobs
from hyperjob_core.kube.client import Kube

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Choice:
    """The names, the namespace and the labels of the command line."""

    names: Sequence[str]
    access: Access
    selector: str | None

    @property
    def single(self) -> bool:
        """Whether the output is one object, not a list."""
        return len(self.names) == 1

    async def read(self, kube: Kube) -> Found:
        """Read the HyperJobs; the errors of single HyperJobs are in the result."""
        namespace = self.access.scope(kube)
        return await hyperjobs(kube, self.names, namespace=namespace, selector=self.selector)


def hyperjobs_argument(*, trainjobs: bool = False) -> Callable[[_F], _F]:
    """Return a decorator that adds [NAME]..., -A, -l and kubectl's flags, as argument `choice`."""

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def wrapped(**given: Any) -> Any:  # noqa: ANN401 - click's own parameters
            choice = Choice(given.pop("names"), given.pop("access"), given.pop("selector"))
            if choice.names and (choice.access.all_namespaces or choice.selector):
                raise click.UsageError("give names, or -A and -l, not both")
            return function(choice=choice, **given)

        command: Any = _selector(wrapped)
        command = access(everywhere=True)(command)
        return names_argument(required=False, trainjobs=trainjobs)(command)  # type: ignore[no-any-return]

    return decorate


_selector = click.option(
    "-l", "--selector", metavar="LABELS", help="Only HyperJobs with these labels: a=b,c!=d."
)


def end(found: Found) -> None:
    """Print the errors of HyperJobs that could not be read, and exit 1 if there are any."""
    for error in found.errors:
        out.remark(words(error))
    if found.errors:
        raise SystemExit(Code.FAILED)
