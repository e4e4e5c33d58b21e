"""Values of the controller that no operator needs to change: constants instead of settings."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from hyperjob_core.api.names import LEASE_NAMESPACE

LOGS_PER_SECOND: Final = 40.0
"""The logs of trainings that the controller reads per second, over all HyperJobs."""
SPLITTER_SECONDS: Final = 10.0
"""The time limit of a call of the external splitter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The values that tests change: concurrent writes, and the Lease's namespace, among others.

    After `silence` without a report of a sub-job from its cluster the controller has Karmada apply
    the sub-job again. `failure_causes` reads the failed pods of a failed sub-job, where the
    controller has the right.
    """

    writes: int = 50
    silence: timedelta = timedelta(seconds=30)
    failure_causes: bool = True
    lease_namespace: str = LEASE_NAMESPACE
