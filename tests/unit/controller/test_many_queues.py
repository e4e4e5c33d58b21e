"""Thousands of Queues, in any form: what they cost, and that others wait no longer for them.

Costs are counted in function calls, which no machine changes.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.kube.resources import QUEUES
from hyperjob_engine.resources import parse_resources
from hyperjob_queueing.queues import ESTIMATE, Queue, Tree
from hyperjob_queueing.state import Settings, new_state, set_queues
from hyperjob_queueing.usage import QueueUsage
from tests.support.calls import calls
from tests.unit.controller.wholeworld import World, scenario_of, submission
from tests.unit.engine.builders import GPU
from tests.unit.queueing.queueworld import LAG, queue, unit, world

FEW, MANY = 375, 1500
MOST = 4.4  # times the calls, for four times the Queues
LEVELS = 16
TOTAL = parse_resources({GPU: "256"})


def flat(number: int) -> list[Queue]:
    return [queue(f"q{each:04}") for each in range(number)]


def chain(number: int, *, below: str = "root") -> list[Queue]:
    """Return Queues each of which is the parent of the next one."""
    parents = [below, *(f"q{each:04}" for each in range(number))]
    return [queue(f"q{each:04}", parent=parents[each]) for each in range(number)]


def reversed_chain(number: int) -> list[Queue]:
    """Return a chain whose last Queue has the first name."""
    parents = [*(f"q{each:04}" for each in range(1, number)), "root"]
    return [queue(f"q{each:04}", parent=parents[each]) for each in range(number)]


def branches(number: int) -> list[Queue]:
    """Return chains that are as deep as a Queue with jobs may be."""
    return [
        queue(f"q{each:04}", parent="root" if each % LEVELS == 0 else f"q{each - 1:04}")
        for each in range(number)
    ]


def cycle(number: int) -> list[Queue]:
    return [queue(f"q{each:04}", parent=f"q{(each + 1) % number:04}") for each in range(number)]


def parentless(number: int) -> list[Queue]:
    return chain(number, below="missing")


def test_resources_that_no_hyperjob_asks_for_cost_nothing() -> None:
    def shares(resources: int) -> int:
        total = {f"r{number}.example/x": 10**9 for number in range(resources)}
        tree = Tree(flat(FEW), {**TOTAL, **total})
        return sum(tree.entitled(GPU).values())

    assert calls(lambda: shares(5000)) <= 1.1 * calls(lambda: shares(5)) + 5000
    assert shares(5000) == shares(5)


def test_guarantees_cost_a_sub_job_of_a_gang_as_much_as_its_queue_has_parents() -> None:
    def next_sub_job(queues: int) -> tuple[int, int]:
        tree = Tree([queue(f"q{number}", guarantee=1) for number in range(queues)], TOTAL)
        usage, demand = QueueUsage(tree), parse_resources({GPU: "1"})
        usage.kept_for_others(demand)

        def add() -> int:
            usage.add("q0", demand)
            return usage.kept_for_others(demand)[GPU]

        return add() // 10**9, calls(add)

    assert [next_sub_job(number)[0] for number in (20, 2000)] == [19, 1999]
    assert next_sub_job(2000)[1] == next_sub_job(20)[1]


@given(
    parents=st.lists(st.integers(-1, 11), min_size=12, max_size=12),
    guarantees=st.lists(st.integers(0, 9), min_size=12, max_size=12),
    used=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 5)), max_size=20),
)
def test_unused_guarantees_are_those_of_a_usage_that_was_never_asked_before(
    parents: list[int], guarantees: list[int], used: list[tuple[int, int]]
) -> None:
    tree = Tree(
        [
            queue(f"q{n}", guarantee=guarantees[n], parent=f"q{up}" if -1 < up < n else "root")
            for n, up in enumerate(parents)
        ],
        TOTAL,
    )
    asked = QueueUsage(tree)
    asked.kept_for_others([GPU])
    for number, (where, amount) in enumerate(used):
        asked.add(f"q{where}", parse_resources({GPU: str(amount)}), 1 if number % 3 else -1)
    assert asked.copy().kept_for_others([GPU]) == asked.kept_for_others([GPU])


FORMS = (flat, chain, reversed_chain, branches, cycle, parentless)


@pytest.mark.parametrize("form", FORMS)
def test_four_times_the_queues_take_four_times_the_calls(
    form: Callable[[int], list[Queue]],
) -> None:
    def work(queues: list[Queue]) -> int:
        return calls(lambda: set_queues(new_state(Settings(lag=LAG)), queues))

    assert work(form(MANY)) <= MOST * work(form(FEW))


@pytest.mark.parametrize("form", FORMS)
def test_a_hyperjob_starts_beside_thirteen_hundred_queues_of_any_form(
    form: Callable[[int], list[Queue]],
) -> None:
    made = world(
        [unit("honest", 8), unit("other", 8, queue="q1299")], queue("default"), *form(1300)
    )
    made.decide()
    assert "honest" in made.running()
    assert "other" in made.running() or "queue q1299" in made.message("other")


def test_a_queue_takes_jobs_down_to_the_sixteenth_level_and_not_below() -> None:
    jobs = [unit(f"at-{level}", 1, queue=f"leaf-{level}") for level in (1, LEVELS, LEVELS + 1, 40)]
    leaves = [
        queue(f"leaf-{level}", parent=f"q{level - 2:04}" if level > 1 else "root")
        for level in (1, LEVELS, LEVELS + 1, 40)
    ]
    made = world(jobs, *chain(60), *leaves)
    made.decide()
    assert made.running() == {"at-1", "at-16"}
    for level in (LEVELS + 1, 40):
        text = f"queue leaf-{level} is more than 16 levels below queue root"
        assert text in made.message(f"at-{level}")
    told = "has child queues; jobs go to one of"
    made.submit(unit("inner", 1, queue="q0014"))
    made.decide()
    assert f"queue q0014 {told}" in made.message("inner")


def test_queues_that_are_too_deep_take_no_share_from_others() -> None:
    others = [queue("a", weight=2), queue("b", parent="a"), *flat(3)]
    deep = [queue(f"d{each}", parent=f"d{each - 1}" if each else "q0000") for each in range(50)]
    shallow = Tree([*others, *deep[: LEVELS - 1]], TOTAL).entitled(GPU)
    found = Tree([*others, *deep], TOTAL).entitled(GPU)
    assert {name: found[name] for name in shallow} == shallow


def test_what_runs_in_a_queue_that_became_too_deep_counts_above_it_and_runs_on() -> None:
    made = world([unit("runs", 8, queue="leaf")], queue("leaf"), queue("default"), a=32)
    made.decide()
    made.set_queues(*chain(30), queue("leaf", parent="q0029"), queue("default"))
    made.submit(unit("next", 8, queue="leaf", age=1))
    made.decide()
    assert made.running() == {"runs"}
    assert (made.used("q0000"), made.used("q0015"), made.used("leaf")) == (8, 8, 8)
    assert made.used("q0016") == 0


def arrivals(number: int) -> World:
    """Return a world in which so many Queues arrive within ten seconds, and play it."""
    made = World(
        scenario_of([submission("honest", arrival=8.0, duration=60.0)], nodes=2), workers=4
    )

    async def create() -> None:
        for each in range(number):
            await asyncio.sleep(10.0 / number)
            made.plane.create(
                QUEUES,
                {
                    "metadata": {"name": f"q{each:04}"},
                    "spec": {"weight": 1, "capability": {GPU: "8"}},
                    "status": {"state": "Open"},
                },
            )

    made.play(create if number else None, hours=0.1)
    return made


def test_queues_that_arrive_while_a_hyperjob_waits_cost_each_as_much_as_the_first() -> None:
    def work(number: int) -> tuple[int, float]:
        found: list[World] = []
        made = calls(lambda: found.append(arrivals(number)))
        waited = found[0].simulation.history.lives["default/honest"].waited
        assert waited is not None
        return made, waited

    (alone, wait), (few, _), (many, beside) = work(0), work(FEW), work(MANY)
    assert many - alone <= MOST * (few - alone)
    assert beside <= wait + 1.0, "in virtual time, which passes while nothing is to be done"


def test_a_changed_annotation_of_a_queue_counts_from_the_next_round_on() -> None:
    made = World(scenario_of([submission("runs", arrival=1.0, duration=60.0)], nodes=2))
    seen: list[timedelta | None] = []

    async def change() -> None:
        for annotations in ({}, {ESTIMATE: "30m"}, {ESTIMATE: None}):
            await asyncio.sleep(5.0)
            made.plane.change(QUEUES, "default", {"metadata": {"annotations": annotations}})
            await asyncio.sleep(5.0)
            tree = made.manager.memory.admission.state.usage.tree
            seen.append(tree.queues["default"].estimate)

    made.play(change, hours=0.1)
    assert seen == [None, timedelta(minutes=30), None]
