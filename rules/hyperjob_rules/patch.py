"""JSON patches (RFC 6902) for what the webhook adds to an object. Pure."""

from collections.abc import Iterator
from typing import Any, Final, Literal, NotRequired, TypedDict

_ABSENT: Final = object()


class JsonPatchOp(TypedDict):
    """One operation, in the form that goes on the wire."""

    op: Literal["add", "remove", "replace"]
    path: str
    value: NotRequired[Any]


def pointer(*segments: str | int) -> str:
    """Join path segments to an RFC 6901 pointer; label keys hold slashes."""
    return "".join(f"/{str(each).replace('~', '~0').replace('/', '~1')}" for each in segments)


def additions(before: object, after: object, path: str = "") -> Iterator[JsonPatchOp]:
    """Yield the operations that turn `before` into `after`, which shares all unchanged parts.

    They add fields and replace values: `after` has all fields and items of `before`.
    """
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in after.items():
            old, at = before.get(key, _ABSENT), path + pointer(key)
            if old is _ABSENT:
                yield {"op": "add", "path": at, "value": value}
            else:
                yield from additions(old, value, at)
    elif isinstance(before, list) and isinstance(after, list):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from additions(old, new, f"{path}/{index}")
    else:
        yield {"op": "replace", "path": path, "value": after}
