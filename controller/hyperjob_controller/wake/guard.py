"""The passes behind the wall: a HyperJob at which the controller failed gets none for some time.

Its status names the incident meanwhile. The writer of that status reads nothing but the old one.
"""

import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from hyperjob_controller.caches import Caches
from hyperjob_controller.memory import SETTLE_SECONDS
from hyperjob_controller.place import Place
from hyperjob_controller.wall import Incident, Wall
from hyperjob_controller.write import Events, patch_status
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.wire import at, mapping, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.workers import SetAsideError
from hyperjob_engine.status.derive import derive_fault
from hyperjob_engine.status.diff import merge_patch
from hyperjob_engine.status.transitions import status_events

Reconcile = Callable[[str], Awaitable[timedelta | None]]

REST: Final = 3.0
"""A HyperJob rests for so many times the duration of its last pass."""
LONGEST_REST: Final = 0.5
"""Seconds of the longest rest: a status must be up to date within a second."""


class PassRateLimit:
    """The rate limiter of passes, by HyperJob."""

    def __init__(
        self, reconcile: Reconcile, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reconcile = reconcile
        self._clock = clock
        self._took: dict[str, float] = {}  # seconds, only of HyperJobs that must rest
        self._rested: dict[str, float] = {}

    def settle_seconds(self, key: str) -> float:
        """Return the seconds for which changes of a HyperJob's sub-jobs are collected."""
        return max(SETTLE_SECONDS, self._rested.get(key, 0.0) - self._clock())

    async def reconcile(self, key: str) -> timedelta | None:
        """Make a pass and record its duration."""
        began = self._clock()
        if key in self._took:  # changes during a pass wait like changes after it
            self._rested[key] = began + self._took[key] + _rest(self._took[key])
        try:
            return await self._reconcile(key)
        finally:
            ended = self._clock()
            rest = _rest(ended - began)
            if rest > SETTLE_SECONDS:
                self._took[key] = ended - began
                self._rested[key] = ended + rest
            else:
                self._took.pop(key, None)
                self._rested.pop(key, None)


def _rest(seconds: float) -> float:
    return min(LONGEST_REST, REST * seconds)


_ENDED = frozenset({Phase.COMPLETED, Phase.FAILED})


class Guard:
    """Makes the passes of the HyperJobs that are not set aside."""

    def __init__(
        self,
        reconcile: Reconcile,
        wall: Wall,
        kube: Kube,
        caches: Caches,
        *,
        events: Events,
        now: Callable[[], datetime],
        refresh: Callable[[str], None],
    ) -> None:
        """`refresh` repeats what the event handlers do for a HyperJob's vcjobs."""
        self._reconcile = reconcile
        self._wall = wall
        self._kube = kube
        self._caches = caches
        self._events = events
        self._now = now
        self._refresh = refresh
        self._aside: set[str] = set()

    async def reconcile(self, key: str) -> timedelta | None:
        """Make a pass; return the time until the next. Raises SetAsideError after a bug.

        So it does after a turn that took too long, whose decision the pass has carried out.
        """
        incident = self._wall.incident(key)
        if incident is not None:
            return await self._name(key, incident)
        try:
            if key in self._aside:
                self._aside.discard(key)
                self._refresh(key)
            again = await self._reconcile(key)
        except (KubeError, TimeoutError):
            raise
        except Exception as error:
            incident = self._wall.caught(key, error, Place.RECONCILE)
            raise SetAsideError(await self._name(key, incident)) from error
        incident = self._wall.incident(key)
        if incident is not None:
            raise SetAsideError(await self._name(key, incident))
        if self._caches.hyperjob(key) is None:
            self._aside.discard(key)
            self._wall.forget(key)
        return again

    async def _name(self, key: str, incident: Incident) -> timedelta:
        """Name the incident in the status of a HyperJob; return the rest of its back-off."""
        self._aside.add(key)
        wait = max(incident.until - self._now(), timedelta(milliseconds=1))
        try:
            await self._write(key, incident)
        except (KubeError, TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001 - the wall
            self._wall.failed(Place.RECONCILE, error)
        return wait

    async def _write(self, key: str, incident: Incident) -> None:
        """Write the incident into the status, unless the HyperJob has ended or names it already."""
        raw = self._caches.hyperjob(key)
        old = mapping(at(raw, "status"))
        if raw is None or string(at(old, "state", "phase")) in _ENDED:
            return
        status = derive_fault(old, incident.number, now=self._now())
        patch = merge_patch({"state": old.get("state")}, status)
        version = at(raw, "metadata", "resourceVersion")
        if patch and await patch_status(self._kube, self._caches, key, patch, version) is not None:
            self._events.record(key, status_events(old, {**old, **status}))
