"""The back-off of objects that the API server refused.

It is lost with the process: the API server refuses the first try after a restart again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hyperjob_engine.model.observed import Refusal

_FIRST: Final = 5.0
_LONGEST: Final = 300.0


@dataclass(slots=True)
class _Memory:
    uid: str
    generation: int
    refusals: dict[str, Refusal]
    times: dict[str, int]


class Refusals:
    """Refusals by HyperJob and sub-job; a changed spec clears them."""

    def __init__(self) -> None:
        self._memories: dict[str, _Memory] = {}

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
        return memory.refusals

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
        memory = self._memories.get(key)
        if memory is None or (memory.uid, memory.generation) != (uid, generation):
            memory = self._memories[key] = _Memory(uid, generation, {}, {})
        times = memory.times.get(name, 0)
        wait = min(_LONGEST, _FIRST * 2.0 ** min(times, 32))
        memory.times[name] = times + 1
        memory.refusals[name] = Refusal(
            reason=reason, message=message, retry_at=now + timedelta(seconds=wait)
        )

    def clear(self, key: str, name: str) -> None:
        """Remove the refusal of a sub-job that the API server has accepted."""
        memory = self._memories.get(key)
        if memory is not None:
            memory.refusals.pop(name, None)
            memory.times.pop(name, None)

    def forget(self, key: str) -> None:
        """Drop a deleted HyperJob."""
        self._memories.pop(key, None)
