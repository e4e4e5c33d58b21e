"""The loop every simulated controller runs in: keys in a queue, workers, retries with back-off.

A reconcile that raises RetryError or a KubeError is tried again later. A malformed object
is logged and left alone until it changes: users may write anything, and one of them must not
stop all others. It must never start a task that it does not await.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, Kube
from hyperjob.kube.errors import AlreadyExists, Conflict, KubeError
from hyperjob.kube.informer import Informer
from hyperjob.kube.ratelimit import ItemBackoff
from hyperjob.kube.resources import Resource
from hyperjob.kube.store import Indexer
from hyperjob.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)

Reconcile = Callable[[str], Awaitable[None]]
_SLOWEST_RETRY = 5.0
_PATIENCE = 5.0
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)


class RetryError(Exception):
    """What a key waits for has not come yet; the text says what that is."""


class Controller:
    """A queue of keys and the workers that reconcile them; `run()` belongs in a TaskGroup."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        workers: int = 4,
        slowest_retry: float = _SLOWEST_RETRY,
        first_retry: float = 0.005,
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._workers = workers
        self.queue: WorkQueue[str] = WorkQueue(
            name, limiter=ItemBackoff(base=first_retry, cap=slowest_retry)
        )

    def add(self, key: str, *, after: float = 0.0) -> None:
        """Queue a key, now or after some seconds."""
        self.queue.add_after(key, after)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                await self._reconcile(key)
            except (RetryError, KubeError) as error:
                self._log(key, error)
                self.queue.add_rate_limited(key)
            except _UNREADABLE:
                log.exception("%s: %s cannot be handled", self.name, key)
                self.queue.forget(key)
            else:
                self.queue.forget(key)
            finally:
                self.queue.done(key)

    def _log(self, key: str, error: Exception) -> None:
        expected = isinstance(error, RetryError | Conflict | AlreadyExists)
        log.log(
            logging.DEBUG if expected else logging.INFO,
            "%s: %s is tried again: %s",
            self.name,
            key,
            error,
        )


class Awaited:
    """Objects that were created a moment ago and that the cache does not hold yet."""

    def __init__(self, *, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._since: dict[str, float] = {}

    def add(self, key: str) -> None:
        """Await an object that was just created."""
        self._since[key] = time.monotonic()

    def seen(self, key: str) -> None:
        """Stop awaiting an object: the cache has told of it."""
        self._since.pop(key, None)

    def __contains__(self, key: str) -> bool:
        since = self._since.get(key)
        return since is not None and time.monotonic() - since < self._patience


class Informers:
    """The informers that the controllers of one cluster share."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube
        self._informers: dict[Resource, Informer] = {}

    def add(self, resource: Resource, *, indexers: Mapping[str, Indexer] | None = None) -> Informer:
        """Make the informer of a resource; before `run` only, and once."""
        informer = Informer(self.kube, resource, indexers=indexers)
        self._informers[resource] = informer
        return informer

    def __getitem__(self, resource: Resource) -> Informer:
        return self._informers[resource]

    async def run(self) -> None:
        """Keep all of them up to date until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers.values():
                group.create_task(informer.run())

    async def synced(self) -> None:
        """Wait until every informer holds its first list."""
        for informer in self._informers.values():
            await informer.synced.wait()


def changed_besides_status(event: EventType, old: Object | None, new: Object | None) -> bool:
    """Tell whether an informer's event changes anything but status and bookkeeping."""
    if event is not EventType.MODIFIED or old is None or new is None:
        return True
    return _essence(old) != _essence(new)


def generation_changed(event: EventType, old: Object | None, new: Object | None) -> bool:
    """Tell whether an informer's event changes the generation of an object, or is no change."""
    if event is not EventType.MODIFIED or old is None or new is None:
        return True
    return bool(old["metadata"].get("generation") != new["metadata"].get("generation"))


def wire_now() -> str:
    """Return the time as objects carry it, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _essence(obj: Object) -> Object:
    meta = {
        key: value
        for key, value in obj["metadata"].items()
        if key not in {"resourceVersion", "managedFields"}
    }
    return {**{k: v for k, v in obj.items() if k != "status"}, "metadata": meta}
