"""The list-and-watch of one resource: the only loop of HyperJob that follows objects.

A Reflector lists, watches from the version of the list, and resumes the watch where it ended; it
lists again if that version is too old, or after three failures without a change. After a watch that
ended at once it waits, each time longer, whether the API server failed or just closed the watch.
"""

import asyncio
import math
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import IDLE_LIMIT, EventType, Kube, WatchEvent
from hyperjob_core.kube.errors import Gone, KubeError, TooManyRequests, Unavailable
from hyperjob_core.kube.paging import ObjectList
from hyperjob_core.kube.ratelimit import Backoff
from hyperjob_core.kube.resources import Resource, key_of

Transform = Callable[[Object], Object]
Report = Callable[[KubeError | None], None]
"""Gets each failure, and None once the watch works again; an exception of it ends the Reflector."""

_HEALTHY_SECONDS: Final = 10.0
_RESUMES: Final = 3
_WATCH_SECONDS: Final = (300, 600)

SHORT_WATCHES: Final[Counter[str]] = Counter()
"""The watches that ended at once without an event, by resource."""


def unchanged(obj: Object) -> Object:
    """Return the object as it is."""
    return obj


def silent(_failure: KubeError | None) -> None:
    """Try again after each failure, without a word."""


@dataclass(eq=False)
class Reflector:
    """The objects of one resource and their changes.

    `version` is the resourceVersion up to which the consumer of `steps` has all changes, empty when
    the next step is a list. `last_error` is the failure since the last watch that opened.

    `transform` is applied to the objects of lists; those of events come as they are. `opened` is
    called for each watch that the server accepts, and `begins` before each list; `pages` and
    `holds` are those of `Kube.list` and `Kube.watch`. A watch ends after a random time
    within `watch_seconds`, of which the least is above `_HEALTHY_SECONDS`: otherwise a pause
    follows each normal end. `idle_limit` exceeds the longest silence of a healthy watch: the time
    between two bookmarks, about a minute, or the greatest of `watch_seconds` if that is shorter.
    """

    kube: Kube
    resource: Resource
    _: KW_ONLY
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None
    transform: Transform = unchanged
    page_size: int = 500
    idle_limit: float = IDLE_LIMIT
    watch_seconds: tuple[int, int] = _WATCH_SECONDS
    backoff: Backoff = field(default_factory=Backoff)
    report: Report = silent
    opened: Callable[[], None] = lambda: None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    begins: Callable[[], None] = lambda: None
    pages: AbstractAsyncContextManager[object] = field(default_factory=nullcontext)
    holds: Callable[[int], None] = lambda _: None
    version: str = field(default="", init=False)
    last_error: KubeError | None = field(default=None, init=False)
    _opened: float = field(default=math.inf, init=False)
    _changes: int = field(default=0, init=False)
    _failures: int = field(default=0, init=False)
    _broken: bool = field(default=False, init=False)

    async def steps(self) -> AsyncGenerator[ObjectList | WatchEvent, None]:
        """Yield a whole list, then each event of watches, and another list where one is needed.

        It has no end. The caller must close it: `async with aclosing(reflector.steps()) as steps`.
        """
        clock = asyncio.get_running_loop().time
        while True:
            self._opened = math.inf
            before = self._changes
            try:
                if not self.version:
                    listed = await self._list()
                    version = listed.resource_version
                    yield listed
                    del listed
                    self.version = version
                async with aclosing(self._watch()) as events:
                    async for event in events:
                        version = str(event.object["metadata"]["resourceVersion"])
                        self._flows(event)
                        taken = [event]
                        del event  # the next one may take minutes to come
                        yield taken.pop()
                        self.version = version
            except KubeError as error:
                self._failed(error)
            healthy = clock() - self._opened >= _HEALTHY_SECONDS
            brought = self._changes > before
            if healthy or brought:
                self._recovered()
            if self._opened < math.inf:
                SHORT_WATCHES[self.resource.group_resource] += not healthy and not brought
            if not healthy:
                await self.sleep(self.backoff.next())

    async def _list(self) -> ObjectList:
        """Return the list of the resource, each object transformed; raises KubeError."""
        self.begins()
        listed = await self.kube.list(
            self.resource,
            limit=self.page_size,
            namespace=self.namespace,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            transform=self.transform,
            pages=self.pages,
        )
        SHORT_WATCHES[self.resource.group_resource] += 0  # an alert needs it before a first count
        return listed

    def _watch(self) -> AsyncGenerator[WatchEvent, None]:
        """Return the events of one watch from `version`; raises KubeError."""
        return self.kube.watch(
            self.resource,
            resource_version=self.version,
            # Random end times: many watches must not reconnect at the same moment.
            timeout_seconds=random.randint(*self.watch_seconds),
            idle_limit=self.idle_limit,
            opened=self._flowing,
            holds=self.holds,
            namespace=self.namespace,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
        )

    def _flows(self, event: WatchEvent) -> None:
        """Count an event of a watch, which works."""
        if self._broken:
            self._recovered()
        self._changes += event.type is not EventType.BOOKMARK

    def _flowing(self) -> None:
        """Record that the server has accepted the watch."""
        self._opened = asyncio.get_running_loop().time()
        self.last_error = None
        self.opened()

    def _recovered(self) -> None:
        """Reset the failures, after a watch has lasted or has brought an event."""
        self.backoff.reset()
        self._failures = 0
        if self._broken:
            self._broken = False
            self.report(None)

    def _failed(self, error: KubeError) -> None:
        """Choose between watch and list, and report the failure."""
        error = copy(error)  # without its frames, which hold what has come of a list
        self._failures += 1
        unanswered = isinstance(error, Unavailable | TooManyRequests)
        if not unanswered or self._failures >= _RESUMES:
            self.version = ""
        if not isinstance(error, Gone):
            self.last_error = error
            self._broken = True
        self.report(error)


