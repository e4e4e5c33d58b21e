"""Which sub-jobs a HyperJob gives up first, to go on with the others, where another one waits.

Pure. Those on the clusters come first where the other may run. If a sub-job of the other is larger,
most of all those where most becomes free if this HyperJob leaves: it needs the room of several in
one cluster. Of equal ones the sub-jobs go that lose the least, as `spare` has them.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from hyperjob_engine.model.subjobs import Choice, Step
from hyperjob_engine.placement.room import Room
from hyperjob_engine.queueing.workload import NONE, Entry, Pending
from hyperjob_engine.resources import measure_of

Steps: TypeAlias = Callable[[Entry], Sequence[Step]]


class Leaving:
    """The steps down of those that make way for a HyperJob, by where it may run."""

    def __init__(self, waiting: Pending, room: Room) -> None:
        self._kinds = list({each.kind: each for each in waiting.requests}.values())
        self._measure = measure_of(waiting.shape.needs.floor)
        self._room = room
        self._known: dict[str, Sequence[Step]] = {}

    def steps(self, entry: Entry) -> Sequence[Step]:
        """Return the steps of a HyperJob to smaller sizes, each of as many sub-jobs as in `spare`.

        A split keeps its order: a step of it frees a part of a sub-job.
        """
        unit = entry.unit
        if unit.key not in self._known:
            frees = {name: freed for _, step in unit.spare for name, freed in step.items()}
            whole = frees and not any(frees.values()) and frees.keys() <= entry.holding.keys()
            self._known[unit.key] = self._sorted(entry, list(frees)) if whole else unit.spare
        return self._known[unit.key]

    def names(self, entry: Entry, size: Choice) -> frozenset[str]:
        """Return the sub-jobs that a HyperJob gives up with a size; none if it stops as a whole."""
        gone: set[str] = set()
        for each, frees in self.steps(entry) if size else ():
            gone |= {name for name, freed in frees.items() if freed is None}
            if each == size:
                return frozenset(gone)
        return NONE

    def _sorted(self, entry: Entry, first: Sequence[str]) -> Sequence[Step]:
        groups = {entry.holding[name][0].request.group for name in first}
        held = {n: each for n, each in entry.holding.items() if each[0].request.group in groups}
        own, left = dict.fromkeys([*first, *reversed(held)]), dict[str, int]()
        sizes = {
            name: part.request.demand.get(self._measure, 0) for name, (part, _) in held.items()
        }
        for name in own:
            cluster = held[name][1]
            free = self._room.free.get(cluster, {}).get(self._measure, 0)
            left[cluster] = left.get(cluster, free) + sizes[name]
        able = {name: any(kind.allows(name) for kind in self._kinds) for name in left}
        larger = max(each.demand.get(self._measure, 0) for each in self._kinds) > max(
            sizes.values()
        )
        ranks = {name: (not able[name], -left[name] if larger else 0) for name in left}
        order = iter(sorted(own, key=lambda name: ranks[held[name][1]]))
        return [(size, dict.fromkeys(islice(order, len(step)))) for size, step in entry.unit.spare]


def given_up(
    entries: Mapping[str, Entry],
    victims: Mapping[str, Choice],
    waiting: Pending | None,
    room: Room,
) -> dict[str, frozenset[str]]:
    """Return the sub-jobs that each HyperJob gives up, by the size that it takes."""
    if waiting is None:
        return {}
    order = Leaving(waiting, room)
    return {key: order.names(entries[key], size) for key, size in victims.items()}
