"""Judge a HyperJob: everything that would fail later, all at once, in Kubernetes' own words.

Pure and total: any JSON object gets an answer, nothing is raised, nothing is asked of a server.
"""

from hyperjob.api.meta import Object
from webhook.decision import Decision
from webhook.validation.context import NOTHING_KNOWN, Context
from webhook.validation.create import inspect
from webhook.validation.report import Report
from webhook.validation.size import validate_size
from webhook.validation.update import inspect_update

__all__ = ["Context", "validate_create", "validate_update"]


def validate_create(
    raw: Object,
    *,
    context: Context = NOTHING_KNOWN,
    strict: bool = False,
    at_most: int | None = None,
) -> Decision:
    """Judge a HyperJob that is to be created; `strict` refuses fields that the API lacks.

    `at_most` are the bytes that it cannot exceed, where they are known; that saves counting.
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
    """Judge a change of a HyperJob; what was stored before is never held against it."""
    return inspect_update(new, old, context=context, at_most=at_most).decision()
