"""Values of CEL: their types, equality, order and conversions.

Pure. `overload()` is the error for arguments that a function has no meaning for.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from hyperjob.api.duration import nanoseconds
from hyperjob.api.field import go_quote
from hyperjob.api.quantity import Quantity
from hyperjob_sandbox.apiserver.cel.syntax import UInt
from hyperjob_sandbox.apiserver.jsonvalue import Json, go_float
from hyperjob_sandbox.apiserver.schema.goregexp import compile_go


class CelError(Exception):
    """An expression that does not compile, or that failed for the values it was given."""


class Type(str):
    """The type of a value, as `type()` gives it."""

    __slots__ = ()


class Optional:
    """A value that may be missing."""

    __slots__ = ("present", "value")

    def __init__(self, value: Json = None, *, present: bool = True) -> None:
        self.value = value
        self.present = present


NONE: Final = Optional(present=False)


def overload() -> CelError:
    """Return the error of a function that has no meaning for its arguments."""
    return CelError("no such overload")


def type_name(value: Json) -> str:
    """Name a value's CEL type."""
    for kind, name in _TYPE_NAMES:
        if isinstance(value, kind):
            return name
    return "null_type"


_TYPE_NAMES: Final[tuple[tuple[type, str], ...]] = (
    (Type, "type"),
    (bool, "bool"),
    (UInt, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (list, "list"),
    (dict, "map"),
    (datetime, "google.protobuf.Timestamp"),
    (timedelta, "google.protobuf.Duration"),
    (Optional, "optional_type"),
    (Quantity, "kubernetes.Quantity"),
)


def equal(a: Json, b: Json) -> bool:
    """Compare as CEL does: numbers by value, everything else by type and value."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(item, b[key]) for key, item in a.items())
    if isinstance(a, Optional) and isinstance(b, Optional):
        return a.present == b.present and (not a.present or equal(a.value, b.value))
    return type(a) is type(b) and bool(a == b)


def less(a: Json, b: Json) -> bool:
    """Order two values; raise CelError where they have no order."""
    if isinstance(a, bool) and isinstance(b, bool):
        return a < b
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    if isinstance(a, bool) or isinstance(b, bool):
        raise overload()
    if numbers or (type(a) is type(b) and isinstance(a, str | bytes | datetime | timedelta)):
        return bool(a < b)
    raise overload()


def timestamp(text: Json) -> datetime:
    """Read an RFC 3339 time."""
    if isinstance(text, datetime):
        return text
    if isinstance(text, int) and not isinstance(text, bool):
        return datetime.fromtimestamp(text, UTC)
    if not isinstance(text, str):
        raise overload()
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise CelError(f"parsing time {go_quote(text)}: cannot parse") from error
    if found.tzinfo is None:
        raise CelError(f"parsing time {go_quote(text)}: cannot parse")
    return found


def duration(text: Json) -> timedelta:
    """Read a duration as Go writes it, such as `1h30m`."""
    if isinstance(text, timedelta):
        return text
    if not isinstance(text, str):
        raise overload()
    try:
        return timedelta(microseconds=nanoseconds(text) / 1000)
    except ValueError:
        raise CelError(f"time: invalid duration {go_quote(text)}") from None


def to_int(value: Json) -> int:
    """Convert to a signed integer."""
    if isinstance(value, bool):
        raise overload()
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?[0-9]+", value):
            raise CelError(f"strconv.ParseInt: parsing {go_quote(value)}: invalid syntax")
        value = int(value)
    if not isinstance(value, int | float):
        raise overload()
    return bounded(int(value))


def bounded(value: int) -> int:
    """Return a signed integer that fits; raise CelError for one that does not."""
    if not -(2**63) <= value < 2**63:
        raise CelError("integer overflow")
    return value


def to_uint(value: Json) -> UInt:
    """Convert to an unsigned integer."""
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise overload()
    if not 0 <= int(value) < 2**64:
        raise CelError("unsigned integer overflow")
    return UInt(int(value))


def to_double(value: Json) -> float:
    """Convert to a floating-point number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise overload()
    try:
        return float(value)
    except ValueError as error:
        raise CelError(
            f"strconv.ParseFloat: parsing {go_quote(str(value))}: invalid syntax"
        ) from error


def to_string(value: Json) -> str:
    """Convert to text."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return go_float(value)
        case bytes():
            return value.decode()
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return f"{go_float(value.total_seconds())}s"
        case int() | str():
            return str(value)
    raise overload()


def to_bool(value: Json) -> bool:
    """Convert to true or false."""
    if isinstance(value, bool):
        return value
    if value in ("true", "True", "TRUE", "t", "1"):
        return True
    if value in ("false", "False", "FALSE", "f", "0"):
        return False
    raise CelError("type conversion error")


def size(value: Json) -> int:
    """Return the length of a text, list or map."""
    if not isinstance(value, str | bytes | list | dict):
        raise overload()
    return len(value)


def texts(*values: Json) -> None:
    """Raise CelError unless all values are texts."""
    if not all(isinstance(value, str) for value in values):
        raise overload()


def pattern(text: Json) -> re.Pattern[str]:
    """Compile a regular expression."""
    texts(text)
    try:
        return compile_go(text)
    except ValueError as error:
        raise CelError(str(error)) from error


def contains(items: Json, wanted: Json) -> bool:
    """Tell whether a list has an item, or a map a key."""
    if isinstance(items, list):
        return any(equal(item, wanted) for item in items)
    if isinstance(items, dict):
        return isinstance(wanted, str | int) and not isinstance(wanted, bool) and wanted in items
    raise overload()
