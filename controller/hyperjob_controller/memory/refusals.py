"""The back-off of objects that the API server refused, or could not judge.

A refusal concerns one object, and its back-off grows to minutes. An outage, such as a webhook out
of reach, says nothing of the object: all HyperJobs share one short back-off, and one of them tries
first. Both are lost with the process: the API server answers the first try after a restart again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(slots=True)
class _Memory:
    uid: str
    generation: int
    refusals: dict[str, Refusal]
    times: dict[str, int]
    unjudged: dict[str, tuple[str, str]]  # reason and message of an outage, by sub-job


class Refusals:
    """Refusals by HyperJob and sub-job; a changed spec clears them."""

    def __init__(self) -> None:
        self._memories: dict[str, _Memory] = {}
        self._outage_wait = timedelta()
        self._outage_until: datetime | None = None
        self._probe = ""  # the key of the HyperJob that tries first

    def __str__(self) -> str:
        """Return each refused sub-job with the reason and the time of the next try."""
        found = (
            f"{key} {name}: {refusal.reason}, again at {refusal.retry_at:%H:%M:%S}"
            for key, memory in sorted(self._memories.items())
            for name, refusal in sorted(memory.refusals.items())
        )
        return "; ".join(found) or "none"

    def of(self, key: str, *, uid: str, generation: int) -> Mapping[str, Refusal]:
        """Return the refusals of a HyperJob of this UID and generation, by sub-job."""
        memory = self._memories.get(key)
        if memory is None or (memory.uid, memory.generation) != (uid, generation):
            return {}
        if not memory.unjudged or self._outage_until is None:
            return memory.refusals
        retry_at = self._outage_until + (timedelta() if key == self._probe else _AFTER_PROBE)
        unjudged = {
            name: Refusal(reason=reason, message=message, retry_at=retry_at)
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
        now: datetime,
    ) -> None:
        """Record a refusal; each further refusal of the same sub-job doubles the wait."""
        memory = self._memory(key, uid, generation)
        memory.unjudged.pop(name, None)
        times = memory.times.get(name, 0)
        wait = min(_LONGEST, _FIRST * 2.0 ** min(times, 32))
        memory.times[name] = times + 1
        memory.refusals[name] = Refusal(
            reason=reason, message=message, retry_at=now + timedelta(seconds=wait)
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
        now: datetime,
    ) -> None:
        """Record that the API server could not judge a sub-job; all HyperJobs share the wait.

        Only the first failure after a wait extends the outage: the requests that were under way
        beside it say nothing new.
        """
        if self._outage_until is None or now >= self._outage_until:
            begun = self._outage_until is None or now > self._outage_until + _FORGOTTEN
            longer = timedelta() if begun else 2 * self._outage_wait
            self._outage_wait = min(_LONGEST_OUTAGE, max(_FIRST_OUTAGE, longer))
            self._outage_until = now + self._outage_wait
            self._probe = key
        memory = self._memory(key, uid, generation)
        memory.refusals.pop(name, None)
        memory.unjudged[name] = (reason, message)

    def is_unjudged(self, key: str) -> bool:
        """Return whether an outage delays a sub-job of a HyperJob."""
        memory = self._memories.get(key)
        return memory is not None and bool(memory.unjudged)

    def forget_all(self) -> None:
        """Drop all refusals and the outage: the component that refused may be another one now."""
        self._memories.clear()
        self._outage_until = None

    def _memory(self, key: str, uid: str, generation: int) -> _Memory:
        memory = self._memories.get(key)
        if memory is None or (memory.uid, memory.generation) != (uid, generation):
            memory = self._memories[key] = _Memory(uid, generation, {}, {}, {})
        return memory

    def clear(self, key: str, name: str) -> None:
        """Remove the refusal of a sub-job that the API server has accepted."""
        memory = self._memories.get(key)
        if memory is not None:
            memory.refusals.pop(name, None)
            memory.times.pop(name, None)
            memory.unjudged.pop(name, None)

    def forget(self, key: str) -> None:
        """Drop a deleted HyperJob."""
        self._memories.pop(key, None)
