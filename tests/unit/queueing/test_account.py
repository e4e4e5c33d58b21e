"""Limits and turns of queues, also with the largest amounts and the longest durations."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.duration import LATEST, later, seconds
from hyperjob_core.api.quantity import NANO
from hyperjob_engine.resources import parse_resources
from hyperjob_queueing import round as rounds
from hyperjob_queueing.evict import next_change
from hyperjob_queueing.messages import stale_messages
from hyperjob_queueing.queues import Queue, Tree, estimate, parse_queue
from hyperjob_queueing.state import HyperJobFault
from hyperjob_queueing.usage import Limit, QueueUsage
from hyperjob_queueing.workload import QueuedHyperJob, QueuedSubJob, Shapes
from tests.unit.engine.builders import GPU, NOW
from tests.unit.queueing.queueworld import QueueWorld, queue, unit

TREES = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.tuples(st.sampled_from("-abcdefgh"), st.integers(1, 3), st.integers(0, 1)),
    max_size=8,
)
USES = st.dictionaries(st.sampled_from("abcdefghx"), st.integers(0, 3), min_size=1)


def test_a_limit_tells_what_a_queue_uses_of_a_resource_that_it_does_not_use() -> None:
    account = QueueUsage(Tree([queue("x", gpus=4)], {}))
    account.add("x", parse_resources({"cpu": "1"}))
    demand = parse_resources({GPU: "6"})
    expected = Limit("x", GPU, 4 * NANO, used=0, missing=2 * NANO, ever=False, asked=6 * NANO)
    assert account.limit("x", demand) == expected
    account.add("x", parse_resources({GPU: "3"}))
    found = account.limit("x", parse_resources({GPU: "2"}))
    assert found == replace(expected, used=3 * NANO, missing=NANO, ever=True, asked=2 * NANO)


def test_sub_jobs_that_were_granted_or_made_are_part_of_a_shape() -> None:
    whole = replace(unit("j", 1, 2, 4), clusters={"j-1": "b"})
    waiting = whole.parts[2:]
    shapes = Shapes()
    alone = shapes.of(whole, waiting, needed=1)
    promised = shapes.of(whole, waiting, needed=1, promised={"j-0": "a", "j-1": "c"})
    assert alone.needs.standing == (("trainer", "b"),)
    assert promised.needs.standing == (("trainer", "a"), ("trainer", "b"))


@given(TREES, USES, USES)
def test_queues_take_turns_as_if_those_before_them_did_not_ask(
    queues: dict[str, tuple[str, int, int]], used: dict[str, int], asked: dict[str, int]
) -> None:
    tree = Tree(
        [
            Queue(name=name, parent="root" if parent == "-" else parent, weight=weight, priority=p)
            for name, (parent, weight, p) in queues.items()
        ],
        {GPU: 8},
    )
    usage = QueueUsage(tree)
    for name, number in used.items():
        usage.add(name, {GPU: number})
    asking = {name: {GPU: number} for name, number in asked.items()}
    turns = []
    while asking:
        turns.append(next(usage.turns(asking)))
        del asking[turns[-1]]
    assert list(usage.turns({name: {GPU: number} for name, number in asked.items()})) == turns


HUGE = 10**400
AMOUNTS = st.one_of(
    st.sampled_from((0, 1, 2**63 - 1, 2**63, 10**27, 10**309, HUGE)), st.integers(0, 10**30)
)
LONGEST = "2562047h"
ESTIMATES = st.sampled_from(("1us", "1s", "90m", "8760h", LONGEST))


def grown(name: str, amount: int, *, runs: str, age: int) -> QueuedHyperJob:
    """A HyperJob of one sub-job that demands any amount of GPUs, in nano-units."""
    made = unit(name, 1, age=age)
    (part,) = made.parts
    wanted = replace(part.request, demand={GPU: amount})
    return replace(made, parts=(replace(part, request=wanted),), estimate=estimate(runs))


@given(st.integers(1, HUGE), st.integers(1, HUGE))
def test_a_queue_entitled_to_nothing_comes_after_all_others(asked: int, used: int) -> None:
    tree = Tree((Queue(name="less"), Queue(name="none", capability={GPU: 0})), {GPU: 1})
    usage = QueueUsage(tree)
    usage.add("less", {GPU: used})
    assert list(usage.turns({"none": {GPU: asked}, "less": {GPU: asked}})) == ["less", "none"]


def test_two_queues_of_almost_equal_use_take_turns_by_the_exact_difference() -> None:
    """A float has no room for the last unit of 2^63 units."""
    tree = Tree((Queue(name="less"), Queue(name="more")), {GPU: 2**70})
    usage = QueueUsage(tree)
    usage.add("more", {GPU: 2**63})
    usage.add("less", {GPU: 2**63 - 1})
    assert next(usage.turns({"less": {}, "more": {}})) == "less"
    usage.add("less", {GPU: 2})
    assert next(usage.turns({"less": {}, "more": {}})) == "more"


@given(
    demands=st.lists(st.tuples(AMOUNTS, ESTIMATES), min_size=1, max_size=8),
    capability=st.one_of(st.none(), st.sampled_from(("1", "9223372036854775807", "1e300"))),
    default=st.one_of(st.none(), ESTIMATES),
)
def test_a_round_with_extreme_amounts_and_durations_serves_the_others(
    demands: list[tuple[int, str]], capability: str | None, default: str | None
) -> None:
    marks = {} if default is None else {"training.volcano.sh/running-estimate": default}
    spec = {} if capability is None else {"capability": {GPU: capability}}
    extreme = parse_queue({"metadata": {"name": "default", "annotations": marks}, "spec": spec})
    made = QueueWorld({"a": 8})
    made.set_queues(extreme, queue("other"))
    made.submit(
        *(grown(f"x{i}", amount, runs=runs, age=i) for i, (amount, runs) in enumerate(demands)),
        unit("honest", 1, queue="other", age=30),
    )
    for _ in range(4):
        made.decide()
        list(stale_messages(made.state, now=made.now))
        for key in made.state.entries:
            made.message(key[3:])
        next_change(made.state, now=made.now)
        made.now += timedelta(hours=2)
    assert "honest" in made.running()


def test_a_line_of_the_longest_estimates_has_no_forecast_and_stops_no_round() -> None:
    made = QueueWorld({"a": 8})
    made.set_queues(queue("default"))
    made.submit(*(replace(unit(f"j{i}", 8, age=i), estimate=estimate(LONGEST)) for i in range(40)))
    assert made.decide() == ["ns/j0"]
    for _ in range(3):
        made.decide()
        made.now += timedelta(minutes=10)
    assert all(start.at < LATEST for start in made.state.later.values())
    assert "expected to start" in made.message("j1")


@given(st.integers(-(10**30), 10**30))
def test_any_number_of_seconds_after_any_time_is_a_time(number: int) -> None:
    assert abs(seconds(number)) <= seconds(10**40)
    for moment in (NOW, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        assert moment <= later(moment, abs(seconds(number)))
    assert later(NOW, seconds(60)) == NOW + timedelta(minutes=1)
    assert later(NOW, seconds(10**30)) == LATEST


def test_a_bug_at_one_hyperjob_names_that_hyperjob(monkeypatch: pytest.MonkeyPatch) -> None:
    made = QueueWorld({"a": 8})
    made.set_queues(queue("default"))
    made.submit(unit("good", 1, age=0), unit("bad", 1, age=1))
    admit = rounds.try_to_admit

    def failing(waiting: Sequence[QueuedSubJob], *rest: Any) -> Any:
        if waiting[0].name == "bad-0":
            raise ZeroDivisionError
        return admit(waiting, *rest)

    monkeypatch.setattr(rounds, "try_to_admit", failing)
    made.submit(unit("other", 2, age=2))
    with pytest.raises(HyperJobFault) as found:
        made.decide()
    assert found.value.key == "ns/bad"
    assert isinstance(found.value.__cause__, ZeroDivisionError)
