"""WATCH: the history of a collection as a stream of lines.

A watcher owns no queue: it reads the collection's bounded history from its own position, so one
that is too slow falls off the end and is closed, and an event is encoded once for all watchers.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core.core import Core
from hyperjob_sandbox.apiserver.core.selection import Selection, selection
from hyperjob_sandbox.apiserver.state.store import Change, Collection, Expired, Stored
from hyperjob_sandbox.apiserver.transport.call import Call, Stream
from hyperjob_sandbox.apiserver.transport.encode import (
    dump,
    encode,
    encode_change,
    encode_stored,
    partial_metadata,
    to_version,
    watch_line,
)
from hyperjob_sandbox.apiserver.transport.tables import table
from hyperjob_sandbox.apiserver.verbs.reading import parse_version

_DEFAULT_SECONDS = 1800.0
_BATCH_BYTES = 256 * 1024


@dataclass(slots=True)
class _Watch:
    call: Call
    collection: Collection
    namespace: str | None
    chosen: Selection
    headers: bool = True

    def line(self, type_: str, stored: Stored) -> bytes:
        form = self.call.representation
        resource = self.call.resource
        if form.form == "object":
            return watch_line(type_, encode_stored(stored, resource))
        return watch_line(type_, dump(self._reduced(stored.obj)))

    def _reduced(self, obj: Object) -> Object:
        form = self.call.representation
        if form.form == "PartialObjectMetadata":
            return partial_metadata(obj)
        resource = self.call.resource
        headers, self.headers = self.headers, False
        return table(
            [to_version(obj, resource)],
            resource,
            list_meta={"resourceVersion": obj["metadata"]["resourceVersion"]},
            include=self.call.info.query.get("includeObject") or "Metadata",
            version=form.version,
            headers=headers,
        )

    def selects(self, stored: Stored | None) -> bool:
        if stored is None or (self.namespace is not None and stored.key[0] != self.namespace):
            return False
        return not self.chosen or self.chosen.matches(stored, self.call.resource)

    def change_line(self, change: Change) -> bytes | None:
        """Encode a change as this watcher sees it; None when it does not concern it."""
        if self.namespace is not None and change.now.key[0] != self.namespace:
            return None
        if not self.chosen:
            if self.call.representation.form == "object":
                return encode_change(change, self.call.resource)
            return self.line(change.type, change.now)
        was = change.type != "ADDED" and self.selects(change.before)
        now = change.type != "DELETED" and self.selects(change.now)
        if now:
            return self.line("MODIFIED" if was else "ADDED", change.now)
        if not was:
            return None
        if change.type == "DELETED" or change.before is None:
            return self.line("DELETED", change.now)
        before = change.before.obj
        meta = {**before["metadata"], "resourceVersion": str(change.revision)}
        left = {**before, "metadata": meta}
        return self.line("DELETED", Stored(change.now.key, left, change.revision))

    def bookmark(self, revision: int, *, initial: bool = False) -> bytes:
        resource = self.call.resource
        meta: Object = {"resourceVersion": str(revision)}
        if initial:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        if not resource.custom:
            meta["creationTimestamp"] = None
        form = self.call.representation.form
        body: Object = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        if form == "PartialObjectMetadata":
            body |= {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        if form == "Table":
            version = f"meta.k8s.io/{self.call.representation.version}"
            body = {
                "kind": "Table",
                "apiVersion": version,
                "metadata": {"resourceVersion": str(revision)},
                "columnDefinitions": None,
                "rows": [],
            }
        if resource.custom and form == "object":
            return watch_line("BOOKMARK", encode(body, resource))
        return watch_line("BOOKMARK", dump(body))


def watch(core: Core, call: Call, *, closing: Callable[[], bool]) -> Stream:
    """Start a watch; what is wrong with the request is raised here, before the stream begins."""
    info, resource = call.info, call.resource
    chosen = selection(info, resource)
    call.representation  # noqa: B018  refuses what cannot be written before the stream starts
    namespace = info.namespace if resource.namespaced and info.namespace else None
    state = _Watch(call, core.collection(resource), namespace, chosen)
    text = info.query.get("resourceVersion", "")
    version = parse_version(text) if text else 0
    wants_initial = info.query.get("sendInitialEvents", "")
    if wants_initial and info.query.get("resourceVersionMatch") != "NotOlderThan":
        raise _initial_events_error()
    return Stream(_lines(core, state, version, info.flag("sendInitialEvents"), closing))


async def _lines(
    core: Core,
    state: _Watch,
    version: int,
    initial: bool,
    closing: Callable[[], bool],
) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    query = state.call.info.query
    deadline = loop.time() + _seconds(query)
    bookmarks = state.call.info.flag("allowWatchBookmarks")
    collection = state.collection
    if initial or (version == 0 and query.get("sendInitialEvents") is None):
        cursor, revision = collection.end(), core.store.revision
        current = [stored for stored in collection.select(state.namespace) if state.selects(stored)]
        lines = [state.line("ADDED", stored) for stored in current]
        if initial and bookmarks:
            lines.append(state.bookmark(revision, initial=True))
        for batch in _batches(lines):
            yield batch
    else:
        # A version of the future is waited for: nothing newer can be behind it yet.
        try:
            cursor = collection.after(version) if version else collection.end()
        except Expired as gone:
            yield _expired_line(version, gone.oldest)
            return
    next_bookmark = loop.time() + core.bookmark_seconds
    while not closing():
        now = loop.time()
        if now >= deadline:
            return
        if bookmarks and now >= next_bookmark:
            next_bookmark = now + core.bookmark_seconds
            yield state.bookmark(max(core.store.revision, version))
        until = min(deadline, next_bookmark) if bookmarks else deadline
        if not await collection.wait(cursor, max(until - now, 0.0)):
            continue
        try:
            changes = collection.read(cursor)
        except Expired as gone:
            yield _expired_line(version, gone.oldest)
            return
        cursor += len(changes)
        found = [
            line
            for change in changes
            if change.revision > version and (line := state.change_line(change)) is not None
        ]
        for batch in _batches(found):
            yield batch


def _batches(lines: list[bytes]) -> list[bytes]:
    """Join lines so that a write carries many, but never an unbounded number."""
    batches: list[bytes] = []
    pending: list[bytes] = []
    size = 0
    for line in lines:
        pending.append(line)
        size += len(line)
        if size >= _BATCH_BYTES:
            batches.append(b"".join(pending))
            pending, size = [], 0
    if pending:
        batches.append(b"".join(pending))
    return batches


def _seconds(query: dict[str, str]) -> float:
    text = query.get("timeoutSeconds", "")
    return float(text) if text.isdigit() and int(text) > 0 else _DEFAULT_SECONDS


def _expired_line(wanted: int, oldest: int) -> bytes:
    error = errors.expired(f"too old resource version: {wanted} ({oldest})")
    return watch_line("ERROR", dump(error.status))


def _initial_events_error() -> errors.ApiError:
    why = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    message = f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: {why}'
    cause = {"reason": "FieldValueForbidden", "message": why, "field": "resourceVersionMatch"}
    return errors.ApiError(
        errors.failure(
            422, "Invalid", message, group="meta.k8s.io", kind="ListOptions", causes=[cause]
        )
    )
