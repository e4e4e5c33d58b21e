"""The counters that this package feeds, as protocols with a silent default.

`hyperjob.telemetry.metrics.Metrics` fits all of them by its shape; neither package imports the
other, the process that starts both hands one to the other.
"""

from typing import Protocol


class QueueStats(Protocol):
    """The state of a work queue at the moment it is read."""

    def depth(self) -> int:
        """Count the items that wait."""
        ...

    def unfinished_seconds(self) -> float:
        """Sum the time of all items in work."""
        ...

    def longest_running_seconds(self) -> float:
        """Return the time of the item that is longest in work."""
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
        """Count one watch that ended; `short` when it brought nothing and died at once."""
        ...


class QueueMetrics(Protocol):
    """Counts what work queues do."""

    def queue_started(self, name: str, stats: QueueStats) -> None:
        """Remember where to ask for depth and unfinished work."""
        ...

    def queue_added(self, name: str) -> None:
        """Count one item that was taken in."""
        ...

    def queue_retried(self, name: str) -> None:
        """Count one item that was put off."""
        ...

    def queue_waited(self, name: str, seconds: float) -> None:
        """Observe how long an item waited for a worker."""
        ...

    def queue_worked(self, name: str, seconds: float) -> None:
        """Observe how long a worker had an item."""
        ...


class LeaderMetrics(Protocol):
    """Shows who leads."""

    def leader_changed(self, name: str, *, leading: bool) -> None:
        """Set whether this process leads."""
        ...


class EventMetrics(Protocol):
    """Counts Kubernetes Events that never reached the server."""

    def event_dropped(self, reason: str) -> None:
        """Count one lost Event; `reason` is `full`, `spam` or `failed`."""
        ...


class Silent:
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


SILENT = Silent()
