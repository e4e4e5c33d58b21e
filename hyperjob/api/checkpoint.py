"""Checkpoints: what admission and the controller both know, without the models of the status."""

from enum import StrEnum
from typing import Final

DEFAULT_PATH: Final = "/checkpoints"
"""Where a claim is mounted, unless spec.checkpoint.path says so."""
DEFAULT_GRACE_SECONDS: Final = 30
"""The terminationGracePeriodSeconds of a pod that has none, as Kubernetes has it."""
VOLUME_NAME: Final = "hyperjob-checkpoints"
"""The volume that the controller adds to the pods for the claim."""


class StopCause(StrEnum):
    """Why sub-jobs that ran were stopped."""

    FAILURE = "Failure"
    CLUSTER_LOST = "ClusterLost"
    SUSPENDED = "Suspended"
    RESTARTED = "Restarted"
    MIGRATED = "Migrated"
    PREEMPTED = "Preempted"
    RECLAIMED = "Reclaimed"

    @property
    def is_planned(self) -> bool:
        """Whether the sub-jobs had time to save a checkpoint."""
        return self not in (StopCause.FAILURE, StopCause.CLUSTER_LOST)
