"""The phases of a HyperJob and of a vcjob, for programs without the models."""

from enum import StrEnum


class Phase(StrEnum):
    """The phase of a HyperJob."""

    PENDING = "Pending"
    QUEUED = "Queued"
    STARTING = "Starting"
    RUNNING = "Running"
    DEGRADED = "Degraded"
    RESTARTING = "Restarting"
    STOPPING = "Stopping"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"

    @property
    def is_terminal(self) -> bool:
        """Whether the HyperJob has ended."""
        return self in (Phase.COMPLETED, Phase.FAILED)


class JobPhase(StrEnum):
    """The phase of a vcjob; an unlisted phase reads as UNKNOWN."""

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
        """Whether the vcjob ended without success: a failed phase is terminal."""
        return self in _TERMINAL and self is not JobPhase.COMPLETED


_TERMINAL = frozenset({JobPhase.ABORTED, JobPhase.COMPLETED, JobPhase.TERMINATED, JobPhase.FAILED})
