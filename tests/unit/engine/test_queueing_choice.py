"""Which alternatives a round of the queue engine chooses for a HyperJob that holds nothing."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.line import Chosen
from hyperjob_engine.model.request import PlacementRequest
from hyperjob_engine.queueing.choose import Option, best
from hyperjob_engine.queueing.round import schedule
from hyperjob_engine.queueing.state import Settings, new_state, set_queues, update
from hyperjob_engine.queueing.workload import QueuedHyperJob, QueuedSubJob
from tests.unit.engine.builders import NOW, cluster
from tests.unit.engine.queueworld import LAG, queue

HOUR = timedelta(hours=1)


def option(room: bool, starts: int | None, hours: int | None, *, possible: bool = True) -> Option:
    return Option(
        room=room,
        possible=possible,
        starts=None if starts is None else NOW + starts * HOUR,
        remaining=None if hours is None else hours * HOUR,
    )


@pytest.mark.parametrize(
    ("options", "taken", "why"),
    [
        pytest.param(
            [option(False, None, None), option(True, 0, None)],
            1,
            Chosen.FIRST_WITH_ROOM,
            id="the first has no room, the second has",
        ),
        pytest.param(
            [option(True, 0, None), option(True, 0, None)],
            0,
            Chosen.FIRST_WITH_ROOM,
            id="both have room",
        ),
        pytest.param(
            [option(False, None, None, possible=False), option(False, None, None)],
            1,
            Chosen.FIRST,
            id="the first can never run",
        ),
        pytest.param(
            [option(False, None, None), option(False, None, None)],
            0,
            Chosen.FIRST,
            id="none has room",
        ),
        pytest.param(
            [option(False, None, None, possible=False)] * 2,
            0,
            Chosen.FIRST,
            id="none can ever run",
        ),
        pytest.param(
            [option(True, 0, 9), option(False, 2, 3)],
            1,
            Chosen.EARLIEST_END,
            id="a fast one is worth a wait",
        ),
        pytest.param(
            [option(False, 8, 3), option(True, 0, 9)],
            1,
            Chosen.EARLIEST_END,
            id="a fast one is not worth a long wait",
        ),
        pytest.param(
            [option(True, 0, 3), option(True, 0, 3)],
            0,
            Chosen.EARLIEST_END,
            id="equal ends keep the order",
        ),
        pytest.param(
            [option(False, 1, 3), option(True, 0, None)],
            1,
            Chosen.FIRST_WITH_ROOM,
            id="a speed that is not known lets the order decide",
        ),
        pytest.param(
            [option(False, None, 1), option(True, 0, 9)],
            1,
            Chosen.EARLIEST_END,
            id="a start that is not known is no start",
        ),
        pytest.param(
            [option(False, None, 1), option(False, None, 9)],
            0,
            Chosen.FIRST,
            id="no start is known",
        ),
        pytest.param(
            [option(True, 0, 9), option(False, 1, None, possible=False)],
            0,
            Chosen.FIRST_WITH_ROOM,
            id="what can never run needs no speed",
        ),
    ],
)
def test_the_choice_among_options(options: list[Option], taken: int, why: Chosen) -> None:
    assert best(options) == (taken, why)


TYPES = ("a", "b", "c")


def part(name: str, kind: str, number: int) -> QueuedSubJob:
    request = PlacementRequest(name=name, group="t", demand={kind: number * NANO})
    return QueuedSubJob(queue="default", request=request)


def unit(name: str, kind: str, size: int, number: int, hours: int) -> QueuedHyperJob:
    return QueuedHyperJob(
        key=f"ns/{name}",
        created=f"2026-01-02T03:00:0{name}Z",
        minimum=number,
        parts=tuple(part(f"{name}-{each}", kind, size) for each in range(number)),
        estimate=hours * HOUR,
        remaining=hours * HOUR,
    )


def with_options(options: list[tuple[str, int, int, int]], name: str) -> QueuedHyperJob:
    """Make a waiting HyperJob of alternatives (type, size, number of sub-jobs, hours)."""
    variants = tuple(
        replace(unit(name, *each), choice=(("t", str(place)),))
        for place, each in enumerate(options)
    )
    return replace(variants[0], variants=variants if len(variants) > 1 else ())


def starts_at(
    free: dict[str, int], kinds: dict[str, str], ends: list[tuple[datetime, str, int]], want: Any
) -> datetime | None:
    """Try all moments: when do so many sub-jobs of a size have room on clusters of a type?"""
    kind, size, number, _ = want
    for moment in sorted({NOW, *(at for at, _, _ in ends)}):
        left = dict(free)
        for at, where, amount in ends:
            left[where] += amount if at <= moment and at > NOW else 0
        if sum(left[name] // size for name in left if kinds[name] == kind) >= number:
            return moment
    return None


wishes = st.lists(
    st.tuples(
        st.sampled_from(TYPES), st.sampled_from([2, 4, 8]), st.integers(1, 3), st.integers(1, 12)
    ),
    min_size=1,
    max_size=3,
)
held = st.tuples(st.integers(0, 3), st.sampled_from([2, 4, 8]), st.integers(1, 12))


@settings(max_examples=300)
@given(
    sizes=st.lists(
        st.tuples(st.sampled_from(TYPES), st.sampled_from([4, 8, 16])), min_size=4, max_size=4
    ),
    running=st.lists(held, min_size=3, max_size=3),
    waiting=st.lists(wishes, min_size=3, max_size=3),
)
def test_the_choice_is_that_of_all_moments_and_alternatives_tried_one_by_one(
    sizes: list[tuple[str, int]],
    running: list[tuple[int, int, int]],
    waiting: list[list[tuple[str, int, int, int]]],
) -> None:
    kinds = {f"c{place}": kind for place, (kind, _) in enumerate(sizes)}
    whole = {f"c{place}": number for place, (_, number) in enumerate(sizes)}
    free, ends = dict(whole), []
    state = new_state(Settings(lag=LAG))
    set_queues(state, [queue("default")])
    for place, (where, size, hours) in enumerate(running):
        name, job = f"c{where}", str(place)
        if free[name] < size:
            continue
        free[name] -= size
        ends.append((NOW + hours * HOUR, name, size))
        known = replace(unit(job, kinds[name], size, 1, hours), since=rfc3339(NOW))
        names = frozenset(each.name for each in known.parts)
        known = replace(known, held=names, made=names, clusters={f"{job}-0": name})
        update(state, known.key, known, now=NOW)
    for place, options in enumerate(waiting, start=3):
        update(state, f"ns/{place}", with_options(options, str(place)), now=NOW)
    clusters = [
        replace(
            cluster(name, 0),
            free={kinds[name]: free[name] * NANO},
            allocatable={kinds[name]: whole[name] * NANO},
        )
        for name in whole
    ]
    schedule(state, clusters, now=NOW)
    for place, options in enumerate(waiting, start=3):
        found = [starts_at(free, kinds, ends, each) for each in options]
        expected = [
            (at + each[3] * HOUR, number)
            for number, (at, each) in enumerate(zip(found, options, strict=True))
            if at is not None
        ]
        entry = state.entries[f"ns/{place}"]
        taken = min(expected)[1] if expected else 0
        assert entry.unit.parts == unit(str(place), *options[taken]).parts
        starts = bool(expected) and found[taken] == NOW
        assert bool(entry.holding) is starts
        for each, where in entry.holding.values():
            free[where] -= options[taken][1]
            ends.append((NOW + options[taken][3] * HOUR, where, options[taken][1]))
            assert each.request.demand == {kinds[where]: options[taken][1] * NANO}
