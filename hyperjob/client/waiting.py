"""Wait until a HyperJob reaches a state."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from hyperjob.client.errors import NeverError, NotYetError, title
from hyperjob.client.summary import Summary, read
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound, make_status
from hyperjob_core.kube.following import states
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.text import human_duration

Holds = Callable[[Object | None], bool]
"""Returns whether a HyperJob (None: deleted) has reached the state; NeverError if it never can."""

Progress = Callable[[str], None]
"""Shows a line about the present state of the HyperJob."""


HOPELESS_SECONDS: Final = 15.0


def silent(_text: str) -> None:
    """Ignore progress."""


async def until(
    kube: Kube,
    namespace: str,
    name: str,
    holds: Holds,
    *,
    what: str,
    seconds: float,
    progress: Progress = silent,
    is_doubtful: Holds = lambda _: False,
) -> Object | None:
    """Wait until `holds` is true; return the HyperJob, or None after its deletion.

    `seconds` 0 is no time limit. Raises NotYetError when time is up, the errors of `holds`, and
    NeverError after the HyperJob has been doubtful for HOPELESS_SECONDS without a break: a Cluster
    that joins reports its nodes a moment later.
    """
    last: Object | None = None

    async def follow(patience: asyncio.Timeout) -> Object | None:
        nonlocal last
        async with aclosing(states(kube, HYPERJOBS, name, namespace=namespace)) as stream:
            async for last in stream:
                if holds(last):
                    return last
                progress(f"{name} {_state_text(last)}; waiting until it {what}")
                if not is_doubtful(last):
                    patience.reschedule(None)
                elif patience.when() is None:
                    patience.reschedule(asyncio.get_running_loop().time() + HOPELESS_SECONDS)
        raise AssertionError("the changes of an object do not end")

    try:
        async with asyncio.timeout(seconds or None):
            try:
                async with asyncio.timeout(None) as patience:
                    return await follow(patience)
            except TimeoutError:
                raise NeverError(
                    f"{title(name)} {_state_text(last)}: as things are, it never {what}"
                ) from None
    except TimeoutError:
        raise NotYetError(
            f"timed out after {human_duration(seconds)} waiting until {title(name)} {what}; it"
            f" {_state_text(last)}"
        ) from None


def not_found(name: str) -> NotFound:
    """Return the API server's error for a HyperJob that does not exist."""
    message = f'{HYPERJOBS.group_resource} "{name}" not found'
    details = {"name": name, "group": HYPERJOBS.group, "kind": HYPERJOBS.plural}
    return NotFound(make_status(404, message, reason="NotFound") | {"details": details})


def summary_of(hyperjob: Object | None, name: str) -> Summary:
    """Parse a HyperJob; NeverError for None, since a deleted HyperJob reaches no state."""
    if hyperjob is None:
        raise NeverError(f"{title(name)} was deleted")
    return read(hyperjob)


def _state_text(hyperjob: Object | None) -> str:
    if hyperjob is None:
        return "does not exist"
    summary = read(hyperjob)
    return f"is {summary.phase}" + (f": {summary.message}" if summary.message else "")
