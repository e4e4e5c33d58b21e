"""Leader election by a Lease: one replica leads, the others wait for its release or expiry.

The body runs only while this process surely holds the Lease. If it cannot renew the Lease in time,
it cancels and awaits the body before another replica may acquire the Lease: there are never two
leaders.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from prometheus_client import Gauge

from hyperjob_core.api.duration import micro_time, utc_now
from hyperjob_core.api.meta import Object
from hyperjob_core.api.ownership import MANAGED_BY, manager_of
from hyperjob_core.api.wire import at, count, mapping, string_map
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from hyperjob_core.kube.resources import LEASES
from hyperjob_core.registry import REGISTRY

_LONGEST_SECONDS: Final = 3600.0
"""The longest duration of a Lease that the controller can be given."""
_MOST_TRANSITIONS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Sight:
    """The Lease at its last observed change; `since` is the local monotonic time of that."""

    lease: Object
    since: float

    @property
    def holder(self) -> str:
        """Return the holder's identity; empty if there is no holder."""
        return str(_spec(self.lease).get("holderIdentity") or "")

    @property
    def transitions(self) -> int:
        """Return how often the holder has changed."""
        return count(_spec(self.lease).get("leaseTransitions"))

    def expires(self, default: float) -> float:
        """Return the monotonic time from which on another replica may acquire the Lease."""
        seconds = count(_spec(self.lease).get("leaseDurationSeconds")) or default
        return self.since + min(seconds, _LONGEST_SECONDS)

    def updated(self, lease: Object, now: float) -> "Sight":
        """Return the sight after another read: `since` changes only with the Lease."""
        was, is_now = self.lease["metadata"], lease["metadata"]
        same = all(was.get(part) == is_now.get(part) for part in ("uid", "resourceVersion"))
        return replace(self, lease=lease, since=self.since if same else now)


def new_lease(
    namespace: str, name: str, identity: str, *, seconds: int, now: datetime, manager: str = ""
) -> Object:
    """Return a new Lease with a holder, and with the label of the program `manager`."""
    labels = {"labels": {MANAGED_BY: manager}} if manager else {}
    return {
        "metadata": {"namespace": namespace, "name": name, **labels},
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": seconds,
            "acquireTime": micro_time(now),
            "renewTime": micro_time(now),
            "leaseTransitions": 0,
        },
    }


def held(sight: Sight, identity: str, *, seconds: int, now: datetime) -> Object:
    """Return the Lease as `identity` writes it: renewed if it is the holder, else acquired.

    The resourceVersion stays: the write fails if another client wrote in between.
    """
    old = _spec(sight.lease)
    renewed = sight.holder == identity
    return sight.lease | {
        "spec": old
        | {
            "holderIdentity": identity,
            "leaseDurationSeconds": seconds,
            "acquireTime": (renewed and old.get("acquireTime")) or micro_time(now),
            "renewTime": micro_time(now),
            "leaseTransitions": min(sight.transitions + (0 if renewed else 1), _MOST_TRANSITIONS),
        }
    }


def released(sight: Sight, *, now: datetime) -> Object:
    """Return the Lease as its holder releases it."""
    return sight.lease | {
        "spec": _spec(sight.lease)
        | {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": micro_time(now),
            "renewTime": micro_time(now),
        }
    }


def _spec(lease: Object) -> Object:
    return mapping(lease.get("spec"))


log = logging.getLogger(__name__)

LEASE_SECONDS = 15
RENEW_SECONDS = 10.0
RETRY_SECONDS = 2.0
_JITTER = 0.2
_RELEASE_SECONDS = 5.0
_OTHERS = 16 * 1024

_LEADING: Final = Gauge(
    "leader_election_master_status",
    "1 while this process leads, else 0",
    ("name",),
    registry=REGISTRY,
)


class LeadershipLostError(Exception):
    """The Lease was not renewed in time, or another replica acquired it; the body was stopped."""


