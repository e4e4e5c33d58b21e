"""The changes of objects for commands and the SDK, which give up where a process tries on."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.backoff import Backoff
from hyperjob_core.kube.client import EventType, WatchEvent
from hyperjob_core.kube.errors import Gone, KubeError, Unavailable
from hyperjob_core.kube.paging import ObjectList
from hyperjob_core.kube.reflector import ListerWatcher, Reflector, silent
from hyperjob_core.kube.resources import Resource

_TRIES: Final = 5
_PAUSES: Final = (0.5, 10.0)


async def changes(
    kube: ListerWatcher,
    resource: Resource,
    *,
    namespace: str | None = None,
    name: str | None = None,
    selector: str | None = None,
    persistent: bool = False,
) -> AsyncGenerator[WatchEvent, None]:
    """Yield every object as ADDED and then each change, without end; resume broken watches.

    A BOOKMARK without an object follows each list: the first, and one after each broken watch whose
    version is too old. Objects deleted between two watches are yielded as
    DELETED. Raises KubeError when the API server refuses, cannot be reached at first, or fails five
    times in a row without a list; `persistent` tries on after every failure. The caller must close
    it with `aclosing`.
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
        report=silent if persistent else patience.report,
    )
    known: dict[tuple[str, str], Object] = {}
    async with aclosing(reflector.steps()) as steps:
        async for step in steps:
            patience.reached()
            if isinstance(step, ObjectList):
                now = {_name_of(item): item for item in step.items}
                for event in _difference(known, now):
                    yield event
                known = now
                yield WatchEvent(EventType.BOOKMARK, {})
            elif step.type is not EventType.BOOKMARK:
                if step.type is EventType.DELETED:
                    known.pop(_name_of(step.object), None)
                else:
                    known[_name_of(step.object)] = step.object
                yield step


async def states(
    kube: ListerWatcher,
    resource: Resource,
    name: str,
    *,
    namespace: str | None = None,
    persistent: bool = False,
) -> AsyncGenerator[Object | None, None]:
    """Yield one object, then the object after each change, without end; None where it is absent.

    Raises KubeError as `changes` does. The caller must close it with `aclosing`.
    """
    present = False
    stream = changes(kube, resource, namespace=namespace, name=name, persistent=persistent)
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


def _name_of(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])


def _difference(
    before: Mapping[tuple[str, str], Object], now: Mapping[tuple[str, str], Object]
) -> Iterator[WatchEvent]:
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
