"""A more urgent HyperJob stops less urgent ones of its queue: whole, and only if it then starts."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_queueing.confirm import NoConfirmation
from hyperjob_queueing.queues import PREEMPTION, Queue, parse_queue
from hyperjob_queueing.round import schedule
from hyperjob_queueing.state import Settings, new_state
from hyperjob_queueing.verdict import name_for
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.queueing.queueworld import LAG, QueueWorld, queue, unit, world

URGENT = 1000


def after(
    running: list[QueuedHyperJob], urgent: list[QueuedHyperJob], *queues: Queue, **gpus: int
) -> QueueWorld:
    """Let some run for a while, then submit others."""
    made = world(running, *queues, **gpus)
    made.decide()
    made.now += 2 * LAG
    made.submit(*urgent)
    made.decide()
    return made


def test_the_urgent_one_starts_and_the_other_waits_again() -> None:
    made = after([unit("low", 32)], [unit("urgent", 16, priority=URGENT, age=5)])
    assert made.reclaimed == ["low"]
    made.decide()
    assert made.running() == {"urgent"}
    assert "number" in made.message("low") or "first of 1" in made.message("low")


def test_both_sides_say_so() -> None:
    made = world([unit("low", 32)])
    made.decide()
    made.now += 2 * LAG
    made.submit(unit("urgent", 16, priority=URGENT, age=5))
    assert schedule(made.state, made.clusters(), now=made.now).keys == ["ns/low"]
    verdict = made.verdict("low")
    assert (verdict.reclaimed_for, verdict.preempted) == ("ns/urgent", "has a higher priority")
    assert made.message("urgent").endswith("; preempts ns/low")


def test_only_the_head_of_a_line_preempts_what_makes_way_for_it() -> None:
    made = world([unit("low", 32)])
    made.decide()
    made.now += 2 * LAG
    made.submit(*(unit(name, 32, priority=URGENT, age=age) for age, name in enumerate(("a", "b"))))
    schedule(made.state, made.clusters(), now=made.now)
    assert ["preempts ns/low" in made.message(name) for name in ("a", "b")] == [True, False]


@pytest.mark.parametrize(
    ("names_others", "reader", "name", "shown"),
    [
        (True, "a/one", "b/two", "b/two"),
        (False, "a/one", "a/two", "a/two"),
        (False, "a/one", "b/two", "a HyperJob of another namespace"),
        (False, "a/one", "", ""),
    ],
)
def test_messages_name_hyperjobs_of_other_namespaces_unless_told_not_to(
    names_others: bool, reader: str, name: str, shown: str
) -> None:
    assert name_for(new_state(Settings(lag=LAG, names_others=names_others)), reader, name) == shown


def test_without_names_a_tenant_reads_nothing_of_the_hyperjob_that_preempts_it() -> None:
    made = QueueWorld(
        {"a": 32}, state=new_state(Settings(lag=LAG, names_others=False), NoConfirmation())
    )
    made.set_queues()
    made.submit(unit("low", 32))
    made.decide()
    made.now += 2 * LAG
    made.submit(replace(unit("urgent", 16, priority=URGENT, age=5), key="other/urgent"))
    schedule(made.state, made.clusters(), now=made.now)
    assert made.verdict("low").reclaimed_for == "a HyperJob of another namespace"


@pytest.mark.parametrize(
    ("theirs", "of", "shown"),
    [
        (queue("x"), "other", "kept for a HyperJob of another namespace, first in queue x"),
        (
            queue("y", priority=1),
            "other",
            "kept for a HyperJob of another namespace, first in line",
        ),
        (queue("y", priority=1), "ns", "kept for ns/head, first in queue y"),
        (
            queue("x", dequeueStrategy="fifo"),
            "other",
            "waits behind a HyperJob of another namespace: the queue",
        ),
    ],
    ids=["one queue", "another queue", "another queue, one namespace", "a fifo queue"],
)
def test_without_names_a_tenant_reads_nothing_of_the_head_of_a_line(
    theirs: Queue, of: str, shown: str
) -> None:
    """The head preempts `on` in its own queue, and 8 of 32 GPUs are free meanwhile."""
    made = QueueWorld({"a": 32}, state=new_state(Settings(lag=LAG, names_others=False)))
    made.set_queues(*{"x": queue("x"), theirs.name: theirs}.values())
    made.submit(unit("on", 24, queue=theirs.name))
    made.decide()
    made.now += 2 * LAG
    head = unit("head", 32, queue=theirs.name, priority=URGENT, age=1)
    made.submit(replace(head, key=f"{of}/head"), unit("small", 8, queue="x", age=2))
    schedule(made.state, made.clusters(), now=made.now)
    message = made.message("small")
    assert shown in message
    assert "other/" not in message


NEVER: dict[str, tuple[list[QueuedHyperJob], list[QueuedHyperJob], list[Queue]]] = {
    "an equally urgent one stops nobody": (
        [unit("low", 32, priority=URGENT)],
        [unit("urgent", 16, priority=URGENT, age=5)],
        [],
    ),
    "preemptionPolicy Never stops nobody": (
        [unit("low", 32)],
        [replace(unit("urgent", 16, priority=URGENT, age=5), preempts=False)],
        [],
    ),
    "another queue's HyperJobs are not stopped": (
        [unit("low", 32, queue="x")],
        [unit("urgent", 16, queue="y", priority=URGENT, age=5)],
        [queue("x"), queue("y")],
    ),
    "a queue can switch it off": (
        [unit("low", 32)],
        [unit("urgent", 16, priority=URGENT, age=5)],
        [parse_queue({"metadata": {"name": "default", "annotations": {PREEMPTION: "disabled"}}})],
    ),
    "nobody is stopped where that does not let the urgent one start": (
        [unit("low", 8), unit("high", 24, priority=2 * URGENT)],
        [unit("urgent", 16, priority=URGENT, age=5)],
        [],
    ),
}


@pytest.mark.parametrize("case", NEVER)
def test_what_runs_goes_on_where(case: str) -> None:
    running, urgent, queues = NEVER[case]
    made = after(running, urgent, *queues)
    assert made.reclaimed == []


def test_the_fewest_go_the_least_urgent_first_and_of_those_the_last_that_started() -> None:
    running = [
        replace(unit("old", 8, age=1), since="2026-01-01T01:00:00Z"),
        replace(unit("new", 8, age=0), since="2026-01-01T09:00:00Z"),
        unit("middle", 16, priority=10, age=3),
    ]
    made = after(running, [unit("urgent", 8, priority=URGENT, age=5)])
    assert made.reclaimed == ["new"], "it loses least, though it was created first"


def test_it_works_where_nobody_confirms() -> None:
    made = QueueWorld({"a": 32}, state=new_state(Settings(lag=LAG), NoConfirmation()))
    made.set_queues()
    made.submit(unit("low", 32))
    made.decide()
    made.now += 2 * LAG
    made.submit(unit("urgent", 16, priority=URGENT, age=5))
    made.decide()
    assert made.reclaimed == ["low"]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([4, 8, 16, 24]), st.integers(0, 2)), min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from([4, 8, 16, 24]), st.integers(0, 2)), min_size=1, max_size=4),
)
def test_nobody_is_stopped_but_for_a_more_urgent_one_that_starts_then_and_it_comes_to_rest(
    first: list[tuple[int, int]], late: list[tuple[int, int]]
) -> None:
    made = world([unit(f"a{n}", g, priority=p, age=n) for n, (g, p) in enumerate(first)])
    made.decide()
    made.now += 2 * LAG
    made.submit(*(unit(f"b{n}", g, priority=p, age=50 + n) for n, (g, p) in enumerate(late)))
    for _ in range(24):
        stopped = len(made.reclaimed)
        made.decide()
        gone = made.reclaimed[stopped:]
        if gone:
            known = made.state.eviction
            head = made.units[known.head]
            assert all(made.units[f"ns/{key}"].priority < head.priority for key in gone)
            made.decide()
            assert known.head[3:] in made.running(), "it starts once they have made way"
        assert made.used("default") <= 32
        made.now += LAG
    quiet = len(made.reclaimed)
    for _ in range(6):
        made.decide()
        made.now += timedelta(hours=1)
    assert len(made.reclaimed) == quiet, "it comes to rest"
    waiting = [each for key, each in made.units.items() if key[3:] not in made.running()]
    if not waiting:
        return
    first = min(waiting, key=lambda each: each.order)
    needed = sum(part.request.demand["nvidia.com/gpu"] for part in first.parts) // 10**9
    lower = sum(
        part.request.demand["nvidia.com/gpu"] // 10**9
        for key, other in made.units.items()
        if key[3:] in made.running() and other.priority < first.priority
        for part in other.parts
    )
    assert lower + 32 - made.used("default") < needed, "no priority inversion"
