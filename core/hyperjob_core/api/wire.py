"""Accessors for untyped objects: each returns its type for any argument.

Objects of other authors may be malformed: a missing field, or a value of another type, reads as
absent and never raises.
"""

from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Final, TypeVar

import orjson

from hyperjob_core.api.duration import LATEST
from hyperjob_core.api.meta import Object

E = TypeVar("E", bound=StrEnum)

_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)


def decoded(text: bytes | str) -> object:
    """Return the value of a JSON text of another author.

    Raises ValueError for any other text and for more than 1,024 levels of lists and objects, for
    which the decoder of the standard library raises RecursionError.
    """
    return orjson.loads(text)  # noqa: TID251 - here alone


def mapping(value: object) -> Object:
    """Return value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Object]:
    """Return the objects in a list, without its other values."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def string(value: object) -> str:
    """Return value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def strings(value: object) -> tuple[str, ...]:
    """Return the non-empty strings in a list."""
    if not isinstance(value, list):
        return ()
    return tuple(item for item in value if isinstance(item, str) and item)


def string_map(value: object) -> dict[str, str]:
    """Return the string entries of an object, as labels and annotations have them."""
    return {str(key): item for key, item in mapping(value).items() if isinstance(item, str)}


def integer(value: object) -> int | None:
    """Return value if it is an integer (and no boolean)."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def count(value: object) -> int:
    """Return value if it is a non-negative integer, else 0."""
    number = integer(value)
    return number if number is not None and number > 0 else 0


def one_of(kind: type[E], value: object) -> E | None:
    """Return the member of an enumeration with a value; None if it has none."""
    return _members(kind).get(value) if isinstance(value, str) else None


@cache
def _members(kind: type[E]) -> dict[str, E]:
    return {str(each): each for each in kind}


def natural(text: str) -> int | None:
    """Return the number in a text of 1 to 18 decimal digits; None for any other text."""
    return int(text) if len(text) <= 18 and text.isascii() and text.isdigit() else None


def at(value: object, *path: str) -> object:
    """Return the value at a path of object keys; None if a key is missing."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def condition(status: Object, kind: str) -> Object:
    """Return the condition of a type; an empty object if there is none."""
    found = (each for each in objects(status.get("conditions")) if each.get("type") == kind)
    return next(found, {})


def is_true(found: object, kind: str) -> bool:
    """Return whether the condition of a type is True in the status of an object."""
    return condition(mapping(at(found, "status")), kind).get("status") == "True"


def timestamp(value: object) -> datetime | None:
    """Parse an RFC 3339 time as Kubernetes prints it; None for any other value.

    None, too, for a time before 1970 and after LATEST: other time zones have no text for some.
    """
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    moment = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
    return moment if _EARLIEST <= moment <= LATEST else None


def rfc3339(moment: datetime) -> str:
    """Return a time as metav1.Time prints it: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
