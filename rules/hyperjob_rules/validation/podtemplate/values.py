"""The checks of values in the pod template tables: sets, forms, ranges, known names, labels."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

from hyperjob_core.api.field import ErrorType, Path, Step
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import FormCheck, validate_labels
from hyperjob_rules.validation.podtemplate.pod import Pod
from hyperjob_rules.validation.podtemplate.table import Cell, Check, Maker, all_of
from hyperjob_rules.validation.rules import INVALID, NOT_SUPPORTED, Report, Rule

ENUM_REMEDY: Final = "use one of the values listed; upper and lower case matter"


def _value(
    cell: Cell,
    breaks: Callable[[Any], Any],
    refuse: Callable[[Report, Path, Any, Any], object],
) -> Check:
    """Return a check that calls `refuse` with the result of `breaks`, unless that is empty."""

    def check(
        value: object, _o: object, path: Path, _p: Pod, report: Report, step: Step = cell.field
    ) -> None:
        if broken := breaks(value):
            refuse(report, Path((step, path)), value, broken)

    return check


def enum(*known: str, cause: str = "") -> Maker:
    """Allow a closed set of values."""
    values = frozenset(known)

    def make(cell: Cell) -> Check:
        unknown = cell.rule(
            "enum",
            NOT_SUPPORTED,
            "supported values: {values}",
            cause or f"{cell.field} of {cell.noun} has a value that Kubernetes does not know",
            ENUM_REMEDY,
        )
        return _value(
            cell,
            lambda value: value not in values,
            lambda report, at, value, _: report.unsupported(unknown, at, value, known),
        )

    return make


def form(judge: FormCheck) -> Maker:
    """Check the form of a text, with Kubernetes' message for the form."""

    def make(cell: Cell) -> Check:
        malformed = cell.rule(
            "form",
            INVALID,
            "{message}",
            f"{cell.field} of {cell.noun} has a form that Kubernetes does not accept",
            "use the characters and the length that the message names",
        )

        def refuse(report: Report, at: Path, value: str, messages: list[str]) -> None:
            for message in messages:
                report.add(malformed, at, value, message=message)

        return _value(cell, judge, refuse)

    return make


def held(*rules: tuple[Rule, Callable[[Any], bool]], **words: str) -> Maker:
    """Check a value by rules, each with a function that returns whether a value breaks it."""

    def make(cell: Cell) -> Check:
        return all_of([_value(cell, breaks, partial(refuse, known)) for known, breaks in rules])

    def refuse(known: Rule, report: Report, at: Path, value: object, _: object) -> None:
        report.add(known, at, value, **words)

    return make


def between(low: int, high: float, *, text: str = "", remedy: str = "") -> Maker:
    """Check that a number is in a range, both ends included."""

    def make(cell: Cell) -> Check:
        outside = cell.rule(
            "range",
            INVALID,
            text or f"must be between {low} and {high}, inclusive",
            f"{cell.field} of {cell.noun} is out of range",
            remedy or f"use a number from {low} to {high}",
        )
        return held((outside, lambda value: not low <= value <= high))(cell)

    return make


def at_least(low: int, *, text: str) -> Maker:
    """Check that a number is not below a limit."""
    return between(low, float("inf"), text=text, remedy=f"use {low} or more")


def never(kind: ErrorType, text: str, cause: str, remedy: str) -> Maker:
    """Report the field with any value."""

    def make(cell: Cell) -> Check:
        return held((cell.rule("forbidden", kind, text, cause, remedy), lambda _: True))(cell)

    return make


def at_holder(maker: Maker) -> Maker:
    """Report the errors of the value at its object, as Kubernetes does for this field."""

    def make(cell: Cell) -> Check:
        inner = maker(cell)

        def check(value: object, obj: Object, path: Path, pod: Pod, report: Report) -> None:
            step, above = path
            inner(value, obj, above, pod, report, step)

        return check

    return make


def one_known(unknown: Rule, known: Callable[[Pod], Collection[str]]) -> Maker:
    """Check that a name is one of the pod's."""

    def make(cell: Cell) -> Check:
        def check(name: str, _o: object, path: Path, pod: Pod, report: Report) -> None:
            if name not in known(pod):
                report.missing(unknown, path.child(cell.field), name, known(pod))

        return check

    return make


def labels() -> Maker:
    """Check that the keys and values of a map are valid labels."""

    def make(cell: Cell) -> Check:
        def check(value: Object, _o: object, path: Path, _p: Pod, report: Report) -> None:
            validate_labels(value, path.child(cell.field), report)

        return check

    return make


def code(check: Check) -> Maker:
    """Check the field by a function, for rules that compare it with other fields."""
    return lambda _: check
