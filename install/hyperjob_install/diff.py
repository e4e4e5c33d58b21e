"""The fields that differ between two objects, by path. Pure."""

from collections.abc import Iterator
from typing import Final

from hyperjob_core.api.meta import Object

# The API server sets these fields itself; no apply requests them.
_SERVERS: Final = frozenset(
    {"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"}
)
_LONGEST: Final = 12


def changed_fields(before: Object, after: Object) -> tuple[str, ...]:
    """Return the paths that differ, without the status and the API server's own metadata."""
    return tuple(_differences(_asked(before), _asked(after), ""))


def shorten(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return a long list of paths shortened to their parents."""
    if len(paths) <= _LONGEST:
        return paths
    return tuple(dict.fromkeys(".".join(path.split(".")[:2]) for path in paths))[:_LONGEST]


def _asked(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _SERVERS}
    kept = {key: value for key, value in obj.items() if key != "status"}
    return {**kept, "metadata": metadata}


def _differences(before: object, after: object, at: str) -> Iterator[str]:
    """Yield the paths at which two JSON values differ, each as deep as possible."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            where = f"{at}.{key}" if at else key
            if key in before and key in after:
                yield from _differences(before[key], after[key], where)
            else:
                yield where
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, f"{at}[{index}]")
    elif before != after:
        yield at
