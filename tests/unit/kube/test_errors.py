"""The Status of a response that has none."""

import pytest

from hyperjob_core.api.field import make_status
from hyperjob_core.kube.errors import from_response

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    502: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
    418: "Unknown",
}


@pytest.mark.parametrize("code", REASONS)
def test_a_response_without_a_status_has_the_reason_that_kubernetes_gives_its_code(
    code: int,
) -> None:
    assert make_status(code, "no")["reason"] == REASONS[code]
    assert from_response(code, {}, b"<html>", "GET /x").status["reason"] == REASONS[code]
    assert make_status(code, "no", reason="Expired")["reason"] == "Expired"
