"""Tombstones: the names of recently deleted vcjobs, and the vcjobs created since with such a name.

Volcano in a member may lose a vcjob that follows another one of the same name (see
`lifecycle.silence`). After a restart of the controller there are no tombstones.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import key_of

WINDOW: Final = timedelta(minutes=10)
"""How long a tombstone counts: longer than pods take to terminate in most templates."""


class Tombstones:
    """The tombstones, from the events of the vcjob informer."""

    def __init__(self, jobs: Informer, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._gone: dict[str, datetime] = {}
        self._followers: set[str] = set()
        jobs.add_handler(self._changed)

    def __str__(self) -> str:
        """Return the names of the deleted vcjobs."""
        return ", ".join(sorted(self._gone)) or "none"

    def _changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Record a created or deleted vcjob."""
        now = self._now()
        while self._gone and now - self._gone[oldest := next(iter(self._gone))] > WINDOW:
            del self._gone[oldest]
        if kind is EventType.DELETED and old is not None:
            self._followers.discard(_uid(old))
            self._gone.pop(key := key_of(old), None)
            self._gone[key] = now
        elif kind is EventType.ADDED and new is not None and key_of(new) in self._gone:
            self._followers.add(_uid(new))

    def not_applied(self, uid: str) -> None:
        """Record a vcjob that Karmada could not apply: a namesake may still exist in the member."""
        self._followers.add(uid)

    def is_follower(self, uid: str) -> bool:
        """Return whether a vcjob may follow another one of its name on the same cluster."""
        return uid in self._followers


def _uid(vcjob: Object) -> str:
    return string(at(vcjob, "metadata", "uid"))
