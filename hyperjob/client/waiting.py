"""Wait until a HyperJob reaches a state."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from hyperjob.api.meta import Object
from hyperjob.client.errors import NeverError, NotYetError, title
from hyperjob.client.reading import changes
from hyperjob.client.summary import Summary, read
from hyperjob.kube.client import EventType, Kube
from hyperjob.kube.errors import NotFound, make_status
from hyperjob.kube.resources import HYPERJOBS
from hyperjob.text import human_duration

Holds = Callable[[Object | None], bool]
"""Whether the HyperJob has reached the state; None is a deleted HyperJob. Raises NeverError."""

Progress = Callable[[str], None]
"""Shows one line about the state in which the HyperJob is now."""


def silent(_text: str) -> None:
    """Show no progress."""


async def until(
    kube: Kube,
    namespace: str,
    name: str,
    holds: Holds,
    *,
    what: str,
    seconds: float,
    progress: Progress = silent,
) -> Object | None:
    """Wait until `holds` is true and give the HyperJob; None when it is deleted.

    `seconds` 0 waits for ever. NotYetError when time is up; what `holds` raises passes through.
    """
    last: Object | None = None
    try:
        async with asyncio.timeout(seconds or None):
            async with aclosing(_states(kube, namespace, name)) as states:
                async for last in states:
                    if holds(last):
                        return last
                    progress(f"{name} {_told(last)}; waiting until it {what}")
    except TimeoutError:
        raise NotYetError(
            f"timed out after {human_duration(seconds)} waiting until {title(name)} {what}; it"
            f" {_told(last)}"
        ) from None
    raise AssertionError("changes of an object have no end")


async def _states(kube: Kube, namespace: str, name: str) -> AsyncGenerator[Object | None, None]:
    """Yield a HyperJob as it is and then after every change; None when there is none."""
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
    """Read a HyperJob; NeverError when it is deleted, since no wait can end well then."""
    if hyperjob is None:
        raise NeverError(f"{title(name)} was deleted meanwhile")
    return read(hyperjob)


def _told(hyperjob: Object | None) -> str:
    if hyperjob is None:
        return "is not there"
    summary = read(hyperjob)
    return f"is {summary.phase}" + (f": {summary.message}" if summary.message else "")
