"""The workqueue between informers and workers, with client-go's guarantees and two priorities.

Items of several namespaces take turns, so that a thousand changes in one delay no other. No two
workers process an item at the same time, an item waits at most once, and it is never lost: an item
that is added while it is being processed is queued again afterwards. The queue belongs to one event
loop; other threads must not call it.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Hashable
from itertools import chain
from typing import Final, Generic, TypeVar

from prometheus_client import Counter as CounterMetric
from prometheus_client import Gauge, Histogram

from hyperjob_core.registry import REGISTRY

T = TypeVar("T", bound=Hashable)


class Turns(Generic[T]):
    """Distinct items in order of arrival by namespace, and how many each namespace holds.

    Choosing is quick for any number of namespaces: those that hold nothing come first, in order,
    and the others are at most as many as there is of what is shared.
    """

    def __init__(self, *, most: int | None = None) -> None:
        """`most` bounds what one namespace holds."""
        self._most = most
        self._held: Counter[str] = Counter()
        self._idle: dict[str, dict[T, None]] = {}  # the items of namespaces that hold nothing
        self._busy: dict[str, dict[T, None]] = {}
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def put(self, namespace: str, item: T) -> None:
        """Add an item that does not wait yet."""
        groups = self._busy if namespace in self._held else self._idle
        groups.setdefault(namespace, {})[item] = None
        self._waiting += 1

    def take(self, fits: Callable[[T], bool] = lambda _: True) -> T | None:
        """Remove the next item that fits, and hold something for its namespace; None if none."""
        for namespace in chain(self._idle, sorted(self._busy, key=self._held.__getitem__)):
            if self._most is not None and self._held[namespace] >= self._most:
                continue
            items = self._idle.get(namespace) or self._busy[namespace]
            for item in items:
                if fits(item):
                    self.discard(namespace, item)
                    self.hold(namespace)
                    return item
        return None

    def discard(self, namespace: str, item: T) -> None:
        """Remove an item if it waits."""
        for groups in (self._idle, self._busy):
            items = groups.get(namespace, {})
            if item in items:
                del items[item]
                self._waiting -= 1
                if not items:
                    del groups[namespace]

    def hold(self, namespace: str) -> None:
        """Count one more for a namespace, which then comes after others that hold as many."""
        self._held[namespace] += 1
        items = self._idle.pop(namespace, None) or self._busy.pop(namespace, None)
        if items is not None:
            self._busy[namespace] = items

    def release(self, namespace: str) -> None:
        """Count one less for a namespace."""
        self._held[namespace] -= 1
        if self._held[namespace] <= 0:
            del self._held[namespace]
            items = self._busy.pop(namespace, None)
            if items is not None:
                self._idle[namespace] = items


K = TypeVar("K", bound=Hashable)

_FIRST_WAIT: Final = 0.005
PATIENCE: Final = 10
"""An item of low priority comes after at most so many later items."""

_LABELS: Final = ("name", "controller")
_BUCKETS: Final = tuple(1e-8 * 10**power for power in range(12))
_ADDS: Final = CounterMetric(
    "workqueue_adds_total", "Items added to the workqueue", _LABELS, registry=REGISTRY
)
_RETRIES: Final = CounterMetric(
    "workqueue_retries_total", "Items requeued with a delay", _LABELS, registry=REGISTRY
)
_WAITS: Final = Histogram(
    "workqueue_queue_duration_seconds",
    "Time that items wait in the workqueue",
    _LABELS,
    buckets=_BUCKETS,
    registry=REGISTRY,
)
_WORKS: Final = Histogram(
    "workqueue_work_duration_seconds",
    "Processing time of items",
    _LABELS,
    buckets=_BUCKETS,
    registry=REGISTRY,
)
_DEPTH: Final = Gauge(
    "workqueue_depth", "Items that wait in the workqueue", _LABELS, registry=REGISTRY
)
_UNFINISHED: Final = Gauge(
    "workqueue_unfinished_work_seconds",
    "Total processing time so far of items in process",
    _LABELS,
    registry=REGISTRY,
)
_LONGEST: Final = Gauge(
    "workqueue_longest_running_processor_seconds",
    "Processing time so far of the oldest item in process",
    _LABELS,
    registry=REGISTRY,
)


class WorkQueue(Generic[K]):
    """Distinct items in order of arrival, each to one worker at a time.

    while True:
        key = await queue.get()
        try: …
        finally: queue.done(key)
    """

    def __init__(
        self,
        name: str = "",
        *,
        longest_wait: float = 1000.0,
        namespace: Callable[[K], str] = lambda _: "",
        most: int | None = None,
    ) -> None:
        """`namespace` returns that of an item; at most `most` items of one are in processing.

        The bound does not hold for items of low priority.
        """
        self.name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._longest_wait = longest_wait
        self._failures: Counter[K] = Counter()
        self._namespace = namespace
        # A dirty item waits in one of the two queues, or is in processing and waits after that.
        self._dirty: set[K] = set()
        self._queue: Turns[K] = Turns(most=most)
        self._low: dict[K, None] = {}
        self._passed_low = 0  # items that were taken while one of low priority waited
        self._processing: dict[K, float] = {}
        self._added: dict[K, float] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._timers: dict[K, asyncio.TimerHandle] = {}  # of delayed items
        _DEPTH.labels(name, name).set_function(self.__len__)
        _UNFINISHED.labels(name, name).set_function(self.unfinished_seconds)
        _LONGEST.labels(name, name).set_function(self.longest_running_seconds)
        self._adds, self._retries = (each.labels(name, name) for each in (_ADDS, _RETRIES))
        self._waits, self._works = (each.labels(name, name) for each in (_WAITS, _WORKS))

    def __len__(self) -> int:
        return len(self._queue) + len(self._low)

    def add(self, item: K, *, low: bool = False) -> None:
        """Queue an item unless it waits already; one in processing is queued again afterwards.

        `low`: low priority, for items of the first list after a restart. Every other item comes
        first, but at most `PATIENCE` of them. An item that is added both ways is not low.
        """
        if item in self._dirty:
            if not low and item in self._low:
                del self._low[item]
                self._queue.put(self._namespace(item), item)
            return
        self._adds.inc()
        self._dirty.add(item)
        self._added[item] = self._now()
        if item in self._processing:
            return
        if low:
            self._low[item] = None
            self._wake()
        else:
            self._push(item)

    def add_after(self, item: K, delay: float) -> None:
        """Queue an item `delay` seconds from now; of several times the earliest counts."""
        self._retries.inc()
        if delay <= 0:
            self.add(item)
            return
        due = self._now() + delay
        known = self._timers.get(item)
        if known is not None:
            if known.when() <= due:
                return
            known.cancel()
        self._timers[item] = asyncio.get_running_loop().call_at(due, self._ripen, item)

    def add_rate_limited(self, item: K) -> None:
        """Queue a failed item; its wait doubles with each failure, up to the longest wait."""
        # A float knows no power beyond this one, and the longest wait is reached long before.
        wait = _FIRST_WAIT * 2.0 ** min(self._failures[item], 512)
        self._failures[item] += 1
        self.add_after(item, min(self._longest_wait, wait))

    def forget(self, item: K) -> None:
        """Reset an item's failures, after its success or for the last time."""
        self._failures.pop(item, None)

    async def get(self) -> K:
        """Wait for an item and return it; the worker must call `done` afterwards."""
        while (item := self._pop()) is None:
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except BaseException:
                if getter in self._getters:
                    self._getters.remove(getter)
                elif len(self):
                    self._wake()  # passes the wake-up on to another worker
                raise
        now = self._now()
        self._processing[item] = now
        self._dirty.discard(item)
        self._waits.observe(now - self._added.pop(item, now))
        return item

    def done(self, item: K) -> None:
        """End the processing of an item; queue it again if it was added meanwhile."""
        started = self._processing.pop(item, None)
        if started is None:
            return
        self._works.observe(self._now() - started)
        self._queue.release(self._namespace(item))
        if item in self._dirty:
            self._push(item)
        elif len(self):
            self._wake()  # for an item of this namespace, which may have held too many

    def unfinished_seconds(self) -> float:
        """Return the sum of the times of all items that are being processed."""
        now = self._now() if self._processing else 0.0
        return sum(now - started for started in self._processing.values())

    def longest_running_seconds(self) -> float:
        """Return the time of the item that has been processed longest."""
        if not self._processing:
            return 0.0
        return self._now() - min(self._processing.values())

    def _pop(self) -> K | None:
        """Remove and return the next item; of low priority if no other may, or in its turn."""
        if not self._low or self._passed_low < PATIENCE:
            item = self._queue.take()
            if item is not None:
                self._passed_low += bool(self._low)
                return item
        if not self._low:
            return None
        self._passed_low = 0
        item = next(iter(self._low))
        del self._low[item]
        self._queue.hold(self._namespace(item))
        return item

    def _push(self, item: K) -> None:
        self._queue.put(self._namespace(item), item)
        self._wake()

    def _wake(self) -> None:
        """Let one waiting worker look for an item."""
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _ripen(self, item: K) -> None:
        """Queue a delayed item whose time has come."""
        del self._timers[item]
        self.add(item)

    def _now(self) -> float:
        """Return the time of the loop that asked first; a scrape asks from another thread."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop.time()