_TRIES: Final = 5
_PAUSES: Final = (0.5, 10.0)


async def changes(
    kube: Kube,
    resource: Resource,
    *,
    namespace: str | None = None,
    name: str | None = None,
    selector: str | None = None,
) -> AsyncGenerator[WatchEvent, None]:
    """Yield every object as ADDED and then each change, without end; resume broken watches.

    A BOOKMARK without an object follows each list: the first, and one after each broken watch whose
    version is too old. Objects deleted between two watches are yielded as
    DELETED. Raises KubeError when the API server refuses, cannot be reached at first, or fails five
    times in a row without a list. The caller must close it with `aclosing`.
    """
    patience = _Patience()
    base, cap = _PAUSES
    reflector = Reflector(
        kube,
        resource,
        namespace=namespace,
        label_selector=selector,
        field_selector=f"metadata.name={name}" if name else None,
        backoff=Backoff(base=base, cap=cap),
        report=patience.report,
    )
    known: dict[str, Object] = {}
    async with aclosing(reflector.steps()) as steps:
        async for step in steps:
            patience.reached()
            if isinstance(step, ObjectList):
                now = {key_of(item): item for item in step.items}
                for event in _difference(known, now):
                    yield event
                known = now
                yield WatchEvent(EventType.BOOKMARK, {})
            elif step.type is not EventType.BOOKMARK:
                if step.type is EventType.DELETED:
                    known.pop(key_of(step.object), None)
                else:
                    known[key_of(step.object)] = step.object
                yield step


async def states(
    kube: Kube, resource: Resource, name: str, *, namespace: str | None = None
) -> AsyncGenerator[Object | None, None]:
    """Yield one object, then the object after each change, without end; None where it is absent.

    Raises KubeError as `changes` does. The caller must close it with `aclosing`.
    """
    present = False
    async with aclosing(changes(kube, resource, namespace=namespace, name=name)) as events:
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


class _Patience:
    """Ends the Reflector of a command by the error that it reports."""

    def __init__(self) -> None:
        self._failures = 0
        self._reached = False

    def reached(self) -> None:
        """Record that the API server has answered."""
        self._failures = 0
        self._reached = True

    def report(self, failure: KubeError | None) -> None:
        """Raise a failure that another try will not cure."""
        if failure is None:
            return
        self._failures += 1
        if not isinstance(failure, Gone | Unavailable):
            raise failure
        if isinstance(failure, Unavailable):
            self._reached = self._reached or failure.answered
        if not self._reached or self._failures >= _TRIES:
            raise failure


def _difference(before: Mapping[str, Object], now: Mapping[str, Object]) -> Iterator[WatchEvent]:
    """Yield the changes between two lists; a namesake of a deleted object is another object."""
    for key, item in now.items():
        old = before.get(key)
        if old is not None and _field(old, "uid") != _field(item, "uid"):
            yield WatchEvent(EventType.DELETED, old)
            old = None
        if old is None:
            yield WatchEvent(EventType.ADDED, item)
        elif _field(old, "resourceVersion") != _field(item, "resourceVersion"):
            yield WatchEvent(EventType.MODIFIED, item)
    for key in before.keys() - now.keys():
        yield WatchEvent(EventType.DELETED, before[key])


def _field(obj: Object, name: str) -> str:
    return str(obj["metadata"].get(name) or "")
