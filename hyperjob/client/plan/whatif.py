"""Predict the effect of changed queues or clusters on the HyperJobs of a control plane. Pure.

The module plays the rounds of the queue engine in the present world and in the changed world, and
compares. A sub-job on a drained cluster loses its place and waits in its queue for another
cluster; the HyperJob's other sub-jobs stay where they are.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hyperjob.client.expected import ExpectedStart
from hyperjob.client.plan.queueing import played, unit_in
from hyperjob.client.plan.world import Snapshot
from hyperjob_core.api.meta import Object
from hyperjob_engine.queueing.evict import evicted_for
from hyperjob_engine.queueing.state import QueueState, admitted
from hyperjob_engine.queueing.verdict import verdict_of
from hyperjob_engine.reasons.waiting import wait_text


class HyperJobChange(enum.StrEnum):
    """The effect of the changes on a HyperJob."""

    STARTS = "Starts"
    NO_LONGER_STARTS = "NoLongerStarts"
    MOVES = "Moves"
    STOPS = "Stops"
    GIVES_BACK = "GivesBack"
    WAITS = "Waits"
    NONE = "None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """A HyperJob: the clusters of its sub-jobs before and after, and the reason why it waits after.

    `change` is Starts for a HyperJob that starts only in the changed world, and None for a
    HyperJob that starts in both.
    """

    namespace: str
    name: str
    queue: str
    change: HyperJobChange
    now: Mapping[str, str]
    then: Mapping[str, str]
    message: str = ""
    expected: ExpectedStart | None = None


def what_if(world: Snapshot, changed: Snapshot) -> list[Prospect]:
    """Return the HyperJobs that run or wait, in the order of their names."""
    before = played({key: unit_in(world, world.observe(raw)) for key, raw in _all(world)}, world)
    units = {key: unit_in(changed, changed.observe(raw)) for key, raw in _all(changed)}
    after = played(units, changed)
    found = []
    for key, raw in sorted(world.hyperjobs.items()):
        unit = unit_in(world, world.observe(raw))
        if unit is None or not unit.parts:
            continue
        now = {name: where for name, where in unit.clusters.items() if name in unit.held}
        found.append(_prospect(key, now, before, after))
    return found


def _all(world: Snapshot) -> Iterator[tuple[str, Object]]:
    yield from {**world.hyperjobs, **world.earlier}.items()


def _prospect(key: str, now: Mapping[str, str], before: QueueState, after: QueueState) -> Prospect:
    namespace, _, name = key.partition("/")
    entry = after.entries[key]
    then = {child: where for child, (_, where) in entry.holding.items()}
    verdict = verdict_of(after, key)
    start = verdict.wait.start if verdict.wait is not None else None
    message = wait_text(verdict.wait)
    if verdict.reclaimed_for:
        message = f"releases its accelerators for {verdict.reclaimed_for}"
    return Prospect(
        namespace=namespace,
        name=name,
        queue=entry.unit.parts[0].queue,
        change=_change(key, now, then, before, after),
        now=now,
        then=then,
        message=message,
        expected=None if start is None or start.overdue else ExpectedStart(start.at, start.after),
    )


def _change(
    key: str,
    now: Mapping[str, str],
    then: Mapping[str, str],
    before: QueueState,
    after: QueueState,
) -> HyperJobChange:
    anyway = admitted(before, key)
    if any(child not in then for child in now):
        return HyperJobChange.STOPS
    if any(then[child] != where for child, where in now.items() if where):
        return HyperJobChange.MOVES
    if evicted_for(after, key) and not evicted_for(before, key):
        return HyperJobChange.GIVES_BACK
    if then.keys() - anyway:
        return HyperJobChange.STARTS
    if anyway - then.keys():
        return HyperJobChange.NO_LONGER_STARTS
    return HyperJobChange.WAITS if after.entries[key].waiting is not None else HyperJobChange.NONE
