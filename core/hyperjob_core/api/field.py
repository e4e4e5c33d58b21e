"""Field paths and field errors, with the wording of Kubernetes' `field.Error`.

An error prints a value only if Kubernetes prints it in this kind of error.
"""

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Self

from hyperjob_core.api.meta import Object

Step = str | int | tuple[str]
"""A field by its name, an item of a list by its index, or an entry of a map by its key."""


class Path(tuple[Step, "Path | None"]):
    """The place of a field in an object, printed as `spec.replicatedJobs[0].name`.

    A path is a pair of its last step and the path above, and its text is made only for an error: a
    valid object has hundreds of fields and no error. ROOT is the path of the whole object.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # any iterable makes a tuple; a method here would double the time of a path

        def __new__(cls, pair: "tuple[Step, Path | None]") -> Self:
            """Make a path of its last step and the path above."""

    @property
    def parent(self) -> "Path | None":
        """The path of the object that has the field; None at the root."""
        return self[1]

    def child(self, name: str, *more: str) -> "Path":
        """Return the path of a named field below this one."""
        path = Path((name, self))
        return path.below(more) if more else path

    def index(self, position: int) -> "Path":  # type: ignore[override]
        """Return the path of a list item."""
        return Path((position, self))

    def key(self, key: str) -> "Path":
        """Return the path of a map entry, the key unquoted as Kubernetes prints it."""
        return Path(((key,), self))

    def below(self, steps: Iterable[str | int]) -> "Path":
        """Return the path of a field or item further down."""
        path = self
        for step in steps:
            path = Path((step, path))
        return path

    def __str__(self) -> str:
        parts: list[str] = []
        path: Path | None = self
        while path is not None:
            step, path = path
            if isinstance(step, str):
                parts.append(f".{step}" if step else "")
            else:
                parts.append(f"[{step}]" if isinstance(step, int) else f"[{step[0]}]")
        return "".join(reversed(parts)).removeprefix(".") or "<nil>"


ROOT: Final = Path(("", None))
SPEC: Final = ROOT.child("spec")
METADATA: Final = ROOT.child("metadata")


class ErrorType(StrEnum):
    """Why a field is refused; the values are the `reason` of a Status cause."""

    NOT_FOUND = "FieldValueNotFound"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    TYPE_INVALID = "FieldValueTypeInvalid"


class _Omit(Enum):
    """The value of an error that does not print its bad value."""

    OMIT = "omit"


OMIT: Final = _Omit.OMIT

_TITLES: Final = {
    ErrorType.NOT_FOUND: "Not found",
    ErrorType.REQUIRED: "Required value",
    ErrorType.DUPLICATE: "Duplicate value",
    ErrorType.INVALID: "Invalid value",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.TOO_LONG: "Too long",
    ErrorType.TOO_MANY: "Too many",
    ErrorType.TYPE_INVALID: "Invalid value",
}

_WITHOUT_VALUE: Final = frozenset({ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG})


@dataclass(frozen=True, slots=True)
class FieldError:
    """One refusal of one field."""

    type: ErrorType
    field: str
    bad_value: object = OMIT
    detail: str = ""
    remedy: str = dataclasses.field(default="", compare=False)
    """The remedy, if one is known; not a part of the text that Kubernetes defines."""

    @property
    def body(self) -> str:
        """The text without the path, as in `causes[].message`."""
        text = _TITLES[self.type]
        if self.type not in _WITHOUT_VALUE and self.bad_value is not OMIT:
            text += f": {_show(self.bad_value)}"
        return f"{text}: {self.detail}" if self.detail else text

    @property
    def advice(self) -> str:
        """The text without the path, with the remedy."""
        return f"{self.body} (remedy: {self.remedy})" if self.remedy else self.body

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def required(path: Path, detail: str = "") -> FieldError:
    """Return the error of a missing value."""
    return FieldError(ErrorType.REQUIRED, str(path), "", detail)


def invalid(path: Path, value: object, detail: str) -> FieldError:
    """Return the error of a malformed value, or of one out of bounds."""
    return FieldError(ErrorType.INVALID, str(path), value, detail)


def type_invalid(path: Path, value: object, detail: str) -> FieldError:
    """Return the error of a value with another type than its schema."""
    return FieldError(ErrorType.TYPE_INVALID, str(path), value, detail)


def not_supported(path: Path, value: object, supported: Iterable[str]) -> FieldError:
    """Return the error of a value outside a closed set, which is listed in this order."""
    values = ", ".join(go_quote(item) for item in supported)
    detail = f"supported values: {values}" if values else ""
    return FieldError(ErrorType.NOT_SUPPORTED, str(path), value, detail)


def duplicate(path: Path, value: object) -> FieldError:
    """Return the error of a repeated value that must be unique."""
    return FieldError(ErrorType.DUPLICATE, str(path), value)


def forbidden(path: Path, detail: str) -> FieldError:
    """Return the error of a well-formed value that is not allowed here."""
    return FieldError(ErrorType.FORBIDDEN, str(path), "", detail)


def too_long(path: Path, value: object, max_length: int) -> FieldError:
    """Return the error of a value with more than `max_length` bytes, without the value."""
    del value
    detail = f"may not be more than {max_length} {_plural(max_length, 'byte')}"
    return FieldError(ErrorType.TOO_LONG, str(path), OMIT, detail)


def too_many(path: Path, actual: int, max_quantity: int) -> FieldError:
    """Return the error of a list with more than `max_quantity` items."""
    detail = f"must have at most {max_quantity} {_plural(max_quantity, 'item')}"
    return FieldError(ErrorType.TOO_MANY, str(path), actual, detail)


def not_found(path: Path, value: object) -> FieldError:
    """Return the error of a reference to a missing object."""
    return FieldError(ErrorType.NOT_FOUND, str(path), value)


def aggregate(errors: Iterable[FieldError]) -> str:
    """Return errors and their remedies as one text: several as `[a, b]`, without repeats."""
    texts = list(dict.fromkeys(f"{error.field}: {error.advice}" for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def invalid_status(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> Object:
    """Return the 422 Status with which Kubernetes refuses an object."""
    qualified = f"{kind}.{group}" if group else kind
    message = f"{qualified} {go_quote(name)} is invalid"
    if errors:
        message += f": {aggregate(errors)}"
    details: Object = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    if errors:
        details["causes"] = [
            {"reason": error.type.value, "message": error.advice, "field": error.field}
            for error in errors
        ]
    return make_status(422, message, details=details)


_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def make_status(
    code: int, message: str, *, reason: str = "", details: Object | None = None
) -> Object:
    """Return a failure Status for a response without one."""
    phrases = {int(status): status.phrase for status in HTTPStatus}
    message = message or reason or phrases.get(code, "Unknown")
    reason = reason or _REASONS.get(code, "InternalError" if code >= 500 else "Unknown")
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **({} if details is None else {"details": details}),
        "code": code,
    }


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


def _show(value: object) -> str:
    """Return a value as text: strings quoted, numbers and booleans bare, others as compact JSON."""
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, float):
        return _go_float(value)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=str)
    return text.translate(_JSON_ESCAPES)


# Go's JSON encoder escapes these, for use of its output in HTML and JavaScript.
_JSON_ESCAPES: Final = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}

_GO_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    '"': '\\"',
    "\\": "\\\\",
}


def go_quote(text: str) -> str:
    """Return a string quoted as by Go's `%q`."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_go_escape(char) for char in text) + '"'


def _go_escape(char: str) -> str:
    """Return a character as Go's `%q` prints it inside a string."""
    if char in _GO_ESCAPES:
        return _GO_ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _go_float(value: float) -> str:
    """Return a float as printed by Go's `%v`: digits up to 1e21, the shortest form above."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value)) if value or math.copysign(1, value) > 0 else "-0"
    return repr(value)
