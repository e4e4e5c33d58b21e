"""The differences between two specs, field by field.

Absent, null and empty are the same, and so are amounts of the same size, as they are for
Kubernetes.
"""

from collections.abc import Iterator
from typing import Final

import orjson

from hyperjob.api.quantity import Quantity

Steps = tuple[str | int, ...]

_WRITTEN_DEPTH: Final = 5
"""Down to a task of a replicatedJob: beyond it, a document is written once more for each level."""
_AMOUNTS: Final = frozenset({"limits", "requests", "overhead"})


def changes(old: object, new: object, at: Steps = ()) -> Iterator[Steps]:
    """Yield the fields that differ, each as deep as the difference goes."""
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
    """Return whether two documents are the same bytes as JSON, which 1, 1.0 and true are not.

    Most of a change is no change, and comparing it value by value takes longest.
    """
    try:
        return orjson.dumps(old) == orjson.dumps(new)
    except orjson.JSONEncodeError:
        return False


def is_empty(value: object) -> bool:
    """Return whether a value says nothing."""
    return value is None or value == {} or value == [] or value == ""


def _same(old: object, new: object, at: Steps) -> bool:
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
