"""Tombstones: names of vcjobs that have just gone, and the vcjobs made under such a name since.

Volcano in a member may lose a vcjob that follows another one of its name (see
`lifecycle.silence`). A restart of the controller forgets tombstones, and with them the suspicion.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from controller.model.wire import at, string
from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType
from hyperjob.kube.informer import Informer
from hyperjob.kube.resources import key_of

WINDOW: Final = timedelta(minutes=10)
"""Twice as long as pods take to end is what matters, and that is for their templates to say."""


class Tombstones:
    """Notes the vcjobs that come and go."""

    def __init__(self, jobs: Informer, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._gone: dict[str, datetime] = {}
        self._followers: set[str] = set()
        jobs.add_handler(self._changed)

    def _changed(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        """Note a vcjob that was made or has gone."""
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
        """Note a vcjob that Karmada could not apply: the name may be taken in the member."""
        self._followers.add(uid)

    def is_follower(self, uid: str) -> bool:
        """Return whether a vcjob may follow another of its name on the same cluster."""
        return uid in self._followers


def _uid(vcjob: Object) -> str:
    return string(at(vcjob, "metadata", "uid"))
