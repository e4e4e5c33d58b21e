"""One copy in memory of equal parts of informer objects: sub-jobs of a template differ little.

This is safe because readers of a cache never change its objects.
"""

from collections.abc import Callable
from sys import intern
from typing import Any, Final, TypeVar

import orjson

from hyperjob_core.api.meta import Object

T = TypeVar("T")

_KNOWN: Final = 8192
_STATUSES: Final = 1024
_SHORT: Final = 64


class Shared:
    """The recently seen parts, in two generations: the older one is dropped at times."""

    def __init__(self, known: int = _KNOWN) -> None:
        """`known` is the number of parts in a generation."""
        self._size = known
        self._young: dict[int, Any] = {}
        self._old: dict[int, Any] = {}

    def part(self, value: T) -> T:
        """Return an equal JSON value that was seen before, else the value itself, part by part."""
        if isinstance(value, str):
            return intern(value) if len(value) <= _SHORT else value  # type: ignore[return-value]
        if not isinstance(value, dict | list):
            return value
        # As bytes, 1, true and 1.0 differ, which are equal in Python.
        key = hash(orjson.dumps(value))
        known = self._young.get(key)
        if known is None and (known := self._old.get(key)) is not None:
            self._keep(key, known)
        if known == value:
            return known  # type: ignore[no-any-return]
        made: Any
        if isinstance(value, dict):
            # A dict that grows by its keys has a smaller table than one of the JSON parser.
            made = {intern(name): self.part(each) for name, each in value.items()}
        else:
            made = [self.part(each) for each in value]
        self._keep(key, made)
        return made  # type: ignore[no-any-return]

    def _keep(self, key: int, value: object) -> None:
        if len(self._young) >= self._size:
            self._young, self._old = {}, self._young
        self._young[key] = value

    def of(self, slim: Callable[[Object], Object]) -> Callable[[Object], Object]:
        """Return a transform for informers: `slim`, then shared parts.

        Statuses have generations of their own, a small one: their parts change often, and would
        keep replaced ones in memory and drop the templates.
        """
        statuses = Shared(_STATUSES)

        def transform(obj: Object) -> Object:
            obj = slim(obj)
            obj["metadata"] = {
                name: each if name == "resourceVersion" else self.part(each)
                for name, each in obj["metadata"].items()
            }
            for name in ("apiVersion", "kind"):
                if name in obj:
                    obj[name] = intern(obj[name])
            if "spec" in obj:
                obj["spec"] = self.part(obj["spec"])
            if "status" in obj:
                obj["status"] = statuses.part(obj["status"])
            return obj

        return transform
