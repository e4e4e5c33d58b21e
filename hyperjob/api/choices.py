"""What fields of a HyperJob are chosen from, without the models that hold the fields."""

from enum import StrEnum


class SplitMode(StrEnum):
    """Who decides how a replicated job is split."""

    STATIC = "static"
    AUTO = "auto"


class ClusterPolicy(StrEnum):
    """How binding a list of clusters is."""

    PREFERRED = "Preferred"
    REQUIRED = "Required"


class FailurePolicyAction(StrEnum):
    """What is done about a failure."""

    FAIL_HYPERJOB = "FailHyperJob"
    RESTART_HYPERJOB = "RestartHyperJob"
    RESTART_JOB = "RestartJob"
    MIGRATE_JOB = "MigrateJob"
    RESTART_HYPERJOB_AND_IGNORE_MAX_RESTARTS = "RestartHyperJobAndIgnoreMaxRestarts"
    RESTART_JOB_AND_IGNORE_MAX_RESTARTS = "RestartJobAndIgnoreMaxRestarts"


class FailedPhase(StrEnum):
    """The phases of a vcjob that are failures."""

    FAILED = "Failed"
    ABORTED = "Aborted"
    TERMINATED = "Terminated"


class SuccessOperator(StrEnum):
    """How many sub-jobs must complete."""

    ALL = "All"
    ANY = "Any"


class DependencyStatus(StrEnum):
    """How far a replicated job must have got."""

    READY = "Ready"
    COMPLETE = "Complete"


class TimeUse(StrEnum):
    """What a moment in the life of a HyperJob goes to."""

    WAITING_FOR_QUEUE = "waitingForQueue"
    WAITING_FOR_CAPACITY = "waitingForCapacity"
    BLOCKED = "blocked"
    STARTING = "starting"
    PRODUCTIVE = "productive"
    DEGRADED = "degraded"
    LOST_TO_FAILURES = "lostToFailures"
    LOST_TO_PLANNED_STOPS = "lostToPlannedStops"
    SUSPENDED = "suspended"
    FINISHING = "finishing"
