"""One member: the lists and watches of its resources, folded, and when it gave a sign of life.

The watches of pods and nodes are short, for their ends are signs of life: a member without any
change still shows that the controller knows its state. A member that hangs is cut off by the idle
limit.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from hyperjob_controller.watchdog import InTurn
from hyperjob_core.api.field import make_status
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import rfc3339
from hyperjob_core.kube.client import EventType, Kube, WatchEvent
from hyperjob_core.kube.errors import (
    Forbidden,
    Gone,
    KubeError,
    NotFound,
    TooLarge,
    Unauthorized,
    too_large,
)
from hyperjob_core.kube.paging import ObjectList
from hyperjob_core.kube.ratelimit import Backoff
from hyperjob_core.kube.reflector import Reflector
from hyperjob_core.kube.resources import (
    CORE_EVENTS,
    DEVICE_CLASSES,
    DEVICES,
    HYPERNODES,
    PODGROUPS,
    Resource,
    key_of,
)
from hyperjob_engine.members.facts import FACTS, TOLD
from hyperjob_engine.members.fold import MemberFold, News
from hyperjob_engine.members.weights import Weights
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.placement.ground import ground_of
from hyperjob_engine.resources import quantities

MOST_BYTES: Final = 256 * 1024 * 1024
"""About 170,000 pods and nodes; the most pods of a cluster in Kubernetes, 150,000, have less.

While members are listed again, what was kept of them before takes as much once more.
"""


class Budget:
    """Counts the bytes that are kept of each member."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._kept: Counter[Member] = Counter()
        self._total = 0  # of all members

    def charge(self, keeper: "Member", size: int) -> None:
        """Count more bytes of a member, or fewer; beyond the most, nothing is kept of the largest.

        A member that sends without end thus takes the memory from itself, and from no other.
        """
        self._kept[keeper] += size
        self._total += size
        if self._total > self._most:
            largest, total = max(self._kept, key=self._kept.__getitem__), self._total
            of = f"{self.clear(largest)} of {total} bytes"
            largest.exceed(f"{of} of all members are of this one, and {self._most} are the most")

    def clear(self, keeper: "Member") -> int:
        """Count nothing of a member any more; return the bytes that were counted."""
        size = self._kept.pop(keeper, 0)
        self._total -= size
        return size


class _Kept:
    """Counts the bytes that are kept of a resource of a member, from the begin of its last list."""

    def __init__(self, charge: Callable[[int], None]) -> None:
        self.size = self.changes = 0  # `changes`: of the facts that came after the list
        self.is_listed = False
        self._charge = charge
        self._weights = Weights()
        self._line = 0  # of the watch, which has not ended yet

    def begin(self) -> None:
        """Begin a list."""
        self._charge(-self.size)
        self.size, self.changes, self.is_listed, self._weights = 0, 0, False, Weights()

    def add(self, fact: object) -> None:
        """Count a fact."""
        size = self._weights.of_fact(fact)
        self.size += size
        if self.is_listed:
            self.changes += size
        self._charge(size)

    def hold(self, size: int) -> None:
        """Count the line that has not ended."""
        if size != self._line:
            self._charge(size - self._line)
            self._line = size


log = logging.getLogger(__name__)

LONGEST_AGE: Final = timedelta(seconds=60)
"""The age from which the knowledge of a member is not used."""
_OFTEN: Final = (25, 40)
"""The seconds of a watch of pods or nodes: its end is a sign of life."""
_SELDOM: Final = (120, 150)
"""The seconds of other watches: each costs the controller a millisecond or two."""
_SILENCE: Final = 10.0
"""How many seconds the end of a watch may be late."""
_BEHIND: Final = timedelta(seconds=110)
"""How much older the last sign of these may be."""
_PAGE: Final = 250
_REFUSED: Final = Forbidden | Unauthorized | NotFound | TooLarge
_REFUSED_SECONDS: Final = (5.0, 300.0)
_FACT: Final = "fact"
_OPTIONAL: Final = frozenset({HYPERNODES, CORE_EVENTS, PODGROUPS, *DEVICES})
_OF_CLASSES: Final = frozenset(DEVICES) - {DEVICE_CLASSES}
"""Without a DeviceClass nothing of these counts, and they are not read: most members have none."""


