"""The pods of stopped sub-jobs: they hold the share of their queue until they have ended.

No API object shows them once the vcjob is gone. The leader keeps them as text in an annotation of
its Lease, and the next leader counts them on.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from hyperjob_core.api.duration import later, micro_time
from hyperjob_core.api.wire import decoded, timestamp
from hyperjob_engine.resources import Resources, total

PodsLeft: TypeAlias = Callable[[str, str], int | None]
"""Returns the pods of a vcjob, as namespace/name, that a cluster still has; None if unknown."""
_RECHECK: Final = timedelta(seconds=5)
_FIELDS: Final = 7
_SINGLE_BYTES: Final = 64 * 1024
_SUM_BYTES: Final = 64 * 1024
"""All annotations of an object have at most 256 KiB."""


@dataclass(frozen=True, slots=True)
class EndingPods:
    """A stopped sub-job, whose pods may hold its share until the end of their grace period.

    `key` is its HyperJob. `seen`: its cluster has shown pods of it since it was stopped. The sum
    of several sub-jobs has no key, name and cluster.
    """

    until: datetime
    queue: str
    demand: Resources
    key: str
    name: str
    cluster: str
    seen: bool = False

    @property
    def job(self) -> str:
        """Return the vcjob as `namespace/name`."""
        return f"{self.key.partition('/')[0]}/{self.name}"


def still_ending(pods: EndingPods, left: int | None, *, now: datetime) -> EndingPods | None:
    """Return the pods as they count from now on; None if they have ended.

    Where the number of pods that are left is not known, they end with their grace period.
    """
    if left or ((left is None or not pods.seen) and now < pods.until):
        until = max(pods.until, later(now, _RECHECK)) if left else pods.until
        return replace(pods, until=until, seen=pods.seen or bool(left))
    return None


def to_text(ending: Iterable[EndingPods]) -> str:
    """Return pods as text of at most 128 KiB.

    Where there are too many, those that end first become one sum for each queue, which ends with
    the last of them: they come in the order of their end, the last first, and a sum keeps the end
    of its first.
    """
    singles: list[str] = []
    sums: dict[str, EndingPods] = {}
    size = 0
    for pods in sorted(ending, key=lambda each: each.until, reverse=True):
        text = _text(pods)
        if size + len(text) < _SINGLE_BYTES:
            size += len(text) + 1
            singles.append(text)
        else:
            known = sums.get(pods.queue)
            demand = total((known.demand, pods.demand)) if known is not None else pods.demand
            until = known.until if known is not None else pods.until
            sums[pods.queue] = EndingPods(until, pods.queue, demand, "", "", "")
    size = 0
    for text in map(_text, sums.values()):
        size += len(text) + 1
        if size >= _SUM_BYTES:
            break
        singles.append(text)
    return f"[{','.join(singles)}]"


def from_text(text: str) -> list[EndingPods]:
    """Return the pods of a text; an entry with another form is left out."""
    try:
        entries = decoded(text)
    except ValueError:
        return []
    found = (_pods(entry) for entry in entries) if isinstance(entries, list) else ()
    return [pods for pods in found if pods is not None]


def _text(pods: EndingPods) -> str:
    until = micro_time(pods.until)
    entry = (until, pods.queue, pods.demand, pods.key, pods.name, pods.cluster, pods.seen)
    return json.dumps(entry, separators=(",", ":"))


def _pods(entry: object) -> EndingPods | None:
    if not isinstance(entry, list) or len(entry) != _FIELDS:
        return None
    until, queue, demand, key, name, cluster, seen = entry
    moment = timestamp(until) if isinstance(until, str) else None
    if moment is None or not _are_texts((queue, key, name, cluster)) or not _is_demand(demand):
        return None
    return EndingPods(moment, queue, demand, key, name, cluster, seen is True)


def _are_texts(values: Sequence[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_demand(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(amount, int) and amount >= 0 for amount in value.values()
    )
