"""Parts of the queue engine, each by itself: claims, kept room, ends, facts and shared answers."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from hyperjob_core.api.microtime import micro_time
from hyperjob_core.api.quantity import NANO
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.placement.ground import Vacating
from hyperjob_engine.queueing.claims import Claims, from_text, to_text, together
from hyperjob_engine.queueing.evict import evict, evicted_for, may_evict_from
from hyperjob_engine.queueing.forecast import renew_forecast
from hyperjob_engine.queueing.messages import message_facts
from hyperjob_engine.queueing.room import Space
from hyperjob_engine.queueing.round import schedule
from hyperjob_engine.queueing.state import (
    Eviction,
    QueueState,
    Settings,
    block_of,
    exceeds,
    new_state,
    set_queues,
    update,
)
from hyperjob_engine.queueing.workload import QueuedSubJob
from hyperjob_engine.reasons.waiting import WaitCode
from hyperjob_engine.resources import Resources, total
from tests.unit.controller.builders import GPU, NOW, cluster, request
from tests.unit.controller.queueworld import LAG, queue, unit, world
from tests.unit.controller.views import held, job, node, seen, task, view


def gpus(number: int) -> Resources:
    return {GPU: number * NANO}


@pytest.mark.parametrize(
    ("created", "left"),
    [
        (NOW - timedelta(seconds=5), {"a": gpus(6), "b": gpus(4)}),
        (NOW - timedelta(seconds=4), {"a": gpus(8), "b": gpus(4)}),
        (None, {"a": gpus(8), "b": gpus(4)}),
    ],
)
def test_claims_are_left_without_the_present_sub_jobs_that_are_older(
    created: Any, left: dict[str, Resources]
) -> None:
    claims = Claims(NOW, {"a": gpus(8), "b": gpus(4)})
    assert claims.without([("a", gpus(2), created), ("c", gpus(1), created)]) == left


def test_nothing_is_left_of_claims_whose_sub_jobs_are_all_there() -> None:
    old = NOW - timedelta(hours=1)
    claims = Claims(NOW, {"a": gpus(8), "b": gpus(4)})
    present = [("a", gpus(5), old), ("a", gpus(5), old), ("b", gpus(3), old)]
    assert claims.without(present) == {"b": gpus(1)}


def test_sums_of_the_same_cluster_are_added() -> None:
    assert together({"b": gpus(1), "a": gpus(2)}, {"b": gpus(3)}, {}) == {
        "a": gpus(2),
        "b": gpus(4),
    }


def test_claims_read_back_as_they_were_written_without_empty_amounts() -> None:
    claims = Claims(NOW, {"b": gpus(1), "a": {GPU: 0}})
    assert from_text(to_text(claims)) == Claims(NOW, {"b": gpus(1)})
    many = Claims(NOW, {f"cluster-{number}": gpus(1) for number in range(3000)})
    assert to_text(many) == "", "an annotation that would be too long"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"at": "%s"}',
        '{"at": "yesterday", "on": {}}',
        '{"at": "%s", "on": []}',
        '{"at": "%s", "on": {"a": 1}}',
        '{"at": "%s", "on": {"a": {"cpu": "1"}}}',
        '{"at": "%s", "on": {"a": {"cpu": -1}}}',
    ],
)
def test_claims_of_another_form_are_no_claims(text: str) -> None:
    assert from_text(text.replace("%s", micro_time(NOW))) is None


def test_claims_may_be_of_nothing() -> None:
    assert from_text(f'{{"at": "{micro_time(NOW)}", "on": {{"a": {{"cpu": 0}}}}}}') is not None


def test_kept_room_is_taken_from_its_cluster_and_from_the_sum_and_from_no_copy() -> None:
    space = Space([cluster("a", 8), cluster("b", 4)], {})
    copied = space.copy()
    space.keep({"a": gpus(6), "b": gpus(9)})
    assert (space.free["a"][GPU], space.free["b"][GPU]) == (2 * NANO, 0)
    assert space.sum[GPU] == 2 * NANO
    assert (copied.free["a"][GPU], copied.sum[GPU]) == (8 * NANO, 12 * NANO)
    before = space.free["b"]
    space.keep({"b": gpus(1)})
    assert space.free["b"] is before, "there is nothing left to keep"


def test_room_is_allowed_up_to_the_sum_of_all_clusters() -> None:
    space = Space([cluster("a", 8), cluster("b", 4), cluster("c", 9, unusable="is not Ready")], {})
    assert space.allows(gpus(12))
    assert not space.allows(gpus(13))
    assert not space.allows({"x": 1})


def test_in_the_end_there_is_the_room_that_all_hyperjobs_leave() -> None:
    full = replace(cluster("a", 0), allocatable={**gpus(8), "pods": 99 * NANO})
    space = Space([full], {"a": {**gpus(8), "pods": 99 * NANO}})
    wanted = [request(f"x-{number}", 3) for number in range(4)]
    assert len(space.assign(wanted, [], None)) == 0
    assert space.could(wanted, [], None) == 2


@pytest.mark.parametrize(("of", "room"), [("ns/running", 2), ("", 1)])
def test_in_the_end_the_nodes_are_without_the_pods_of_jobs(of: str, room: int) -> None:
    """A pod of no vcjob stays."""
    shown = view([node("n0", 8, held("p", 8, job=of)), node("n1", 8)])
    room_of = seen(shown)
    total = {name: 99 * amount for name, amount in room_of.free.items()}
    space = Space([room_of], {room_of.name: total})
    wanted = [job(task(1, 8), name=f"x-{number}") for number in range(3)]
    assert space.could(wanted, [], None) == room


def test_one_holds_up_a_fifo_queue_once_a_node_has_the_label_that_its_pods_need() -> None:
    """The free resources of the cluster stay as they are."""
    wanted = job(task(1, 8, nodeSelector={"kind": "big"}), name="h-0")
    state = new_state(Settings(lag=LAG))
    set_queues(state, [queue("default", dequeueStrategy="fifo")])
    parts = (QueuedSubJob(queue="default", request=wanted),)
    update(state, "ns/h", replace(unit("h", 1), parts=parts), now=NOW)
    update(state, "ns/behind", unit("behind", 8, age=1), now=NOW)

    def code(layout: int, labels: dict[str, str]) -> WaitCode:
        busy = view([node("n0", 8, held("p", 8, job="ns/running"), labels=labels)])
        full = seen(replace(busy, layout=layout, version=layout))
        schedule(state, [full], shown={full.name: full.allocatable}, now=NOW)
        block = block_of(state, state.entries["ns/behind"])
        assert block is not None
        return block.code

    assert code(1, {}) is WaitCode.CAPACITY
    assert code(2, {"kind": "big"}) is WaitCode.BEHIND
    assert code(3, {"kind": "small"}) is WaitCode.CAPACITY


def test_the_removal_of_a_hyperjob_changes_the_state_once() -> None:
    state = new_state(Settings(lag=LAG))
    made = unit("j", 1)
    assert update(state, made.key, made, now=NOW)
    assert not update(state, made.key, made, now=NOW)
    assert update(state, made.key, None, now=NOW)
    assert made.key not in state.entries
    assert not update(state, made.key, None, now=NOW)


def test_a_gang_is_compared_again_with_a_capability_that_changes() -> None:
    made = world([unit("j", 8, 8)], queue("default", gpus=12), a=32)
    made.decide()
    waiting = made.state.entries["ns/j"].waiting
    assert waiting is not None
    assert exceeds(made.state, waiting)
    assert made.running() == set()
    made.set_queues(queue("default", gpus=16))
    assert not exceeds(made.state, waiting)
    made.set_queues(queue("default", gpus=15))
    assert exceeds(made.state, waiting)
    made.set_queues(queue("default", gpus=16))
    made.decide()
    assert made.running() == {"j"}


def line_of(length: int) -> QueueState:
    """Return a queue with a running HyperJob, and a line of HyperJobs of which none has room."""
    made = world([unit("old", 20)], queue("default"), a=32)
    made.decide()
    made.submit(*(unit(f"j{number:03}", 16, age=number) for number in range(length)))
    made.decide()
    return made.state


@pytest.mark.parametrize(
    ("place", "shown", "free", "used"), [(1, 1, 12, 20), (10, 10, 12, 20), (11, 10, 0, 0)]
)
def test_only_the_first_ten_of_a_line_have_the_use_of_their_queue_in_their_messages(
    place: int, shown: int, free: int, used: int
) -> None:
    state = line_of(12)
    entry = state.entries[f"ns/j{place - 1:03}"]
    facts = message_facts(state, entry, place)
    assert facts.place == shown
    assert (facts.free // NANO, facts.used // NANO) == (free, used)


def test_a_hyperjob_that_waits_for_nothing_has_facts_without_numbers() -> None:
    state = line_of(1)
    facts = message_facts(state, state.entries["ns/old"], 1)
    assert (facts.code, facts.free, facts.used, facts.expected) == (None, 0, 0, "")


def test_rounds_that_stop_before_the_end_of_a_line_keep_the_reasons_of_the_others() -> None:
    made = world(
        [unit("large", 99), unit("free", 1, queue="y", age=1)],
        queue("default"),
        queue("y"),
        a=32,
    )
    made.decide()
    before = dict(made.state.last.blocks)
    assert before
    made.state.settings = replace(made.state.settings, most_in_flight=0)
    made.decide()
    assert made.state.last.blocks == before
    made.state.settings = replace(made.state.settings, most_in_flight=9)
    made.end("ns/large")
    made.decide()
    assert made.state.last.blocks == {}


def test_each_further_eviction_for_the_same_head_waits_twice_as_long() -> None:
    state = line_of(1)
    waits = []
    for _ in range(8):
        evict(state, "ns/j000", ["ns/old"], now=NOW)
        assert state.eviction is not None
        assert state.eviction.until is not None
        waits.append((state.eviction.until - NOW) / LAG)
    assert waits == [1, 2, 4, 8, 16, 32, 64, 64]
    assert evicted_for(state, "ns/old") == "ns/j000"
    assert evicted_for(state, "ns/j000") == ""


def test_only_what_a_hyperjob_asks_for_can_exceed_a_capability() -> None:
    made = world([unit("old", 4)], queue("default", gpus=4), a=32)
    made.decide()
    made.set_queues(queue("default", gpus=2))
    usage = made.state.usage
    assert usage.limit("default", {GPU: 0, "cpu": 10**15}) is None
    found = usage.limit("default", gpus(1))
    assert found is not None
    assert (found.queue, found.resource) == ("default", GPU)


def test_the_forecast_is_computed_again_after_its_interval_while_a_head_has_a_start() -> None:
    state = line_of(2)
    every = state.settings.forecast_every
    times = [NOW, NOW + every - timedelta(microseconds=1), NOW + every]
    for now in times:
        renew_forecast(state, now=now)
    assert state.forecast_at is None, "no head has an expected start"
    state.last.starts = {"ns/j000": None}  # type: ignore[dict-item] # only that it is there counts
    for now, made in zip(times, (NOW, NOW, NOW + every), strict=True):
        renew_forecast(state, now=now)
        assert state.forecast_at == made


@pytest.mark.parametrize(
    ("sizes", "alike"), [((4,), True), ((4, 4), True), ((4, 8), False), ((4, 4, 8), False)]
)
def test_sub_jobs_are_alike_if_all_ask_for_the_same(sizes: tuple[int, ...], alike: bool) -> None:
    made = world([unit("j", *sizes)], queue("default"), a=1)
    waiting = made.state.entries["ns/j"].waiting
    assert waiting is not None
    assert waiting.shape.needs.alike is alike


@pytest.mark.parametrize(("leaving", "room"), [(Vacating.OF_JOBS, 2), (Vacating.ENDING, 1)])
def test_room_after_ends_is_on_the_nodes_too(leaving: Vacating, room: int) -> None:
    shown = view(
        [
            node("n0", 8, held("p", 8, job="j")),
            node("n1", 8, held("q", 8, job="k", ending=leaving is Vacating.ENDING)),
        ]
    )
    space = Space([seen(shown)], {})
    after = space.emptied([("a", total_of(shown)), ("unknown", gpus(1))], leaving=leaving)
    wanted = [job(task(1, 8), name=f"x-{number}") for number in range(3)]
    assert len(after.assign(wanted, [], None)) == room
    assert space.assign(wanted, [], None) == {}, "the copy alone has room"


def total_of(shown: MemberView) -> Resources:
    return total(each.allocatable for each in shown.nodes)


@pytest.mark.parametrize(
    ("began", "eviction", "at"),
    [
        (None, None, None),
        (NOW, None, NOW),
        (NOW, {"ns/victim"}, None),
        (NOW, set(), NOW + LAG),
    ],
)
def test_the_next_eviction_starts_after_the_victims_of_the_last_one(
    began: datetime | None, eviction: set[str] | None, at: datetime | None
) -> None:
    state = new_state(Settings(lag=LAG))
    state.began = began
    if eviction is not None:
        state.eviction = Eviction(head="ns/j", victims=eviction, until=NOW + LAG)
    assert may_evict_from(state) == at
