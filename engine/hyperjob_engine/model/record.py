"""What the status remembers of a sub-job: its entry in `status.jobs`."""

from dataclasses import dataclass
from datetime import datetime

from hyperjob_engine.model.runs import Run
from hyperjob_engine.model.training import JobTraining
from hyperjob_engine.reasons.failure import ContainerFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A cluster on which Karmada could not schedule a sub-job.

    `since`: Karmada has refused it since then, and the controller has not acted upon it yet.
    `retry_time`: the controller does not use the cluster for the sub-job before then.
    """

    cluster: str
    times: int = 0
    since: datetime | None = None
    retry_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """How often the controller has acted on a cluster that does not report; when it looks again."""

    times: int = 0
    retry_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The last entry of a sub-job in `status.jobs`.

    Without `excluded_until` all `excluded_clusters` are excluded for good, and `excluded_for_good`
    is empty.
    """

    name: str
    replicated_job: str
    index: int
    cluster: str = ""
    accelerators: int | None = None
    phase: str = ""
    reason: str = ""
    message: str = ""
    attempt: int = 0
    running: int = 0
    excluded_clusters: tuple[str, ...] = ()
    excluded_until: datetime | None = None
    excluded_for_good: tuple[str, ...] = ()
    admitted: bool = False
    retry_time: datetime | None = None
    rejections: tuple[Rejection, ...] = ()
    silence: Silence | None = None
    start_time: str = ""
    failure: ContainerFailure | None = None
    history: tuple[Run, ...] = ()
    training: JobTraining | None = None
    last_transition_time: str = ""

    def excluded(self, now: datetime) -> tuple[str, ...]:
        """Return the clusters that are excluded at a time."""
        return self.for_good if self.exclusion_end(now) is None else self.excluded_clusters

    def exclusion_end(self, now: datetime) -> datetime | None:
        """Return the later time at which clusters are no longer excluded; None if there is none."""
        until = self.excluded_until
        return until if until is not None and until > now else None

    @property
    def for_good(self) -> tuple[str, ...]:
        """Return the clusters that are excluded without an end."""
        return self.excluded_clusters if self.excluded_until is None else self.excluded_for_good
