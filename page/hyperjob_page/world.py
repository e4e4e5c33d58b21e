"""The objects of the informers, with counts and orders that each change updates.

The cost of a change does not depend on the number of HyperJobs. Readers compare versions: a part
with the same version need not be rendered again.
"""

import asyncio
import contextlib
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from hyperjob.client import usage
from hyperjob.client.usage import Tally
from hyperjob_controller.caches import slim_queue_binding
from hyperjob_core.api.leader import Leader, leader_of
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.wire import at, string
from hyperjob_core.kube.client import EventType, Kube
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import (
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTERS,
    HYPERJOBS,
    LEASES,
    PRIORITY_CLASSES,
    QUEUES,
    key_of,
)
from hyperjob_core.tasks import cancel
from hyperjob_page.listing import Listing, Query
from hyperjob_page.rows import Holdings, QueueLines, Row, order_of, row_of
from hyperjob_page.visitor import Scope
from hyperjob_queueing.workload import OrderInQueue

_LISTINGS: Final = 64
_QUEUES_SECONDS: Final = 5.0
_ROW: Final = "row"


class LiveState:
    """The objects that pages show; `running` updates them."""

    def __init__(self, kube: Kube) -> None:
        self.host = kube.host
        self.rows: dict[str, Row] = {}
        self.lines = QueueLines()
        self.holdings = Holdings()
        self.versions: Counter[str] = Counter()
        """Counts changes of `hyperjobs`, `clusters` and `queues`."""
        self._hyperjobs = Informer(kube, HYPERJOBS, transform=_with_row)
        self._clusters = Informer(kube, CLUSTERS)
        self._queues = Informer(kube, QUEUES)
        self._queue_bindings = Informer(
            kube, CLUSTER_RESOURCE_BINDINGS, transform=slim_queue_binding
        )
        self._classes = Informer(kube, PRIORITY_CLASSES)
        self._leases = Informer(
            kube,
            LEASES,
            namespace=LEASE_NAMESPACE,
            field_selector=f"metadata.name={LEASE_NAME}",
        )
        self._tallies: dict[str, Tally] = {}
        self._by_queue: dict[str, Counter[tuple[str, str]]] = {}
        self._listings: OrderedDict[tuple[Query, Scope], Listing] = OrderedDict()
        self._colours: dict[str, int] = {}
        self._hyperjobs.add_handler(self._hyperjob_changed)
        self._clusters.add_handler(self._other_changed("clusters"))
        self._queues.add_handler(self._other_changed("queues"))
        self._queue_bindings.add_handler(self._other_changed("queues"))
        self._queues.add_handler(self._forget_colours)
        self._classes.add_handler(self._classes_changed)

    @property
    def _informers(self) -> Sequence[Informer]:
        queues = self._queues, self._queue_bindings
        return self._hyperjobs, self._clusters, *queues, self._classes, self._leases

    @asynccontextmanager
    async def running(self) -> AsyncIterator["LiveState"]:
        """Watch the API server for the length of the block."""
        tasks = [asyncio.create_task(informer.run()) for informer in self._informers]
        try:
            yield self
        finally:
            await cancel(tasks)

    async def synced(self) -> None:
        """Wait until HyperJobs and Clusters have been listed; for Queues at most some seconds.

        The pages do without Queues, which a user may not be allowed to list.
        """
        for informer in (self._hyperjobs, self._clusters):
            await informer.synced.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_QUEUES_SECONDS):
                await self._queues.synced.wait()

    @property
    def is_synced(self) -> bool:
        """Return whether HyperJobs and Clusters have been listed."""
        return self._hyperjobs.synced.is_set() and self._clusters.synced.is_set()

    @property
    def troubles(self) -> list[str]:
        """Return the resources that cannot be read at present, with the errors."""
        return [
            f"{informer.resource.group_resource}: {informer.last_error.message}"
            for informer in self._informers
            if informer.last_error is not None
        ]

    def version(self, *topics: str) -> tuple[int, ...]:
        """Return a value that changes with each topic."""
        return tuple(self.versions[topic] for topic in topics)

    def version_of(self, cluster: str) -> tuple[int, int]:
        """Return a value that changes with the HyperJobs' use of a cluster."""
        return self.holdings.versions[cluster], self.versions["colours"]

    @property
    def clusters(self) -> list[Object]:
        """Return the Clusters by name."""
        return sorted(self._clusters.items(), key=key_of)

    @property
    def queues(self) -> list[Object]:
        """Return the Queues by name."""
        return sorted(self._queues.items(), key=key_of)

    @property
    def queues_readable(self) -> bool:
        """Return whether the Queues could be read."""
        return self._queues.synced.is_set()

    @property
    def leader(self) -> Leader | None:
        """Return the leader of the controller's Lease; None where the Lease cannot be read."""
        return leader_of(self._leases.items(), now=datetime.now(UTC))

    @property
    def namespaces(self) -> list[str]:
        """Return the namespaces that have HyperJobs."""
        return sorted(self._tallies)

    def tally(self, scope: Scope) -> Tally:
        """Count the accelerators that the HyperJobs of a scope use or wait for."""
        found = Tally()
        for namespace, tally in self._tallies.items():
            if scope.includes(namespace):
                found.merge(tally)
        return found

    def cluster_uses(self, scope: Scope) -> list[usage.ClusterUse]:
        """Count accelerators by cluster; empty where a visitor may not list Clusters."""
        if not scope.clusters:
            return []
        return usage.clusters(self.clusters, self.tally(scope))

    @property
    def totals(self) -> dict[str, int]:
        """Return the accelerators of all ready clusters, by resource."""
        return usage.all_ready(usage.clusters(self.clusters, Tally()))

    def queue_uses(self, scope: Scope) -> list[usage.QueueUse]:
        """Count accelerators by queue; empty where a visitor may not list Queues."""
        if not scope.queues:
            return []
        return usage.queues(
            self.queues,
            self.tally(scope),
            readable=self.queues_readable,
            totals=self.totals,
            bindings=self._queue_bindings.items() if scope.clusters else (),
        )

    def listing(self, query: Query, scope: Scope) -> Listing:
        """Return the HyperJobs of a query; changes update the last few queries."""
        key = query.unpaged, scope
        found = self._listings.pop(key, None)
        if found is None:
            found = Listing(key[0], scope, self.rows.values(), self._order)
            while len(self._listings) >= _LISTINGS:
                self._listings.popitem(last=False)
        self._listings[key] = found
        return found

    def colour(self, queue: str) -> int:
        """Return the number of a queue's colour: older queues come first, and keep their colours.

        Queues that do not exist share the number -1.
        """
        if not self._colours:
            created = sorted(
                (string(at(raw, "metadata", "creationTimestamp")), key_of(raw))
                for raw in self._queues.items()
            )
            self._colours = {name: number for number, (_, name) in enumerate(created)}
        return self._colours.get(queue, -1)

    def phases(self, scope: Scope) -> list[tuple[str, int]]:
        """Count HyperJobs by phase, in the order of a HyperJob's lifecycle."""
        found = self.phases_by_queue(scope)
        return [(str(phase), found["", str(phase)]) for phase in Phase]

    def phases_by_queue(self, scope: Scope) -> Counter[tuple[str, str]]:
        """Count HyperJobs by queue and phase; the queue "" has all HyperJobs."""
        found: Counter[tuple[str, str]] = Counter()
        for namespace, counts in self._by_queue.items():
            if scope.includes(namespace):
                found.update(counts)
        return found

    def _count(self, row: Row) -> None:
        namespace = row.summary.namespace
        self._tallies.setdefault(namespace, Tally()).count(row.summary)
        self._by_queue.setdefault(namespace, Counter()).update(_counted(row))

    def _uncount(self, row: Row) -> None:
        """Subtract a HyperJob; a namespace without HyperJobs leaves the memory."""
        namespace = row.summary.namespace
        self._tallies[namespace].count(row.summary, times=-1)
        # The difference of Counters drops what is 0.
        self._by_queue[namespace] -= _counted(row)
        if not self._by_queue[namespace]:
            del self._by_queue[namespace], self._tallies[namespace]

    def _order(self, row: Row) -> OrderInQueue:
        return order_of(row, self.lines.classes)

    def _hyperjob_changed(self, _: EventType, old: Object | None, new: Object | None) -> None:
        """Take a change of a HyperJob over into all counts and orders."""
        after: Row | None = None if new is None else new[_ROW]
        key = key_of(new or old or {})
        # The object of a DELETED event may be newer than the counted object.
        before = self.rows.pop(key, None)
        if before is not None:
            self._uncount(before)
        if after is not None:
            self._count(after)
            self.rows[key] = after
        self.lines.change(key, after)
        self.holdings.change(key, after)
        for listing in self._listings.values():
            listing.change(before, after)
        self.versions["hyperjobs"] += 1

    def _classes_changed(self, *_: object) -> None:
        """Order all queues again: a PriorityClass may have another value."""
        self.lines.classes = {key_of(raw): raw for raw in self._classes.items()}
        for key, row in self.rows.items():
            self.lines.change(key, row)
        self._listings.clear()
        self.versions["hyperjobs"] += 1

    def _forget_colours(self, kind: EventType, *_: object) -> None:
        """Let `colour` number the Queues again after one was created or deleted."""
        if kind is not EventType.MODIFIED:
            self._colours = {}
            self.versions["colours"] += 1

    def _other_changed(self, topic: str) -> Callable[..., None]:
        """Return the handler that counts a change of a topic."""

        def changed(*_: object) -> None:
            self.versions[topic] += 1

        return changed


def _counted(row: Row) -> Counter[tuple[str, str]]:
    """Return queue and phase of a HyperJob, once for each queue and once for all queues."""
    return Counter((queue, row.summary.phase) for queue in ("", *row.queues))


def _with_row(obj: Object) -> Object:
    """Return the parts of a HyperJob that pages show; templates stay in the API server."""
    metadata = obj["metadata"]
    kept = {
        name: metadata[name]
        for name in ("namespace", "name", "uid", "resourceVersion")
        if name in metadata
    }
    return {"metadata": kept, _ROW: row_of(obj)}
