"""The controller's metrics of HyperJobs: waits, restarts, phases, accelerators.

Labels have no names of objects, except those of clusters and queues, of which there are few.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from hyperjob_core.api.phases import Phase
from hyperjob_core.telemetry.families import Families, Samples

_WAITS = (
    1.0,
    5.0,
    15.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    1800.0,
    3600.0,
    10800.0,
    43200.0,
    86400.0,
)

_ACCELERATORS = {
    "allocatable": "Allocatable devices of a cluster",
    "free": "Devices that are free for placement; negative if more than the allocatable are taken",
    "reserved": "Devices of placed sub-jobs that the Cluster's status does not include yet",
}


_REFUSALS: Final = ("BadRequest", "Forbidden", "Invalid", "NotFound")
"""Reasons with a series before the first refusal; an alert needs it to see an increase."""


class TrainingMetrics:
    """The metrics about HyperJobs, which begin with `hyperjob_`."""

    def __init__(self, families: Families) -> None:
        self._phases: Counter[str] = Counter({str(phase): 0 for phase in Phase})
        self._job_phases: Counter[str] = Counter()
        self._queue_wait = families.histogram(
            "hyperjob_queue_wait_seconds",
            "Time from the creation of a HyperJob until enough of its sub-jobs are admitted to"
            " start",
            buckets=_WAITS,
        )
        self._gang_wait = families.histogram(
            "hyperjob_gang_wait_seconds",
            "Time from the first admitted sub-job until the gang starts (opened) or releases its"
            " quota (gave_back)",
            "outcome",
            buckets=_WAITS,
        )
        self._placements = families.counter(
            "hyperjob_placement_attempts_total",
            "Reconciliations that placed all waiting sub-jobs (placed), or not all (no_room)",
            "result",
        )
        self._restarts = families.counter(
            "hyperjob_restarts_total", "Restarts that count against maxRestarts"
        )
        self._attempts = families.counter(
            "hyperjob_job_attempts_total", "Sub-jobs created again, for any reason"
        )
        self._finished = families.counter(
            "hyperjob_finished_total", "HyperJobs that ended, by phase", "phase"
        )
        self._refusals = families.counter(
            "hyperjob_refusals_total",
            "Objects of sub-jobs that the API server refused, by reason",
            "reason",
        )
        self._reads = families.counter(
            "hyperjob_progress_reads_total",
            "Reads of logs for progress lines: the log has some (progress) or none (silent), the"
            " pod does not exist or has not started (missing), the controller lacks the right"
            " (refused), the cluster does not answer (unreachable)",
            "result",
        )
        self._show_from_start(families)

    def _show_from_start(self, families: Families) -> None:
        """Show the phases, and a zero for each outcome that has not occurred yet."""
        families.computed(
            "hyperjob_hyperjobs",
            "HyperJobs by phase",
            "phase",
            samples=lambda: _samples(self._phases),
        )
        families.computed(
            "hyperjob_jobs",
            "Sub-jobs by phase",
            "phase",
            samples=lambda: _samples(self._job_phases),
        )
        for reason in _REFUSALS:
            self._refusals.labels(reason)
        for outcome in ("opened", "gave_back"):
            self._gang_wait.labels(outcome)
        for result in ("placed", "no_room"):
            self._placements.labels(result)
        for phase in ("Completed", "Failed"):
            self._finished.labels(phase)

    def queue_waited(self, seconds: float) -> None:
        """Observe the time that a HyperJob waited for its queue."""
        self._queue_wait.observe(seconds)

    def gang_waited(self, seconds: float, *, opened: bool) -> None:
        """Observe the time that admitted sub-jobs waited for the others of their gang."""
        self._gang_wait.labels("opened" if opened else "gave_back").observe(seconds)

    def placement_tried(self, *, placed: bool) -> None:
        """Count a reconciliation that placed sub-jobs."""
        self._placements.labels("placed" if placed else "no_room").inc()

    def restarted(self, *, counted: int, attempts: int) -> None:
        """Count restarts, and the sub-jobs created again."""
        self._restarts.inc(counted)
        self._attempts.inc(attempts)

    def finished(self, phase: str) -> None:
        """Count a HyperJob that has ended."""
        self._finished.labels(phase).inc()

    def refused(self, reason: str) -> None:
        """Count an object that the API server refused."""
        self._refusals.labels(reason).inc()

    def read(self, result: str) -> None:
        """Count a read of a log for progress lines."""
        self._reads.labels(result).inc()

    def phases_changed(self, before: Iterable[str], after: Iterable[str]) -> None:
        """Count the change of a HyperJob's phase, its creation or its deletion."""
        self._phases.subtract(before)
        self._phases.update(after)

    def job_phases_changed(self, before: Iterable[str], after: Iterable[str]) -> None:
        """Count the change of a sub-job's phase, its creation or its deletion."""
        self._job_phases.subtract(before)
        self._job_phases.update(after)


def show_queue_admission(families: Families, mode: Callable[[], str]) -> None:
    """Show the present queue admission."""
    families.computed(
        "hyperjob_queue_admission",
        "The present queue admission has the value 1",
        "mode",
        samples=lambda: [((mode(),), 1.0)],
    )


def show_accelerators(families: Families, samples: Mapping[str, Samples]) -> None:
    """Show the samples for `allocatable`, `free` and `reserved`, by cluster and type."""
    for state, text in _ACCELERATORS.items():
        families.computed(
            f"hyperjob_accelerators_{state}", text, "cluster", "type", samples=samples[state]
        )


_TIME_USE = {
    "hyperjob_time_seconds": (
        "Time of the existing HyperJobs since their creation, by use",
        ("queue", "use"),
    ),
    "hyperjob_goodput_ratio": (
        "Productive share of the time in which HyperJobs were not suspended, from 0 to 1",
        ("queue",),
    ),
    "hyperjob_training_reporting": ("HyperJobs whose programs have reported progress", ()),
}


def show_time_use(families: Families, samples: Mapping[str, Samples]) -> None:
    """Show the samples for each metric of `TIME_USE`."""
    for name, (text, labels) in _TIME_USE.items():
        families.computed(name, text, *labels, samples=samples[name])


TIME_USE = tuple(_TIME_USE)


def _samples(phases: Mapping[str, int]) -> list[tuple[tuple[str, ...], float]]:
    return [((phase,), float(number)) for phase, number in phases.items()]
