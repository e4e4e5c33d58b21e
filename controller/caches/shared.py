"""Equal parts of the objects that informers hold, held once: sub-jobs of a template differ little.

Sharing is safe since readers of a cache never change what they read.
"""

from collections.abc import Callable
from sys import intern
from typing import Any, Final, TypeVar

import orjson

from hyperjob.api.meta import Object

T = TypeVar("T")

_KNOWN: Final = 8192
_WORDS: Final = (
    *("name", "phase", "reason", "message"),
    *("cluster", "replicatedJob", "lastTransitionTime"),
)


class Shared:
    """The parts seen lately, in two generations, so that parts of no object are forgotten."""

    def __init__(self, known: int = _KNOWN) -> None:
        """`known` is how many parts a generation has."""
        self._size = known
        self._young: dict[int, Any] = {}
        self._old: dict[int, Any] = {}

    def part(self, value: T) -> T:
        """Return a JSON value, or an equal value that was seen before; its parts likewise."""
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
        """Return a transform of informers that shares the parts of what `slim` leaves."""

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
