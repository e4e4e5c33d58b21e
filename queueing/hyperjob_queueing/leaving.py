"""The steps by which a HyperJob makes way: it gives up sub-jobs, at last it stops as a whole.

Pure. Those on the clusters come first where the other may run. If a sub-job of the other is larger,
most of all those where most becomes free if this HyperJob leaves: it needs the room of several in
one cluster. Of equal ones the sub-jobs go that lose the least, as `spare` has them.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from hyperjob_engine.model import subjobs
from hyperjob_engine.model.subjobs import Choice
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import Resources, measure_of, subtract
from hyperjob_queueing.workload import NONE, Entry, Pending


class Step(NamedTuple):
    """A step of a HyperJob, which goes on with `size`, or stops if that is empty.

    `place` counts its steps from 0. `frees` is what the step frees of each sub-job, all of it if
    None, and `leaving` are the sub-jobs that are gone after it.
    """

    entry: Entry
    place: int
    size: Choice
    frees: Mapping[str, Resources | None]
    leaving: frozenset[str] = NONE

    @property
    def is_surplus(self) -> bool:
        """Return whether the HyperJob still has all that it would like after this step."""
        return self.place < self.entry.unit.surplus


def whole(entry: Entry) -> Step:
    """Return the step of a HyperJob that stops with all that it has."""
    return Step(entry, len(entry.unit.spare), (), dict.fromkeys(entry.holding))


def steps_of(entry: Entry, spare: Sequence[subjobs.Step]) -> list[Step]:
    """Return the steps of a HyperJob to smaller sizes, and the one with which it stops then."""
    found, gone = list[Step](), NONE
    left: dict[str, Resources | None] = dict.fromkeys(entry.holding)
    for place, (size, frees) in enumerate(spare):
        gone |= {name for name, freed in frees.items() if freed is None}
        found.append(Step(entry, place, size, frees, gone))
        for name, freed in frees.items():
            if freed is None or name not in left:
                left.pop(name, None)
                continue
            rest = left[name]
            all_of_it = entry.holding[name][0].request.demand if rest is None else rest
            left[name] = subtract(all_of_it, freed)
    return [*found, Step(entry, len(spare), (), left)]


def steps_for(entry: Entry, waiting: Pending, room: Room) -> list[Step]:
    """Return the steps of a HyperJob in the order that helps another, `waiting` for this room.

    Each is of as many sub-jobs as in `spare`. A split keeps its order: a step of it frees a part of
    a sub-job.
    """
    spare = entry.unit.spare
    frees = {name: freed for _, step in spare for name, freed in step.items()}
    if frees and not any(frees.values()) and frees.keys() <= entry.holding.keys():
        order = iter(_in_order(entry, list(frees), waiting, room))
        spare = tuple((size, dict.fromkeys(islice(order, len(step)))) for size, step in spare)
    return steps_of(entry, spare)


def _in_order(entry: Entry, first: Sequence[str], waiting: Pending, room: Room) -> list[str]:
    """Return the sub-jobs that a HyperJob can give up, the first to leave first."""
    kinds = list({each.kind: each for each in waiting.requests}.values())
    measure = measure_of(waiting.shape.needs.floor)
    groups = {entry.holding[name][0].request.group for name in first}
    held = {n: each for n, each in entry.holding.items() if each[0].request.group in groups}
    own, left = dict.fromkeys([*first, *reversed(held)]), dict[str, int]()
    sizes = {name: part.request.demand.get(measure, 0) for name, (part, _) in held.items()}
    for name in own:
        cluster = held[name][1]
        free = room.free.get(cluster, {}).get(measure, 0)
        left[cluster] = left.get(cluster, free) + sizes[name]
    able = {name: any(kind.allows(name) for kind in kinds) for name in left}
    larger = max(each.demand.get(measure, 0) for each in kinds) > max(sizes.values())
    ranks = {name: (not able[name], -left[name] if larger else 0) for name in left}
    return sorted(own, key=lambda name: ranks[held[name][1]])
