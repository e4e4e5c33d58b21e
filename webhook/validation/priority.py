"""PriorityClasses that users may not name."""

from typing import Final

from hyperjob.api.field import Path
from webhook.validation.report import Report
from webhook.validation.rules import FORBIDDEN, rule

SYSTEM: Final = "system-"

RESERVED = rule(
    "V8.priority-system",
    FORBIDDEN,
    f"may not start with {SYSTEM!r}: Kubernetes keeps these classes for its own parts",
    "the pods would preempt what runs the cluster, and every other tenant's",
    "use a PriorityClass that your administrator made for jobs",
)


def validate_priority_class(name: str, path: Path, report: Report) -> None:
    """Refuse the classes that Kubernetes makes for itself."""
    if name.startswith(SYSTEM):
        report.add(RESERVED, path)
