"""The background work of a control plane: garbage, namespaces, definitions, API services.

One task does it, woken by changes in the store. It writes past admission and is never counted among
the requests. It ends with the server.
"""

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime

from hyperjob_sandbox.apiserver.core.core import Core
from hyperjob_sandbox.apiserver.kinds import definitions
from hyperjob_sandbox.apiserver.state.store import Change, GroupResource
from hyperjob_sandbox.apiserver.upkeep import cleanup
from hyperjob_sandbox.apiserver.upkeep.garbage import Collector

NAMESPACES: GroupResource = ("", "namespaces")
_TURN = 50
_SWEEP_SECONDS = 60.0
_log = logging.getLogger(__name__)
Work = tuple[str, str]


class Housekeeper:
    """Keeps what must follow from the stored objects; `run` does the work."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._collector = Collector(core)
        self._queue: deque[Work] = deque()
        self._queued: set[Work] = set()
        self._wake = asyncio.Event()
        core.store.subscribe(self._follow)

    async def run(self) -> None:
        """Do what is due, for ever."""
        done = 0
        while True:
            try:
                async with asyncio.timeout(_SWEEP_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                cleanup.expire_events(self._core, now=datetime.now(UTC))
            self._wake.clear()
            while self._queue or self._collector.due:
                try:
                    self._step()
                except Exception:  # noqa: BLE001  one object must not stop the rest
                    _log.exception("housekeeping failed")
                done += 1
                if done % _TURN == 0:
                    await asyncio.sleep(0)  # requests come first

    def _step(self) -> None:
        if self._collector.due:
            self._collector.step()
            return
        work = self._queue.popleft()
        self._queued.discard(work)
        kind, name = work
        if kind == "namespace":
            cleanup.empty_namespace(self._core, name)
        else:
            cleanup.empty_definition(self._core, name)

    def _add(self, kind: str, name: str) -> None:
        if (kind, name) not in self._queued:
            self._queued.add((kind, name))
            self._queue.append((kind, name))

    def _follow(self, resource: GroupResource, change: Change) -> None:
        self._collector.follow(resource, change)
        now = change.now
        deleting = bool(now.obj["metadata"].get("deletionTimestamp"))
        gone = change.type == "DELETED"
        if resource == NAMESPACES and deleting and not gone:
            self._add("namespace", now.key[1])
        elif resource == definitions.DEFINITIONS and deleting and not gone:
            self._add("definition", now.key[1])
        elif gone:
            self._after_deletion(resource, now.key[0])
        if self._queue or self._collector.due:
            self._wake.set()

    def _after_deletion(self, resource: GroupResource, namespace: str) -> None:
        """Look again at a namespace or definition that waits for its content to go."""
        if namespace and cleanup.is_terminating(self._core, NAMESPACES, namespace):
            self._add("namespace", namespace)
        definition = f"{resource[1]}.{resource[0]}"
        if cleanup.is_terminating(self._core, definitions.DEFINITIONS, definition):
            self._add("definition", definition)
