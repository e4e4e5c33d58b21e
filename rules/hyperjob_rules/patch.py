"""JSON patches (RFC 6902): the operations that turn one JSON document into another. Pure."""

from typing import Any, Final, Literal, NotRequired, TypedDict

_ABSENT: Final = object()


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
    ops: list[JsonPatchOp] = []
    if before is not after:
        _diff(before, after, "", ops)
    return ops


def same(left: object, right: object) -> bool:
    """Return whether two JSON values are equal as JSON: 1, 1.0 and true are three values."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def _diff(before: object, after: object, path: str, ops: list[JsonPatchOp]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        _diff_dict(before, after, path, ops)
    elif isinstance(before, list) and isinstance(after, list):
        _diff_list(before, after, path, ops)
    elif not same(before, after):
        ops.append({"op": "replace", "path": path, "value": after})


def _diff_dict(
    before: dict[str, Any], after: dict[str, Any], path: str, ops: list[JsonPatchOp]
) -> None:
    """Append the operations of one object: removals first, in order of names, then the others."""
    first, added = len(ops), 0
    for key, value in after.items():
        old = before.get(key, _ABSENT)
        if old is value:  # unchanged parts are the same object, which most are
            continue
        at = f"{path}/{key if key.isalnum() else escape(key)}"  # nearly all fields of an API are
        if old is _ABSENT:
            added += 1
            ops.append({"op": "add", "path": at, "value": value})
        elif type(old) is dict and type(value) is dict:
            _diff_dict(old, value, at, ops)
        else:
            _diff(old, value, at, ops)
    if len(before) > len(after) - added:
        gone = sorted(before.keys() - after.keys())
        ops[first:first] = [{"op": "remove", "path": f"{path}/{escape(key)}"} for key in gone]


def _diff_list(before: list[Any], after: list[Any], path: str, ops: list[JsonPatchOp]) -> None:
    """Append operations for changed items; insert or remove only between the common ends."""
    if len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            if old is not new:
                _diff(old, new, f"{path}/{index}", ops)
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
        _diff(before[index], after[index], f"{path}/{index}", ops)
    # From the end, so that the indexes before it stay valid.
    removed, added = range(old_end - 1, both - 1, -1), range(both, new_end)
    ops.extend({"op": "remove", "path": f"{path}/{index}"} for index in removed)
    ops.extend({"op": "add", "path": f"{path}/{index}", "value": after[index]} for index in added)
