"""The back-off of objects that the API server refused, or could not judge.

A refusal concerns one object, and its back-off grows to minutes. An outage, such as a webhook out
of reach or a full ResourceQuota, says nothing of the object: all HyperJobs that it concerns share
one short back-off, and one of them tries first. Both are lost with the process: the API server
answers the first try after a restart again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from hyperjob_engine.model.observed import Refusal

_FIRST: Final = 5.0
_LONGEST: Final = 300.0
_FIRST_OUTAGE: Final = timedelta(seconds=1)
_LONGEST_OUTAGE: Final = timedelta(seconds=10)
_AFTER_PROBE: Final = timedelta(seconds=1)
"""How long after the first HyperJob the others try: its try extends the outage, or ends it."""
_FORGOTTEN: Final = timedelta(minutes=1)
"""A failure so long after the last try begins another outage, with the shortest wait."""
_KEPT: Final = timedelta(seconds=10)
"""How long an outage lasts before other HyperJobs get the room of what cannot be created."""


@dataclass(slots=True)
class _Outage:
    """The shared wait of the HyperJobs `waiting`; the first of them tries first, at `until`.

    The outage began at `since`. A success resets `since` and keeps `wait`, for a failure that
    follows soon. The last failure came `took` after its try: a webhook may not answer at all.
    """

    since: datetime
    until: datetime
    wait: timedelta
    took: timedelta
    waiting: dict[str, None] = field(default_factory=dict)

    @property
    def probe(self) -> str:
        """Return the HyperJob that tries first; empty if none waits."""
        return next(iter(self.waiting), "")

    def retry_at(self, key: str) -> datetime:
        """Return when a HyperJob tries again; the others wait for the answer to the first one."""
        return self.until + (timedelta() if key == self.probe else self.took + _AFTER_PROBE)


@dataclass(slots=True)
class _Memory:
    uid: str
    generation: int
    refusals: dict[str, Refusal] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    unjudged: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Reason and message of an outage, by sub-job."""
    outage: str | None = None  # the scope of the outage, while a sub-job is unjudged


