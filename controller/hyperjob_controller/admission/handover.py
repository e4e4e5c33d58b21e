"""The claims that one leader leaves for the next, and what they say about the first summaries."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

from hyperjob_core.api.duration import later
from hyperjob_engine.queueing.claims import Claims, from_text, to_text, together
from hyperjob_engine.queueing.state import QueueState
from hyperjob_engine.resources import Resources


class Held(Protocol):
    """What sub-jobs hold of the clusters."""

    def claims(self, *, now: datetime) -> Claims:
        """Return what they hold now, and what ended ones may."""
        ...

    def unclaimed(self, claims: Claims) -> Mapping[str, Resources]:
        """Return what claims had of sub-jobs that are no longer there, by cluster."""
        ...


class Handover:
    """Knows since when this process follows the Clusters, and what the last leader left."""

    def __init__(self, held: Held, *, now: Callable[[], datetime]) -> None:
        """Use what this process knows of the clusters; a standby keeps it up to date too."""
        self._held = held
        self._now = now
        self._began: datetime | None = None
        self._left = ""
        self._unclaimed: Mapping[str, Resources] | None = None

    def follow(self, since: datetime) -> None:
        """Record since when this process follows the Clusters, with all caches; once."""
        self._began = self._began or since

    def restore(self, text: str) -> None:
        """Take over the claims of the last leader, as its Lease has them."""
        self._left = text

    def prime(self, state: QueueState) -> None:
        """Let a new state of the queue engine know what summaries may count of ended sub-jobs."""
        if self._left and self._began is not None:
            claims, self._left = from_text(self._left), ""
            if claims is not None:
                self._unclaimed = self._held.unclaimed(claims)
        state.began, state.unclaimed = self._began, self._unclaimed

    def record(self, state: QueueState) -> str:
        """Return the claims for the next leader; empty while this one does not know them itself."""
        now = self._now()
        if self._began is None or self._left:
            return self._left
        claims = self._held.claims(now=now)
        if later(self._began, state.settings.lag) <= now:
            return to_text(claims)
        if self._unclaimed is None:
            return ""
        return to_text(Claims(now, together(claims.on, self._unclaimed)))
