"""The metrics of this package, as protocols with a silent default.

`hyperjob_core.telemetry.metrics.Metrics` implements all of them. Neither package imports the other:
the process that starts both passes the metrics.
"""

from typing import Protocol


class QueueStats(Protocol):
    """The state of a workqueue at the moment of a read."""

    def depth(self) -> int:
        """Return the number of waiting items."""
        ...

    def unfinished_seconds(self) -> float:
        """Return the sum of the times of all items that are being processed."""
        ...

    def longest_running_seconds(self) -> float:
        """Return the time of the item that has been processed longest."""
        ...


class ClientMetrics(Protocol):
    """Counts API calls."""

    def request_done(self, *, code: str, method: str, host: str) -> None:
        """Count one call; `code` is the HTTP status or `<error>`."""
        ...


class InformerMetrics(Protocol):
    """Counts what informers do."""

    def informer_list(self, resource: str) -> None:
        """Count one full list."""
        ...

    def informer_watch(self, resource: str, *, short: bool) -> None:
        """Count one ended watch; `short` if it ended at once without an event."""
        ...


class QueueMetrics(Protocol):
    """Counts what work queues do."""

    def queue_started(self, name: str, stats: QueueStats) -> None:
        """Register the state of a queue, for depth and unfinished work."""
        ...

    def queue_added(self, name: str) -> None:
        """Count one added item."""
        ...

    def queue_retried(self, name: str) -> None:
        """Count one retried item."""
        ...

    def queue_waited(self, name: str, seconds: float) -> None:
        """Observe how long an item waited for a worker."""
        ...

    def queue_worked(self, name: str, seconds: float) -> None:
        """Observe how long a worker processed an item."""
        ...


class LeaderMetrics(Protocol):
    """The metric of the leader."""

    def leader_changed(self, name: str, *, leading: bool) -> None:
        """Set whether this process is the leader."""
        ...


class EventMetrics(Protocol):
    """Counts Kubernetes Events that were not written."""

    def event_dropped(self, reason: str) -> None:
        """Count one lost Event; `reason` is `full`, `spam` or `failed`."""
        ...


class NoMetrics:
    """Counts nothing: the default of everything in this package."""

    def request_done(self, *, code: str, method: str, host: str) -> None:
        """Count nothing."""

    def informer_list(self, resource: str) -> None:
        """Count nothing."""

    def informer_watch(self, resource: str, *, short: bool) -> None:
        """Count nothing."""

    def queue_started(self, name: str, stats: QueueStats) -> None:
        """Count nothing."""

    def queue_added(self, name: str) -> None:
        """Count nothing."""

    def queue_retried(self, name: str) -> None:
        """Count nothing."""

    def queue_waited(self, name: str, seconds: float) -> None:
        """Count nothing."""

    def queue_worked(self, name: str, seconds: float) -> None:
        """Count nothing."""

    def leader_changed(self, name: str, *, leading: bool) -> None:
        """Count nothing."""

    def event_dropped(self, reason: str) -> None:
        """Count nothing."""


SILENT = NoMetrics()
