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

    Raises ValueError for a failed test, for other operations, and for a path that does not exist.
    """
    found: Any = target
    for operation in operations:
        path = [
            step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]
        ]
        match operation["op"]:
            case "add":
                found = _added(found, path, operation["value"])
            case "test":
                if _at(found, path) != operation["value"]:
                    raise ValueError(f"test of {operation['path']} failed")
            case other:
                raise ValueError(f"unknown operation {other}")
    return found  # type: ignore[no-any-return]  # an object stays one


def _at(value: Any, path: list[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value at a path; raises ValueError where there is none."""
    try:
        for step in path:
            value = value[int(step) if isinstance(value, list) else step]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"path /{'/'.join(path)} does not exist") from error
    return value


def _added(target: Any, path: list[str], value: object) -> Any:  # noqa: ANN401 - any JSON value
    """Return a copy of the target with the value at a path, inserted where the path ends in a list.

    Raises ValueError for a path whose parent does not exist.
    """
    if not path:
        return value
    *above, last = path
    parent = _at(target, above)
    if isinstance(parent, list):
        index = len(parent) if last == "-" else int(last)
        changed: object = [*parent[:index], value, *parent[index:]]
    elif isinstance(parent, dict):
        changed = {**parent, last: value}
    else:
        raise ValueError(f"path /{'/'.join(path)} does not exist")  # noqa: TRY004 - it is about the path
    return _replaced(target, above, changed)


def _replaced(target: Any, path: list[str], value: object) -> Any:  # noqa: ANN401 - any JSON value
    """Return a copy of the target with another value at a path, which exists."""
    if not path:
        return value
    step, *rest = path
    if isinstance(target, list):
        index = int(step)
        return [*target[:index], _replaced(target[index], rest, value), *target[index + 1 :]]
    return {**target, step: _replaced(target[step], rest, value)}
