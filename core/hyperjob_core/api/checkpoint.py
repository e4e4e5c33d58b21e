"""Constants and causes of checkpoints, for the webhook and the controller."""

from enum import StrEnum
from typing import Final

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
