"""What the queue engine counts before it admits: sub-jobs that run, and all that a head needs."""

from dataclasses import replace
from datetime import timedelta

import pytest

from hyperjob_core.api.quantity import NANO
from hyperjob_engine.placement.place import assign
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import total
from hyperjob_queueing import reserve
from hyperjob_queueing.messages import stale_messages
from hyperjob_queueing.queues import BuiltinQueues, VolcanoGlobal
from hyperjob_queueing.reserve import begin, reserved
from hyperjob_queueing.round import schedule
from hyperjob_queueing.state import Settings, admitted, new_state, requeue, set_queues
from tests.unit.engine.builders import GPU, NOW, cluster
from tests.unit.queueing.queueworld import LAG, QueueWorld, after, queue, ran, unit, world


@pytest.mark.parametrize(
    ("max_domains", "names"),
    [(None, {"gang-0", "gang-1"}), (2, {"gang-0", "gang-1"}), (1, {"gang-0"})],
)
def test_sub_jobs_that_run_count_for_max_domains(max_domains: int | None, names: set[str]) -> None:
    """The cluster of the first sub-job is full: a second cluster needs `maxDomains` 2."""
    gang = replace(
        unit("gang", 8, 8, max_domains=max_domains),
        held=frozenset({"gang-0"}),
        made=frozenset({"gang-0"}),
        clusters={"gang-0": "a"},
    )
    made = ran([gang], a=8, b=16)
    assert admitted(made.state, "ns/gang") == names


@pytest.mark.parametrize(("max_domains", "others"), [(2, set()), (1, {"small"})])
def test_a_head_that_max_domains_keeps_where_it_is_too_large_holds_up_no_fifo_queue(
    max_domains: int, others: set[str]
) -> None:
    """Its second sub-job is larger than the cluster of the first, and fits into b after `on`."""
    first, gang = frozenset({"gang-0"}), unit("gang", 4, 16, max_domains=max_domains)
    late = replace(gang, held=first, made=first, clusters={"gang-0": "a"}), unit("small", 4, age=1)
    on = unit("on", 12, only_on=("b",))
    made = after([on], late, queue("default", dequeueStrategy="fifo"), a=8, b=16)
    assert made.running() == {"on", "gang"} | others


@pytest.mark.parametrize("sizes", [(8, 4), (4, 8), (6, 6)])
def test_room_is_kept_for_every_sub_job_of_a_head_for_which_others_make_way(
    sizes: tuple[int, int],
) -> None:
    """Of 16 GPUs `low` has 5, whose pods take a minute to end: 3 beside 8 would delay the head."""
    made = ran([unit("low", 5)], a=16, shows_after=timedelta(minutes=1))
    made.submit(unit("head", *sizes, priority=1, age=1), unit("small", 3, age=2))
    made.decide()
    assert (made.reclaimed, made.running()) == (["low"], set())
    kept = "it is kept for ns/head, first in queue default, for which others make way"
    assert kept in made.message("small")
    made.now += timedelta(minutes=1)
    made.decide()
    assert made.running() == {"head", "small"}
    assert made.message("low").startswith("first of 1")


def test_a_head_that_waits_for_pods_to_end_keeps_room_only_if_it_may_stop_others() -> None:
    """`runs` has ended, its pods hold 8 of 16 GPUs: `head` stops nobody, or would stop `low`."""
    for preempts, running in ((False, {"low", "small"}), (True, {"low"})):
        made = world([unit("runs", 8), unit("low", 4, age=1)], a=16)
        made.decide()
        made.now += 2 * LAG
        gone = made.units["ns/runs"].parts[0].request.demand
        made.end("ns/runs")
        made.leaving.append((made.now + timedelta(minutes=1), "a", gone))
        head = replace(unit("head", 12, priority=1, age=2), preempts=preempts)
        made.submit(head, unit("small", 4, age=3))
        made.decide()
        assert (made.running(), made.reclaimed) == (running, [])


def test_the_second_queue_in_turn_takes_back_its_share_while_the_first_waits_for_room() -> None:
    """x is served first, and its head has no right to the room that y has lent to z."""
    queues = queue("x", priority=1), queue("y"), queue("z", reclaimable=True)
    made = ran([unit("mine", 8, queue="x"), unit("lent", 24, queue="z")], *queues, a=32)
    made.submit(unit("large", 32, queue="x", age=1), unit("owner", 8, queue="y", age=2))
    made.decide()
    assert made.reclaimed == ["lent"]
    made.decide()
    assert made.running() == {"mine", "owner"}


def test_one_above_the_share_of_its_queue_keeps_no_room_from_those_that_fit() -> None:
    """The head of a needs all 256 GPUs, and b's work keeps it from starting for an hour."""
    queues = queue("a"), queue("b")
    made = ran([unit("theirs", 128, queue="b")], *queues, x=128, y=128)
    made.submit(unit("head", 128, 128, queue="a", age=1))
    made.submit(*(unit(f"small-{n}", 1, queue="a", age=2 + n) for n in range(20)))
    made.submit(*(unit(f"other-{n}", 1, queue="b", age=2 + n) for n in range(20)))
    made.decide()
    assert len(made.running()) == 41, "all that fit run beside the one that does not"


def test_beside_volcano_global_a_queue_as_large_as_the_clusters_is_no_limit_to_claim() -> None:
    state = new_state(Settings(lag=LAG), VolcanoGlobal())
    made = QueueWorld({"a": 32}, state=state)
    made.set_queues(queue("default"))
    on = unit("on", 16, everything=64)  # of which only those count that start together
    made.submit(on, unit("head", 32, age=1), unit("small", 16, age=2))
    made.decide()
    assert made.running() == {"on", "small"}


