"""WATCH: the history of a collection as a stream of lines.

A watcher owns no queue: it reads the collection's bounded history from its own position, so one
that is too slow falls off the end and is closed, and an object is encoded once for all.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core, Selection, selection
from hyperjob_sandbox.apiserver.state.store import Change, Collection, Expired, Stored
from hyperjob_sandbox.apiserver.transport.call import Call, Stream
from hyperjob_sandbox.apiserver.transport.encode import dump, encode, watch_line
from hyperjob_sandbox.apiserver.verbs.reading import encode_as, parse_version

_DEFAULT_SECONDS = 1800.0
_BATCH = 256


@dataclass(slots=True)
class _Watch:
    call: Call
    collection: Collection
    chosen: Selection
    headers: bool = True

    def line(self, type_: str, stored: Stored) -> bytes:
        # A table names its columns once, in the first event.
        headers, self.headers = self.headers, False
        return watch_line(type_, encode_as(stored, self.call, headers=headers))

    def selects(self, stored: Stored | None) -> bool:
        return stored is not None and (
            not self.chosen or self.chosen.matches(stored, self.call.resource)
        )

    def change_line(self, change: Change) -> bytes | None:
        """Encode a change as this watcher sees it; None when it does not concern it."""
        if self.call.namespace not in (None, change.now.key[0]):
            return None
        if not self.chosen:
            return self.line(change.type, change.now)
        was = change.type != "ADDED" and self.selects(change.before)
        now = change.type != "DELETED" and self.selects(change.now)
        if now:
            return self.line("MODIFIED" if was else "ADDED", change.now)
        if not was:
            return None
        if change.type == "DELETED" or change.before is None:
            return self.line("DELETED", change.now)
        # It left the selection: shown as it was, with the version of the change.
        before = change.before.obj
        meta = {**before["metadata"], "resourceVersion": str(change.revision)}
        left = Stored(change.now.key, {**before, "metadata": meta}, change.revision)
        return self.line("DELETED", left)

    def bookmark(self, revision: int, *, initial: bool = False) -> bytes:
        resource, form = self.call.resource, self.call.form
        meta: Object = {"resourceVersion": str(revision)}
        if initial:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        if not resource.custom:
            meta["creationTimestamp"] = None
        body: Object = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        if form != "object":
            body |= {"kind": form, "apiVersion": "meta.k8s.io/v1"}
        encoded = encode(body, resource) if resource.custom and form == "object" else dump(body)
        return watch_line("BOOKMARK", encoded)


def watch(core: Core, call: Call, *, closing: Callable[[], bool]) -> Stream:
    """Start a watch; what is wrong with the request is raised here, before the stream begins."""
    call.form  # noqa: B018  refuses what cannot be written before the stream starts
    state = _Watch(call, core.collection(call.resource), selection(call.info, call.resource))
    version = parse_version(call.info.query.get("resourceVersion") or "0")
    seconds = call.info.number("timeoutSeconds") or _DEFAULT_SECONDS
    return Stream(_lines(core, state, version, seconds, closing))


async def _lines(
    core: Core, state: _Watch, version: int, seconds: float, closing: Callable[[], bool]
) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    info, collection = state.call.info, state.collection
    deadline = loop.time() + seconds
    bookmarks, initial = info.flag("allowWatchBookmarks"), info.flag("sendInitialEvents")
    next_bookmark = loop.time() + core.bookmark_seconds
    try:
        # A version of the future is waited for: nothing newer can be behind it yet.
        cursor = collection.after(version) if version and not initial else collection.end()
        if initial or not (version or info.query.get("sendInitialEvents")):
            revision, current = core.store.revision, collection.select(state.call.namespace)
            lines = [state.line("ADDED", stored) for stored in current if state.selects(stored)]
            if initial and bookmarks:
                lines.append(state.bookmark(revision, initial=True))
            for batch in _batches(lines):
                yield batch
        while not closing() and (now := loop.time()) < deadline:
            if bookmarks and now >= next_bookmark:
                next_bookmark = now + core.bookmark_seconds
                yield state.bookmark(max(core.store.revision, version))
            until = min(deadline, next_bookmark) if bookmarks else deadline
            if await collection.wait(cursor, max(until - now, 0.0)):
                changes = collection.read(cursor)
                cursor += len(changes)
                newer = [change for change in changes if change.revision > version]
                for batch in _batches([line for c in newer if (line := state.change_line(c))]):
                    yield batch
    except Expired as gone:
        why = f"too old resource version: {version} ({gone.oldest})"
        yield watch_line("ERROR", dump(errors.failure(410, "Expired", why)))


def _batches(lines: list[bytes]) -> list[bytes]:
    """Join lines so that a write carries many, but never an unbounded number."""
    return [b"".join(lines[i : i + _BATCH]) for i in range(0, len(lines), _BATCH)]
