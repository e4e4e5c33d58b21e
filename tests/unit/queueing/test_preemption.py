"""A more urgent HyperJob stops less urgent ones of its queue: whole, and those that lose least."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.quantity import NANO
from hyperjob_queueing.evict import loss_of
from hyperjob_queueing.queues import PREEMPTION, NoConfirmation, Queue, parse_queue
from hyperjob_queueing.state import Settings, admit, new_state, update
from hyperjob_queueing.verdict import name_for
from hyperjob_queueing.workload import Entry, QueuedHyperJob
from tests.unit.engine.builders import NOW
from tests.unit.queueing.queueworld import LAG, QueueWorld, after, queue, ran, unit, world

URGENT = 1000


def test_both_sides_say_so() -> None:
    made = ran([unit("low", 32)])
    made.submit(unit("urgent", 16, priority=URGENT, age=5))
    assert made.round() == ["ns/low"]
    verdict = made.verdict("low")
    assert (verdict.reclaimed_for, verdict.preempted) == ("ns/urgent", "has a higher priority")
    assert made.message("urgent").endswith("; preempts ns/low")


def test_only_the_head_of_a_line_preempts_what_makes_way_for_it() -> None:
    made = ran([unit("low", 32)])
    made.submit(*(unit(name, 32, priority=URGENT, age=age) for age, name in enumerate(("a", "b"))))
    made.round()
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
    made.round()
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
    made.round()
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
    made = ran([unit(f"a{n}", g, priority=p, age=n) for n, (g, p) in enumerate(first)])
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


def saved(name: str, gpus: int, *, seconds_ago: int | None, priority: int = 0) -> QueuedHyperJob:
    """A HyperJob whose work is kept until so many seconds before the urgent one comes."""
    made = unit(name, gpus, priority=priority)
    if seconds_ago is None:
        return made
    return replace(made, kept=micro_time(NOW + 2 * LAG - timedelta(seconds=seconds_ago)))


def stopped_for(gpus: int, *running: QueuedHyperJob) -> list[str]:
    """Return who makes way for a more urgent HyperJob of so many GPUs."""
    urgent = unit("urgent", gpus, priority=URGENT, age=50)
    made = after(running, [urgent], a=sum(_gpus(each) for each in running))
    return sorted(made.reclaimed)


def _gpus(each: QueuedHyperJob) -> int:
    return sum(part.request.demand["nvidia.com/gpu"] // 10**9 for part in each.parts)


def test_the_less_urgent_makes_way_whatever_it_loses() -> None:
    low = saved("low", 16, seconds_ago=3000)
    high = saved("high", 16, seconds_ago=10, priority=5)
    assert stopped_for(16, low, high) == ["low"]


def test_one_that_says_nothing_loses_all_since_it_began() -> None:
    silent, telling = saved("silent", 16, seconds_ago=None), saved("telling", 16, seconds_ago=10)
    assert stopped_for(16, silent, telling) == ["telling"]


def test_silence_about_checkpoints_spares_a_hyperjob_no_more_than_an_hour_of_work_would() -> None:
    silent = replace(saved("silent", 8, seconds_ago=None), created="2020-01-01T00:00:00Z")
    saving = saved("saving", 16, seconds_ago=2000)
    assert stopped_for(8, silent, saving) == ["silent"]


def test_those_that_lose_the_same_go_in_the_order_of_their_start_then_of_their_names() -> None:
    first, second = saved("a", 16, seconds_ago=60), saved("b", 16, seconds_ago=60)
    assert stopped_for(16, first, second) == ["b"]
    assert stopped_for(16, second, first) == ["b"]


@pytest.mark.parametrize(
    ("running", "stopped"),
    [
        ({"a8": 0, "b8": 0, "c16": 600, "d32": 0}, ["c16"]),
        ({"a8": 0, "b8": 0, "d32": 0}, ["a8", "b8"]),
        ({"a8": 0, "c24": 600, "d32": 0}, ["c24"]),
        ({"a8": 0, "b8": 0, "c16": 1900}, ["a8", "b8"]),
        ({"c16": 2000, "d24": 1900}, ["c16"]),
    ],
    ids=["the widest", "none wider than the demand", "the narrowest wider one", "little", "least"],
)
def test_of_those_that_lose_little_few_stop(running: dict[str, int], stopped: list[str]) -> None:
    holders = [saved(name, int(name[1:]), seconds_ago=age) for name, age in running.items()]
    assert stopped_for(16, *holders) == stopped


@given(ages=st.lists(st.integers(0, 3600), min_size=2, max_size=6))
def test_of_equal_ones_it_is_always_one_that_loses_least(ages: list[int]) -> None:
    running = [saved(f"r{index}", 8, seconds_ago=age) for index, age in enumerate(ages)]
    (chosen,) = stopped_for(8, *running)
    assert ages[int(chosen[1:])] == min(ages)


@pytest.mark.parametrize(
    ("seconds", "gpus", "expected"),
    [(0, 8, 0), (60, 8, 480), (60, 1, 60), (-5, 8, 0), (3600, 8, 28_800), (9000, 8, 28_800)],
)
def test_a_loss_is_seconds_times_accelerators(seconds: int, gpus: int, expected: int) -> None:
    made = unit("one", gpus)
    entry = Entry(replace(made, kept=micro_time(NOW - timedelta(seconds=seconds))))
    entry.holding = {part.name: (part, "a") for part in made.parts}
    assert loss_of(entry, now=NOW) == expected * NANO


def test_a_new_checkpoint_is_learnt_and_wakes_nobody() -> None:
    made: QueueWorld = world([saved("one", 8, seconds_ago=100)])
    newer = replace(made.units["ns/one"], kept=micro_time(NOW))
    assert not update(made.state, "ns/one", newer, now=NOW)
    assert made.state.entries["ns/one"].unit.kept == micro_time(NOW)


def test_a_hyperjob_that_is_learnt_again_keeps_the_sub_jobs_that_hold_its_share() -> None:
    made: QueueWorld = world([saved("one", 8, seconds_ago=100)])
    entry = made.state.entries["ns/one"]
    admit(made.state, "ns/one", {part.name: "a" for part in entry.unit.parts}, now=NOW)
    same = replace(entry.unit, parts=tuple(replace(part) for part in entry.unit.parts))
    assert not update(made.state, "ns/one", same, now=NOW)
    held = {id(part) for part, _ in entry.holding.values()}
    assert held == {id(part) for part in entry.unit.parts}
