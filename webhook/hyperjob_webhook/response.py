"""The encoder of an AdmissionReview response from a decision.

The response stays within the limits of the API server, which drops the excess.
"""

from base64 import b64encode
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import orjson

from hyperjob_core.api.field import FieldError, invalid_status
from hyperjob_core.api.meta import Object
from hyperjob_core.text import shortened
from hyperjob_rules.validation.rules import Decision
from hyperjob_webhook.review import API_VERSION, KIND, AdmissionRequest

WARNING_LIMIT: Final = 256
"""The characters of one warning to which the API server cuts if there are many."""
WARNINGS_LIMIT: Final = 4096
"""The characters of all warnings together; the API server drops the rest silently."""
ERRORS_LIMIT: Final = 200
"""The greatest number of errors in a response: a hostile object could cause millions."""
MESSAGE_LIMIT: Final = 32 * 1024
CAUSE_LIMIT: Final = 4 * 1024
"""The characters of one error in `details.causes`: it quotes a value, which may be large."""

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


def encode(request: AdmissionRequest, decision: Decision) -> bytes:
    """Return the bytes of the AdmissionReview that answers `request`."""
    response: dict[str, Any] = {"uid": request.uid, "allowed": decision.allowed}
    if decision.errors:
        response["status"] = denial(request, decision.errors)
    elif decision.patch:
        # The API server refuses `patch` without `patchType`, and the reverse.
        response["patchType"] = "JSONPatch"
        response["patch"] = b64encode(orjson.dumps(decision.patch)).decode("ascii")
    if decision.warnings:
        response["warnings"] = cut_warnings(decision.warnings)
    return orjson.dumps({"kind": KIND, "apiVersion": API_VERSION, "response": response})


def denial(request: AdmissionRequest, errors: Sequence[FieldError]) -> Object:
    """Return the Status 422 with all errors, each with its field."""
    status = invalid_status(request.group, request.kind, request.name, errors[:ERRORS_LIMIT])
    status["message"] = shortened(status["message"], MESSAGE_LIMIT)
    for cause in status["details"]["causes"]:
        cause["message"] = shortened(cause["message"], CAUSE_LIMIT)
    if (more := len(errors) - ERRORS_LIMIT) > 0:
        status["message"] += f" (and at least {more} more errors)"
    return status


def failure(status: int, message: str) -> bytes:
    """Return the bytes of a metav1.Status for a request without a decision."""
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
    """Return the warnings within the API server's limits, with the number of the omitted ones."""
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
    """Return a warning without control characters, cut to the limit of one warning."""
    clean = "".join(char if char.isprintable() else " " for char in text).strip()
    return shortened(clean, WARNING_LIMIT)