@pytest.mark.parametrize(("gpus", "kept"), [(16, 20), (8, 12), (7, 0)])
def test_a_head_that_must_stay_together_is_kept_room_where_as_many_as_must_start_fit(
    gpus: int, kept: int
) -> None:
    """Two of 8, 8 and 4 GPUs must start in one cluster, whichever two: 8 and 4 at the least."""
    head = unit("head", 8, 8, 4)
    one = cluster("a", gpus)
    requests = [part.request for part in head.parts]
    wants = reserve.wants(Room([one]), {"a": one.free}, requests, most=2, max_domains=1)
    assert wants.get("a", {}).get(GPU, 0) == kept * NANO


def test_part_of_a_shared_device_that_no_node_lists_takes_no_room_from_a_gang() -> None:
    one = cluster("a", 16)
    requests = [
        replace(part.request, demand={**part.request.demand, "nvidia.com/gpucores": 50 * NANO})
        for part in unit("gang", 8, 8).parts
    ]
    assert Room([one]).allows(total(request.demand for request in requests))
    assert len(assign(requests, Room([one]), max_domains=None).assigned) == 2


@pytest.mark.parametrize("max_domains", [None, 1])
def test_a_resource_that_a_head_asks_for_none_of_takes_no_room_from_it(
    max_domains: int | None,
) -> None:
    head = unit("head", 8, 8)
    one = cluster("a", 16)
    requests = [
        replace(part.request, demand={**part.request.demand, "example.com/nic": 0})
        for part in head.parts
    ]
    wants = reserve.wants(Room([one]), {"a": one.free}, requests, most=2, max_domains=max_domains)
    assert wants["a"][GPU] == 16 * NANO


def test_a_queue_is_measured_by_what_its_next_job_asks_for_before_it_uses_any() -> None:
    """Neither queue uses GPUs: 4 of them are more of a share of 2 than of a share of 6."""
    queues = queue("a-small", weight=1), queue("b-large", weight=3)
    jobs = unit("one", 4, queue="a-small"), unit("two", 4, queue="b-large", age=1)
    made = world(jobs, *queues, c=8)
    made.foreign["c"] = 4
    made.decide()
    assert made.running() == {"two"}


def test_a_sub_job_has_a_reservation_until_it_is_made_or_ends() -> None:
    made = world([unit("gang", 8, 8, 8)], a=32)
    schedule(made.state, made.clusters(), now=NOW)
    names = frozenset({"gang-0", "gang-1", "gang-2"})
    assert len(reserved(made.state, but="")["a"]) == 3
    one = replace(
        made.units["ns/gang"], held=names, made=frozenset({"gang-0"}), clusters={"gang-0": "a"}
    )
    made.submit(one)
    assert {each.name for each in reserved(made.state, but="")["a"]} == {"gang-1", "gang-2"}
    made.submit(replace(one, held=names - {"gang-1"}, ended=frozenset({"gang-1"})))
    assert {each.name for each in reserved(made.state, but="")["a"]} == {"gang-2"}


def test_a_gang_that_the_guarantee_of_another_queue_never_leaves_room_for_delays_nobody() -> None:
    """2 of 10 GPUs are beside the guarantee of y, also while a HyperJob in y uses all of it."""
    made = ran([unit("guaranteed", 8, queue="y")], queue("x"), queue("y", guarantee=8), a=10)
    made.submit(unit("gang", 2, 2, queue="x", age=1), unit("small", 2, queue="x", age=2))
    made.decide()
    assert made.running() == {"guaranteed", "small"}


def test_a_resting_hyperjob_leaves_the_line_without_the_one_behind_it() -> None:
    """It rests, so no group of the line has it: those behind it and before it stay in theirs."""
    made = world([unit("first", 8), unit("second", 8, age=1), unit("third", 8, age=2)], a=0)
    lines = made.state.lines
    for rests in ("ns/first", "ns/third"):
        entry = made.state.entries[rests]
        entry.granted = frozenset(part.name for part in entry.unit.parts)
        requeue(made.state, rests, entry.granted, now=made.now)
    assert [order.key for order in lines.line("default")] == ["ns/first", "ns/second", "ns/third"]
    for rests in ("ns/first", "ns/third"):
        made.end(rests)
        assert [order.key for order in lines.firsts("default")] == ["ns/second"]


def test_one_that_rests_is_told_that_others_use_its_queue_no_more() -> None:
    used = {"default": {GPU: 4 * NANO}}
    made = world([unit("one", 4)], a=8)
    made.state.shares.confirmer = BuiltinQueues(lambda _holds: used)
    made.round()
    requeue(made.state, "ns/one", frozenset({"one-0"}), now=made.now)
    assert [each.key for each in stale_messages(made.state, now=made.now)] == ["ns/one"]
    assert "(uses 4 of" in made.message("one")
    used = {}
    made.round()
    assert [each.key for each in stale_messages(made.state, now=made.now)] == ["ns/one"]
    assert "(uses 0 of" in made.message("one")


@pytest.mark.parametrize("later", [0, 2, 4, 7])
def test_what_others_use_of_a_queue_replaces_what_they_used_before(later: int) -> None:
    used = {"default": {GPU: 4 * NANO}}
    state = new_state(Settings(lag=LAG), BuiltinQueues(lambda _holds: used))
    set_queues(state, [queue("default")])
    begin(state, [cluster("a", 8)], now=NOW)
    used = {"default": {GPU: later * NANO}}
    for _ in range(2):
        begin(state, [cluster("a", 8)], now=NOW)
        assert state.usage.used("default").get(GPU, 0) == later * NANO
