"""Where a HyperJob and a vcjob are in their lives: words that programs read without any model."""

from enum import StrEnum


class Phase(StrEnum):
    """Where a HyperJob is in its life."""

    PENDING = "Pending"
    QUEUED = "Queued"
    STARTING = "Starting"
    RUNNING = "Running"
    DEGRADED = "Degraded"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing of the HyperJob will ever run again."""
        return self in (Phase.COMPLETED, Phase.FAILED)


class JobPhase(StrEnum):
    """Where a vcjob is in its life; a phase that is not listed reads as UNKNOWN."""

    PENDING = "Pending"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @classmethod
    def _missing_(cls, _value: object) -> "JobPhase":
        return cls.UNKNOWN

    @property
    def is_terminal(self) -> bool:
        """Whether the vcjob will not run again by itself."""
        return self in _TERMINAL

    @property
    def is_failed(self) -> bool:
        """Whether the vcjob ended, and not well."""
        return self in _TERMINAL and self is not JobPhase.COMPLETED


_TERMINAL = frozenset({JobPhase.ABORTED, JobPhase.COMPLETED, JobPhase.TERMINATED, JobPhase.FAILED})
