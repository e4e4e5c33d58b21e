"""Validation of the annotations that request a restart or a move of sub-jobs."""

from typing import Final

from hyperjob_core.api.field import METADATA
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import MAX_TOKEN, MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.api.wire import at, mapping
from hyperjob_rules.validation.rules import TOO_LONG, Report, rule

REQUESTS: Final = (RESTART_REQUEST, MIGRATE_REQUEST)

TOKEN = rule(
    "X16.token",
    TOO_LONG,
    f"may not be more than {MAX_TOKEN} characters before the first space",
    "the token of a restart or move is kept in the status, and is longer than any time or name",
    "use a short token, such as the time",
)


def validate_requests(hyperjob: Object, report: Report, *, before: Object | None = None) -> None:
    """Validate the tokens of requests; a token of the stored object, `before`, is not an error."""
    given, old = _annotations(hyperjob), _annotations(before or {})
    for key in REQUESTS:
        text = given.get(key)
        if isinstance(text, str) and text != old.get(key):
            words = text.split(maxsplit=1)
            if words and len(words[0]) > MAX_TOKEN:
                report.add(TOKEN, METADATA.child("annotations").key(key))


def _annotations(hyperjob: Object) -> Object:
    return mapping(at(hyperjob, "metadata", "annotations"))
