"""Checkpoints: their constants, and why and when running sub-jobs were stopped."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from hyperjob_core.api.table import ATOMIC, COUNT, MICRO, NATURAL, Table, described

DEFAULT_PATH: Final = "/checkpoints"
"""The mount path of a claim without spec.checkpoint.path."""
DEFAULT_GRACE_SECONDS: Final = 30
"""The terminationGracePeriodSeconds of a pod without one, by Kubernetes' default."""
VOLUME_NAME: Final = "hyperjob-checkpoints"
"""The volume that the controller adds to the pods for the claim."""


class StopCause(StrEnum):
    """Why running sub-jobs were stopped."""

    FAILURE = "Failure"
    CLUSTER_LOST = "ClusterLost"
    SUSPENDED = "Suspended"
    RESTARTED = "Restarted"
    MIGRATED = "Migrated"
    PREEMPTED = "Preempted"
    RECLAIMED = "Reclaimed"
    RESIZED = "Resized"
    DEADLINE = "DeadlineExceeded"

    @property
    def is_planned(self) -> bool:
        """Whether the sub-jobs had time to save a checkpoint."""
        return self not in (StopCause.FAILURE, StopCause.CLUSTER_LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopStatus(Table):
    """A planned stop in progress: the controller recreates no sub-job before all have ended."""

    cause: StopCause = described("Why the sub-jobs are stopped.")
    since: datetime | None = described("When the controller decided the stop.", default=None)
    until: datetime = described("When the grace period of all pods is over at the latest.")
    jobs: tuple[str, ...] = described("Names of the stopped sub-jobs.", ATOMIC, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointStatus(Table):
    """The step from which sub-jobs start, and the work that the last stop may have lost."""

    resume_step: int | None = described(
        "Last step that all sub-jobs are known to have saved; unset: unknown. New"
        " sub-jobs start from it.",
        NATURAL,
        default=None,
    )
    stopped_step: int | None = described(
        "Last reported step before the last stop, until the program reports the step"
        " from which it resumed.",
        NATURAL,
        default=None,
    )
    stopped_time: datetime | None = described(
        "When the program reported that step.", MICRO, default=None
    )
    kept_step: int | None = described(
        "Step of the last checkpoint before that stop, or the step from which the"
        " program had started.",
        NATURAL,
        default=None,
    )
    kept_time: datetime | None = described(
        "When the program saved that checkpoint, or had started.", MICRO, default=None
    )
    stop_cause: StopCause | None = described("Cause of that stop.", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostWork(Table):
    """Steps that the program repeated, by the cause of the stop."""

    cause: StopCause = described("Cause of the stops.")
    stops: int = described("Number of stops of this cause.", COUNT, default=0, always=True)
    steps: int = described(
        "Last reported step minus the step of the resumption, summed over all stops.",
        NATURAL,
        default=0,
        always=True,
    )
    milliseconds: int = described(
        "Time that the program took for those steps.", NATURAL, default=0, always=True
    )