@dataclass(eq=False)
class LeaderElector:
    """Run a body while leading.

    Other replicas wait `lease_seconds` without a renewal. The leader stops its body
    `renew_seconds` after the last renewal. Both retry every `retry_seconds`. ValueError is raised
    unless the three are in descending order, and for an empty identity. `overdue` is called if a
    stopped body still runs when the Lease expires: end the process. Each renewal writes `noted`
    into the annotations of the Lease. A new Lease has the label of the program `manager`, and the
    elector never acquires a Lease of another program.
    """

    kube: Kube
    namespace: str
    name: str
    identity: str
    _: KW_ONLY
    lease_seconds: int = LEASE_SECONDS
    renew_seconds: float = RENEW_SECONDS
    retry_seconds: float = RETRY_SECONDS
    overdue: Callable[[], None] | None = None
    noted: Callable[[], Mapping[str, str]] = dict
    manager: str = ""
    wall: Callable[[], datetime] = utc_now
    _sight: Sight | None = field(default=None, init=False)
    _held_since: float = field(default=0.0, init=False)
    _sure: bool = field(default=False, init=False)
    _problem: str = field(default="", init=False)

    def __post_init__(self) -> None:
        if not self.identity:
            raise ValueError("a candidate needs an identity")
        longest = self.retry_seconds * (1 + _JITTER)
        if not self.lease_seconds > self.renew_seconds > longest > 0:
            raise ValueError("lease_seconds > renew_seconds > 1.2 retry_seconds > 0 must hold")
        self._lead(leading=False)

    @property
    def leader(self) -> str:
        """Return the last observed holder of the Lease; empty for none."""
        return self._sight.holder if self._sight else ""

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return the annotations of the Lease as last seen, also those of earlier leaders."""
        return string_map(at(self._sight.lease, "metadata", "annotations")) if self._sight else {}

    async def run(self, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Acquire the Lease, run `body` while this process holds it, then release it.

        Returns after the body, and raises the exceptions of the body. Raises LeadershipLostError if
        the Lease is lost; the caller then starts over, best as a new process.
        """
        await self._acquire()
        log.info("Leading", extra=self._about())
        self._lead(leading=True)
        task = asyncio.create_task(body(), name=f"leader of {self.namespace}/{self.name}")
        try:
            lost = await self._renew_beside(task)
        finally:
            try:
                await self._stop(task)
            finally:
                self._lead(leading=False)
                await self._release()
        if lost:
            raise LeadershipLostError(
                f"lease {self.namespace}/{self.name} could not be renewed within "
                f"{self.renew_seconds:g}s" + self._other_holder()
            )
        await task

    def _other_holder(self) -> str:
        """Return which other replica holds the Lease, for the end of a sentence; "" for none."""
        return f": {self.leader} has it" if self.leader not in ("", self.identity) else ""

    async def _acquire(self) -> None:
        """Try until this process holds the Lease; log each other holder and each error once."""
        log.info("Waiting to lead", extra=self._about())
        seen, foreign, problem = "", False, ""
        while not await self._try():
            if self._problem != problem:
                problem = self._problem
                if problem:
                    log.warning("Cannot acquire the lease", extra=self._about(error=problem))
            if self._sight is not None and self._is_foreign(self._sight) and not foreign:
                foreign = True
                log.error(
                    "The Lease was created by another program: delete it if nothing needs it, and"
                    " a new one is created",
                    extra=self._about(),
                )
            if self.leader != seen:
                seen = self.leader
                log.info("Another leads", extra=self._about(leader=seen))
            await asyncio.sleep(self._pause())

    async def _renew_beside(self, task: asyncio.Task[None]) -> bool:
        """Renew until the body ends (False) or the Lease is lost (True)."""
        loop = asyncio.get_running_loop()
        while True:
            deadline = self._held_since + self.renew_seconds
            left = deadline - loop.time()
            if left <= 0:
                why = self._problem or "no answer in time"
                log.warning("Cannot renew the lease in time", extra=self._about(error=why))
                return True
            await asyncio.wait({task}, timeout=min(self._pause(), left))
            if task.done():
                return False
            try:
                async with asyncio.timeout_at(deadline):
                    await self._try()
            except TimeoutError:
                continue
            if self.leader not in ("", self.identity):
                log.warning("Another took the lease", extra=self._about(leader=self.leader))
                return True

    async def _try(self) -> bool:
        """Acquire or renew the Lease once; False if another replica holds it, or on an error.

        The holding time counts from *before* the write: the other replicas count from later on.
        """
        loop = asyncio.get_running_loop()
        written, started = None, loop.time()
        try:
            async with asyncio.timeout(self.renew_seconds):
                if not self._sure:
                    await self._look()
                sight, started = self._sight, loop.time()
                if sight is None:
                    lease = new_lease(
                        self.namespace,
                        self.name,
                        self.identity,
                        seconds=self.lease_seconds,
                        now=self.wall(),
                        manager=self.manager,
                    )
                    written = await self.kube.create(LEASES, self._annotated(lease))
                elif self._is_free(sight, started):
                    lease = held(sight, self.identity, seconds=self.lease_seconds, now=self.wall())
                    written = await self.kube.replace(LEASES, self._annotated(lease))
        except (KubeError, TimeoutError) as error:
            raced = isinstance(error, AlreadyExists | Conflict)
            self._problem = "" if raced else str(error) or "no answer in time"
            log.debug("Lease call failed", extra=self._about(error=str(error)))
        else:
            self._problem = ""
        finally:
            self._sure = written is not None
        if written is None:
            return False
        self._sight = Sight(written, loop.time())
        self._held_since = started
        return True

    def _annotated(self, lease: Object) -> Object:
        """Return the Lease with the annotations of this process, and at most 16 KiB of others."""
        metadata, wanted = lease["metadata"], self.noted()
        if not wanted:
            return lease
        others = string_map(metadata.get("annotations"))
        if sum(len(key) + len(others[key]) for key in others.keys() - wanted.keys()) > _OTHERS:
            others = {}  # the API server would refuse the Lease: all have at most 256 KiB
        annotations = {**others, **wanted}
        return {**lease, "metadata": {**metadata, "annotations": annotations}}

    async def _look(self) -> None:
        """Read the Lease and record whether it has changed since the last read."""
        try:
            lease = await self.kube.get(LEASES, self.name, namespace=self.namespace)
        except NotFound:
            self._sight = None
            return
        now = asyncio.get_running_loop().time()
        self._sight = self._sight.updated(lease, now) if self._sight else Sight(lease, now)

    def _is_free(self, sight: Sight, now: float) -> bool:
        if sight.holder == self.identity:
            return True
        is_over = not sight.holder or now >= sight.expires(self.lease_seconds)
        return is_over and not self._is_foreign(sight)

    def _is_foreign(self, sight: Sight) -> bool:
        return manager_of(sight.lease) != self.manager

    async def _stop(self, task: asyncio.Task[None]) -> None:
        """Cancel the body and await its end, however long that takes, even when cancelled.

        Raises the last CancelledError of this call, after the end of the body. Calls `overdue` once
        if the Lease expires before that end. An exception of the body is logged, not raised.
        """
        if task.done():
            return
        expires = self._held_since + self.lease_seconds
        task.cancel()
        cancelled: asyncio.CancelledError | None = None
        warned = False
        while not task.done():
            left = expires - asyncio.get_running_loop().time()
            if left <= 0 and not warned:
                warned = True
                log.critical("The lease expires while its work still runs", extra=self._about())
                if self.overdue:
                    self.overdue()
            try:
                await asyncio.wait({task}, timeout=None if warned else max(left, 0))
            except asyncio.CancelledError as error:
                cancelled = error
        if not task.cancelled() and (failure := task.exception()):
            log.error("The leader's work failed as it was stopped", exc_info=failure)
        if cancelled:
            raise cancelled

    async def _release(self) -> None:
        """Release the Lease if this process still holds it: the next leader then need not wait."""
        sight = self._sight
        if sight is None or sight.holder != self.identity:
            return
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                lease = self._annotated(released(sight, now=self.wall()))
                written = await self.kube.replace(LEASES, lease)
            self._sight = Sight(written, asyncio.get_running_loop().time())
            log.info("Gave the lease up", extra=self._about())
        except (KubeError, TimeoutError) as error:
            log.info("Could not give the lease up", extra=self._about(error=str(error)))

    def _lead(self, *, leading: bool) -> None:
        _LEADING.labels(self.name).set(1 if leading else 0)

    def _pause(self) -> float:
        return self.retry_seconds * (1 + random.uniform(0, _JITTER))

    def _about(self, **more: str) -> dict[str, object]:
        lease = {"namespace": self.namespace, "name": self.name}
        return {"lease": lease, "identity": self.identity, **more}
