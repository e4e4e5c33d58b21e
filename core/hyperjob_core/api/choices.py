"""The enumerations of HyperJob fields, without the models that have the fields."""

from enum import StrEnum


class FailurePolicyAction(StrEnum):
    """The action of a failure policy rule."""

    FAIL_HYPERJOB = "FailHyperJob"
    RESTART_HYPERJOB = "RestartHyperJob"
    RESTART_JOB = "RestartJob"
    MIGRATE_JOB = "MigrateJob"
    RESTART_HYPERJOB_AND_IGNORE_MAX_RESTARTS = "RestartHyperJobAndIgnoreMaxRestarts"
    RESTART_JOB_AND_IGNORE_MAX_RESTARTS = "RestartJobAndIgnoreMaxRestarts"


class OnNoProgress(StrEnum):
    """The reaction to a program that makes no steps against its own pace."""

    NOTIFY = "Notify"
    RESTART = "Restart"
    MIGRATE = "Migrate"


class SuccessOperator(StrEnum):
    """How many sub-jobs must complete."""

    ALL = "All"
    ANY = "Any"


class DependencyStatus(StrEnum):
    """The state that a dependency must have reached."""

    READY = "Ready"
    COMPLETE = "Complete"


class DeadlineMode(StrEnum):
    """Which time of a HyperJob counts against its activeDeadlineSeconds."""

    RUN_TIME = "RunTime"
    TOTAL = "Total"


class TimeUse(StrEnum):
    """The use of a HyperJob's time, for its goodput."""

    WAITING_FOR_QUEUE = "waitingForQueue"
    WAITING_FOR_CAPACITY = "waitingForCapacity"
    BLOCKED = "blocked"
    STARTING = "starting"
    PRODUCTIVE = "productive"
    STALLED = "stalled"
    DEGRADED = "degraded"
    LOST_TO_FAILURES = "lostToFailures"
    LOST_TO_PLANNED_STOPS = "lostToPlannedStops"
    SUSPENDED = "suspended"
    FINISHING = "finishing"


class MemberAccess(StrEnum):
    """What the controller reads in the members; each step includes those before it."""

    OFF = "off"
    PODS = "pods"
    NODES = "nodes"
    LOGS = "logs"

    def includes(self, step: "MemberAccess") -> bool:
        """Return whether this step includes another."""
        order = tuple(MemberAccess)
        return order.index(self) >= order.index(step)
