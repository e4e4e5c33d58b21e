"""The result of a check: a status, a message, and the remedy."""

import enum
from dataclasses import dataclass
from typing import Final

ONE_RELEASE: Final = (
    "run webhook, controller and command line of one release: helm upgrade hyperjob charts/hyperjob"
)


class Status(enum.StrEnum):
    """The severity of a finding."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check; `remedy` is a command where possible, and "" for status ok."""

    status: Status
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """The name of a check and its result."""

    check: str
    verdict: CheckResult


def ok(message: str) -> CheckResult:
    """Return the result of a check that passes."""
    return CheckResult(Status.OK, message)


def note(message: str, *, remedy: str) -> CheckResult:
    """Return a remark: HyperJobs run without a restriction, and other workloads have one."""
    return CheckResult(Status.NOTE, message, remedy)


def warning(message: str, *, remedy: str) -> CheckResult:
    """Return a warning: HyperJobs run, with a restriction."""
    return CheckResult(Status.WARNING, message, remedy)


def failed(message: str, *, remedy: str) -> CheckResult:
    """Return a failure: HyperJobs cannot run."""
    return CheckResult(Status.FAILED, message, remedy)


def are_compatible(one: str, other: str) -> bool:
    """Return whether two releases are compatible: they differ at most in the patch number."""
    return one.split(".")[:2] == other.split(".")[:2]
