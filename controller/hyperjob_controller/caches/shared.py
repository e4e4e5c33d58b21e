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
_SHORT: Final = 64
_WORDS: Final = (
    *("name", "phase", "reason", "message"),
    *("cluster", "replicatedJob", "lastTransitionTime"),
)


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
            made = {name: self.part(each) for name, each in value.items()}
        else:
            made = [self.part(each) for each in value]
        self._keep(key, made)
        return made  # type: ignore[no-any-return]

    def _keep(self, key: int, value: object) -> None:
        if len(self._young) >= self._size:
            self._young, self._old = {}, self._young
        self._young[key] = value

    def of(self, slim: Callable[[Object], Object]) -> Callable[[Object], Object]:
        """Return a transform for informers: `slim`, then shared parts."""

        def transform(obj: Object) -> Object:
            obj = slim(obj)
            metadata = obj["metadata"]
            for name in ("apiVersion", "kind"):
                if name in obj:
                    obj[name] = intern(obj[name])
            for name in ("name", "namespace", "uid", "creationTimestamp"):
                if type(metadata.get(name)) is str:
                    metadata[name] = intern(metadata[name])
            for name in ("labels", "annotations", "ownerReferences", "finalizers"):
                if name in metadata:
                    metadata[name] = self.part(metadata[name])
            if "spec" in obj:
                obj["spec"] = self.part(obj["spec"])
            for job in (obj.get("status") or {}).get("jobs") or ():
                for word in _WORDS:
                    if type(job.get(word)) is str:
                        job[word] = intern(job[word])
            return obj

        return transform
