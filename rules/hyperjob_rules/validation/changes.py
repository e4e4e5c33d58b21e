"""The differences between two specs, field by field.

Absent, null and empty are the same, and so are amounts of the same size, as they are for
Kubernetes.
"""

from collections.abc import Iterator
from typing import Final

import orjson

from hyperjob_core.api.quantity import Quantity

Steps = tuple[str | int, ...]

_WRITTEN_DEPTH: Final = 5
"""The depth of a task of a replicatedJob; below it the encoding costs more than it saves."""
_AMOUNTS: Final = frozenset({"limits", "requests", "overhead"})


def changes(old: object, new: object, at: Steps = ()) -> Iterator[Steps]:
    """Yield the paths of the fields that differ, each as deep as possible."""
    if old is new or (is_empty(old) and is_empty(new)):
        return
    if len(at) < _WRITTEN_DEPTH and _is_written_alike(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            yield from changes(old.get(key), new.get(key), (*at, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from changes(before, after, (*at, index))
    elif not _same(old, new, at):
        yield at


def _is_written_alike(old: object, new: object) -> bool:
    """Return whether two documents have the same JSON encoding, unlike 1, 1.0 and true.

    Most parts of a changed object are equal, and a comparison value by value takes longer.
    """
    try:
        return orjson.dumps(old) == orjson.dumps(new)
    except orjson.JSONEncodeError:
        return False


def is_empty(value: object) -> bool:
    """Return whether a value is null or empty."""
    return value is None or value == {} or value == [] or value == ""


def _same(old: object, new: object, at: Steps) -> bool:
    """Return whether two values are equal; below limits, requests and overhead, as quantities."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if old == new:
        return True
    if len(at) < 2 or at[-2] not in _AMOUNTS:
        return False
    try:
        return Quantity.parse(str(old)) == Quantity.parse(str(new))
    except ValueError:
        return False
