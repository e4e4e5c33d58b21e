"""Validation of a HyperJob: all errors that would occur later, at once, in Kubernetes' wording.

Pure and total: the result for any JSON object is a decision, without exceptions and without I/O.
"""

from hyperjob_core.api.meta import Object
from hyperjob_rules.decision import Decision
from hyperjob_rules.validation.context import NOTHING_KNOWN, Context
from hyperjob_rules.validation.create import inspect
from hyperjob_rules.validation.report import Report
from hyperjob_rules.validation.size import validate_size
from hyperjob_rules.validation.update import inspect_update

__all__ = ["Context", "validate_create", "validate_update"]


def validate_create(
    raw: Object,
    *,
    context: Context = NOTHING_KNOWN,
    strict: bool = False,
    at_most: int | None = None,
) -> Decision:
    """Validate a HyperJob that is created; `strict` refuses fields that the API does not have.

    `at_most` is an upper bound of its size in bytes, if known; it saves the computation.
    """
    size = Report()
    if not validate_size(raw, size, at_most=at_most):
        return size.decision()
    return inspect(raw, context=context, strict=strict).decision()


def validate_update(
    new: Object,
    old: Object,
    *,
    context: Context = NOTHING_KNOWN,
    at_most: int | None = None,
) -> Decision:
    """Validate a change of a HyperJob; an error that the stored object has, too, does not count."""
    return inspect_update(new, old, context=context, at_most=at_most).decision()
