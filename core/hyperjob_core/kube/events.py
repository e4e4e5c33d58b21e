"""Kubernetes Events (events.k8s.io/v1) about objects, for people who run `kubectl describe`.

Recording never waits and never fails: an Event that cannot be written is counted and dropped. A
repeated Event becomes a series of the first one. The rate of Events about one object is bounded.
"""

import asyncio
import logging
import secrets
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from prometheus_client import Counter

from hyperjob_core.api.duration import micro_time, utc_now
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import AlreadyExists, KubeError, NotFound
from hyperjob_core.kube.ratelimit import TokenBucket
from hyperjob_core.kube.resources import EVENTS
from hyperjob_core.registry import REGISTRY

log = logging.getLogger(__name__)

EventKind = Literal["Normal", "Warning"]

_NOTE_BYTES = 1024
_WAITING = 1000
_REMEMBERED = 4096
_SERIES_SECONDS = 360.0
_BURST = 25
_REFILL_PER_SECOND = 1 / 300
_FLUSH_SECONDS = 2.0

_DROPPED: Final = Counter(
    "hyperjob_events_dropped_total",
    "Kubernetes Events that could not be recorded",
    ("reason",),
    registry=REGISTRY,
)
for _reason in ("spam", "full", "failed"):
    _DROPPED.labels(_reason)  # an alert needs the series before its first count

Key = tuple[str, ...]


@dataclass(slots=True)
class _Series:
    """One Event and its number of repetitions; its body is in memory until it is written."""

    name: str
    began: datetime
    last: float
    count: int = 1
    created: bool = False


class EventRecorder:
    """Record Events in the background; `run()` belongs in the caller's TaskGroup."""

    def __init__(
        self,
        kube: Kube,
        reporting_controller: str,
        *,
        instance: str = "",
    ) -> None:
        """`instance` is the name of the process in its Events, by default the controller's."""
        self._kube = kube
        self._controller = reporting_controller
        self._instance = (instance or reporting_controller)[:128]
        self._series: OrderedDict[Key, _Series] = OrderedDict()
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()
        self._waiting: OrderedDict[Key, Object] = OrderedDict()
        self._arrived = asyncio.Event()

    def event(
        self,
        obj: Object,
        type: EventKind,  # noqa: A002 - the field's name
        reason: str,
        action: str,
        note: str,
    ) -> None:
        """Record that `reason` (one CamelCase word) happened to `obj` during `action`.

        Returns at once. `obj` needs apiVersion, kind and metadata.
        """
        regarding = reference(obj)
        note = _shorten(note)
        key = (str(regarding.get("uid")), _object_text(regarding), type, reason, action, note)
        now = asyncio.get_running_loop().time()
        series = self._series.get(key)
        if series is not None and now - series.last < _SERIES_SECONDS:
            series.count += 1
            series.last = now
        elif not self._allowed(key[0] + key[1]):
            _DROPPED.labels("spam").inc()
            return
        else:
            series = self._series[key] = _Series(_name(regarding), utc_now(), now)
        self._series.move_to_end(key)
        if key not in self._waiting and len(self._waiting) >= _WAITING:
            self._series.pop(key, None)
            _DROPPED.labels("full").inc()
            return
        self._waiting[key] = self._build(series, regarding, type, reason, action, note)
        self._arrived.set()
        while len(self._series) > _REMEMBERED:
            self._forget_oldest()

    async def run(self) -> None:
        """Write the recorded Events until cancelled, then the rest for at most two seconds."""
        try:
            while True:
                await self._arrived.wait()
                await self._flush()
        finally:
            try:
                async with asyncio.timeout(_FLUSH_SECONDS):
                    await self._flush()
            except TimeoutError:
                for _ in self._waiting:
                    _DROPPED.labels("failed").inc()

    async def _flush(self) -> None:
        """Write all waiting Events; an Event that the API server refuses is counted and dropped."""
        while self._waiting:
            key, event = self._waiting.popitem(last=False)
            series = self._series.get(key)
            if series is None:
                continue
            try:
                await self._write(series, event)
            except asyncio.CancelledError:
                self._waiting.setdefault(key, event)
                raise
            except KubeError as error:
                _DROPPED.labels("failed").inc()
                log.info(
                    "Event not recorded",
                    extra={
                        "about": _object_text(event["regarding"]),
                        "reason": event["reason"],
                        "error": str(error),
                    },
                )
        self._arrived.clear()

    async def _write(self, series: _Series, event: Object) -> None:
        """Create an Event, or patch the series of an existing Event; raises KubeError."""
        metadata = event["metadata"]
        if series.created and "series" in event:
            try:
                await self._kube.patch(
                    EVENTS,
                    series.name,
                    {"series": event["series"]},
                    kind=PatchType.MERGE,
                    namespace=metadata["namespace"],
                )
            except NotFound:  # the API server deletes an Event after an hour
                series.name = _name(event["regarding"])
            else:
                return
        metadata["name"] = series.name
        with suppress(AlreadyExists):  # an earlier try succeeded, but its response was lost
            await self._kube.create(EVENTS, event)
        series.created = True

    def _build(
        self,
        series: _Series,
        regarding: Object,
        kind: EventKind,
        reason: str,
        action: str,
        note: str,
    ) -> Object:
        """Return an Event, with the fields cut to the limits of the API server."""
        event: Object = {
            **EVENTS.head,
            "metadata": {
                "name": series.name,
                "namespace": regarding.get("namespace") or "default",
            },
            "eventTime": micro_time(series.began),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "type": kind,
            "reason": reason[:128],
            "action": action[:128],
            "regarding": regarding,
            "note": note,
        }
        if series.count > 1:
            event["series"] = {
                "count": series.count,
                "lastObservedTime": micro_time(utc_now()),
            }
        return event

    def _allowed(self, about: str) -> bool:
        """Return whether the object's token bucket has a token; the oldest buckets are dropped."""
        bucket = self._buckets.get(about)
        if bucket is None:
            bucket = TokenBucket(qps=_REFILL_PER_SECOND, burst=_BURST)
            self._buckets[about] = bucket
        self._buckets.move_to_end(about)
        if len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        return bucket.take()

    def _forget_oldest(self) -> None:
        key, _ = self._series.popitem(last=False)
        self._waiting.pop(key, None)


def reference(obj: Object) -> Object:
    """Build the ObjectReference of an object, without what it lacks."""
    metadata = obj["metadata"]
    fields = {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind"),
        "namespace": metadata.get("namespace"),
        "name": metadata.get("name"),
        "uid": metadata.get("uid"),
        "resourceVersion": metadata.get("resourceVersion"),
    }
    return {name: value for name, value in fields.items() if value}


def _object_text(regarding: Object) -> str:
    return "/".join(str(regarding.get(part, "")) for part in ("kind", "namespace", "name"))


def _name(regarding: Object) -> str:
    """Return the name of an Event, at most 253 characters: the object's and a unique suffix."""
    return f"{str(regarding['name'])[:236]}.{secrets.token_hex(8)}"


def _shorten(note: str) -> str:
    """Return a note cut to the limit of the API server, at a whole character."""
    encoded = note.encode()
    if len(encoded) <= _NOTE_BYTES:
        return note
    return encoded[: _NOTE_BYTES - 3].decode(errors="ignore") + "…"
