"""The count of HyperJobs that make way for others, by the queue for which they do and the cause."""

from collections.abc import Iterable
from typing import Final

from prometheus_client import Counter

from hyperjob_core.registry import REGISTRY
from hyperjob_engine.queueing.evict import preempted_since
from hyperjob_engine.queueing.state import QueueState

_PREEMPTED: Final = Counter(
    "hyperjob_preempted_workloads",
    "HyperJobs that make way for a head of line: for its priority (InQueue), its share"
    " (Reclamation), or since it waited long (WaitedLong)",
    ("preempting_queue", "reason"),
    registry=REGISTRY,
)


def count_evicted(state: QueueState, evicted: Iterable[str]) -> None:
    """Count the HyperJobs that the last round let make way for a head of line."""
    eviction = state.eviction
    head = state.entries.get(eviction.head) if eviction is not None else None
    if eviction is None or head is None or head.waiting is None:
        return
    for key in evicted:
        reason = "InQueue" if preempted_since(state, key) else "Reclamation"
        reason = "WaitedLong" if eviction.for_late else reason
        _PREEMPTED.labels(head.waiting.queue, reason).inc()
