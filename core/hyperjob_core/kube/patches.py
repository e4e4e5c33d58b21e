"""Merge patches (RFC 7396) and the JSON patches (RFC 6902) of HyperJob's components. Pure."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
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
    """Return an object after a JSON patch that tests values and adds fields to objects.

    Raises ValueError for a failed test, for other operations, and for a path that does not exist.
    """
    found = deepcopy(target)
    for operation in operations:
        path, value = operation["path"], operation["value"]
        *above, last = (step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:])
        parent: Any = found
        try:
            for step in above:
                parent = parent[int(step) if isinstance(parent, list) else step]
            match operation["op"]:
                case "add" if isinstance(parent, dict):
                    parent[last] = value
                case "test" if parent[last] == value:
                    pass
                case "test":
                    raise ValueError(f"test of {path} failed")
                case other:
                    raise ValueError(f"cannot {other} at {path}")
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(f"path {path} does not exist") from error
    return found
