"""API errors as Kubernetes prints them: each is a `Status` with its HTTP code.

The handlers raise these; only the HTTP edge turns them into responses. Nothing here logs.
"""

from collections.abc import Sequence

from hyperjob.api.field import FieldError, invalid_status
from hyperjob.api.meta import Object


class ApiError(Exception):
    """A request that ends with a `Status`; `code` is the HTTP status."""

    def __init__(self, status: Object) -> None:
        super().__init__(status.get("message", ""))
        self.status = status

    @property
    def code(self) -> int:
        """Give the HTTP status code."""
        return int(self.status["code"])


class NoSuchPathError(Exception):
    """A request for a path that is not served; it ends with plain text (404)."""


def failure(
    code: int,
    reason: str,
    message: str,
    *,
    name: str = "",
    group: str = "",
    kind: str = "",
    uid: str = "",
    causes: Sequence[Object] = (),
    retry_after: int = 0,
    details: bool | None = None,
) -> Object:
    """Build a failed `Status`, keys in the order the real server writes them."""
    status: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
    }
    if reason:
        status["reason"] = reason
    given: Object = {
        "name": name,
        "group": group,
        "kind": kind,
        "uid": uid,
        "causes": list(causes),
        "retryAfterSeconds": retry_after,
    }
    found = {key: value for key, value in given.items() if value}
    if found or details:
        status["details"] = found
    status["code"] = code
    return status


def success(*, name: str, group: str, kind: str, uid: str) -> Object:
    """Build the `Status` that answers a finished deletion."""
    given = {"name": name, "group": group, "kind": kind, "uid": uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in given.items() if value},
    }


def qualified(group: str, resource: str) -> str:
    """Join a resource (or kind) and its group the way messages name them."""
    return f"{resource}.{group}" if group else resource


def not_found(group: str, resource: str, name: str) -> ApiError:
    """Say that an object does not exist (404)."""
    message = f'{qualified(group, resource)} "{name}" not found'
    return ApiError(failure(404, "NotFound", message, name=name, group=group, kind=resource))


def already_exists(group: str, resource: str, name: str) -> ApiError:
    """Say that an object of this name exists (409)."""
    message = f'{qualified(group, resource)} "{name}" already exists'
    return ApiError(failure(409, "AlreadyExists", message, name=name, group=group, kind=resource))


def conflict(group: str, resource: str, name: str, why: str = "") -> ApiError:
    """Say that the object is not in the state the client assumed (409)."""
    why = why or (
        "the object has been modified; please apply your changes to the latest version and try"
        " again"
    )
    message = f'Operation cannot be fulfilled on {qualified(group, resource)} "{name}": {why}'
    return ApiError(failure(409, "Conflict", message, name=name, group=group, kind=resource))


def bad_request(message: str) -> ApiError:
    """Say that the request cannot be understood (400)."""
    return ApiError(failure(400, "BadRequest", message))


def forbidden(group: str, resource: str, name: str, why: str) -> ApiError:
    """Say that the request is understood and refused (403)."""
    subject = qualified(group, resource)
    named = f' "{name}"' if name else ""
    message = f"{subject}{named} is forbidden: {why}"
    return ApiError(failure(403, "Forbidden", message, name=name, group=group, kind=resource))


def unauthorized() -> ApiError:
    """Say that the client could not be identified (401)."""
    return ApiError(failure(401, "Unauthorized", "Unauthorized"))


def method_not_allowed() -> ApiError:
    """Say that the resource has no such verb (405)."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(failure(405, "MethodNotAllowed", message, details=True))


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    """Say which body formats the endpoint reads (415)."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return ApiError(failure(415, "UnsupportedMediaType", message))


def not_acceptable(offered: Sequence[str]) -> ApiError:
    """Say which formats the endpoint writes (406)."""
    message = "only the following media types are accepted: " + ", ".join(offered)
    return ApiError(failure(406, "NotAcceptable", message))


def too_large(limit: int) -> ApiError:
    """Say that the body is over the limit (413); `limit` is in bytes."""
    message = f"Request entity too large: limit is {limit}"
    return ApiError(failure(413, "RequestEntityTooLarge", message))


def invalid_option(kind: str, problem: FieldError) -> ApiError:
    """Say which option of a request is wrong (422); `kind` is that of the options."""
    return ApiError(invalid_status("meta.k8s.io", kind, "", [problem]))


def expired(message: str) -> ApiError:
    """Say that the history asked for has been compacted (410)."""
    return ApiError(failure(410, "Expired", message))


def timeout(message: str) -> ApiError:
    """Say that the request took longer than its time limit (504)."""
    return ApiError(failure(504, "Timeout", message, details=True))


def internal(message: str) -> ApiError:
    """Say that the server itself failed (500)."""
    cause = {"message": message}
    text = f"Internal error occurred: {message}"
    return ApiError(failure(500, "InternalError", text, causes=[cause]))


def plain_internal(message: str) -> ApiError:
    """Answer 500 with the bare text, as errors do that no layer gave a reason to."""
    return ApiError(failure(500, "", message))


def rejected_patch() -> ApiError:
    """Say that a JSON patch does not apply (422)."""
    message = "the server rejected our request due to an error in our request"
    return ApiError(failure(422, "Invalid", message, details=True))
