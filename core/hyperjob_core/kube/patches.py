"""Merge patches (RFC 7396) and the JSON patches (RFC 6902) of HyperJob's components. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from hyperjob_core.api.meta import Object


def merged(target: object, patch: object) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value after a merge patch; the arguments stay unchanged."""
    if not isinstance(patch, dict):
        return patch
    found: Object = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def patched(target: Object, operations: Iterable[Mapping[str, Any]]) -> Object:
    """Return an object after a JSON patch of `add` and `test`.

    Raises ValueError for a failed test and for other operations.
    """
    found: Any = target
    for operation in operations:
        path = [_unescaped(step) for step in operation["path"].split("/")[1:]]
        match operation["op"]:
            case "add":
                found = _added(found, path, operation["value"])
            case "test":
                if _at(found, path) != operation["value"]:
                    raise ValueError(f"test of {operation['path']} failed")
            case other:
                raise ValueError(f"unknown operation {other}")
    return found  # type: ignore[no-any-return]  # an object stays one


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _at(value: Any, path: list[str]) -> Any:  # noqa: ANN401 - any JSON value
    for step in path:
        value = value[int(step)] if isinstance(value, list) else value.get(step)
    return value


def _added(target: Any, path: list[str], value: object) -> Any:  # noqa: ANN401 - any JSON value
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(target, list):
        items = list(target)
        items[int(step)] = _added(items[int(step)], rest, value)
        return items
    found = dict(target)
    found[step] = _added(found.get(step), rest, value) if rest else value
    return found
