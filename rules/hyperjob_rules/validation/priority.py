"""Validation of PriorityClass names: users may not use those of the system."""

from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_rules.validation.rules import FORBIDDEN, Report, rule

SYSTEM: Final = "system-"

RESERVED = rule(
    "V8.priority-system",
    FORBIDDEN,
    f"may not start with {SYSTEM!r}: Kubernetes keeps these classes for its own parts",
    "the pods would preempt system pods, and the pods of every other tenant",
    "use a PriorityClass that your administrator created for jobs",
)


def validate_priority_class(name: str, path: Path, report: Report) -> None:
    """Report a PriorityClass that Kubernetes reserves for system pods."""
    if name.startswith(SYSTEM):
        report.add(RESERVED, path)
