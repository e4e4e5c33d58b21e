"""The annotation that spreads a TrainJob over clusters: JSON, on the TrainJob or on its runtime.

`{"clusters": 2, "split": [3, 1], "queue": "research", "quorum": 1}`; each key is optional.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.trainer import SPREAD
from hyperjob_core.api.wire import at, decoded, integer, mapping, string, string_map


class SpreadError(ValueError):
    """The annotation cannot be used; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The clusters of a TrainJob: how many, which, and the queue of its sub-jobs."""

    parts: int = 1
    """Number of sub-jobs, and the greatest number of clusters."""
    names: tuple[str, ...] = ()
    """The only allowed clusters; empty: all."""
    split: tuple[int, ...] = ()
    """Nodes of each sub-job; empty: equal shares, the first ones greater by one."""
    queue: str = ""
    quorum: int | None = None

    def sizes(self, nodes: int) -> tuple[int, ...]:
        """Return the nodes of each sub-job; raises SpreadError."""
        if self.split and (len(self.split) != self.parts or sum(self.split) != nodes):
            raise SpreadError(
                f"split must have {self.parts} numbers with the sum {nodes}, the number of nodes"
            )
        if self.split:
            return self.split
        if self.parts > nodes:
            raise SpreadError(f"clusters must not be more than the {nodes} nodes of the TrainJob")
        share, more = divmod(nodes, self.parts)
        return tuple(share + (part < more) for part in range(self.parts))


def spread_of(trainjob: object, runtime: object) -> Spread:
    """Return the annotation's values; those of the TrainJob have precedence over its runtime's.

    Raises SpreadError.
    """
    return _spread({**_values(runtime), **_values(trainjob)})


_KEYS: Final = ("clusters", "split", "queue", "quorum")


def _values(obj: object) -> Mapping[str, object]:
    """Return the keys of an object's annotation; raises SpreadError for an unknown one."""
    text = string_map(at(obj, "metadata", "annotations")).get(SPREAD, "")
    if not text:
        return {}
    try:
        values = decoded(text)
    except ValueError:
        raise SpreadError("must be a JSON object") from None
    if not isinstance(values, dict):
        raise SpreadError("must be a JSON object")
    for key in values:
        if key not in _KEYS:
            raise SpreadError(f"has the unknown key {key[:63]!r}; there are {', '.join(_KEYS)}")
    return mapping(values)


def _spread(values: Mapping[str, object]) -> Spread:
    """Return the spread; raises SpreadError that names the first wrong key.

    `clusters` is the number of sub-jobs, or a list with the cluster of each.
    """
    clusters = values.get("clusters", 1)
    names = tuple(string(each) for each in clusters) if isinstance(clusters, list) else ()
    parts = len(names) if isinstance(clusters, list) else integer(clusters)
    if parts is None or not 1 <= parts <= 100 or not all(names):
        raise SpreadError("clusters must be a number from 1 to 100, or a list of cluster names")
    split = values.get("split", [])
    sizes = tuple(integer(each) or 0 for each in split) if isinstance(split, list) else (0,)
    if any(size < 1 for size in sizes):
        raise SpreadError("split must be a list of positive numbers")
    queue, quorum = values.get("queue", ""), values.get("quorum")
    if not isinstance(queue, str):
        raise SpreadError("queue must be the name of a Queue")
    if quorum is not None and (integer(quorum) is None or not 1 <= (integer(quorum) or 0) <= parts):
        raise SpreadError(f"quorum must be a number from 1 to {parts}, the number of sub-jobs")
    return Spread(parts=parts, names=names, split=sizes, queue=queue, quorum=integer(quorum))
