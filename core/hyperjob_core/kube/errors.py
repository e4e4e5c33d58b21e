"""The errors of API requests, by the HTTP code of the response.

`str()` of an error is the request line and the API server's own message.
"""
# ruff: noqa: N818 - the names are the reasons of the Status

from collections.abc import Mapping
from typing import ClassVar, Final

from hyperjob_core.api.field import make_status
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, decoded, integer, objects, string_map
from hyperjob_core.kube.ratelimit import LONGEST
from hyperjob_core.text import shortened

_BODY_SHOWN: Final = 512
LONGEST_MESSAGE: Final = 64 * 1024
"""The characters of a message; the refusal of an admission webhook may have 32 KiB."""
_REASON: Final = 256
LONGEST_STATUS: Final = 1024 * 1024
"""The longest Status in bytes: an error may be kept for long, with all of it."""
_CAUSES: Final = 1000


class ConfigError(Exception):
    """A kubeconfig is missing or wrong."""


class KubeError(Exception):
    """An API call failed.

    `status` is the Status object (generated if the response has none), `request` the request line.
    """

    code: ClassVar[int] = 0

    def __init__(
        self, status: Object, request: str = "", *, retry_after: float | None = None
    ) -> None:
        self.status = status
        self.request = request
        self.retry_after = retry_after
        super().__init__(status, request)

    def __str__(self) -> str:
        return f"{self.request}: {self.message}" if self.request else self.message

    @property
    def message(self) -> str:
        """Return the server's message."""
        message = self.status.get("message") or self.reason or f"HTTP {self.http_code}"
        return shortened(str(message), LONGEST_MESSAGE)

    @property
    def reason(self) -> str:
        """Return the machine-readable reason (`NotFound`, `Conflict`, …); empty if none."""
        return shortened(str(self.status.get("reason") or ""), _REASON)

    @property
    def http_code(self) -> int:
        """Return the HTTP status; 0 if the server never answered."""
        return integer(self.status.get("code")) or 0

    @property
    def causes(self) -> list[dict[str, str]]:
        """Return `details.causes`: for Invalid one entry per field, with reason, message, field."""
        causes = objects(at(self.status, "details", "causes"))
        return [string_map(each) for each in causes[:_CAUSES]]


class BadRequest(KubeError):
    """400: the request makes no sense to the server."""

    code = 400


class Unauthorized(KubeError):
    """401: the credentials are missing, wrong or expired."""

    code = 401


class Forbidden(KubeError):
    """403: RBAC or an admission webhook refuses."""

    code = 403


class NotFound(KubeError):
    """404: no such object, or no such resource (is the CRD installed?)."""

    code = 404


class Conflict(KubeError):
    """409: the object has changed since it was read, or another field manager owns a field."""

    code = 409


class AlreadyExists(KubeError):
    """409 on create: an object of this name exists."""

    code = 409


class Gone(KubeError):
    """410: the resourceVersion or continue token is too old; list again."""

    code = 410


class Invalid(KubeError):
    """422: the object violates the schema or a rule; `causes` has the fields."""

    code = 422


class TooManyRequests(KubeError):
    """429: too many requests; `retry_after` is the wait in seconds, if the server sent one."""

    code = 429


class InternalError(KubeError):
    """500: the server, or an admission webhook that it called, failed."""

    code = 500


class TooLarge(KubeError):
    """The API server, or a member, sent more than the client takes; see docs/security.md."""


class Unavailable(KubeError):
    """502, 503, 504, a lost connection or a time limit: the request may be retried later.

    `answered` is True if the error is an HTTP response, also of a proxy: a server is there, and
    commands and logs try again. It is False without a whole response, or if the request was not
    sent; then only a GET is sent again. Neither value shows whether a write has happened.
    """

    code = 503

    def __init__(
        self,
        status: Object,
        request: str = "",
        *,
        retry_after: float | None = None,
        answered: bool = True,
    ) -> None:
        super().__init__(status, request, retry_after=retry_after)
        self.answered = answered


_BY_CODE: dict[int, type[KubeError]] = {
    kind.code: kind
    for kind in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        Conflict,
        Gone,
        Invalid,
        TooManyRequests,
        InternalError,
    )
} | dict.fromkeys((502, 503, 504), Unavailable)


def from_status(status: Object, request: str, *, retry_after: float | None = None) -> KubeError:
    """Return the error of a Status object."""
    code = integer(status.get("code")) or 0
    kind = _BY_CODE.get(code, KubeError)
    if kind is Conflict and status.get("reason") == "AlreadyExists":
        kind = AlreadyExists
    return kind(status, request, retry_after=retry_after)


def from_response(code: int, headers: Mapping[str, str], body: bytes, request: str) -> KubeError:
    """Return the error of an HTTP response outside 2xx, whose body need not be a Status."""
    try:
        parsed = decoded(body) if len(body) <= LONGEST_STATUS else None
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and parsed.get("kind") == "Status":
        status = {**parsed, "code": integer(parsed.get("code")) or code}
    else:
        status = make_status(code, body.decode(errors="replace").strip()[:_BODY_SHOWN])
    return from_status(status, request, retry_after=retry_after(headers))


def unreachable(request: str, message: str, *, timeout: bool = False) -> Unavailable:
    """Return the error of a request without a response."""
    status = make_status(0, message, reason="Timeout" if timeout else "ServiceUnavailable")
    return Unavailable(status, request, answered=False)


def too_large(request: str, message: str) -> TooLarge:
    """Return the error of a response that exceeds a bound."""
    return TooLarge(make_status(0, message, reason="ResponseTooLarge"), request)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return Retry-After in seconds, the only form that a Kubernetes API server sends.

    A server that asks for more than the longest back-off gets that.
    """
    value = headers.get("Retry-After", "")
    return min(LONGEST, float(value)) if value.isascii() and value.isdigit() else None
