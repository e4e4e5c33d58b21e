"""What was lent comes back at once where the borrower's queue allows it, and nowhere else."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.quantity import NANO
from hyperjob_queueing.evict import evicted_for
from hyperjob_queueing.queues import Queue
from hyperjob_queueing.round import schedule
from hyperjob_queueing.state import requeue
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.engine.builders import GPU
from tests.unit.queueing.queueworld import LAG, QueueWorld, after, queue, ran, unit, world

LENDS = queue("x", reclaimable=True)
OWNER = queue("y")


def after_borrowing(
    borrowers: list[QueuedHyperJob], owners: list[QueuedHyperJob], *queues: Queue, **gpus: int
) -> QueueWorld:
    """Let borrowers run for a while, then submit what belongs to others."""
    return after(borrowers, owners, *(queues or (LENDS, OWNER)), **gpus)


def test_a_queue_within_its_share_gets_it_back() -> None:
    made = after_borrowing(
        [unit("lent", 16, queue="x"), unit("own", 16, queue="x", age=-1)],
        [unit("owner", 16, queue="y", age=5)],
    )
    assert made.reclaimed == ["lent"], "the younger one"
    made.decide()
    assert made.running() == {"own", "owner"}
    assert "first of 1 in queue x" in made.message("lent")


def test_a_new_leader_beside_other_workloads_decides_at_once() -> None:
    made = world([unit("lent", 40, queue="x")], LENDS, OWNER, a=64)
    made.foreign["a"] = 24
    made.decide()
    made.submit(unit("owner", 16, queue="y", age=5))
    made.decide()
    assert made.reclaimed == ["lent"]


BORROWED = [unit("lent", 32, queue="x")]


def test_a_head_that_rests_is_not_admitted_though_others_gave_back_for_it() -> None:
    made = after_borrowing(BORROWED, [unit("owner", 16, queue="y", age=5)])
    assert made.reclaimed == ["lent"]
    made.end("ns/lent")
    assert made.round() == ["ns/owner"]
    rest = requeue(made.state, "ns/owner", frozenset({"owner-0"}), now=made.now)
    assert made.decide() == []
    made.now += rest
    assert made.decide() == ["ns/owner"]


def test_a_head_that_rests_before_others_have_made_way_starts_after_its_rest() -> None:
    made = world([unit("gang", 8, 8, priority=1), unit("low", 8)], a=24)
    made.round()
    made.make("ns/low")
    made.now += 2 * LAG
    made.submit(unit("gang", 8, 8, 8, priority=1))
    made.decide()
    assert made.reclaimed == ["low"]
    rest = requeue(made.state, "ns/gang", frozenset({"gang-0", "gang-1"}), now=made.now)
    made.end("ns/low")
    assert made.decide() == []
    made.now += rest
    assert made.decide() == ["ns/gang"]


KEEPS: dict[str, tuple[list[QueuedHyperJob], list[QueuedHyperJob], list[Queue]]] = {
    "a queue that does not say reclaimable keeps what runs": (
        BORROWED,
        [unit("owner", 16, queue="y")],
        [queue("x"), OWNER],
    ),
    "nobody is stopped for one that would exceed its queue's share": (
        BORROWED,
        [unit("owner", 24, queue="y")],
        [LENDS, OWNER],
    ),
    "nobody is stopped for an equally urgent one of the same queue": (
        BORROWED,
        [unit("same", 16, queue="x")],
        [LENDS, OWNER],
    ),
    "a queue within its share gives nothing back": (
        [unit("own", 16, queue="x"), unit("third", 16, queue="z")],
        [unit("owner", 8, queue="y")],
        [queue("x", reclaimable=True, weight=2), OWNER, queue("z")],
    ),
    "one that also uses a queue within its share gives nothing back": (
        [unit("lent", 24, 4, queues=("x", "z"))],
        [unit("owner", 8, queue="y")],
        [LENDS, OWNER, queue("z", reclaimable=True)],
    ),
    "a queue of higher priority gives nothing back": (
        BORROWED,
        [unit("owner", 16, queue="y")],
        [queue("x", reclaimable=True, priority=5), OWNER],
    ),
    "nobody is stopped where that makes no room": (
        [unit("lent", 16, 16, queue="x", minimum=1)],
        [unit("owner", 16, queue="y", only_on=("elsewhere",))],
        [LENDS, OWNER],
    ),
    "nobody is stopped for sub-jobs beyond minAvailable": (
        [unit("lent", 24, queue="x")],
        [unit("elastic", 8, 8, queue="y", minimum=1)],
        [LENDS, OWNER],
    ),
    "nobody is stopped for a closed queue": (
        BORROWED,
        [unit("owner", 16, queue="y")],
        [LENDS, queue("y", state="Closed")],
    ),
    "nobody is stopped for a capability that stands in the way anyhow": (
        BORROWED,
        [unit("owner", 16, queue="y")],
        [LENDS, queue("y", gpus=8)],
    ),
}


@pytest.mark.parametrize("case", KEEPS)
def test_what_runs_goes_on_where(case: str) -> None:
    borrowers, owners, queues = KEEPS[case]
    made = after_borrowing(borrowers, owners, *queues)
    for _ in range(5):
        made.now += LAG
        made.decide()
    assert made.reclaimed == []
    assert {each.key[3:] for each in borrowers} <= made.running()


def test_only_those_that_are_needed_give_back_the_least_urgent_first() -> None:
    made = after_borrowing(
        [
            unit("a", 8, queue="x", priority=5, age=4),
            unit("b", 4, queue="x", age=1),
            unit("c", 8, queue="x", age=2),
            unit("d", 12, queue="x", age=0),
        ],
        [unit("owner", 8, queue="y", age=9)],
    )
    assert made.reclaimed == ["c"]


def test_a_reclaim_goes_on_until_what_was_given_back_shows() -> None:
    made = ran([unit("lent", 32, queue="x")], LENDS, OWNER)
    made.shows_after = LAG
    made.submit(unit("owner", 16, queue="y", age=5))
    assert made.round() == ["ns/lent"]
    made.now += timedelta(seconds=20)
    made.give_back("ns/lent")  # its pods took that long to end
    for _ in range(5):
        made.decide()
        assert made.running() == set()
        known = made.state.eviction
        assert known.head == "ns/owner"
        made.now += timedelta(seconds=6)
    made.decide()
    assert made.running() == {"owner"}


def test_departments_take_back_from_each_other_whatever_their_teams_use() -> None:
    made = after_borrowing(
        [unit("lent", 16, queue="x1"), unit("mine", 16, queue="y1")],
        [unit("owner", 8, queue="y2", age=9)],
        queue("x"),
        queue("x1", parent="x", reclaimable=True),
        queue("y"),
        queue("y1", parent="y", reclaimable=True),
        queue("y2", parent="y"),
    )
    assert made.reclaimed == ["mine"], "its sibling is above its share, the other department is not"


def test_a_department_takes_back_its_share_for_a_team_that_exceeds_its_own() -> None:
    made = after_borrowing(
        [unit("lent", 32, queue="x")],
        [unit("owner", 16, queue="y2", age=9)],
        LENDS,
        queue("y"),
        queue("y1", parent="y"),
        queue("y2", parent="y"),
    )
    assert made.reclaimed == ["lent"], "y1 uses nothing of the share of y"


def test_a_parents_capability_is_freed_for_a_child_within_its_share() -> None:
    made = after_borrowing(
        [unit("lent", 16, queue="x1")],
        [unit("owner", 8, queue="x2", age=9)],
        queue("up", gpus=16),
        queue("x1", parent="up", reclaimable=True),
        queue("x2", parent="up"),
    )
    assert made.reclaimed == ["lent"]
    made.decide()
    assert made.running() == {"owner"}


def test_nobody_else_gets_what_was_given_back_and_nobody_more_gives_back_meanwhile() -> None:
    made = ran(
        [unit(f"lent{n}", 8, queue="x", age=n) for n in range(4)],
        LENDS,
        queue("y", weight=4),
        queue("z"),
    )
    made.shows_after = timedelta(seconds=20)
    made.submit(unit("owner", 16, queue="y", age=9), unit("quick", 8, queue="z", age=1))
    made.decide()
    for _ in range(5):
        made.now += timedelta(seconds=5)
        made.decide()
    assert sorted(made.reclaimed) == ["lent2", "lent3"]
    assert made.running() == {"lent0", "lent1", "owner"}


def test_what_was_given_back_is_for_its_owner_though_another_queue_is_next_in_turn() -> None:
    made = ran(
        [unit(f"lent{n}", 8, queue="x", age=n) for n in range(4)],
        LENDS,
        OWNER,
        queue("z", weight=2),
    )
    made.shows_after = timedelta(seconds=20)
    made.submit(unit("owner", 8, queue="y", age=9))
    made.decide()
    assert made.reclaimed == ["lent3"]
    made.submit(unit("quick", 8, queue="z", age=1))  # uses less of its share than queue y would
    made.now += timedelta(seconds=20)
    made.decide()
    assert "owner" in made.running()
    assert "quick" not in made.running()


@pytest.mark.parametrize(("late", "stopped"), [(8, []), (4, ["lent"])])
@pytest.mark.parametrize("field", ["settling", "ending"])
def test_nobody_is_stopped_while_the_choice_depends_on_what_a_summary_counts_too_much(
    field: str, late: int, stopped: list[str]
) -> None:
    """Sub-jobs that have just ended, or have just started and count twice."""
    made = world([unit("lent", 24, queue="x")], LENDS, OWNER)
    made.foreign["a"] = 8  # as the summary has it
    made.decide()
    made.submit(unit("owner", 8, queue="y", age=5))
    amount = {GPU: late * NANO}
    changed: dict[str, Any] = {field: amount if field == "settling" else {"": amount}}
    seen = replace(made.clusters()[0], **changed)
    certain = replace(made.clusters()[0], name="b", free={}, allocatable={})
    schedule(made.state, [seen, certain], now=made.now)
    found = [key for key in made.state.entries if evicted_for(made.state, key)]
    assert found == [f"ns/{name}" for name in stopped]


def test_one_that_is_gone_before_anybody_gave_back_stops_nobody() -> None:
    made = ran([unit("lent", 32, queue="x")], LENDS, OWNER)
    made.submit(unit("owner", 16, queue="y", age=5))
    made.round()
    assert evicted_for(made.state, "ns/lent") == "ns/owner"
    made.end("ns/owner")
    assert evicted_for(made.state, "ns/lent") == ""


def test_what_was_stopped_in_vain_is_not_stopped_over_and_over() -> None:
    """The room that it gives back goes to a workload outside, each time."""
    made = ran([unit("lent", 32, queue="x")], LENDS, OWNER)
    made.submit(unit("owner", 16, queue="y", age=5))
    for second in range(3600):
        made.foreign = {"a": 0 if second % 100 else 32}
        if "lent" not in made.running():
            made.foreign = {"a": 20}
        made.now += timedelta(seconds=1)
        made.decide()
    assert len(made.reclaimed) <= 8


sizes = st.sampled_from([4, 8, 12, 16])


@given(
    lent=st.lists(st.tuples(sizes, st.integers(0, 2)), min_size=1, max_size=6),
    owned=st.lists(st.tuples(sizes, st.integers(0, 2)), min_size=1, max_size=6),
    weights=st.tuples(*[st.integers(1, 4)] * 3),
    lends=st.tuples(*[st.booleans()] * 3),
)
def test_in_any_world_taking_back_ends_and_leaves_no_queue_below_what_was_taken_for(
    lent: list[tuple[int, int]],
    owned: list[tuple[int, int]],
    weights: tuple[int, ...],
    lends: tuple[bool, ...],
) -> None:
    names = ["x", "y", "z"]
    queues = [
        queue(name, weight=weight, reclaimable=yes)
        for name, weight, yes in zip(names, weights, lends, strict=True)
    ]
    made = ran([unit(f"l{n}", g, queue=names[q], age=n) for n, (g, q) in enumerate(lent)], *queues)
    late = [unit(f"o{n}", g, queue=names[q], age=50 + n) for n, (g, q) in enumerate(owned)]
    made.submit(*late)
    for _ in range(20):
        before = {name: made.used(name) for name in names}
        stopped = len(made.reclaimed)
        made.decide()
        for key in made.reclaimed[stopped:]:
            home = made.units[f"ns/{key}"].parts[0].queue
            share = made.state.usage.tree.entitled("nvidia.com/gpu")[home] / 10**9
            assert before[home] > share, "it was above its share"
            assert queues[names.index(home)].reclaimable
        assert sum(made.used(name) for name in names) <= 32
        made.now += LAG
    quiet = len(made.reclaimed)
    for _ in range(8):
        made.decide()
        made.now += LAG * 64
    assert len(made.reclaimed) == quiet, "it comes to rest"


def test_whose_queue_is_closed_meanwhile_keeps_nothing_and_has_nobody_stopped() -> None:
    made = ran([unit(f"lent{n}", 16, queue="x", age=n) for n in range(3)], LENDS, OWNER, a=48)
    made.shows_after = timedelta(hours=9)
    made.submit(unit("owner", 16, queue="y", age=5))
    made.decide()
    assert made.reclaimed == ["lent2"]
    made.set_queues(LENDS, queue("y", state="Closed"))
    for _ in range(5):
        made.decide()
        assert not made.state.last.kept_for
        made.now += 2 * LAG
    assert made.reclaimed == ["lent2"]
