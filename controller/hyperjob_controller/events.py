"""The last step of a pass: it records the Events of a plan, each with a line in the log."""

import logging
from collections.abc import Iterable, Sequence
from typing import Protocol

from hyperjob_controller.caches.informers import Caches
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.events import EventKind
from hyperjob_core.telemetry.logs import ref
from hyperjob_engine.model.planned import Event
from hyperjob_engine.status.transitions import STARTS, pass_events

log = logging.getLogger(__name__)


class Recorder(Protocol):
    """The method of an EventRecorder that a pass calls."""

    def event(self, obj: Object, type: EventKind, reason: str, action: str, note: str) -> None:  # noqa: A002
        """Record an Event about an object."""
        ...


class Events:
    """Records Events about HyperJobs."""

    def __init__(self, caches: Caches, recorder: Recorder) -> None:
        self._caches = caches
        self._recorder = recorder
        self._starts: dict[str, tuple[Event, ...]] = {}

    def record_pass(
        self, key: str, decided: Sequence[Event], done: Sequence[Event], *, waits: bool
    ) -> None:
        """Record the Events of a pass: `decided` with its status, `done` with its actions.

        While the status `waits` to be written, Events of starts wait for the phase in it: one Event
        has both.
        """
        done = (*self._starts.pop(key, ()), *done)
        if waits:
            starts = tuple(event for event in done if event.reason in STARTS)
            done = tuple(event for event in done if event.reason not in STARTS)
            if starts:
                self._starts[key] = starts
        self.record(key, pass_events(decided, done))

    def forget(self, key: str) -> None:
        """Drop the waiting Events of a deleted HyperJob."""
        self._starts.pop(key, None)

    def flush(self) -> None:
        """Record all waiting Events: no pass of this process follows."""
        while self._starts:
            self.record(*self._starts.popitem())

    def record(self, key: str, events: Iterable[Event]) -> None:
        """Record the Events of a HyperJob; none if it no longer exists."""
        regarding = self._caches.hyperjob(key)
        if regarding is None:
            return
        for event in events:
            self._recorder.event(regarding, event.type, event.reason, event.action, event.note)
            log.log(
                logging.WARNING if event.type == "Warning" else logging.INFO,
                "HyperJob changed",
                extra={"hyperjob": ref(regarding), "reason": event.reason, "note": event.note},
            )
