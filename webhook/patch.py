"""RFC 6902 patches: the smallest edit from one JSON document to another.

Only computes; it never applies a patch, and never changes either document.
"""

from collections.abc import Iterator
from typing import Any, Literal, NotRequired, TypedDict


class JsonPatchOp(TypedDict):
    """One operation, in the form that goes on the wire."""

    op: Literal["add", "remove", "replace"]
    path: str
    value: NotRequired[Any]


def pointer(*segments: str | int) -> str:
    """Join path segments to an RFC 6901 pointer."""
    return "".join(f"/{escape(str(segment))}" for segment in segments)


def escape(segment: str) -> str:
    """Escape one pointer segment; label keys hold slashes."""
    return segment.replace("~", "~0").replace("/", "~1")


def diff(before: object, after: object) -> list[JsonPatchOp]:
    """Return the operations that turn `before` into `after`, in the order to apply them."""
    return list(_diff(before, after, ""))


def same(left: object, right: object) -> bool:
    """Tell whether two JSON values are equal as JSON: 1, 1.0 and true are three values."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def _diff(before: object, after: object, path: str) -> Iterator[JsonPatchOp]:
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _diff_dict(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _diff_list(before, after, path)
    elif not same(before, after):
        yield {"op": "replace", "path": path, "value": after}


def _diff_dict(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[JsonPatchOp]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": f"{path}/{escape(key)}"}
    for key, value in after.items():
        if key in before:
            yield from _diff(before[key], value, f"{path}/{escape(key)}")
        else:
            yield {"op": "add", "path": f"{path}/{escape(key)}", "value": value}


def _diff_list(before: list[Any], after: list[Any], path: str) -> Iterator[JsonPatchOp]:
    """Edit items where they stand; insert or remove only between the common ends."""
    if len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _diff(old, new, f"{path}/{index}")
        return
    shorter = min(len(before), len(after))
    head = 0
    while head < shorter and same(before[head], after[head]):
        head += 1
    tail = 0
    while tail < shorter - head and same(before[-1 - tail], after[-1 - tail]):
        tail += 1
    old_end, new_end = len(before) - tail, len(after) - tail
    both = min(old_end, new_end)
    for index in range(head, both):
        yield from _diff(before[index], after[index], f"{path}/{index}")
    # From the end, so that the indexes before it stay valid.
    for index in range(old_end - 1, both - 1, -1):
        yield {"op": "remove", "path": f"{path}/{index}"}
    for index in range(both, new_end):
        yield {"op": "add", "path": f"{path}/{index}", "value": after[index]}
