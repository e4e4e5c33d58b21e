"""API errors as Kubernetes prints them: each is a `Status` with its HTTP code."""

from collections.abc import Sequence

from hyperjob_core.api.field import FieldError, invalid_status
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import Json


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


def failure(code: int, reason: str, message: str, **details: Json) -> Object:
    """Build a failed `Status`, keys in the order the real server writes them.

    Of `details` (name, group, kind, uid, causes, retryAfterSeconds) empty ones are left out.
    """
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    status["message"] = message
    if reason:
        status["reason"] = reason
    if details:
        status["details"] = {key: value for key, value in details.items() if value}
    return {**status, "code": code}


def failed(code: int, reason: str, message: str, **details: Json) -> ApiError:
    """Return the error of a failed `Status`."""
    return ApiError(failure(code, reason, message, **details))


def _named(
    code: int, reason: str, where: tuple[str, str, str], before: str, after: str
) -> ApiError:
    """Return an error about an object, or about a resource: `where` is group, resource and name."""
    group, resource, name = where
    subject = f"{resource}.{group}" if group else resource
    message = before + subject + (f' "{name}"' if name else "") + after
    return failed(code, reason, message, name=name, group=group, kind=resource)


def not_found(group: str, resource: str, name: str) -> ApiError:
    """Say that an object does not exist (404)."""
    return _named(404, "NotFound", (group, resource, name), "", " not found")


def already_exists(group: str, resource: str, name: str) -> ApiError:
    """Say that an object of this name exists (409)."""
    return _named(409, "AlreadyExists", (group, resource, name), "", " already exists")


def conflict(group: str, resource: str, name: str, why: str = "") -> ApiError:
    """Say that the object is not in the state the client assumed (409)."""
    why = why or (
        "the object has been modified; please apply your changes to the latest version and try"
        " again"
    )
    before = "Operation cannot be fulfilled on "
    return _named(409, "Conflict", (group, resource, name), before, f": {why}")


def forbidden(group: str, resource: str, name: str, why: str) -> ApiError:
    """Say that the request is understood and refused (403)."""
    return _named(403, "Forbidden", (group, resource, name), "", f" is forbidden: {why}")


def bad_request(message: str) -> ApiError:
    """Say that the request cannot be understood (400)."""
    return failed(400, "BadRequest", message)


def method_not_allowed() -> ApiError:
    """Say that the resource has no such verb (405)."""
    message = "the server does not allow this method on the requested resource"
    return failed(405, "MethodNotAllowed", message, kind="")


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    """Say which body formats the endpoint reads (415)."""
    message = "the body of the request was in an unknown format - accepted media types include: "
    return failed(415, "UnsupportedMediaType", message + ", ".join(accepted))


def rejected_patch() -> ApiError:
    """Say that a JSON patch does not apply (422)."""
    message = "the server rejected our request due to an error in our request"
    return failed(422, "Invalid", message, kind="")


def invalid_option(kind: str, problem: FieldError) -> ApiError:
    """Say which option of a request is wrong (422); `kind` is that of the options."""
    return ApiError(invalid_status("meta.k8s.io", kind, "", [problem]))


def internal(message: str) -> ApiError:
    """Say that the server itself failed (500)."""
    text = f"Internal error occurred: {message}"
    return failed(500, "InternalError", text, causes=[{"message": message}])
