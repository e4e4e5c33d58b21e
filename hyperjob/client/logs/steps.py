"""Progress lines: wait for a step in the logs, and keep a bounded number of any number of lines.

The controller reads the logs once an interval only.
"""

from contextlib import aclosing
from typing import Final, Generic, TypeVar

from hyperjob.client.errors import ClientError
from hyperjob.client.logs.choosing import Wanted
from hyperjob.client.logs.following import Following
from hyperjob.client.summary import Summary
from hyperjob_core.api.lines import LogLine, parse
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError

_TAIL: Final = 100


async def prints_step(kube: Kube, summary: Summary, step: int) -> bool:
    """Follow the logs until a program reports the step or a later one; return whether one did.

    A user who may not read logs waits for the status alone: no error is raised for them.
    """
    following = Following(kube, summary, Wanted(tail=_TAIL), say=lambda _text: None)
    try:
        async with aclosing(following.lines()) as lines:
            async for _, raw in lines:
                line = parse(LogLine.of(raw))
                if line is not None and line.step >= step:
                    return True
    except (ClientError, KubeError):
        return False
    return False


_T = TypeVar("_T")


class Thinned(Generic[_T]):
    """At most `most` items, evenly chosen, and the last one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[_T] = []
        self._last: list[_T] = []
        self._every = 1
        self._seen = 0

    def add(self, item: _T) -> None:
        """Add the next item."""
        if self._seen % self._every == 0:
            self._kept.append(item)
            if len(self._kept) >= self._most:
                self._kept = self._kept[::2]
                self._every *= 2
        self._last = [item]
        self._seen += 1

    @property
    def kept(self) -> list[_T]:
        """Return the items in their order."""
        late = bool(self._last) and self._kept[-1] is not self._last[0]
        return [*self._kept, *self._last] if late else [*self._kept]
