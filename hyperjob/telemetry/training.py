"""What the controller measures of HyperJobs: waits, restarts, phases, accelerators.

Its callers count. No label holds the name of an object but that of a cluster or a queue,
of which there are few.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from hyperjob.api.phases import Phase
from hyperjob.telemetry.families import Families, Samples

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
    "allocatable": "Devices that a cluster has in all",
    "free": "Devices that are free for placement; below zero where too many are taken",
    "reserved": "Devices of placed sub-jobs that the cluster's own summary cannot show yet",
}


class TrainingMetrics:
    """The metrics about HyperJobs, which begin with `hyperjob_`."""

    def __init__(self, families: Families) -> None:
        self._phases: Counter[str] = Counter({str(phase): 0 for phase in Phase})
        self._job_phases: Counter[str] = Counter()
        self._queue_wait = families.histogram(
            "hyperjob_queue_wait_seconds",
            "From the creation of a HyperJob until enough of its sub-jobs were admitted to start",
            buckets=_WAITS,
        )
        self._gang_wait = families.histogram(
            "hyperjob_gang_wait_seconds",
            "From the first admitted sub-job until the gang went together (opened), or gave back"
            " what it held (gave_back)",
            "outcome",
            buckets=_WAITS,
        )
        self._placements = families.counter(
            "hyperjob_placement_attempts_total",
            "Passes that looked for places for sub-jobs: all found (placed), or some not (no_room)",
            "result",
        )
        self._restarts = families.counter(
            "hyperjob_restarts_total", "Restarts that count against maxRestarts"
        )
        self._attempts = families.counter(
            "hyperjob_job_attempts_total", "Sub-jobs that were made again, for whatever reason"
        )
        self._finished = families.counter(
            "hyperjob_finished_total", "HyperJobs that ended, by the phase they ended in", "phase"
        )
        self._refusals = families.counter(
            "hyperjob_refusals_total",
            "Objects of sub-jobs that the API server refused, by its reason",
            "reason",
        )
        self._reads = families.counter(
            "hyperjob_progress_reads_total",
            "Logs that were read for progress lines: there were some (progress) or none (silent),"
            " there was no such pod or it had not started (missing), the right to read it is"
            " missing (refused), its cluster did not answer (unreachable)",
            "result",
        )
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
        for outcome in ("opened", "gave_back"):
            self._gang_wait.labels(outcome)
        for result in ("placed", "no_room"):
            self._placements.labels(result)
        for phase in ("Completed", "Failed"):
            self._finished.labels(phase)

    def queue_waited(self, seconds: float) -> None:
        """Observe how long a HyperJob waited for its queue."""
        self._queue_wait.observe(seconds)

    def gang_waited(self, seconds: float, *, opened: bool) -> None:
        """Observe how long admitted sub-jobs waited for the others of their gang."""
        self._gang_wait.labels("opened" if opened else "gave_back").observe(seconds)

    def placement_tried(self, *, placed: bool) -> None:
        """Count a pass that looked for places."""
        self._placements.labels("placed" if placed else "no_room").inc()

    def restarted(self, *, counted: int, attempts: int) -> None:
        """Count restarts, and the sub-jobs made again."""
        self._restarts.inc(counted)
        self._attempts.inc(attempts)

    def finished(self, phase: str) -> None:
        """Count a HyperJob that has ended."""
        self._finished.labels(phase).inc()

    def refused(self, reason: str) -> None:
        """Count an object that the API server did not take."""
        self._refusals.labels(reason).inc()

    def read(self, result: str) -> None:
        """Count a log that was read for progress lines."""
        self._reads.labels(result).inc()

    def phases_changed(self, before: Iterable[str], after: Iterable[str]) -> None:
        """Count HyperJobs that went from one phase to another, or came, or are gone."""
        self._phases.subtract(before)
        self._phases.update(after)

    def job_phases_changed(self, before: Iterable[str], after: Iterable[str]) -> None:
        """Count sub-jobs that went from one phase to another, or came, or are gone."""
        self._job_phases.subtract(before)
        self._job_phases.update(after)


def show_accelerators(families: Families, samples: Mapping[str, Samples]) -> None:
    """Show what `samples` gives, by cluster and type, for `allocatable`, `free` and `reserved`."""
    for state, text in _ACCELERATORS.items():
        families.computed(
            f"hyperjob_accelerators_{state}", text, "cluster", "type", samples=samples[state]
        )


_TIME_USE = {
    "hyperjob_time_seconds": (
        "Time of the HyperJobs that there are, since their creation, by what it went to",
        ("queue", "use"),
    ),
    "hyperjob_goodput_ratio": (
        "Productive part of the time that HyperJobs were not suspended, from 0 to 1",
        ("queue",),
    ),
    "hyperjob_training_reporting": ("HyperJobs whose programs have reported progress", ()),
}


def show_time_use(families: Families, samples: Mapping[str, Samples]) -> None:
    """Show what `samples` gives for each metric of `TIME_USE`."""
    for name, (text, labels) in _TIME_USE.items():
        families.computed(name, text, *labels, samples=samples[name])


TIME_USE = tuple(_TIME_USE)


def _samples(phases: Mapping[str, int]) -> list[tuple[tuple[str, ...], float]]:
    return [((phase,), float(number)) for phase, number in phases.items()]
