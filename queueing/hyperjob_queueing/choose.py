"""The choice among the alternatives of a HyperJob, from when each could start and how long it runs.

The order of preference decides, unless all have a remaining time: then the earliest expected end.
Among the sizes of an alternative it is the largest with room. Without any it is the smallest, which
starts first: others make way only for that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias, TypeVar

from hyperjob_core.api.duration import later
from hyperjob_engine.model.line import Chosen
from hyperjob_queueing.state import QueueState, pending_of
from hyperjob_queueing.workload import Entry, Pending, QueuedHyperJob

_T = TypeVar("_T")
Trial: TypeAlias = tuple[QueuedHyperJob, Pending]
"""A HyperJob with one choice, and how it waits with this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One choice of alternatives: `starts` is now if it has `room`, and None if nothing says it.

    `possible`: it has room at least after the end of all HyperJobs. `remaining` is the running time
    that is left.
    """

    room: bool
    possible: bool
    starts: datetime | None
    remaining: timedelta | None


def best(options: Sequence[Option]) -> tuple[int, Chosen]:
    """Return which option to take, and why; of equal ones the earlier, of impossible the first."""
    able = [place for place, each in enumerate(options) if each.possible]
    ends: list[tuple[datetime, int]] = []
    for place in able:
        starts, remaining = options[place].starts, options[place].remaining
        if remaining is None:
            ends.clear()
            break
        if starts is not None:
            ends.append((later(starts, remaining), place))
    if ends and len(able) > 1:
        return min(ends)[1], Chosen.EARLIEST_END
    with_room = [place for place in able if options[place].room]
    if with_room:
        return with_room[0], Chosen.FIRST_WITH_ROOM
    return next(iter(able), 0), Chosen.FIRST


def trials_of(state: QueueState, entry: Entry) -> list[Trial]:
    """Return a HyperJob with each of its alternatives or sizes, and how it waits with these.

    Sub-jobs with a grant keep theirs. It may be larger than it would like while no other waits.
    """
    lines = map(state.lines.line, state.lines.queues())
    alone = not state.index.resting and sum(map(len, lines)) <= 1
    granted, found = {name: entry.holding[name][0].request for name in entry.granted}, []
    for each in entry.unit.variants:
        asked = {part.name: part.request for part in each.parts}
        keeps = all(asked.get(name) == request for name, request in granted.items())
        unit = replace(each, variants=entry.unit.variants)
        if keeps and (alone or not each.beyond) and (trial := pending_of(state, entry, unit)):
            found.append((unit, trial))
    return found


def largest(
    sizes: Sequence[_T], has_room: Callable[[_T], bool], least: int = 1
) -> tuple[int, Chosen]:
    """Return which of the sizes to take, of which the largest is the first, and why.

    With a quorum a size has several mixes of alternatives: the last `least` are of the smallest.
    """
    smallest = len(sizes) - least
    found = next((at for at, each in enumerate(sizes) if has_room(each)), None)
    return (smallest, Chosen.SMALLEST) if found is None else (found, Chosen.LARGEST)


def smallest_of(trials: Sequence[Trial]) -> int:
    """Return how many of the last trials are of the smallest size."""
    number = len(trials[-1][0].parts)
    return sum(len(unit.parts) == number for unit, _ in trials)
