"""One admission request: from the bytes of the review to the bytes of the response. Pure.

A denial is a response with HTTP 200 and a Status inside. A malformed review gets a 4xx. A bug of
the webhook gets a 500: the failurePolicy then decides, and the API server does not report the bug
as a denial. `admit` never raises. Each handler is a pure function of the request and the context;
it raises only for a review that the rules of its webhook configuration do not select.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import hyperjob_core
from hyperjob_core.api.defaults import stored
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import WEBHOOK_VERSION
from hyperjob_core.api.wire import at
from hyperjob_rules.configuration import (
    MUTATE_HYPERJOB,
    MUTATE_RESOURCEBINDING,
    VALIDATE_HYPERJOB,
    VALIDATE_TRAINJOB,
)
from hyperjob_rules.patch import additions
from hyperjob_rules.stamp import stamp
from hyperjob_rules.validation.context import NOTHING_KNOWN, Context
from hyperjob_rules.validation.create import validate_create
from hyperjob_rules.validation.rules import ALLOWED, Decision
from hyperjob_rules.validation.update import is_being_deleted, validate_update
from hyperjob_webhook.review import (
    MAX_BODY_BYTES,
    AdmissionRequest,
    BadReview,
    decode,
    encode,
    failure,
)

Handler = Callable[[AdmissionRequest, Context], Decision]


class Reply(NamedTuple):
    """An HTTP response, with the request and the decision if the review got that far."""

    status: int
    body: bytes
    request: AdmissionRequest | None = None
    decision: Decision | None = None
    problem: str = ""
    bug: Exception | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """One webhook: the kind for which it is registered, and its handler."""

    group: str
    version: str
    kind: str
    handle: Handler

    def decide(self, request: AdmissionRequest, context: Context) -> Decision:
        """Return the decision about a CREATE or UPDATE; all other requests are allowed."""
        if request.operation not in {"CREATE", "UPDATE"} or request.subresource:
            return ALLOWED
        if (request.group, request.version, request.kind) != (self.group, self.version, self.kind):
            got = f"{request.group}/{request.version} {request.kind}"
            want = f"{self.group}/{self.version} {self.kind}"
            raise BadReview(f"this path judges {want}, got {got}: check the webhook's rules")
        return self.handle(request, context)


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


def default_hyperjob(request: AdmissionRequest, _: Context) -> Decision:
    """Return the patch that makes a HyperJob storable; during its deletion it stays as it is."""
    raw = _required(request)
    if is_being_deleted(raw):
        return ALLOWED
    return Decision(patch=list(additions(raw, _signed(stored(raw)))))


def validate_hyperjob(request: AdmissionRequest, context: Context) -> Decision:
    """Validate a HyperJob; during its deletion only its finalizers may change, not its spec."""
    raw = _required(request)
    if request.operation == "CREATE":
        if is_being_deleted(raw):
            return ALLOWED
        return validate_create(raw, context=context, at_most=request.size)
    if request.old_object is None:
        raise BadReview("request.oldObject: Required value: UPDATE compares two objects")
    return validate_update(raw, request.old_object, context=context, at_most=request.size)


def read_trainjob(request: AdmissionRequest, _: Context) -> Decision:
    """Allow a TrainJob: the server reads its runtime and decides by `trainjobs.judge`."""
    _required(request)
    return ALLOWED


def stamp_binding(request: AdmissionRequest, context: Context) -> Decision:
    """Return the patch that closes the gate of a sub-job's ResourceBinding or keeps it closed."""
    binding = _required(request)
    may_open = not context.controllers or request.user in context.controllers
    old = None if may_open else request.old_object
    return Decision(patch=stamp(binding, operation=request.operation, old=old))


ROUTES: Final[Mapping[str, Route]] = {
    MUTATE_HYPERJOB: Route("training.volcano.sh", "v1alpha1", "HyperJob", default_hyperjob),
    VALIDATE_HYPERJOB: Route("training.volcano.sh", "v1alpha1", "HyperJob", validate_hyperjob),
    VALIDATE_TRAINJOB: Route("trainer.kubeflow.org", "v1alpha1", "TrainJob", read_trainjob),
    MUTATE_RESOURCEBINDING: Route("work.karmada.io", "v1alpha2", "ResourceBinding", stamp_binding),
}


def _signed(raw: Object) -> Object:
    """Return a HyperJob with this release's version in its annotation, if it has the annotation."""
    if at(raw, "metadata", "annotations", WEBHOOK_VERSION) != "":
        return raw
    metadata = raw["metadata"]
    signed = {**metadata["annotations"], WEBHOOK_VERSION: hyperjob_core.__version__}
    return {**raw, "metadata": {**metadata, "annotations": signed}}


def _required(request: AdmissionRequest) -> Object:
    if request.object is None:
        raise BadReview(f"request.object: Required value: {request.operation} carries an object")
    return request.object
