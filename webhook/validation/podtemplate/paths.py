"""Paths of files inside volumes."""

from webhook.validation.place import Path
from webhook.validation.report import Report
from webhook.validation.rules import INVALID, rule

RELATIVE = rule(
    "V8",
    INVALID,
    "must be a relative path",
    "a path inside a volume starts with '/'",
    "remove the leading '/'",
)
ABSOLUTE = rule(
    "V8",
    INVALID,
    "must be an absolute path",
    "the path of an NFS export does not start with '/'",
    "write the whole path",
)
UPWARDS = rule(
    "V8",
    INVALID,
    "must not contain '..'",
    "a path leads upwards",
    "write the path without '..'",
)
RESERVED = rule(
    "V8",
    INVALID,
    "must not start with '..'",
    "the name of a file starts with two dots, which Kubernetes uses itself",
    "rename the file",
)


def validate_descending(value: str, path: Path, report: Report) -> None:
    """Check a path that must stay below the place where it starts."""
    if value.startswith("/"):
        report.add(RELATIVE, path, value)
    validate_no_backsteps(value, path, report)


def validate_no_backsteps(value: str, path: Path, report: Report) -> None:
    """Check that a path never leads upwards."""
    if ".." in value.split("/"):
        report.add(UPWARDS, path, value)


def validate_file(value: str, path: Path, report: Report) -> None:
    """Check the path of a file that Kubernetes writes into a volume."""
    validate_descending(value, path, report)
    if value.startswith("..") and not value.startswith("../") and value != "..":
        report.add(RESERVED, path, value)
