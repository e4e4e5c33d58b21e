"""One admission request: bytes in, bytes out, and what to log about it.

Pure. A refusal of the object is an answer (HTTP 200, a Status inside); a review that is none is a
4xx; a bug of ours is a 500, so that the webhook's failurePolicy decides and no user reads our bug
as a verdict on their object. Never raises.
"""

from typing import NamedTuple

from webhook.decision import Decision
from webhook.handlers import ROUTES
from webhook.response import encode, failure
from webhook.review import MAX_BODY_BYTES, BadReview, Request, decode
from webhook.validation.context import NOTHING_KNOWN, Context


class Reply(NamedTuple):
    """An HTTP answer, with the request and decision behind it where it got that far."""

    status: int
    body: bytes
    request: Request | None = None
    decision: Decision | None = None
    problem: str = ""
    bug: Exception | None = None


def admit(path: str, body: bytes, context: Context = NOTHING_KNOWN) -> Reply:
    """Answer one review that was posted to `path`; `context` is what is known of other objects."""
    route = ROUTES.get(path)
    if route is None:
        return refuse(404, f"no webhook at {path[:100]!r}; there are: {', '.join(ROUTES)}")
    request: Request | None = None
    try:
        request = decode(body)
        decision = route.decide(request, context)
        return Reply(200, encode(request, decision), request, decision)
    except BadReview as bad:
        return refuse(bad.status, str(bad), request=request)
    except Exception as bug:  # noqa: BLE001 - whatever it is, it is ours, and is reported as such
        return fail(bug, request=request)


def fail(bug: Exception, *, request: Request | None = None) -> Reply:
    """Return the answer to a request that we fail on, without the words of the exception."""
    message = f"the webhook failed on this request: {type(bug).__name__}; its log says more"
    return Reply(500, failure(500, message), request, problem=message, bug=bug)


def refuse(status: int, message: str, *, request: Request | None = None) -> Reply:
    """Return the answer to a request that is no review."""
    return Reply(status, failure(status, message), request, problem=message)


def check_http(
    *, method: str, content_type: str, content_encoding: str, length: int | None
) -> Reply | None:
    """Judge the head of a request before its body is read; None means that it may be read."""
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
