"""An AdmissionReview: the decoder of its request and the encoder of its response. Pure.

The decoder checks the AdmissionReview itself and raises `BadReview` for a malformed one; admission
checks the object inside. The response stays within the limits of the API server, which drops the
excess.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, get_args

import orjson

from hyperjob_core.api.field import FieldError, invalid_status, make_status
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import decoded, mapping, string
from hyperjob_core.text import shortened
from hyperjob_rules.validation.rules import Decision

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

MAX_BODY_BYTES: Final = 7 * 1024 * 1024
"""The greatest body: an object and its old version, each at etcd's limit, and the envelope."""
MAX_VALUES: Final = 500_000
"""The greatest number of JSON values: `[],[],…` decoded needs twenty times its size in memory."""

MAX_ODD_VALUES: Final = 100_000
"""The greatest number of values in a body that neither Go nor orjson wrote: it is read twice."""
_BLANKS: Final = b" \t\r\n"
_BEGINNINGS: Final = (b",", b"[", b"{")
"""The number of values in a body is at most one more than the number of these bytes."""

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
_OPERATIONS: Final = frozenset(get_args(Operation))


class BadReview(Exception):  # noqa: N818 - a verdict on the request, in the words of HTTP
    """The request is not a valid AdmissionReview; `status` is the HTTP status of the response."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class AdmissionRequest(NamedTuple):
    """The decoded request: the input of the decision and of its log line.

    It is a tuple, like the decision and the reply: a frozen dataclass takes three times as long.
    """

    uid: str
    group: str
    version: str
    kind: str
    subresource: str
    operation: Operation
    namespace: str
    name: str
    user: str
    dry_run: bool
    size: int
    """The size of the whole review in bytes."""
    object: Object | None
    old_object: Object | None


def decode(body: bytes) -> AdmissionRequest:
    """Return the request of an AdmissionReview, or raise `BadReview`."""
    review = _load(body)
    if review.get("apiVersion") != API_VERSION or review.get("kind") != KIND:
        got = f"{_show(review.get('apiVersion'))}, kind {_show(review.get('kind'))}"
        raise BadReview(f"expected apiVersion {API_VERSION!r}, kind {KIND!r}, got apiVersion {got}")
    request = review.get("request")
    if not isinstance(request, dict):
        raise BadReview("request: Required value: an AdmissionReview to answer carries a request")
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid:
        raise BadReview("request.uid: Required value: must be a non-empty string")
    operation = request.get("operation")
    if not isinstance(operation, str) or operation not in _OPERATIONS:
        raise BadReview(f"request.operation: Unsupported value: {_show(operation)}")
    kind = _mapping(request, "kind")
    obj, old = _object(request, "object"), _object(request, "oldObject")
    return AdmissionRequest(
        uid=uid,
        group=_text(kind, "group"),
        version=_text(kind, "version"),
        kind=_text(kind, "kind"),
        subresource=_text(request, "subResource"),
        operation=operation,  # type: ignore[arg-type] # membership was checked above
        namespace=_text(request, "namespace"),
        name=_name(request, obj or old),
        user=_text(_mapping(request, "userInfo"), "username"),
        dry_run=request.get("dryRun") is True,
        size=len(body),
        object=obj,
        old_object=old,
    )


def _load(body: bytes) -> dict[str, Any]:
    """Parse a body within the limits of size and values; raises BadReview."""
    if len(body) > MAX_BODY_BYTES:
        raise BadReview(f"the body is larger than {MAX_BODY_BYTES} bytes", status=413)
    if len(body) > MAX_VALUES and sum(map(body.count, _BEGINNINGS)) >= MAX_VALUES:
        raise BadReview(f"the body holds more than {MAX_VALUES} values", status=413)
    try:
        review = decoded(body)
    except ValueError as error:
        raise BadReview(f"the body is no JSON document: {error}") from None
    if not isinstance(review, dict):
        raise BadReview("the body is no JSON object")
    _refuse_ambiguity(body, review)
    return review


def _refuse_ambiguity(body: bytes, review: dict[str, Any]) -> None:
    """Raise `BadReview` for duplicate keys, which readers resolve differently, and deep nesting.

    A body of the API server equals the output of orjson, and one comparison proves that it has no
    duplicate key. Any other body is parsed a second time, carefully.
    """
    try:
        written = orjson.dumps(review)
    except TypeError:
        raise BadReview("the body is nested more than 254 levels deep") from None
    if written == body.rstrip():
        return
    if b"\\u" in body and _as_go_writes(written) == body.rstrip():
        return
    # A dropped duplicate key makes the two differ, whatever blanks the strings have.
    if written.translate(None, _BLANKS) == body.translate(None, _BLANKS):
        return
    if sum(map(body.count, _BEGINNINGS)) >= MAX_ODD_VALUES:
        raise BadReview(
            f"the body holds more than {MAX_ODD_VALUES} values, and no API server writes it so",
            status=413,
        )
    json.loads(body, object_pairs_hook=_unique, parse_int=float)  # noqa: TID251 - it is not deep


def _as_go_writes(written: bytes) -> bytes:
    """Return JSON with Go's HTML escapes (encoding/json), as in shell commands of containers."""
    return written.replace(b"&", b"\\u0026").replace(b"<", b"\\u003c").replace(b">", b"\\u003e")


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) == len(pairs):
        return
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise BadReview(f"duplicate field {key[:100]!r}")
        seen.add(key)


def _name(request: dict[str, Any], obj: Object | None) -> str:
    """Return the object's name; at CREATE with generateName its prefix."""
    metadata = mapping((obj or {}).get("metadata"))
    own = string(metadata.get("name")) or string(metadata.get("generateName"))
    return _text(request, "name") or own


def _object(request: dict[str, Any], field: str) -> Object | None:
    value = request.get(field)
    if value is None or isinstance(value, dict):
        return value
    raise BadReview(f"request.{field}: Invalid value: must be an object")


def _mapping(request: dict[str, Any], field: str) -> dict[str, Any]:
    return _object(request, field) or {}


def _text(part: dict[str, Any], field: str) -> str:
    value = part.get(field)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise BadReview(f"request: {field}: Invalid value: must be a string")


def _show(value: object) -> str:
    """Return a quoted value of the request, cut for an error text."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


WARNING_LIMIT: Final = 256
"""The characters of one warning to which the API server cuts if there are many."""
WARNINGS_LIMIT: Final = 4096
"""The characters of all warnings together; the API server drops the rest silently."""
ERRORS_LIMIT: Final = 200
"""The greatest number of errors in a response: a hostile object could cause millions."""
MESSAGE_LIMIT: Final = 32 * 1024
CAUSE_LIMIT: Final = 4 * 1024
"""The characters of one error in `details.causes`: it quotes a value, which may be large."""


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
    return orjson.dumps(make_status(status, message))


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
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return shortened(text.strip(), WARNING_LIMIT)
