"""Reading of untyped objects: every accessor returns the wanted type whatever it is given.

Others' objects may be malformed; a missing or wrong field reads as absent and never raises.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from hyperjob.api.meta import Object


def mapping(value: object) -> Object:
    """Return value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Object]:
    """Return the objects in a list; anything else is skipped."""
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
    """Return a non-negative count; anything else is 0."""
    number = integer(value)
    return number if number is not None and number > 0 else 0


def natural(text: str) -> int | None:
    """Read a number written in decimal digits, at most 18 of them; None for any other text."""
    return int(text) if len(text) <= 18 and text.isascii() and text.isdigit() else None


def at(value: object, *path: str) -> object:
    """Follow object keys; None when any step is missing."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def condition(status: Object, kind: str) -> Object:
    """Find a condition by type; an empty object when it is not there."""
    for item in objects(status.get("conditions")):
        if item.get("type") == kind:
            return item
    return {}


def timestamp(value: object) -> datetime | None:
    """Read an RFC 3339 time as Kubernetes prints it."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def rfc3339(moment: datetime) -> str:
    """Print a time as metav1.Time does: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
