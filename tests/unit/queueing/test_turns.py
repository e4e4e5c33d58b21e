"""A head of line that has waited long: others stop for it, or what becomes free is kept for it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.placement.room import Room
from hyperjob_queueing.queues import Queue, parse_queue
from hyperjob_queueing.reserve import keep, reserved
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.engine.builders import GPU, cluster
from tests.unit.queueing.queueworld import QueueWorld, queue, unit

HOUR = timedelta(hours=1)
LONG = 3 * HOUR
PATIENCE = LONG / 4
"""A head waits for at most four times the patience of its queue."""


def patient(*queues: Queue, patience: timedelta | None = PATIENCE, **gpus: int) -> QueueWorld:
    """Make a world whose heads wait for `patience` before anything is kept for them."""
    made = QueueWorld(gpus)
    made.set_queues(*(replace(each, patience=patience) for each in queues or (queue("default"),)))
    return made


BOTH = queue("default"), queue("other")
"""No HyperJob of one stops for a head of the other."""


RUNS = unit("runs", 8, queue="other")
HEAD, SMALL = unit("head", 32, age=1), unit("small", 8, age=2)


def after_long(
    *running: QueuedHyperJob,
    late: Sequence[QueuedHyperJob] = (HEAD, SMALL),
    queues: Sequence[Queue] = BOTH,
    patience: timedelta | None = PATIENCE,
) -> QueueWorld:
    """Let HyperJobs wait for long beside one of another queue, where 24 of 32 GPUs are free."""
    made = patient(*queues, patience=patience, a=32)
    made.submit(*(running or (RUNS,)))
    made.decide()
    made.now += LONG
    made.submit(*late)
    made.decide()
    return made


def busy(made: QueueWorld, *, small: int, every: timedelta) -> None:
    """Let small HyperJobs of an hour come at this pace, until nothing is free any more."""
    for number in range(small):
        made.submit(unit(f"old-{number}", 8, queue="other", age=number))
        made.lengths[f"old-{number}"] = round(3600 + number * every.total_seconds())
    made.decide()


def play(made: QueueWorld, hours: int) -> None:
    """Submit a small HyperJob at the end of every other one, and play a round, for some hours."""
    until = made.now + timedelta(hours=hours)
    while made.now < until:
        for _ in made.advance():
            number = len(made.started)
            name = f"small-{number}-{len(made.units)}"
            made.submit(unit(name, 8, queue="other", age=1000 + number))
        made.decide()


def test_a_large_one_starts_although_small_ones_come_all_the_time() -> None:
    """Of 4 small ones one ends each quarter of an hour: never are 32 GPUs free at once."""
    made = patient(*BOTH, a=32)
    busy(made, small=4, every=HOUR / 4)
    made.submit(replace(unit("large", 32), created=rfc3339(made.now)))
    came = made.now
    play(made, hours=1)
    assert "large" not in made.running(), "all that fit pass it before it has waited long"
    assert len(made.running()) == 4
    play(made, hours=4)
    waited = made.started["ns/large"] - came
    assert LONG / 2 <= waited <= LONG + HOUR


def test_after_a_turn_all_that_fit_start_for_nine_times_as_long() -> None:
    """Both heads have waited long, and the second one needs all GPUs."""
    made = patient(*BOTH, a=32)
    busy(made, small=4, every=HOUR / 4)
    made.submit(unit("first", 16, age=100), unit("second", 32, age=101))
    made.lengths |= {"first": 30 * 3600, "second": 3600}
    made.now += LONG
    for key in made.ends:
        made.ends[key] += LONG
    began = made.now
    made.decide()
    play(made, hours=40)
    turn, rest = made.started["ns/first"] - began, made.started["ns/first"]
    assert turn >= HOUR
    assert made.started["ns/second"] >= rest + 9 * turn
    passed = [at for at in made.started.values() if rest < at < rest + 9 * turn]
    assert passed, "small ones pass the second head"


def test_no_more_is_kept_than_the_gang_needs() -> None:
    """In either cluster 12 of 16 GPUs are free, and the head needs 16 in one of them."""
    made = patient(*BOTH, a=16, b=16)
    made.foreign |= {"a": 4, "b": 4}
    made.submit(*(unit(f"on-{each}", 2, queue="other", only_on=(each,)) for each in "ab"))
    made.foreign.clear()
    made.decide()
    made.now += LONG
    made.submit(unit("head", 16, age=1), *(unit(f"s{n}", 2, age=2 + n) for n in range(14)))
    made.decide()
    kept = made.state.last.kept
    assert {name: each[GPU] // NANO for name, each in kept.items()} == {"a": 14, "b": 2}
    assert len(made.running()) == 2 + 6


def test_nothing_is_kept_in_a_cluster_where_the_gang_cannot_be_together() -> None:
    made = patient(*BOTH, a=16, b=8)
    made.submit(unit("runs", 8, queue="other", only_on=("a",)))
    made.decide()
    made.now += LONG
    made.submit(unit("head", 8, 8, max_domains=1, age=1), unit("small", 8, age=2))
    made.decide()
    assert made.running() == {"runs", "small"}
    assert made.state.last.kept.keys() == {"a"}


@given(
    free=st.lists(st.integers(-3, 20), min_size=1, max_size=5),
    wants=st.lists(st.integers(0, 20), min_size=5, max_size=5),
    most=st.none() | st.integers(0, 60),
)
@settings(max_examples=60)
def test_a_room_never_keeps_more_than_is_free_wanted_and_needed(
    free: list[int], wants: list[int], most: int | None
) -> None:
    room = Room(cluster(f"c{index}", gpus) for index, gpus in enumerate(free))
    before = {name: each.get(GPU, 0) for name, each in room.free.items()}
    wanted = {name: {GPU: amount * NANO} for name, amount in zip(room.free, wants, strict=False)}
    taken = keep(room, wanted, most=None if most is None else {GPU: most * NANO})
    for name, was in before.items():
        amount = taken.get(name, {}).get(GPU, 0)
        assert room.free[name].get(GPU, 0) == was - amount
        assert 0 <= amount <= max(0, min(was, wanted[name][GPU]))
    possible = sum(max(0, min(was, wanted[name][GPU])) for name, was in before.items())
    together = sum(each[GPU] for each in taken.values())
    assert together == (possible if most is None else min(possible, most * NANO))
    assert room.sum.get(GPU, 0) == sum(max(0, each.get(GPU, 0)) for each in room.free.values())


def test_the_pass_of_another_hyperjob_leaves_what_is_kept() -> None:
    made = after_long()
    assert made.running() == {"runs"}
    assert [each.demand[GPU] for each in reserved(made.state, but="ns/small")["a"]] == [24 * NANO]
    assert not reserved(made.state, but="ns/head")


def test_the_messages_say_for_whom_room_is_kept_and_why() -> None:
    made = after_long()
    assert made.message("head").endswith(
        "; it has waited long and has its turn: what becomes free is kept for it"
    )
    assert made.message("small").endswith(
        "there is room, but it is kept for ns/head, first in queue default, which has waited long"
        " and has its turn"
    )


@pytest.mark.parametrize(
    ("queue_of_it", "priority", "kept"),
    [("default", 0, ""), ("default", 1, "ns/head"), ("other", 0, "ns/head")],
    ids=["may stop", "more urgent", "of another queue"],
)
def test_room_is_kept_only_where_its_own_queue_cannot_make_enough(
    queue_of_it: str, priority: int, kept: str
) -> None:
    made = after_long(unit("runs", 8, queue=queue_of_it, priority=priority))
    assert made.state.last.kept_for == kept


def test_a_guarantee_precedes_a_turn() -> None:
    queues = queue("x"), queue("y", guarantee=8), queue("z")
    head, other = unit("head", 24, queue="x", age=1), unit("other", 4, queue="x", age=2)
    late = head, other, unit("mine", 8, queue="y", age=3)
    made = after_long(unit("runs", 8, queue="z"), late=late, queues=queues)
    assert made.running() == {"runs", "mine"}
    assert "ns/head" not in {each.name for each in reserved(made.state, but="ns/mine").get("a", ())}


def saving(name: str, gpus: int) -> QueuedHyperJob:
    """Make a HyperJob that saves a checkpoint every minute."""
    return replace(unit(name, gpus), saves=HOUR / 60)


def run_since(made: QueueWorld, *names: str, **fields: object) -> None:
    """Let HyperJobs be created and run since now, with these fields."""
    for name in names:
        known, at = made.units[f"ns/{name}"], rfc3339(made.now)
        made.submit(replace(known, **{"since": at, "created": at, **fields}))


def beside(*running: QueuedHyperJob, **gpus: int) -> QueueWorld:
    """Let HyperJobs run in queue default for as long as nobody ends them."""
    made = patient(**(gpus or {"a": 32}))
    made.submit(*running)
    made.decide()
    run_since(made, *(each.key[3:] for each in running))
    made.lengths |= {each.key[3:]: 10**7 for each in running}
    return made


@pytest.mark.parametrize(
    ("free", "patiences"), [(31, 1.1), (24, 1.4), (16, 2.05), (11, 2.95), (4, 4), (0, 4)]
)
def test_others_stop_for_a_head_later_the_less_of_its_room_is_free(
    free: int, patiences: float
) -> None:
    made = beside(saving("runs", 32 - free))
    made.submit(replace(unit("head", 32), created=rfc3339(made.now)))
    came = made.now
    made.now = came + (patiences - 0.1) * PATIENCE
    made.decide()
    assert not made.reclaimed
    made.now = came + patiences * PATIENCE
    made.decide()
    assert made.reclaimed == ["runs"]
    assert made.state.eviction.head == "ns/head"
    made.decide()
    assert made.running() == {"head"}


def late(*running: QueuedHyperJob, head: QueuedHyperJob, **fields: object) -> QueueWorld:
    """Let a head wait for the longest time beside others that run since long before it came."""
    made = beside(*running)
    for each in running:
        run_since(made, each.key[3:], **fields)
    made.now += LONG
    made.submit(replace(head, created=rfc3339(made.now)))
    made.decide()
    made.now += LONG
    return made


def test_the_fewest_stop_the_widest_first_and_each_side_says_why() -> None:
    made = late(saving("wide", 16), *(saving(f"s{n}", 4) for n in range(4)), head=unit("head", 16))
    made.round()
    verdict = made.verdict("wide")
    assert (verdict.reclaimed_for, verdict.preempted) == ("ns/head", "has waited long for its room")
    assert made.message("head").endswith("; preempts ns/wide")
    made.decide()
    assert not made.verdict("s0").reclaimed_for


@pytest.mark.parametrize(
    "spared",
    [
        {"saves": None},
        {"saves": HOUR},
        {"priority": 1},
        {"again": True},
        {"created": "2026-01-01T00:00:00Z"},
        {"since": ""},
    ],
    ids=[
        "saves nothing",
        "saves too rarely",
        "more urgent",
        "stopped before",
        "late itself",
        "new",
    ],
)
def test_none_stops_that_loses_much_is_more_urgent_or_has_had_its_share(
    spared: dict[str, object],
) -> None:
    made = late(saving("runs", 32), head=unit("head", 16))
    made.submit(replace(made.units["ns/runs"], **spared))
    made.decide()
    assert made.running() == {"runs"}
    assert not made.reclaimed


def test_one_that_waited_long_itself_stops_for_a_head_that_has_waited_longer() -> None:
    """Else none would stop where all that start have waited longer than the patience."""
    made = late(saving("runs", 32), head=unit("head", 32))
    created = rfc3339(made.now - 2 * LONG - 2 * PATIENCE)
    made.submit(replace(made.units["ns/runs"], created=created))
    made.decide()
    assert made.reclaimed == ["runs"]


def test_one_that_made_way_stops_others_once_it_leads_its_line() -> None:
    made = late(saving("runs", 32), head=replace(unit("head", 32), again=True))
    made.decide()
    assert made.reclaimed == ["runs"]


def test_one_that_has_just_begun_stops_although_it_saves_nothing() -> None:
    made = beside(unit("old", 16), unit("new", 16, age=1))
    made.submit(replace(unit("head", 16), created=rfc3339(made.now)))
    made.now += LONG
    run_since(made, "new")
    made.now += HOUR / 12
    made.decide()
    assert made.reclaimed == ["new"]


def test_none_stops_while_all_lose_more_than_the_wait_is_worth() -> None:
    """Each loses 12 minutes: a 24th of the wait is as much after 4.8 hours."""
    running = [replace(saving(f"s{n}", 8), saves=HOUR / 5) for n in range(4)]
    made = late(*running, head=unit("head", 32))
    made.decide()
    assert not made.reclaimed
    made.now += LONG
    made.decide()
    assert sorted(made.reclaimed) == ["s0", "s1", "s2", "s3"]


def test_the_one_that_made_way_waits_behind_the_others_and_stops_none() -> None:
    made = late(saving("runs", 32), head=unit("head", 32))
    made.submit(replace(unit("third", 32), created=rfc3339(made.now)))
    made.decide()
    made.submit(replace(made.units["ns/runs"], again=True))
    made.decide()
    assert made.running() == {"head"}
    assert made.message("third").startswith("first of 2")
    run_since(made, "head", saves=HOUR / 12)
    made.now += 10 * LONG
    made.submit(replace(made.units["ns/third"], created=rfc3339(made.now)))
    made.decide()
    assert made.reclaimed == ["runs"], "neither for the one that is new, nor for the one that ran"


@pytest.mark.parametrize("how", ["more urgent", "gone", "admitted"])
def test_a_turn_ends_and_what_was_kept_is_free(how: str) -> None:
    made = after_long()
    assert made.running() == {"runs"}
    made.now += HOUR
    if how == "more urgent":
        made.submit(unit("urgent", 16, priority=1, age=3))
    else:
        made.end("ns/head" if how == "gone" else "ns/runs")
    made.decide()
    expected = {
        "more urgent": {"runs", "urgent", "small"},
        "gone": {"runs", "small"},
        "admitted": {"head"},
    }
    assert made.running() == expected[how]
    assert not made.state.turn.head


def test_another_head_takes_back_its_share_during_a_turn() -> None:
    queues = queue("x"), queue("y"), queue("z", reclaimable=True)
    late = unit("large", 32, queue="x", age=1), unit("owner", 8, queue="y", age=2)
    running = unit("lent", 24, queue="z"), unit("runs", 4, queue="x")
    made = after_long(*running, late=late, queues=queues)
    made.decide()
    assert made.reclaimed == ["lent"]
    assert "owner" in made.running()


def test_the_head_of_another_queue_leaves_a_turn_what_is_kept_for_it() -> None:
    """The other head has waited long too, and would fit into what is kept."""
    made = after_long(unit("runs", 8, priority=1), late=[HEAD])
    made.submit(unit("other", 8, queue="other", age=2))
    for _ in range(2):
        made.decide()
        assert (made.state.turn.head, made.state.last.kept_for) == ("ns/head", "ns/head")


def test_a_new_leader_goes_on_with_the_turn() -> None:
    """The age of the HyperJob is in its object: no state of the last leader is needed."""
    made = after_long()
    again = patient(*BOTH, a=32)
    again.now = made.now
    again.submit(*made.units.values())
    again.decide()
    assert again.running() == {"runs"}
    assert again.state.last.kept_for == "ns/head"


@pytest.mark.parametrize(
    ("text", "patience"),
    [
        (None, 12 * HOUR),
        ("90m", 1.5 * HOUR),
        ("0s", 12 * HOUR),
        ("a day", 12 * HOUR),
        ("disabled", None),
    ],
)
def test_a_queue_says_how_long_its_head_waits_before_its_turn(
    text: str | None, patience: timedelta | None
) -> None:
    marks = {} if text is None else {"training.volcano.sh/patience": text}
    found = parse_queue({"metadata": {"name": "x", "annotations": marks}})
    assert found.patience == patience


def test_the_head_of_a_queue_without_turns_keeps_nothing() -> None:
    made = after_long(patience=None)
    assert made.running() == {"runs", "small"}


@settings(max_examples=150)
@given(
    running=st.lists(
        st.tuples(
            st.integers(4, 16),  # GPUs
            st.sampled_from([5, 20, 40, None]),  # minutes between checkpoints
            st.sampled_from([300, 10, 29, 31]),  # minutes for which it runs
            st.sampled_from([False, False, False, True]),  # stopped before
            st.sampled_from([0, 0, 0, 1]),  # priority
        ),
        min_size=3,
        max_size=8,
    ),
    needs=st.integers(4, 32),
    waited=st.integers(0, 60),  # hours
)
def test_what_stops_loses_little_and_is_enough_and_none_stops_in_vain(
    running: list[tuple[int, int | None, int, bool, int]], needs: int, waited: int
) -> None:
    made = patient(a=32, b=16)
    begun = made.now
    for number, (gpus, _, _, _, priority) in enumerate(running):
        made.submit(unit(f"r{number}", gpus, priority=priority, age=number))
    made.decide()
    made.now = begun + timedelta(hours=100)
    for number, (_, saves, minutes, again, _) in enumerate(running):
        key, at = f"r{number}", rfc3339(made.now - timedelta(minutes=minutes))
        if key in made.running():
            every = None if saves is None else timedelta(minutes=saves)
            known = made.units[f"ns/{key}"]
            made.submit(replace(known, created=at, since=at, saves=every, again=again))
    for key in made.units.keys() - {f"ns/{each}" for each in made.running()}:
        made.end(key)
    head = unit("head", needs, max_domains=1)
    made.submit(replace(head, created=rfc3339(made.now - timedelta(hours=waited))))
    made.decide()
    for name in made.reclaimed:
        _, saves, minutes, again, priority = running[int(name[1:])]
        assert not again
        assert not priority
        assert min(minutes, minutes if saves is None else saves) <= 60 * waited / 24
    assert waited >= PATIENCE / HOUR or not made.reclaimed
    made.decide()
    assert not made.reclaimed or "head" in made.running()