class Member:
    """The reader of one member; the caller runs `run()` until the Cluster is deleted."""

    def __init__(
        self,
        name: str,
        kube: Kube,
        *,
        resources: Iterable[Resource],
        pages: AbstractAsyncContextManager[object],
        now: Callable[[], datetime],
        heard: Callable[[str, News], None],
        budget: Budget,
        in_turn: InTurn = nullcontext,
    ) -> None:
        """Use `kube`, the member's client; `pages` bounds the pages of all members in memory.

        `budget` counts what is kept of it.

        `heard` gets the name of the cluster and what has happened there. `in_turn` times the work
        on each object: after a turn that takes too long the member is not known.
        """
        self.name = name
        self.trouble = ""
        self.fold = MemberFold()
        self.tried = asyncio.Event()
        self.errors: dict[Resource, KubeError] = {}
        self._kube = kube
        self._pages = pages
        self._budget = budget
        self._kept: dict[Resource, _Kept] = {}
        self._now = now
        self._tell = heard
        self._in_turn = in_turn
        self._resources = tuple(resources)
        # Of the resources that are not `_absent`, the last sign of life; `forget` empties it.
        self._signs: dict[Resource, datetime] = {}
        self._absent: set[Resource] = set()
        self._has_classes = asyncio.Event()
        self._view: MemberView | None = None
        self._failed: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """List and watch until cancelled. Raises the exception of `fail` or `exceed`."""
        self._failed = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.TaskGroup() as group:
                for resource in self._resources:
                    group.create_task(self._follow(resource))
                await self._failed
        finally:
            self._budget.clear(self)
            self._kept.clear()

    def fail(self, error: Exception) -> None:
        """End `run` after an unexpected exception: its state of the member may be wrong."""
        self.forget()
        self._end(error)

    def exceed(self, why: str) -> None:
        """End `run` by TooLarge: the member is not known. By Gone, if most of it were changes.

        The changes of a watch replace what was kept before: other lists show what is kept now.
        """
        kept = self._kept.values()
        if sum(each.changes for each in kept) > sum(each.size for each in kept) / 2:
            self._end(Gone(make_status(410, "there were many changes"), self.name))
        else:
            self.fail(too_large(f"member {self.name}", why))

    def _end(self, error: Exception) -> None:
        if self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)

    def forget(self) -> None:
        """Know nothing of the member until the next lists."""
        self.fold = MemberFold()
        self._signs.clear()
        self._view = None

    @property
    def as_of(self) -> datetime | None:
        """Return when the member last confirmed all that is known of it; None before that."""
        signs = self._signs
        if len(signs) + len(self._absent) < len(self._resources):
            return None
        return min(signs.values())

    def is_known(self, now: datetime) -> bool:
        """Return whether the state of the member is known, and not too old."""
        as_of = self.as_of
        return as_of is not None and now - as_of <= LONGEST_AGE

    @property
    def has_changed(self) -> bool:
        """Return whether the last view lacks changes, or there is none."""
        return self._view is None or self._view.version != self.fold.version

    def counted(self, job: str) -> int:
        """Return the pods of a vcjob that have not ended, as the last view shows them."""
        return (self.fold.jobs if self._view is None else self._view.jobs).get(job, 0)

    def view(self, now: datetime, *, renew: bool = True) -> MemberView | None:
        """Return the member as it is known; None if that is unknown or too old.

        Without `renew` it is the last view, which may lack changes.
        """
        known = self._view
        if not self.is_known(now):
            return None
        if renew and self.has_changed:
            with self._in_turn(f"member {self.name}"):
                found = self.fold.view()
                _ = ground_of(self.name, found).free  # computed once, and not by another's pass
            if found.unresolved and (known is None or known.unresolved != found.unresolved):
                log.warning(
                    "The HyperNodes of a member are not known: its nodes count without them",
                    extra={"cluster": self.name, "error": found.unresolved},
                )
            known = self._view = found
        return known

    def state(self, now: datetime) -> Object:
        """Return what is known of the member, for the debug page."""
        view = self.view(now)
        found: Object = {
            "known": view is not None,
            "asOf": None if self.as_of is None else rfc3339(self.as_of),
            "errors": {each.group_resource: str(error) for each, error in self.errors.items()},
        }
        if self.trouble:
            found["trouble"] = self.trouble
        if view is None:
            return found
        if view.unresolved:
            found["errors"] = {**found["errors"], HYPERNODES.group_resource: view.unresolved}
        return found | {
            "version": view.version,
            "nodes": {
                node.name: {
                    "state": str(node.state),
                    "free": quantities(node.free),
                    "pods": len(node.pods),
                }
                for node in view.nodes
            },
            "waiting": len(view.waiting),
            "hyperNodes": {
                each.name: {"tier": each.tier, "nodes": sorted(each.nodes)}
                for each in view.hypernodes
            },
            "jobs": dict(sorted(view.jobs.items())),
        }

    async def _follow(self, resource: Resource) -> None:
        """List and watch one resource until cancelled; each step is a sign of life.

        What belongs to DeviceClasses waits for the first one.

        After a refusal the pauses are minutes, since only an administrator can change it.
        """
        words = f"{resource.group_resource} of member {self.name}:"
        seconds = _SELDOM if resource in _OPTIONAL else _OFTEN
        refused = Backoff(base=_REFUSED_SECONDS[0], cap=_REFUSED_SECONDS[1])
        if resource in _OF_CLASSES:
            await self._has_classes.wait()
        make = FACTS[resource]
        kept = self._kept[resource] = _Kept(partial(self._budget.charge, self))
        reflector: Reflector

        async def pause(due: float) -> None:
            if isinstance(reflector.last_error, _REFUSED):
                due = refused.next()
            await asyncio.sleep(due)

        def fact_of(raw: Object) -> Object:
            with self._in_turn((words, raw)):
                fact = make(raw)
                kept.add(fact)
            return {_FACT: fact}  # the object itself does not stay in memory

        def report(failure: KubeError | None) -> None:
            if failure is None:
                refused.reset()
            self._said(resource, failure)

        reflector = Reflector(
            self._kube,
            resource,
            field_selector=TOLD if resource is CORE_EVENTS else None,
            transform=fact_of,
            page_size=_PAGE,
            idle_limit=seconds[1] + _SILENCE,
            watch_seconds=seconds,
            report=report,
            opened=partial(self._alive, resource),
            sleep=pause,
            begins=kept.begin,
            pages=self._pages,
            holds=kept.hold,
        )
        async with aclosing(reflector.steps()) as steps:
            async for step in steps:
                self._alive(resource)
                with self._in_turn(f"member {self.name}"):
                    self._take(resource, step, fact_of)
                del step

    def _take(
        self,
        resource: Resource,
        step: ObjectList | WatchEvent,
        fact_of: Callable[[Object], Object],
    ) -> None:
        """Fold one list or event of a resource, and report what has happened with it."""
        if isinstance(step, ObjectList):
            self.fold.replace(resource, [item[_FACT] for item in step.items])
            self._kept[resource].is_listed = True
            self._has_found(resource, some=bool(step.items))
        elif step.type is EventType.BOOKMARK:
            return
        elif step.type is EventType.DELETED:
            self.fold.drop(resource, key_of(step.object))
        else:
            self.fold.put(resource, fact_of(step.object)[_FACT])
            self._has_found(resource, some=True)
        self._tell(self.name, self.fold.news())

    def _has_found(self, resource: Resource, *, some: bool) -> None:
        """Let what belongs to DeviceClasses be read from the first one on."""
        if resource != DEVICE_CLASSES or self._has_classes.is_set():
            return
        if some:
            self._has_classes.set()
            return
        for each in _OF_CLASSES:
            self._absent.add(each)
            self.fold.replace(each, ())

    def _alive(self, resource: Resource) -> None:
        self._signs[resource] = self._now() + (_BEHIND if resource in _OPTIONAL else timedelta())
        self._absent.discard(resource)
        if (self.trouble or not self.tried.is_set()) and self.as_of is not None:
            self.trouble = ""
            self.tried.set()

    def _said(self, resource: Resource, failure: KubeError | None) -> None:
        """Note a failure and its end; what is optional and refused is absent from then on.

        The first failure of a kind is logged, and the end of failures.
        """
        about: dict[str, Any] = {"cluster": self.name, "resource": resource.group_resource}
        before = self.errors.pop(resource, None)
        if failure is None:
            if before is not None:
                log.info("The controller reads a member again", extra=about)
            return
        if isinstance(failure, Gone):
            return
        self.tried.set()
        self.errors[resource] = failure
        if resource in _OPTIONAL and isinstance(failure, NotFound | Forbidden):
            self._absent.add(resource)  # such as a member without Volcano's network topology
            self._signs.pop(resource, None)
            self.fold.replace(resource, None)
            self._has_found(resource, some=False)
        elif type(before) is not type(failure):
            log.log(
                logging.WARNING if isinstance(failure, _REFUSED) else logging.INFO,
                "The controller cannot read a member: decisions use the sums of its Cluster",
                extra={**about, "error": str(failure)},
            )
