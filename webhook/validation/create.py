"""The whole judgement of one HyperJob: first its shape, then its sense.

Only puts the parts together.
"""

from hyperjob.api.meta import Object
from webhook.outcome import Outcome
from webhook.validation.context import Context
from webhook.validation.hyperjob import validate_hyperjob
from webhook.validation.place import SPEC
from webhook.validation.references import warn_references
from webhook.validation.report import Report
from webhook.validation.structure import check_structure
from webhook.validation.support import Features, validate_support


def inspect(raw: Object, *, features: Features, context: Context, strict: bool) -> Outcome:
    """Return everything that is wrong with a HyperJob, and what is surprising about it."""
    report = Report()
    shape = check_structure(raw, strict=strict)
    report.errors.extend(shape.errors)
    checked = shape.checked
    findings = Report()
    spec = checked.get("spec") or {}
    validate_support(spec, SPEC, findings, features=features)
    validate_hyperjob(checked, findings)
    report.errors.extend(error for error in findings.errors if not shape.hides(error.field))
    if not report.errors:
        warn_references(checked, findings, context=context)
    report.warnings.extend(findings.warnings)
    return report.outcome()
