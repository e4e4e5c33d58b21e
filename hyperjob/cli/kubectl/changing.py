"""Change several HyperJobs concurrently and print the result of each."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from hyperjob.cli.files import options
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import DURATION, Access
from hyperjob.cli.kubectl.exits import Code, failure
from hyperjob.client.errors import ClientError, title, words
from hyperjob.client.reading import Target, with_hint
from hyperjob.client.waiting import Progress, silent
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.errors import KubeError, NotFound

_F = TypeVar("_F", bound=Callable[..., Any])


def wait_options(default: str) -> Callable[[_F], _F]:
    """Return a decorator that adds `--wait` and `--timeout` to a command."""
    return options(
        click.option("--wait/--no-wait", default=None, help=default),
        click.option(
            "--timeout",
            type=DURATION,
            default=300.0,
            show_default="5m",
            metavar="DURATION",
            help="Time limit of --wait; 0 is no limit.",
        ),
    )


Done = tuple[Object, str]
"""The HyperJob after the change, and a word for the change."""

Change = Callable[[Target, Progress], Awaitable[Done]]
"""Changes a HyperJob."""


async def each(access: Access, names: Sequence[str], change: Change, *, form: str) -> None:
    """Change several HyperJobs concurrently and print the result of each.

    An error for one HyperJob does not stop the change of the others; it sets the exit code.
    """
    async with access.connect() as kube:
        namespace = access.home(kube)
        with progress(shown=len(names) == 1) as tell:

            async def one(name: str) -> Done:
                try:
                    return await change(Target(kube, namespace, name), tell)
                except NotFound as error:
                    raise await with_hint(kube, error, namespace) from None

            results = await asyncio.gather(*map(one, names), return_exceptions=True)
    done = [result for result in results if not isinstance(result, BaseException)]
    if form:
        out.objects([item for item, _ in done], form, single=len(names) == 1)
    else:
        for item, word in done:
            click.echo(f"{title(item['metadata']['name'])} {word}")
    code = Code.OK
    for result in results:
        if isinstance(result, KubeError):
            out.remark(words(result))
            code = Code.FAILED
        elif isinstance(result, ClientError):
            ending = failure(result)
            ending.show()
            code = code or Code(ending.exit_code)
        elif isinstance(result, BaseException):
            raise result
    if code:
        raise SystemExit(code)


@contextmanager
def progress(*, shown: bool) -> Iterator[Progress]:
    """Show the line on standard error where that is a terminal, and nothing elsewhere."""
    console = out.console(stderr=True)
    if not shown or not console.is_terminal or console.is_dumb_terminal:
        yield silent
        return
    from rich.status import Status

    with Status("", console=console) as status:
        yield status.update
