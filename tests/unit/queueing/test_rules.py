"""Every rule of our own queue admission, one world each."""

from dataclasses import replace
from datetime import timedelta

import pytest

from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.reasons.reason import Reason
from hyperjob_queueing.admit import is_guaranteed
from hyperjob_queueing.evict import next_change
from hyperjob_queueing.messages import stale_messages
from hyperjob_queueing.queues import Queue, Tree
from hyperjob_queueing.reserve import reserved
from hyperjob_queueing.state import Settings, admitted, new_state, requeue
from hyperjob_queueing.usage import QueueUsage
from hyperjob_queueing.verdict import share_of
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.engine.builders import GPU
from tests.unit.queueing.queueworld import LAG, QueueWorld, queue, ran, unit, world

RULES: dict[str, tuple[QueueWorld, set[str], dict[str, str]]] = {
    "all that fits is admitted": (
        world([unit("one", 8, 8), unit("two", 16)]),
        {"one", "two"},
        {},
    ),
    "a gang is admitted whole or not at all": (
        world([unit("gang", 16, 16, 16)]),
        set(),
        {"gang": "; it is in no line until a cluster or a Queue changes"},
    ),
    "what is missing is told": (
        world([unit("big", 24)], a=16, b=8),
        set(),
        {"big": "big-0 needs 24 nvidia.com/gpu: a lacks 8 nvidia.com/gpu (has 16); b lacks 16"},
    ),
    "what sub-jobs lack alike is told once": (
        world([unit("wide", 24, 24, 24, 24)], a=16, b=16),
        set(),
        {
            "wide": "there is room for 0 and too little even on empty clusters: each of wide-0,"
            " wide-1, wide-2 needs 24 nvidia.com/gpu: each of a, b lacks 8 nvidia.com/gpu"
            " (has 16); and 1 more"
        },
    ),
    "minAvailable is enough; the rest comes later": (
        world([unit("elastic", 16, 16, 16, minimum=2)]),
        {"elastic"},
        {"elastic": "elastic-2 needs 16 nvidia.com/gpu: a lacks 16 nvidia.com/gpu (0 free)"},
    ),
    "capability bounds a queue": (
        world([unit("one", 8), unit("two", 8, age=1)], queue("default", gpus=12)),
        {"one"},
        {"two": "queue default uses 8 of its capability of 12 nvidia.com/gpu, 4"},
    ),
    "what asks for more than the capability waits for ever, and says so": (
        world([unit("big", 16), unit("small", 8, age=1)], queue("default", gpus=12)),
        {"small"},
        {"big": "needs 16 nvidia.com/gpu, more than queue default may ever use"},
    ),
    "a gang that asks for more than the capability waits for ever, and says so": (
        world([unit("gang", 8, 8), unit("small", 8, age=1)], queue("default", gpus=12)),
        {"small"},
        {"gang": "together need 16 nvidia.com/gpu, more than queue default may ever use: its cap"},
    ),
    "all pods count under a capability, also those beyond minAvailable of the vcjob": (
        world(
            [unit("large", 2, everything=16), unit("small", 2, age=1, everything=8)],
            queue("default", gpus=12),
        ),
        {"small"},
        {"large": "its capability is 12 nvidia.com/gpu, and pods beyond minAvailable count"},
    ),
    "all pods count under the capability of a parent too": (
        world(
            [unit("large", 2, queue="x", everything=16)],
            queue("up", gpus=12),
            queue("x", parent="up"),
        ),
        set(),
        {"large": "capability is 12 nvidia.com/gpu, and pods beyond minAvailable count"},
    ),
    "without a capability the pods beyond minAvailable count when they run": (
        world([unit("one", 2, everything=64), unit("two", 2, age=1, everything=64)]),
        {"one", "two"},
        {},
    ),
    "a parent's capability bounds its children together": (
        world(
            [unit("one", 8, queue="x"), unit("two", 8, queue="y")],
            queue("up", gpus=12),
            queue("x", parent="up"),
            queue("y", parent="up"),
        ),
        {"one"},
        {"two": "queue up uses 8 of its capability of 12"},
    ),
    "one that cannot be made for its capability keeps the place of its queue": (
        world(
            [unit("on", 8, age=0), unit("head", 16, age=1), unit("small", 4, age=2)],
            queue("default", gpus=16),
        ),
        {"on"},
        {"small": "capability"},
    ),
    "what is guaranteed to a queue is not lent": (
        world(
            [unit("one", 16, queue="x"), unit("two", 16, queue="x", age=1)],
            queue("x"),
            queue("y", guarantee=8),
        ),
        {"one"},
        {"two": "the nvidia.com/gpu that is free is guaranteed to other queues"},
    ),
    "a queue may use its own guarantee": (
        world([unit("mine", 32, queue="y")], queue("x"), queue("y", guarantee=32)),
        {"mine"},
        {},
    ),
    "an idle queue's share is lent": (
        world([unit("one", 32, queue="x")], queue("x"), queue("y", weight=99)),
        {"one"},
        {},
    ),
    "the queue of higher priority comes first": (
        world(
            [unit("low", 32, queue="x"), unit("high", 32, queue="y", age=9)],
            queue("x"),
            queue("y", priority=5),
        ),
        {"high"},
        {"low": "first of 1 in queue x"},
    ),
    "of siblings the one that uses less of its share comes first, whatever the first asks for": (
        world(
            [
                unit("large", 8, queue="x"),
                unit("small", 4, queue="x", age=1),
                unit("other", 16, queue="y", age=2),
            ],
            queue("up"),
            queue("x", parent="up"),
            queue("y", parent="up"),
            a=24,
        ),
        {"large", "other"},
        {"small": "first of 1 in queue x"},
    ),
    "of two departments the one that uses less comes first, however many queues it has": (
        world(
            [
                *(unit(f"one-{n}", 8, queue=f"x{n}", age=n) for n in range(3)),
                unit("two", 16, queue="y", age=9),
            ],
            queue("up"),
            *(queue(f"x{n}", parent="up") for n in range(3)),
            queue("down"),
            queue("y", parent="down"),
        ),
        {"one-0", "one-1", "two"},
        {"one-2": "first of 1 in queue x2"},
    ),
    "in a queue the higher PriorityClass comes first": (
        world([unit("old", 32), unit("urgent", 32, priority=1000, age=9)]),
        {"urgent"},
        {"old": "first of 1"},
    ),
    "in a queue the older comes first": (
        world([unit("new", 32, age=9), unit("old", 32, age=1)]),
        {"old"},
        {},
    ),
    "a closed queue admits nobody": (
        world([unit("one", 8)], queue("default", state="Closed")),
        set(),
        {"one": "queue default is Closed"},
    ),
    "a closing queue admits nobody": (
        world([unit("one", 8)], queue("default", state="Closing")),
        set(),
        {"one": "queue default is Closing"},
    ),
    "a queue that nobody has given a state is open": (
        world([unit("one", 8)], queue("default", state="")),
        {"one"},
        {},
    ),
    "a closed parent closes its children": (
        world([unit("one", 8, queue="x")], queue("up", state="Closed"), queue("x", parent="up")),
        set(),
        {"one": "queue up, a parent of queue x, is Closed"},
    ),
    "an absent queue is named": (
        world([unit("one", 8, queue="nowhere")]),
        set(),
        {"one": "queue nowhere does not exist; create it or name another"},
    ),
    "a queue like an absent one is named": (
        world([unit("one", 8, queue="gpu-eest")], queue("gpu-east"), queue("cpu")),
        set(),
        {"one": "queue gpu-eest does not exist; did you mean gpu-east?"},
    ),
    "an absent parent is named": (
        world([unit("one", 8, queue="x")], queue("x", parent="nowhere")),
        set(),
        {"one": "queue nowhere, a parent of queue x, does not exist"},
    ),
    "parents in a circle are named": (
        world([unit("one", 8, queue="x")], queue("x", parent="y"), queue("y", parent="x")),
        set(),
        {"one": "the parents of queue x form a cycle"},
    ),
    "jobs go to leaves": (
        world([unit("one", 8, queue="up")], queue("up"), queue("x", parent="up")),
        set(),
        {"one": "queue up has child queues; jobs go to one of x"},
    ),
    "what the Queue root says bounds all queues": (
        world(
            [unit("one", 8, queue="x"), unit("two", 8, queue="y", age=1)],
            queue("root", gpus=8),
            queue("x"),
            queue("y"),
        ),
        {"one"},
        {"two": "queue root uses 8 of its capability of 8"},
    ),
    "all queues of a HyperJob must be open": (
        world([unit("one", 8, 8, queues=("x", "y"))], queue("x"), queue("y", state="Closed")),
        set(),
        {"one": "queue y is Closed"},
    ),
    "a HyperJob in two queues counts in both": (
        world(
            [unit("one", 8, 16, queues=("x", "y")), unit("two", 8, queue="y", age=1)],
            queue("x", weight=9),
            queue("y", gpus=20),
        ),
        {"one"},
        {"two": "queue y uses 16 of its capability of 20"},
    ),
    "a small one that fits passes a big one at the head": (
        world([unit("on", 16), unit("head", 24, age=1), unit("small", 16, age=2)]),
        {"on", "small"},
        {"head": "head-0 needs 24 nvidia.com/gpu: a lacks 24 nvidia.com/gpu (0 free)"},
    ),
    "a small one passes a head that its own queue's limit would let start": (
        world(
            [unit("on", 16), unit("head", 24, age=1), unit("small", 8, age=2)],
            queue("default", gpus=40),
        ),
        {"on", "small"},
        {},
    ),
    "a head that waits for quota keeps it from its own queue": (
        world(
            [unit("on", 16), unit("head", 16, age=1), unit("small", 8, age=2)],
            queue("default", gpus=24),
        ),
        {"on"},
        {"small": "queue default uses 16 of its capability of 24"},
    ),
    "one that never fits is told what it lacks": (
        world([unit("on", 16), unit("never", 64, age=1), unit("small", 16, age=2)]),
        {"on", "small"},
        {"never": "never-0 needs 64 nvidia.com/gpu"},
    ),
    "a fifo queue lets nobody pass": (
        world(
            [unit("on", 8), unit("big", 32, age=1), unit("small", 8, age=2)],
            queue("default", dequeueStrategy="fifo"),
        ),
        {"on"},
        {"small": "waits behind ns/big: the queue's dequeueStrategy is fifo"},
    ),
    "in a fifo queue nobody passes what waits beyond minAvailable": (
        world(
            [unit("elastic", 16, 16, minimum=1), unit("small", 8, age=1)],
            queue("default", dequeueStrategy="fifo"),
            a=24,
        ),
        {"elastic"},
        {"small": "waits behind ns/elastic: the queue's dequeueStrategy is fifo"},
    ),
    "one that never fits holds up no fifo queue": (
        world(
            [unit("never", 64), unit("over", 32, age=1), unit("small", 8, age=2)],
            queue("default", dequeueStrategy="fifo", gpus=24),
        ),
        {"small"},
        {},
    ),
    "one that never fits claims no capability": (
        world(
            [
                unit("on", 32, only_on=("a",)),
                unit("never", 40, age=1),
                unit("small", 8, age=2),
            ],
            queue("default", gpus=48),
            a=32,
            b=16,
        ),
        {"on", "small"},
        {},
    ),
    "the head of one queue holds back no other queue": (
        world(
            [
                unit("on", 16, queue="x"),
                unit("head", 32, queue="y", age=1),
                unit("more", 8, queue="x", age=2),
            ],
            queue("x"),
            queue("y"),
        ),
        {"on", "more"},
        {"head": "head-0 needs 32 nvidia.com/gpu"},
    ),
    "maxDomains is kept": (
        world([unit("together", 24, 24, max_domains=1)], a=32, b=32),
        set(),
        {"together": "2 sub-jobs must start together, there is room for 1"},
    ),
    "of unequal sub-jobs the smallest hold up a fifo queue where only they will fit": (
        world(
            [
                unit("on", 16),
                unit("head", 24, 8, 8, minimum=2, age=1),
                unit("small", 8, age=2),
            ],
            queue("default", gpus=40, dequeueStrategy="fifo"),
            a=28,
        ),
        {"on"},
        {"small": "waits behind ns/head"},
    ),
    "what must stand together holds up a fifo queue if as many as must start will fit": (
        world(
            [
                unit("on", 16),
                unit("head", *[16] * 3, minimum=2, max_domains=1, age=1),
                unit("small", 8, age=2),
            ],
            queue("default", dequeueStrategy="fifo"),
        ),
        {"on"},
        {"small": "waits behind ns/head"},
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule: str) -> None:
    made, running, messages = RULES[rule]
    made.decide()
    assert made.running() == running
    assert made.decide() == [], "one round admits all it can"
    for name, text in messages.items():
        assert text in made.message(name), made.message(name)


def test_one_sub_job_that_waits_for_room_is_no_gang() -> None:
    made = ran([unit("on", 16), unit("solo", 32, age=1)])
    assert made.message("solo") == (
        f"first of 1 in queue default (uses 16 of its share of 32 {GPU}): solo-0 needs 32 {GPU}:"
        f" a lacks 16 {GPU} (16 free)"
    )


def test_a_gang_that_waits_for_others_to_end_is_not_called_too_large() -> None:
    made = ran([unit("on", 16), unit("pair", 16, 16, age=1), unit("never", 32, 32, age=2)])
    assert made.verdict("pair").reason is not Reason.EXCEEDS_CLUSTERS
    assert made.verdict("never").reason is Reason.EXCEEDS_CLUSTERS
    assert made.message("never").startswith(
        "2 sub-jobs must start together, there is room for 1 and too little even on empty clusters"
    ), "whatever runs there now"


@pytest.mark.parametrize(
    ("waits", "reason"),
    [
        (unit("solo", 41, age=2), Reason.EXCEEDS_CLUSTERS),
        (unit("solo", 40, age=2), Reason.QUEUE_LIMIT_REACHED),
        (unit("solo", 49, age=2), Reason.EXCEEDS_QUEUE),
        (unit("solo", 17, only_on=("b",), age=2), Reason.EXCEEDS_CLUSTERS),
        (unit("solo", 8, only_on=("nowhere",), age=2), Reason.NO_MATCHING_NODE),
        (unit("pair", 24, 24, max_domains=1, age=2), Reason.EXCEEDS_CLUSTERS),
        (unit("one of two", 41, 40, minimum=1, age=2), Reason.QUEUE_LIMIT_REACHED),
    ],
)
def test_what_no_cluster_can_ever_hold_says_so_behind_a_full_queue_too(
    waits: QueuedHyperJob, reason: Reason
) -> None:
    made = ran([unit("on", 40, only_on=("c",))], queue("default", gpus=48), a=32, b=16, c=40)
    made.submit(waits)
    made.decide()
    assert made.verdict(waits.key.removeprefix("ns/")).reason is reason


def test_what_can_run_no_more_is_told_at_once_when_full_nodes_are_gone() -> None:
    made = ran([unit("on", 16)], a=16)
    made.submit(unit("waits", 16, age=1))
    made.decide()
    made.message("waits")
    assert made.verdict("waits").reason is Reason.INSUFFICIENT_CAPACITY
    assert list(stale_messages(made.state, now=made.now)) == []
    made.gpus["a"] = 8
    made.decide()
    assert [each.key for each in stale_messages(made.state, now=made.now)] == ["ns/waits"]
    assert made.verdict("waits").reason is Reason.EXCEEDS_CLUSTERS


def test_what_cannot_run_has_the_numbers_of_today_and_stays_outside_of_the_line() -> None:
    made = ran([unit("large", 48)], a=8)
    assert "(has 8)" in made.message("large")
    made.gpus["a"] = 16
    made.submit(unit("waits", 16, age=1), unit("on", 8))
    made.decide()
    assert next(stale_messages(made.state, now=made.now)).key == "ns/large"
    assert "(has 16)" in made.message("large")
    assert made.message("waits").startswith("first of 1 ")


def test_what_its_queue_may_take_now_and_no_cluster_can_is_told_so_at_once() -> None:
    made = ran([unit("large", 48)], queue("default", gpus=8), a=32, b=32)
    made.message("large")
    assert made.verdict("large").reason is Reason.EXCEEDS_QUEUE
    assert list(stale_messages(made.state, now=made.now)) == []
    made.set_queues(queue("default", gpus=48))
    made.decide()
    (stale,) = stale_messages(made.state, now=made.now)
    assert (stale.key, stale.wait) == ("ns/large", timedelta())
    assert made.verdict("large").reason is Reason.EXCEEDS_CLUSTERS


def test_what_never_had_room_is_told_at_once_when_a_cluster_has_grown() -> None:
    made = ran([unit("on", 8)], a=8)
    line = [unit(f"w{number:02}", 16, age=number) for number in range(1, 31)]
    made.submit(*line, unit("small", 8, age=31))
    made.decide()
    for each in (*line, unit("small", 8)):
        made.message(each.key.removeprefix("ns/"))
    assert made.verdict("w30").reason is Reason.EXCEEDS_CLUSTERS
    assert list(stale_messages(made.state, now=made.now)) == []
    made.gpus["a"] = 16
    made.decide()
    stale = [each.key for each in stale_messages(made.state, now=made.now) if not each.wait]
    assert stale == [each.key for each in line]
    assert made.verdict("w30").reason is Reason.INSUFFICIENT_CAPACITY


@pytest.mark.parametrize("how", ["no cluster", "no capability", "fifo"])
def test_what_can_never_run_has_no_place_holds_nothing_and_comes_back(how: str) -> None:
    spec: dict[str, object] = {"dequeueStrategy": "fifo"} if how == "fifo" else {}
    limit = 32 if how == "no capability" else None
    made = ran([unit("on", 32)], queue("default", gpus=limit, **spec), a=32)
    made.submit(unit("never", 64, age=1), unit("next", 32, age=2), unit("last", 32, age=3))
    made.decide()
    told = made.message("never")
    assert told.endswith("; it is in no line until a cluster or a Queue changes")
    assert "64" in told
    assert [made.message(name)[:13] for name in ("next", "last")] == [
        "first of 2 in",
        "number 2 of 2",
    ]
    made.submit(unit("like it", 64, age=0))
    made.decide()
    assert made.message("next").startswith("first of 2")
    made.end("ns/on")
    made.decide()
    assert made.running() == {"next"}
    if how == "no capability":
        made.set_queues(queue("default", gpus=96))
    made.gpus["a"] = 96
    made.decide()
    assert "like it" in made.running()
    assert made.message("never").startswith("first of 2")


def test_without_clusters_a_queue_is_entitled_to_nothing() -> None:
    made = QueueWorld({})
    made.set_queues(queue("default"))
    made.decide()
    share = share_of(made.state, "default", {"cpu": 1})
    assert (share.used, share.entitled) == (0, 0)


def test_a_gang_is_guaranteed_within_the_guarantee_of_one_queue_alone() -> None:
    made = ran([], queue("x", guarantee=16), queue("y", guarantee=16))
    within, above = unit("j", 8, 8, queue="x"), unit("j", 8, 16, queue="x")
    spread = unit("j", 8, 8, queues=("x", "y"))
    found = [is_guaranteed(each.parts, made.state.usage) for each in (within, above, spread)]
    assert found == [True, False, False]


@pytest.mark.parametrize(
    ("demand", "covered"),
    [
        ({GPU: 4, "cpu": 4, "memory": 9}, True),
        ({GPU: 4, "cpu": 5}, False),
        ({GPU: 0, "cpu": 4}, True),
        ({GPU: 0, "memory": 9}, False),
    ],
)
def test_a_guarantee_covers_each_of_its_resources_that_is_asked_for(
    demand: dict[str, int], covered: bool
) -> None:
    usage = QueueUsage(Tree([Queue(name="x", guarantee={GPU: 16, "cpu": 4})], {}))
    usage.add("x", {GPU: 9})
    assert usage.is_guaranteed("x", demand) is covered


def test_reservations_that_move_to_another_cluster_keep_no_more_room_than_they_take() -> None:
    made = world([unit("gang", 8, 8)], a=4, b=16)
    assert made.round() == ["ns/gang"]
    made.gpus = {"a": 24}  # b is gone before its sub-jobs are made
    made.submit(unit("small", 8, age=1))
    assert "ns/small" in made.round()
    assert set(made.state.entries["ns/gang"].reserved_clusters.values()) == {"a"}


def test_nobody_is_admitted_before_queues_are_known() -> None:
    made = QueueWorld({"a": 32})
    made.submit(unit("one", 8))
    assert made.decide() == []
    assert "queues are not known yet" in made.message("one")


def test_an_ended_sub_job_gives_its_share_back_before_the_others() -> None:
    made = ran([unit("one", 8, 8), unit("two", 8, age=1)], queue("default", gpus=16))
    known = made.units["ns/one"]
    left = frozenset({"one-1"})
    made.submit(replace(known, held=left, made=left, ended=frozenset({"one-0"})))
    made.decide()
    assert made.running() == {"one", "two"}


def test_a_share_is_kept_while_a_sub_job_is_made_again() -> None:
    made = ran([unit("one", 32), unit("two", 32, age=1)])
    made.submit(replace(made.units["ns/one"], made=frozenset()))
    assert made.decide() == []
    assert "two-0 needs 32 nvidia.com/gpu" in made.message("two")
    assert reserved(made.state, but="ns/two")["a"]
    assert not reserved(made.state, but="ns/one")


def test_a_round_admits_no_more_while_enough_is_not_made_yet() -> None:
    made = QueueWorld({"a": 32}, state=new_state(Settings(lag=LAG, most_in_flight=3)))
    made.set_queues(queue("default"))
    made.submit(*(unit(f"j{number}", 2, 2, age=number) for number in range(5)))
    assert made.round() == ["ns/j0", "ns/j1"], "the second fills it"
    assert list(stale_messages(made.state, now=made.now)) == [], "no round has come to the others"
    assert made.round() == []
    made.make("ns/j0")
    made.make("ns/j1")
    assert made.decide() == ["ns/j2", "ns/j3"]
    assert made.decide() == ["ns/j4"]
    assert made.state.in_flight == 0


def test_grants_survive_until_they_are_seen_and_are_not_given_twice() -> None:
    made = world([unit("one", 32), unit("two", 32, age=1)])
    assert made.round() == ["ns/one"]
    assert made.round() == []


def test_a_grant_that_comes_to_nothing_is_taken_back_and_tried_again_later() -> None:
    made = world([unit("one", 32), unit("two", 32, age=1)])
    made.round()
    rest = requeue(made.state, "ns/one", frozenset({"one-0"}), now=made.now)
    assert made.decide() == ["ns/two"], "others do not wait for it"
    made.end("ns/two")
    assert made.decide() == []
    until = rfc3339(made.now + rest)
    assert made.message("one").endswith(
        f"was admitted, but its sub-jobs could not be created; the queue retries from {until}"
    )
    assert next_change(made.state, now=made.now) == rest
    made.now += rest
    assert made.decide() == ["ns/one"]
    assert requeue(made.state, "ns/one", frozenset({"one-0"}), now=made.now) is None


def test_a_gang_too_large_for_a_queue_that_is_closed_hears_of_the_queue_first() -> None:
    made = ran([unit("large", 16)], queue("default", gpus=8, state="Closed"))
    assert made.verdict("large").reason is Reason.QUEUE_NOT_OPEN


def test_places_far_behind_are_looked_at_every_half_minute_and_those_in_front_at_once() -> None:
    units = [unit(f"job{index}", 32, age=index) for index in range(60)]
    made = ran(units)
    assert len(list(stale_messages(made.state, now=made.now))) == 59
    for each in units[1:]:
        made.message(each.key[3:])
    for index in range(11):  # one after the other goes
        made.end(f"ns/job{index}")
        made.decide()
    in_front = {stale.key for stale in stale_messages(made.state, now=made.now)}
    assert in_front == {f"ns/job{index}" for index in range(12, 22)}
    made.now += timedelta(seconds=31)
    made.end("ns/job11")
    made.decide()
    behind = {stale.key for stale in stale_messages(made.state, now=made.now)}
    assert "ns/job59" in behind


@pytest.mark.parametrize(
    ("name", "longest"), [("job1", [64, 64, 64, 64]), ("job29", [64, 128, 256, 512, 512])]
)
def test_a_full_queue_and_full_clusters_in_turns_change_messages_ever_more_seldom(
    name: str, longest: list[int]
) -> None:
    units = [unit(f"job{index}", 32, age=index) for index in range(30)]
    made = ran(units, queue("default", gpus=32), a=64)
    texts, pauses = {made.message(name).partition(": ")[2]}, []
    for number in range(6 + len(longest)):
        is_full = number % 2 == 0
        made.foreign["a"] = 32 if is_full else 0
        made.set_queues(queue("default", gpus=64 if is_full else 32))
        made.decide()
        found = {stale.key: stale.wait for stale in stale_messages(made.state, now=made.now)}
        pauses.append(found[f"ns/{name}"].total_seconds())
        made.now += found[f"ns/{name}"]
        texts.add(made.message(name).partition(": ")[2])
    assert pauses == [1, 2, 4, 8, 16, 32, *longest]
    assert len(texts) == 2


def test_queues_share_by_weight_deserved_capability_and_guarantee() -> None:
    table: list[tuple[list[Queue], dict[str, int]]] = [
        ([queue("x", weight=1), queue("y", weight=3)], {"x": 8, "y": 24}),
        ([queue("x", gpus=4), queue("y", weight=3)], {"x": 4, "y": 28}),
        ([queue("x", deserved=20), queue("y"), queue("z", weight=2)], {"x": 20, "y": 4, "z": 8}),
        ([queue("x", guarantee=24), queue("y")], {"x": 24, "y": 8}),
        (  # what the capability of x leaves goes to y too, whose guarantee it exceeds
            [queue("x", gpus=4), queue("y", guarantee=12), queue("z")],
            {"x": 4, "y": 14, "z": 14},
        ),
        (
            [queue("up", weight=3), queue("x", parent="up"), queue("y", parent="up"), queue("z")],
            {"up": 24, "x": 12, "y": 12, "z": 8},
        ),
    ]
    for queues, shares in table:
        made = world([], *queues)
        made.decide()
        entitled = made.state.usage.tree.entitled("nvidia.com/gpu")
        gpus = {name: entitled[name] // 10**9 for name in shares}
        assert gpus == shares


def test_what_is_counted_as_taken_is_not_kept_a_second_time() -> None:
    taken: set[str] = set()
    made = QueueWorld({"a": 32}, state=new_state(Settings(lag=LAG, counts=taken.__contains__)))
    made.set_queues(queue("default"))
    made.submit(unit("one", 16), unit("two", 16))
    assert made.round() == ["ns/one", "ns/two"]
    for key, other in (("ns/one", "two-0"), ("ns/two", "one-0")):
        assert [each.name for each in reserved(made.state, but=key)["a"]] == [other]
    taken |= {"ns/one-0", "ns/two-0"}
    assert not reserved(made.state, but="")


def test_a_closed_queue_keeps_only_its_own_sub_jobs_where_the_others_are_enough() -> None:
    queues = queue("default"), queue("shut", state="Closed")
    elastic = unit("j", 4, 4, 4, queues=("default", "default", "shut"), minimum=2)
    made = ran([elastic, unit("gang", 4, 4, queues=("default", "shut"))], *queues, a=32)
    made.decide()
    assert admitted(made.state, "ns/j") == {"j-0", "j-1"}
    assert "queue shut is Closed" in made.message("j")
    assert not admitted(made.state, "ns/gang")


def test_each_sub_job_that_waits_for_room_is_told_what_the_clusters_lack() -> None:
    small = world([unit("gang", 24, 24)], a=32, b=8)
    small.decide()
    told = small.verdict("gang").unplaced
    assert told == {
        "gang-0": "has room on a, waits until 2 sub-jobs can be placed together",
        "gang-1": (
            "needs 24 nvidia.com/gpu: a lacks 16 nvidia.com/gpu (8 free);"
            " b lacks 16 nvidia.com/gpu (has 8)"
        ),
    }
