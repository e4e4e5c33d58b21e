"""Wait until something holds of a HyperJob, and show on a terminal what it waits for."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager

from rich.console import Console
from rich.status import Status

from hyperjob.api.meta import Object
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob.cli.kubectl.reading import changes
from hyperjob.cli.views.summary import Summary, read
from hyperjob.kube.client import EventType, Kube
from hyperjob.kube.errors import NotFound, make_status
from hyperjob.kube.resources import HYPERJOBS
from hyperjob.text import human_duration

Holds = Callable[[Object | None], bool]
"""Tells whether it holds; None is a HyperJob that is gone. Raises FailureError if it never will."""


async def until(
    kube: Kube,
    namespace: str,
    name: str,
    holds: Holds,
    *,
    what: str,
    seconds: float,
    alone: bool = True,
) -> Object | None:
    """Wait until it holds and give the HyperJob; FailureError when time is up or it never will.

    Progress is shown only while it is waited for this one `alone`.
    """
    last: Object | None = None
    try:
        async with asyncio.timeout(seconds or None):
            with _progress(shown=alone) as progress:
                stream = _states(kube, namespace, name)
                async with aclosing(stream) as states:
                    async for last in states:
                        if holds(last):
                            return last
                        progress(f"{name} {_told(last)}; waiting until {what}")
    except TimeoutError:
        raise FailureError(
            f"timed out after {human_duration(seconds)} waiting until {out.title(name)} {what}; it"
            f" {_told(last)}",
            code=Code.NOT_YET,
        ) from None
    raise AssertionError("changes of an object have no end")


async def _states(kube: Kube, namespace: str, name: str) -> AsyncGenerator[Object | None, None]:
    """Give a HyperJob as it is and then after every change; None when there is none."""
    present = False
    stream = changes(kube, HYPERJOBS, namespace=namespace, name=name)
    async with aclosing(stream) as events:
        async for event in events:
            match event.type:
                case EventType.BOOKMARK:
                    if not present:
                        yield None
                case EventType.DELETED:
                    present = False
                    yield None
                case _:
                    present = True
                    yield event.object


def not_found(name: str) -> NotFound:
    """Say that there is no HyperJob of a name, as the API server does."""
    message = f'{HYPERJOBS.group_resource} "{name}" not found'
    return NotFound(make_status(404, message, reason="NotFound"))


def summary_of(hyperjob: Object | None, name: str) -> Summary:
    """Read a HyperJob; FailureError when it is gone, so that nothing is waited for in vain."""
    if hyperjob is None:
        raise FailureError(f"{out.title(name)} was deleted meanwhile", code=Code.NEVER)
    return read(hyperjob)


def _told(hyperjob: Object | None) -> str:
    if hyperjob is None:
        return "is not there"
    summary = read(hyperjob)
    return f"is {summary.phase}" + (f": {summary.message}" if summary.message else "")


@contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[str], None]]:
    """Show one changing line on a terminal, and nothing elsewhere."""
    console: Console = out.console(stderr=True)
    if not (shown and console.is_terminal):
        yield lambda _text: None
        return
    with Status("", console=console) as status:
        yield status.update
