"""What a check finds: a status, a sentence, and the remedy."""

import enum
from dataclasses import dataclass
from typing import Final

ONE_RELEASE: Final = (
    "run webhook, controller and command line of one release: helm upgrade hyperjob charts/hyperjob"
)
INSTALL: Final = "hyperjob install --webhook-url https://HOST:PORT --ca-file ca.crt"


class Status(enum.StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check says; `remedy` is a command wherever one does it, "" where nothing is to do."""

    status: Status
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A check's name and what it says."""

    check: str
    verdict: CheckResult


def ok(message: str) -> CheckResult:
    """Say that all is well."""
    return CheckResult(Status.OK, message)


def warning(message: str, *, remedy: str) -> CheckResult:
    """Say what will surprise users."""
    return CheckResult(Status.WARNING, message, remedy)


def failed(message: str, *, remedy: str) -> CheckResult:
    """Say what keeps HyperJobs from running."""
    return CheckResult(Status.FAILED, message, remedy)


def go_together(one: str, other: str) -> bool:
    """Return whether two releases go together: they differ in their patch number at most."""
    return one.split(".")[:2] == other.split(".")[:2]