class Refusals:
    """Refusals by HyperJob and sub-job; a changed spec clears them."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._memories: dict[str, _Memory] = {}
        self._outages: dict[str, _Outage] = {}

    def __len__(self) -> int:
        return len(self._memories) + len(self._outages)

    def __str__(self) -> str:
        """Return each refused sub-job with the reason and the time of the next try."""
        found = [
            f"{key} {name}: {refusal.reason}, again at {refusal.retry_at:%H:%M:%S}"
            for key, memory in sorted(self._memories.items())
            for name, refusal in sorted(memory.refusals.items())
        ]
        found += [
            f"outage{scope and ' in namespace '}{scope}: {len(outage.waiting)} HyperJobs wait,"
            f" {outage.probe} tries at {outage.until:%H:%M:%S}"
            for scope, outage in sorted(self._outages.items())
            if outage.waiting
        ]
        return "; ".join(found) or "none"

    def of(self, key: str, *, uid: str, generation: int) -> Mapping[str, Refusal]:
        """Return the refusals of a HyperJob of this UID and generation, by sub-job."""
        memory = self._memories.get(key)
        if memory is None or (memory.uid, memory.generation) != (uid, generation):
            return {}
        outage = self._outage_of(memory)
        if outage is None:
            return memory.refusals
        retry_at = outage.retry_at(key)
        unjudged = {
            name: Refusal(
                reason=reason,
                message=message,
                retry_at=retry_at,
                gives_back_at=outage.since + _KEPT,
            )
            for name, (reason, message) in memory.unjudged.items()
        }
        return {**memory.refusals, **unjudged}

    def note(
        self,
        key: str,
        name: str,
        *,
        uid: str,
        generation: int,
        reason: str,
        message: str,
    ) -> None:
        """Record a refusal; each further refusal of the same sub-job doubles the wait."""
        memory = self._memory(key, uid, generation)
        memory.unjudged.pop(name, None)
        if not memory.unjudged:
            self._leave(key, memory)
        times = memory.times.get(name, 0)
        wait = min(_LONGEST, _FIRST * 2.0 ** min(times, 32))
        memory.times[name] = times + 1
        memory.refusals[name] = Refusal(
            reason=reason, message=message, retry_at=self._now() + timedelta(seconds=wait)
        )

    def note_outage(
        self,
        key: str,
        name: str,
        *,
        uid: str,
        generation: int,
        reason: str,
        message: str,
        scope: str,
        tried: datetime,
    ) -> None:
        """Record that the API server could not judge a sub-job; the HyperJobs share the wait.

        `scope` is the namespace that the outage concerns, empty for all; `tried` is the time of the
        request. Only the first failure after a wait extends the outage: the requests that were
        under way beside it say nothing new. In a namespace the HyperJobs take turns to try first: a
        full quota may have room for some.
        """
        now = self._now()
        self._drop_old(now)
        memory = self._memory(key, uid, generation)
        if memory.outage not in {None, scope}:
            self._leave(key, memory)
        outage = self._outages.get(scope)
        if outage is None:
            outage = _Outage(now, now + _FIRST_OUTAGE, _FIRST_OUTAGE, now - tried)
            self._outages[scope] = outage
        elif now >= outage.until:
            outage.took = now - tried
            outage.since = outage.since if outage.waiting else now
            outage.wait = min(_LONGEST_OUTAGE, 2 * outage.wait)
            outage.until = now + outage.wait
            if scope:
                outage.waiting.pop(key, None)
        outage.waiting[key] = None
        memory.outage = scope
        memory.refusals.pop(name, None)
        memory.unjudged[name] = (reason, message)

    def is_unjudged(self, key: str) -> bool:
        """Return whether an outage delays a sub-job of a HyperJob now."""
        memory = self._memories.get(key)
        outage = None if memory is None else self._outage_of(memory)
        return outage is not None and self._now() < outage.retry_at(key)

    def forget_all(self) -> None:
        """Drop all refusals and the outages: the component that refused may be another one now."""
        self._memories.clear()
        self._outages.clear()

    def accepted(self, key: str, name: str) -> Sequence[str]:
        """Remove the refusal of a sub-job that the API server has accepted.

        If an outage delayed the sub-job, the outage is over: the result are the HyperJobs that
        waited for its end.
        """
        memory = self._memories.get(key)
        if memory is None:
            return ()
        memory.refusals.pop(name, None)
        memory.times.pop(name, None)
        outage = self._outage_of(memory) if name in memory.unjudged else None
        if outage is None:
            return ()
        outage.until = self._now()
        return self._end(outage)

    def forget(self, key: str) -> None:
        """Drop a deleted HyperJob."""
        memory = self._memories.pop(key, None)
        if memory is not None:
            self._leave(key, memory)

    def _memory(self, key: str, uid: str, generation: int) -> _Memory:
        memory = self._memories.get(key)
        if memory is None or (memory.uid, memory.generation) != (uid, generation):
            self.forget(key)
            memory = self._memories[key] = _Memory(uid, generation)
        return memory

    def _outage_of(self, memory: _Memory) -> _Outage | None:
        return None if memory.outage is None else self._outages.get(memory.outage)

    def _leave(self, key: str, memory: _Memory) -> None:
        """Let a HyperJob leave the outage that delays it, if any."""
        outage = self._outage_of(memory)
        memory.outage = None
        memory.unjudged.clear()
        if outage is not None:
            outage.waiting.pop(key, None)

    def _end(self, outage: _Outage) -> list[str]:
        """Let all HyperJobs leave an outage; return their keys."""
        freed = list(outage.waiting)
        for key in freed:
            self._leave(key, self._memories[key])
        return freed

    def _drop_old(self, now: datetime) -> None:
        """Drop the outages that ended, or that no HyperJob has met, for some time."""
        for scope, outage in list(self._outages.items()):
            if now > outage.until + _FORGOTTEN:
                self._end(outage)
                del self._outages[scope]
