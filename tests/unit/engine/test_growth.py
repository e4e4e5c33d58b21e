"""HyperJobs with minReplicas that take more sub-jobs while they run: when, how many, how often."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.status import MOST_SPEEDS
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.plan import plan
from hyperjob_queueing.evict import next_change
from hyperjob_queueing.queues import NoConfirmation, Queue
from hyperjob_queueing.read import unit_of
from hyperjob_queueing.round import schedule
from hyperjob_queueing.state import Settings, new_state, set_queues, update
from hyperjob_queueing.verdict import verdict_of
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.engine.builders import GPU, NOW, Object, cluster, job_status, observed
from tests.unit.engine.elasticworld import NAMES, contest, elastic, running, running_objects
from tests.unit.queueing.queueworld import LAG, QueueWorld, queue, unit

KEY = "default/hj"
SAVES = {"checkpoint": {"directory": "/c"}}
HOUR = timedelta(hours=1)


def granted(made: QueueWorld) -> int | None:
    """Play a round; return the number of sub-jobs that it grants the HyperJob, if more."""
    decided = schedule(made.state, made.clusters(), now=made.now)
    size = verdict_of(made.state, KEY).grows_to
    assert (KEY in decided.keys) is bool(size)
    return int(dict(size)["trainer"]) if size else None


def other(name: str, *gpus: int, **fields: Any) -> QueuedHyperJob:
    return unit(name, *gpus, age=9, **fields)


ONE = running(1, most=4, quorum=1)
GAVE = {"most": 4, "quorum": 1, "reason": "MadeWay"}
ROOM = {"a": 32}
GROWTH: dict[str, tuple[Observed, tuple[QueuedHyperJob, ...], dict[str, int], int | None]] = {
    "room for all": (ONE, (), ROOM, 4),
    "room for some": (ONE, (), {"a": 24}, 3),
    "no room": (ONE, (), {"a": 8}, None),
    "it has all": (running(4, most=4, quorum=1), (), {"a": 16, "b": 48}, None),
    "another starts first": (ONE, (other("o", 16),), ROOM, 2),
    "another waits that this room does not help": (ONE, (other("o", 64),), ROOM, 4),
    "beyond its wish": (running(1, most=4, wish=1, quorum=1), (other("o", 64),), ROOM, 4),
    "what it gave up nine minutes ago": (running(2, resized=9, **GAVE), (), ROOM, None),
    "what it gave up ten minutes ago": (running(2, resized=10, **GAVE), (), ROOM, 4),
    "a quorum takes at once what it lost": (
        running(1, **GAVE | {"reason": "LargestThatIsLeft"}),
        (),
        ROOM,
        4,
    ),
    "no checkpoint": (running(1, most=4, resized=99), (), ROOM, None),
    "no saved step": (running(1, most=4, resized=99, **SAVES), (), ROOM, None),
}


@pytest.mark.parametrize(("seen", "others", "room", "grows"), GROWTH.values(), ids=list(GROWTH))
def test_a_hyperjob_that_runs_takes_the_room_that_no_other_could_start_with(
    seen: Observed, others: tuple[QueuedHyperJob, ...], room: dict[str, int], grows: int | None
) -> None:
    assert granted(contest(seen, *others, **room)) == grows


def test_without_queue_admission_it_grows_too() -> None:
    queued = unit_of(running(1, most=4, quorum=1))
    state = new_state(Settings(lag=LAG), NoConfirmation())
    set_queues(state, [])
    update(state, KEY, queued, now=NOW)
    schedule(state, [cluster("a", 24, total=32)], now=NOW)
    assert dict(verdict_of(state, KEY).grows_to) == {"trainer": "4"}


def one_world(*, ran: float, start: float, resized: float = 99, wish: int = 4) -> QueuedHyperJob:
    """Make two sub-jobs of four that have run for so many minutes and began in `start` minutes."""
    queued = unit_of(running(2, most=4, wish=wish, step=70, resized=resized, **SAVES))
    since = rfc3339(NOW - timedelta(minutes=ran))
    return replace(queued, since=since, restart=timedelta(minutes=start))


def ends_in(minutes: float, queued: QueuedHyperJob) -> QueuedHyperJob:
    return replace(queued, ends=rfc3339(NOW + timedelta(minutes=minutes)))


WORTH: dict[str, tuple[QueuedHyperJob, int | None]] = {
    "it gains enough": (one_world(ran=60, start=1), 4),
    "slow to start": (one_world(ran=60, start=16), None),
    "much of its work is not saved": (
        replace(one_world(ran=60, start=1), kept=rfc3339(NOW - timedelta(minutes=20))),
        None,
    ),
    "much beyond its wish": (one_world(ran=540, start=8, wish=2), 4),
    "not much beyond it": (one_world(ran=540, start=9, wish=2), None),
    "just begun": (one_world(ran=9, start=1 / 60), None),
    "just changed": (one_world(ran=60, start=1 / 60, resized=9), None),
    "its end is near": (ends_in(3, one_world(ran=60, start=1)), None),
    "its end is far": (ends_in(540, one_world(ran=60, start=16)), 4),
}


@pytest.mark.parametrize(("queued", "grows"), WORTH.values(), ids=list(WORTH))
def test_one_world_grows_only_if_that_is_worth_its_restart(
    queued: QueuedHyperJob, grows: int | None
) -> None:
    made = contest(running(2, most=4), a=48)
    made.submit(queued)
    assert granted(made) == grows
    if grows is None:
        wait = next_change(made.state, now=made.now)
        assert wait is not None
        assert timedelta() < wait <= timedelta(minutes=10), "it looks again, and not all the time"


@pytest.mark.parametrize(("wish", "grows"), [(4, 4), (3, 3), (2, None)])
def test_one_world_takes_no_surplus_while_another_waits(wish: int, grows: int | None) -> None:
    made = contest(running(2, most=4), other("o", 64), a=64)
    queued = unit_of(running(2, most=4, wish=wish, step=70, resized=99, **SAVES))
    made.submit(replace(queued, since=rfc3339(NOW - HOUR), restart=timedelta(minutes=1)))
    assert granted(made) == grows


def test_measured_speeds_say_what_a_larger_size_gains() -> None:
    seen = running(2, most=4, step=70, resized=99, **SAVES)
    speeds = [
        {"alternatives": f"trainer={number}", "stepsPerSecond": speed}
        for number, speed in ((2, "1"), (4, "1.1"), (3, "x"))
    ]
    status = seen.hyperjob.status | {"speeds": speeds}
    queued = unit_of(replace(seen, hyperjob=replace(seen.hyperjob, status=status)))
    assert [(dict(each.size)["trainer"], each.pace) for each in queued.more] == [
        ("4", 1.1),
        ("3", 1.5),
    ]


def test_the_status_has_the_time_at_each_size() -> None:
    seen = running(2, most=4, quorum=1)
    known = [
        {"alternatives": f"trainer={at}", "milliseconds": at, "accelerators": 8 * at}
        for at in range(3, 60)
    ]
    known[0]["since"] = micro_time(NOW - HOUR)
    status = seen.hyperjob.status | {"speeds": known}
    decided = plan(replace(seen, hyperjob=replace(seen.hyperjob, status=status)))
    found = {each["alternatives"]: each for each in decided.status["speeds"]}
    assert found["trainer=2"].items() >= {"accelerators": 16, "since": micro_time(NOW)}.items()
    assert "since" not in found["trainer=3"]
    assert found["trainer=3"]["milliseconds"] == 3_600_003
    assert len(found) == MOST_SPEEDS
    assert min(each.get("milliseconds", 99) for each in found.values()) == 30
    again = replace(seen, hyperjob=replace(seen.hyperjob, status=decided.status))
    later = plan(replace(again, now=NOW + HOUR)).status
    assert later["speeds"] == decided.status["speeds"], "no write while nothing changes"


@pytest.mark.parametrize(
    ("queues", "others", "grows"),
    [
        pytest.param((queue("default", gpus=40),), (), 3, id="never above the capability"),
        pytest.param(
            (queue("default"), queue("own", guarantee=40)), (), 3, id="not the guarantee of others"
        ),
        pytest.param(
            (queue("default"), queue("own")),
            (other("o", 64, queue="own"),),
            4,
            id="another queue waits for what is never free",
        ),
        pytest.param(
            (queue("default", weight=1), queue("own", weight=3)),
            (other("o", 24, queue="own", only_on=("b",)),),
            2,
            id="only its share while another queue waits",
        ),
    ],
)
def test_its_queue_bounds_what_it_takes(
    queues: tuple[Queue, ...], others: tuple[QueuedHyperJob, ...], grows: int | None
) -> None:
    made = contest(running(1, most=4, quorum=1), *others, queues=queues, a=32, b=32)
    one = frozenset({"r-0"})
    before = replace(unit("r", 16, queue=queues[-1].name), held=one, made=one)
    made.submit(replace(before, clusters={"r-0": "b"}))
    assert granted(made) == grows


def test_a_granted_size_keeps_its_room_until_the_status_has_it() -> None:
    seen = running(1, most=4, quorum=1)
    made = contest(seen, a=32)
    assert granted(made) == 4
    made.submit(other("o", 8))
    assert granted(made) == 4
    assert not made.state.entries["ns/o"].holding
    decided = plan(replace(seen, verdict=verdict_of(made.state, KEY)))
    raw = elastic(1, 4, status=decided.status, quorum=1)
    after = unit_of(observed(raw, *running_objects(1)))
    update(made.state, KEY, after, now=NOW)
    assert not verdict_of(made.state, KEY).grows_to
    assert len(made.state.entries[KEY].holding) == 4


def test_a_grant_that_no_pass_records_lapses() -> None:
    made = contest(running(1, most=4, quorum=1), a=32)
    assert granted(made) == 4
    made.submit(other("o", 8))
    made.now += timedelta(seconds=11)
    assert granted(made) == 3
    assert made.state.entries["ns/o"].holding


def grown(number: int, most: int, **fields: Any) -> Observed:
    """Make a HyperJob that a round has granted all that it would like."""
    seen = running(number, most=most, **fields)
    verdict = replace(seen.verdict, grows_to=(("trainer", str(most)),))
    return replace(seen, verdict=verdict, clusters=(*seen.clusters, cluster("z", 8 * most)))


def test_one_world_stops_at_a_saved_step_and_starts_again_with_more() -> None:
    first = plan(grown(2, 4, step=70, **SAVES))
    jobs = first.status["jobs"]
    assert [(each["name"], each.get("attempt", 0)) for each in jobs] == [
        (name, int(index < 2)) for index, name in enumerate(NAMES[:4])
    ]
    assert all(each["admitted"] for each in jobs)
    assert (first.status["stop"]["cause"], first.status["stop"]["jobs"]) == ("Resized", NAMES[:2])
    assert first.status["checkpoint"]["resumeStep"] == 70
    assert not first.status.get("restarts"), "no program has failed"
    queued = unit_of(observed(elastic(1, 4, status=first.status, **SAVES), *running_objects(2)))
    assert queued.held == {*NAMES[:4]}, "its share is its own while it stops"


@pytest.mark.parametrize(
    ("minutes", "left"),
    [pytest.param(0, 3, id="not at once"), pytest.param(1, 1, id="after a minute")],
)
def test_with_a_quorum_what_finds_no_room_gives_its_share_back(minutes: int, left: int) -> None:
    seen = running(1, most=3, quorum=1)
    since = rfc3339(NOW - timedelta(minutes=minutes))
    known: list[Object] = [job_status(index, admitted=True) for index in range(3)]
    status = seen.hyperjob.status | {
        "jobs": [each | {"lastTransitionTime": since} for each in known],
        "alternatives": [{"replicatedJob": "trainer", "name": "3", "reason": "Grew"}],
    }
    raw = elastic(1, 3, status=status, quorum=1)
    again = observed(raw, *running_objects(1), clusters=(cluster("a", 0, total=16),))
    verdict = replace(seen.verdict, admitted=frozenset(NAMES[:3])) if seen.verdict else None
    decided = plan(replace(again, verdict=verdict))
    (written,) = decided.status["alternatives"]
    assert written["name"] == str(left)
    if left == 3:
        assert decided.requeue_after is not None


@settings(max_examples=200, deadline=None)
@given(
    number=st.integers(1, 4),
    more=st.integers(0, 4),
    rooms=st.lists(st.integers(0, 40), min_size=1, max_size=3),
    asks=st.lists(st.integers(1, 5).map(lambda each: each * 8), max_size=3),
    capability=st.none() | st.integers(1, 9).map(lambda each: each * 8),
)
def test_growth_takes_the_most_that_fits_and_leaves_no_other_that_could_start(
    number: int, more: int, rooms: list[int], asks: list[int], capability: int | None
) -> None:
    most = number + more
    seen = running(number, most=most, quorum=1)
    places = dict.fromkeys("abcd"[: (number + 1) // 2], 16)
    places |= {f"r{place}": gpus for place, gpus in enumerate(rooms)}
    limit = None if capability is None else max(capability, number * 8)
    others = [unit(f"o{place}", gpus, age=place) for place, gpus in enumerate(asks)]
    made = contest(seen, *others, queues=(queue("default", gpus=limit),), **places)
    free = {each.name: each.free for each in made.clusters()}
    size = granted(made) or number
    left = {name: amounts[GPU] // NANO for name, amounts in free.items()}
    for key in (each.key for each in others):
        for _, where in made.state.entries[key].holding.values():
            left[where] -= made.units[key].parts[0].request.demand[GPU] // NANO
    used = 8 * number + sum(
        asks[place] for place in range(len(asks)) if made.state.entries[f"ns/o{place}"].holding
    )
    slots = sum(room // 8 for room in left.values())
    allowed = slots if limit is None else min(slots, (limit - used) // 8)
    assert size == min(most, number + allowed)
