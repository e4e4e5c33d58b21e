"""Validate one HyperJob: first its types and bounds, then the rules that compare fields."""

from contextlib import suppress

from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.context import Context
from hyperjob_rules.validation.hyperjob import validate_hyperjob
from hyperjob_rules.validation.references import warn_references
from hyperjob_rules.validation.report import EnoughError, Report
from hyperjob_rules.validation.structure import TypedObject, check_structure


def inspect(raw: Object, *, context: Context, strict: bool) -> Report:
    """Return the report with all errors in a HyperJob and all warnings about it."""
    report = Report()
    shape = check_structure(raw, report, strict=strict)
    report.checked = shape.checked
    return inspect_checked(shape, report, context=context)


def inspect_checked(shape: TypedObject, report: Report, *, context: Context) -> Report:
    """Return the same for a HyperJob after the check of its shape, whose report continues."""
    found = Report()
    with suppress(EnoughError):
        validate_hyperjob(shape.checked, found)
        warn_references(shape.checked, found, context=context)
    if found.refusals or found.remarks:
        report.take(found, refusal=lambda error: not shape.hides(error.field))
    return report
