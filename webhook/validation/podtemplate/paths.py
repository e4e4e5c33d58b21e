"""Paths of files inside volumes: rules that hold wherever such a path is written."""

from typing import Final

from hyperjob.api.field import Path
from webhook.validation.podtemplate.rows import row
from webhook.validation.podtemplate.table import held
from webhook.validation.report import Report

RELATIVE: Final = row("V8.path.relative")
ABSOLUTE: Final = row("V8.path.absolute")
UPWARDS: Final = row("V8.path.backsteps")
RESERVED: Final = row("V8.path.reserved")


def has_backsteps(path: str) -> bool:
    """Return whether a step of a path leads upwards."""
    return ".." in path.split("/")


def is_padded(text: str) -> bool:
    """Return whether a text starts or ends with a blank."""
    return text.strip() != text


def _is_reserved(path: str) -> bool:
    return path.startswith("..") and not path.startswith("../") and path != ".."


def _is_absolute(path: str) -> bool:
    return path.startswith("/")


_DESCENDING: Final = ((RELATIVE, _is_absolute), (UPWARDS, has_backsteps))

absolute: Final = held((ABSOLUTE, lambda path: not _is_absolute(path)))
"""A path that starts with a slash."""
without_backsteps: Final = held((UPWARDS, has_backsteps))
"""A path that never leads upwards."""
descending: Final = held(*_DESCENDING)
"""A path that stays below the folder where it starts."""
file: Final = held(*_DESCENDING, (RESERVED, _is_reserved))
"""The path of a file that Kubernetes writes into a volume."""


def descend(value: str, path: Path, report: Report) -> None:
    """Report a path at `path` that does not stay below the folder where it starts."""
    for known, breaks in _DESCENDING:
        if breaks(value):
            report.add(known, path, value)
