"""One admission request: from the bytes of the review to the bytes of the response. Pure.

A denial is a response with HTTP 200 and a Status inside. A malformed review gets a 4xx. A bug of
the webhook gets a 500: the failurePolicy then decides, and the API server does not report the bug
as a denial. `admit` never raises.
"""

from typing import NamedTuple

from hyperjob_rules.validation.context import NOTHING_KNOWN, Context
from hyperjob_rules.validation.rules import Decision
from hyperjob_webhook.handlers import ROUTES
from hyperjob_webhook.response import encode, failure
from hyperjob_webhook.review import MAX_BODY_BYTES, AdmissionRequest, BadReview, decode


class Reply(NamedTuple):
    """An HTTP response, with the request and the decision if the review got that far."""

    status: int
    body: bytes
    request: AdmissionRequest | None = None
    decision: Decision | None = None
    problem: str = ""
    bug: Exception | None = None


def admit(path: str, body: bytes, context: Context = NOTHING_KNOWN) -> Reply:
    """Return the reply to a review posted to `path`; `context` has the known other objects."""
    route = ROUTES.get(path)
    if route is None:
        return refuse(404, f"no webhook at {path[:100]!r}; there are: {', '.join(ROUTES)}")
    request: AdmissionRequest | None = None
    try:
        request = decode(body)
        decision = route.decide(request, context)
        return Reply(200, encode(request, decision), request, decision)
    except BadReview as bad:
        return refuse(bad.status, str(bad), request=request)
    except Exception as bug:  # noqa: BLE001 - reported as the webhook's own
        return fail(bug, request=request)


def fail(bug: Exception, *, request: AdmissionRequest | None = None) -> Reply:
    """Return the reply to a request on which the webhook failed, without the exception's text."""
    message = f"the webhook failed on this request: {type(bug).__name__}; its log says more"
    return Reply(500, failure(500, message), request, problem=message, bug=bug)


def refuse(status: int, message: str, *, request: AdmissionRequest | None = None) -> Reply:
    """Return the reply to a request that is not a review."""
    return Reply(status, failure(status, message), request, problem=message)


def check_http(
    *, method: str, content_type: str, content_encoding: str, length: int | None
) -> Reply | None:
    """Return the refusal of a request by its header; None if its body may be read."""
    if method != "POST":
        return refuse(405, f"method {method[:20]} is not allowed: reviews are posted")
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != "application/json":
        got = media_type[:100] or "nothing"
        return refuse(415, f"content type must be application/json, got {got}")
    if content_encoding.lower() not in {"", "identity"}:
        return refuse(415, f"content encoding {content_encoding[:100]} is not supported")
    if length is not None and length > MAX_BODY_BYTES:
        return refuse(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
    return None
