"""The rules about paths inside volumes, for every field with such a path."""

from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_rules.validation.podtemplate.rows import row
from hyperjob_rules.validation.podtemplate.values import held
from hyperjob_rules.validation.rules import Report

RELATIVE: Final = row("V8.path.relative")
ABSOLUTE: Final = row("V8.path.absolute")
UPWARDS: Final = row("V8.path.backsteps")
RESERVED: Final = row("V8.path.reserved")


def has_backsteps(path: str) -> bool:
    """Return whether a path contains `..`."""
    return ".." in path.split("/")


def is_padded(text: str) -> bool:
    """Return whether a text starts or ends with white space."""
    return text.strip() != text


def _is_reserved(path: str) -> bool:
    return path.startswith("..") and not path.startswith("../") and path != ".."


def _is_absolute(path: str) -> bool:
    return path.startswith("/")


_DESCENDING: Final = ((RELATIVE, _is_absolute), (UPWARDS, has_backsteps))

absolute: Final = held((ABSOLUTE, lambda path: not _is_absolute(path)))
"""A path that starts with a slash."""
without_backsteps: Final = held((UPWARDS, has_backsteps))
"""A path without `..`."""
descending: Final = held(*_DESCENDING)
"""A relative path without `..`."""
file: Final = held(*_DESCENDING, (RESERVED, _is_reserved))
"""The path of a file that Kubernetes writes into a volume."""


def descend(value: str, path: Path, report: Report) -> None:
    """Report a value at `path` that is not a relative path without `..`."""
    for known, breaks in _DESCENDING:
        if breaks(value):
            report.add(known, path, value)
