"""A decision to the bytes of an AdmissionReview response.

The response stays within the limits of the API server, which would drop what exceeds them.
"""

from base64 import b64encode
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import orjson

from hyperjob.api.field import FieldError, invalid_status
from hyperjob.api.meta import Object
from hyperjob.text import shortened
from webhook.decision import Decision
from webhook.review import API_VERSION, KIND, Request

WARNING_LIMIT: Final = 256
"""Characters of one warning that the API server passes on when there are many."""
WARNINGS_LIMIT: Final = 4096
"""Characters of all warnings; the API server drops the rest without a word."""
ERRORS_LIMIT: Final = 200
"""Errors in one answer; more would not be read, and a hostile object could make millions."""
MESSAGE_LIMIT: Final = 32 * 1024
CAUSE_LIMIT: Final = 4 * 1024
"""A refused value is quoted in the text, and may be as large as the object."""

_REASONS: Final = {
    400: "BadRequest",
    404: "NotFound",
    405: "MethodNotAllowed",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def encode(request: Request, decision: Decision) -> bytes:
    """Write the AdmissionReview that answers `request`."""
    response: dict[str, Any] = {"uid": request.uid, "allowed": decision.allowed}
    if decision.errors:
        response["status"] = denial(request, decision.errors)
    elif decision.patch:
        # The API server refuses one of the two without the other.
        response["patchType"] = "JSONPatch"
        response["patch"] = b64encode(orjson.dumps(decision.patch)).decode("ascii")
    if decision.warnings:
        response["warnings"] = cut_warnings(decision.warnings)
    return orjson.dumps({"kind": KIND, "apiVersion": API_VERSION, "response": response})


def denial(request: Request, errors: Sequence[FieldError]) -> Object:
    """Return the Status 422 with every error at once, each with its field."""
    status = invalid_status(request.group, request.kind, request.name, errors[:ERRORS_LIMIT])
    status["message"] = shortened(status["message"], MESSAGE_LIMIT)
    for cause in status["details"]["causes"]:
        cause["message"] = shortened(cause["message"], CAUSE_LIMIT)
    if (more := len(errors) - ERRORS_LIMIT) > 0:
        status["message"] += f" (and at least {more} more errors)"
    return status


def failure(status: int, message: str) -> bytes:
    """Write the metav1.Status of a request that got no decision; the API server shows its text."""
    document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS.get(status, HTTPStatus(status).phrase.title().replace(" ", "")),
        "code": status,
    }
    return orjson.dumps(document)


def cut_warnings(warnings: Sequence[str]) -> list[str]:
    """Fit warnings into the API server's limits, saying how many found no room."""
    texts = list(dict.fromkeys(_one_line(warning) for warning in warnings))
    kept: list[str] = []
    room = WARNINGS_LIMIT
    for position, text in enumerate(texts):
        left = len(texts) - position
        notice = f"{left} more warnings are not shown"
        reserve = 0 if left == 1 else len(notice)
        if len(text) + reserve > room:
            return [*kept, notice]
        kept.append(text)
        room -= len(text)
    return kept


def _one_line(text: str) -> str:
    """Replace what an HTTP warning header cannot carry, and cut to the limit of one warning."""
    clean = "".join(char if char.isprintable() else " " for char in text).strip()
    return shortened(clean, WARNING_LIMIT)
