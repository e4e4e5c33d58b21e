"""The loop every simulated controller runs in, and the caches and writes that controllers share.

A reconcile that raises RetryError or a KubeError is tried again later. A malformed object
is logged and left alone until it changes: users may write anything, and one of them must not
stop all others. It must never start a task that it does not await.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, Kube, PatchType
from hyperjob.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from hyperjob.kube.informer import Informer
from hyperjob.kube.ratelimit import ItemBackoff
from hyperjob.kube.resources import PODS, Resource, key_of
from hyperjob.kube.store import Indexer
from hyperjob.kube.workqueue import WorkQueue
from hyperjob_sandbox.objects import is_going

log = logging.getLogger(__name__)

Reconcile = Callable[[str], Awaitable[None]]
Change = Callable[[Object | None, Object | None], bool]
"""Whether an object that an informer reports, before and after, is of interest."""
_SLOWEST_RETRY = 5.0
_PATIENCE = 5.0
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
_BOOKKEEPING = frozenset({"resourceVersion", "managedFields"})


class RetryError(Exception):
    """What a key waits for has not come yet; the text says what that is."""


def any_change(_old: Object | None, _new: Object | None) -> bool:
    """Take every change."""
    return True


def appeared(old: Object | None, _new: Object | None) -> bool:
    """Tell whether an object is new."""
    return old is None


def vanished(_old: Object | None, new: Object | None) -> bool:
    """Tell whether an object is gone."""
    return new is None


def changed_besides_status(old: Object | None, new: Object | None) -> bool:
    """Tell whether anything changes but status and bookkeeping."""
    return old is None or new is None or _essence(old) != _essence(new)


def generation_changed(old: Object | None, new: Object | None) -> bool:
    """Tell whether the generation of an object changes, or the object comes or goes."""
    return changed_in(old, new, lambda obj: obj["metadata"].get("generation"))


def changed_in(old: Object | None, new: Object | None, part: Callable[[Object], object]) -> bool:
    """Tell whether a part of an object changes, or the object comes or goes."""
    return old is None or new is None or part(old) != part(new)


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

    def watch(
        self,
        *informers: Informer,
        when: Change = any_change,
        keys: Callable[[Object], Iterable[str]] = lambda obj: (key_of(obj),),
        after: float = 0.0,
    ) -> None:
        """Queue the `keys` of objects that change so, by default their own, after some seconds."""

        def handle(_: EventType, old: Object | None, new: Object | None) -> None:
            obj = new or old
            if obj is not None and when(old, new):
                for key in keys(obj):
                    self.add(key, after=after)

        for informer in informers:
            informer.add_handler(handle)

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
                expected = isinstance(error, RetryError | Conflict | AlreadyExists)
                level = logging.DEBUG if expected else logging.INFO
                log.log(level, "%s: %s is tried again: %s", self.name, key, error)
                self.queue.add_rate_limited(key)
            except _UNREADABLE:
                log.exception("%s: %s cannot be handled", self.name, key)
                self.queue.forget(key)
            else:
                self.queue.forget(key)
            finally:
                self.queue.done(key)


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
    """What the controllers of one cluster watch in it, and the writes they make there."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube
        self._informers: dict[Resource, Informer] = {}
        self._kinds: dict[tuple[str, str], Informer] = {}
        self._awaited = Awaited()

    def add(self, resource: Resource, *, indexers: Mapping[str, Indexer] | None = None) -> Informer:
        """Make the informer of a resource; before `run` only, and once."""
        informer = Informer(self.kube, resource, indexers=indexers)
        self._informers[resource] = informer
        self._kinds[resource.api_version, resource.kind] = informer
        informer.add_handler(self._on_any)
        return informer

    def _on_any(self, _: EventType, old: Object | None, new: Object | None) -> None:
        self._awaited.seen(_identity(new or old or {}))

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

    def of_kind(self, obj: Object) -> Informer | None:
        """Return the informer for an object, or for what a reference names; None if not watched."""
        return self._kinds.get((obj.get("apiVersion", ""), obj.get("kind", "")))

    def live(self, obj: Object) -> Object | None:
        """Return the cached object of the same kind, namespace and name."""
        informer = self.of_kind(obj)
        return None if informer is None else informer.get(key_of(obj))

    async def ensure(
        self,
        desired: Object,
        sync: Callable[[Object, Object], Object],
        *,
        even_going: bool = False,
    ) -> None:
        """Create an object, or replace the live one where `sync(live, desired)` is another.

        Raises RetryError while the live one is being deleted, unless `even_going`, or was created
        and is not seen yet.
        """
        resource, what = self._resource(desired), _identity(desired)
        live = self.live(desired)
        if live is None:
            if what in self._awaited:
                raise RetryError(f"the cache does not hold the new {what} yet")
            await self.kube.create(resource, desired)
            self._awaited.add(what)
            return
        if is_going(live) and not even_going:
            raise RetryError(f"{what} is being deleted")
        synced = sync(live, desired)
        if synced != live:
            await self.kube.replace(resource, synced)

    async def create(self, obj: Object) -> None:
        """Create an object, or leave the object that exists."""
        with suppress(AlreadyExists):
            await self.kube.create(self._resource(obj), obj)

    async def replace(self, obj: Object, *, subresource: str | None = None) -> None:
        """Replace an object, unless it is gone."""
        with suppress(NotFound):
            await self.kube.replace(self._resource(obj), obj, subresource=subresource)

    async def set_status(self, obj: Object, status: Object | None) -> None:
        """Replace the status of an object where it is another one; None takes it away."""
        if (status or {}) == (obj.get("status") or {}):
            return
        updated = {key: value for key, value in obj.items() if key != "status"}
        if status is not None:
            updated["status"] = status
        await self.replace(updated, subresource="status")

    async def delete(self, obj: Object) -> None:
        """Delete this very object, unless it is gone or being deleted."""
        meta: Object = obj["metadata"]
        if is_going(obj):
            return
        with suppress(NotFound):
            await self.kube.delete(
                self._resource(obj),
                meta["name"],
                namespace=meta.get("namespace"),
                uid=meta["uid"],
            )

    async def let_go(self, obj: Object, *finalizers: str) -> None:
        """Take finalizers off an object that has them."""
        present = obj["metadata"].get("finalizers") or []
        left = [each for each in present if each not in finalizers]
        if left != present:
            await self.replace({**obj, "metadata": {**obj["metadata"], "finalizers": left}})

    def _resource(self, obj: Object) -> Resource:
        informer = self.of_kind(obj)
        if informer is None:
            raise RetryError(f"nothing watches {obj.get('apiVersion')} {obj.get('kind')}")
        return informer.resource


def _identity(obj: Object) -> str:
    return f"{obj['kind']} {key_of(obj)}"


def _essence(obj: Object) -> Object:
    meta = {key: value for key, value in obj["metadata"].items() if key not in _BOOKKEEPING}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}


async def write_pod_status(kube: Kube, pod: Object, status: Object) -> bool:
    """Merge fields into the status of this very pod; return False where it is gone."""
    meta: Object = pod["metadata"]
    try:
        await kube.patch(
            PODS,
            meta["name"],
            {"metadata": {"uid": meta["uid"]}, "status": status},
            kind=PatchType.MERGE,
            namespace=meta["namespace"],
            subresource="status",
        )
    except NotFound:
        return False
    return True


async def remove_pod(kube: Kube, pod: Object) -> None:
    """Delete a pod without a grace period, which ends its deletion."""
    meta: Object = pod["metadata"]
    try:
        await kube.raw(
            "DELETE",
            PODS.path(meta["namespace"], meta["name"]),
            params={"gracePeriodSeconds": "0"},
        )
    except NotFound:
        return
