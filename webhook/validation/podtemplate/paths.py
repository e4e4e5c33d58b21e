"""Paths of files inside volumes: rules that hold wherever such a path is written."""

from collections.abc import Callable
from typing import Final

from hyperjob.api.field import Path
from webhook.validation.podtemplate.pod import Pod
from webhook.validation.podtemplate.rows import row
from webhook.validation.podtemplate.table import Cell, Check
from webhook.validation.report import Report
from webhook.validation.rules import Rule

RELATIVE: Final = row("V8.path.relative")
ABSOLUTE: Final = row("V8.path.absolute")
UPWARDS: Final = row("V8.path.backsteps")
RESERVED: Final = row("V8.path.reserved")

Breaks = Callable[[str], bool]


def _held(*rules: tuple[Rule, Breaks]) -> Callable[[Cell], Check]:
    def make(cell: Cell) -> Check:
        def check(value: str, _o: object, path: Path, _p: Pod, report: Report) -> None:
            for known, breaks in rules:
                if breaks(value):
                    report.add(known, path.child(cell.field), value)

        return check

    return make


def has_backsteps(path: str) -> bool:
    """Return whether a step of a path leads upwards."""
    return ".." in path.split("/")


def _is_reserved(path: str) -> bool:
    return path.startswith("..") and not path.startswith("../") and path != ".."


def _is_absolute(path: str) -> bool:
    return path.startswith("/")


_DESCENDING: Final = ((RELATIVE, _is_absolute), (UPWARDS, has_backsteps))

absolute: Final = _held((ABSOLUTE, lambda path: not _is_absolute(path)))
"""A path that starts with a slash."""
without_backsteps: Final = _held((UPWARDS, has_backsteps))
"""A path that never leads upwards."""
descending: Final = _held(*_DESCENDING)
"""A path that stays below the folder where it starts."""
file: Final = _held(*_DESCENDING, (RESERVED, _is_reserved))
"""The path of a file that Kubernetes writes into a volume."""


def descend(value: str, path: Path, report: Report) -> None:
    """Report a path at `path` that does not stay below the folder where it starts."""
    for known, breaks in _DESCENDING:
        if breaks(value):
            report.add(known, path, value)
