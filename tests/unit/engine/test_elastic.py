"""HyperJobs with minReplicas: the size at a start, and the size that is left after a loss."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.overlay import sizes_of
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.expansion.auto import resolve
from hyperjob_engine.expansion.expand import expand
from hyperjob_engine.lifecycle.failures import judge
from hyperjob_engine.lifecycle.loss import losses_of
from hyperjob_engine.model.line import Chosen
from hyperjob_engine.model.observed import Cluster, Observed, QueueVerdict
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.planned import CreateChild
from hyperjob_engine.model.subjobs import choices, choosing
from hyperjob_engine.plan import plan
from hyperjob_engine.queueing.choose import largest
from hyperjob_engine.queueing.read import remaining, unit_of
from hyperjob_engine.queueing.round import schedule
from hyperjob_engine.queueing.state import Settings, new_state, set_queues, update
from hyperjob_engine.queueing.verdict import choice_in
from hyperjob_engine.steps.settle import scale
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    observed,
    policy,
    vcjob_status,
)
from tests.unit.engine.queueworld import LAG, queue, unit

NAMES = [f"hj-trainer-{index}" for index in range(9)]


def elastic(least: int, most: int, *, status: Object | None = None, **spec: Any) -> Object:
    """Make a HyperJob of at most so many sub-jobs of 8 GPUs."""
    return hyperjob(group(replicas=most, minReplicas=least), status=status, **spec)


def size(number: int, reason: str = "LargestWithRoom") -> list[Object]:
    return [
        {"replicatedJob": "trainer", "name": str(number), "reason": reason, "message": "it has"}
    ]


@pytest.mark.parametrize(
    ("fields", "sizes"),
    [
        pytest.param({"replicas": 4}, [], id="no fewest"),
        pytest.param({"replicas": 4, "minReplicas": 2}, [4, 3, 2], id="each number between"),
        pytest.param({"replicas": 2, "minReplicas": 2}, [2], id="only one"),
        pytest.param({"minReplicas": 1}, [1], id="one by default"),
        pytest.param({"replicas": 2, "minReplicas": 3}, [], id="refused by the webhook"),
        pytest.param(
            {"replicas": 40, "minReplicas": 8},
            [40, 37, 34, 31, 28, 25, 22, 19, 16, 13, 10, 8],
            id="equal steps where there are more than 16",
        ),
        pytest.param(
            {"replicas": 4, "minReplicas": 2, "alternatives": [{"name": "a"}]},
            [],
            id="refused beside alternatives",
        ),
    ],
)
def test_the_sizes_of_a_replicated_job(fields: Object, sizes: list[int]) -> None:
    assert sizes_of({"name": "trainer", **fields}) == sizes
    made = parse_hyperjob(hyperjob({**group(), "replicas": None, **fields}))
    if "alternatives" not in fields:
        assert [each.replicas for each in made.replicated_jobs[0].options] == sizes


@given(st.integers(1, 300), st.integers(1, 300))
def test_there_are_at_most_16_sizes_and_both_ends_are_among_them(one: int, other: int) -> None:
    least, most = sorted((one, other))
    found = sizes_of({"replicas": most, "minReplicas": least})
    assert (found[0], found[-1]) == (most, least)
    assert len(found) <= 16
    assert sorted(set(found), reverse=True) == found


@pytest.mark.parametrize(
    ("room", "taken", "why"),
    [
        pytest.param(9, 0, Chosen.LARGEST, id="room for all"),
        pytest.param(3, 1, Chosen.LARGEST, id="room for some"),
        pytest.param(2, 2, Chosen.LARGEST, id="room for the fewest"),
        pytest.param(1, 2, Chosen.SMALLEST, id="room for fewer"),
    ],
)
def test_the_largest_size_with_room_is_taken(room: int, taken: int, why: Chosen) -> None:
    assert largest([4, 3, 2], lambda number: number <= room) == (taken, why)


@settings(max_examples=300, deadline=None)
@given(
    free=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    capability=st.none() | st.integers(0, 12).map(lambda number: number * 8),
    bounds=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    rigid=st.integers(0, 3),
)
def test_it_starts_with_as_many_sub_jobs_as_have_room_and_its_queue_allows(
    free: list[int], capability: int | None, bounds: tuple[int, int], rigid: int
) -> None:
    least, most = sorted(bounds)
    state = new_state(Settings(lag=LAG))
    set_queues(state, [queue("default", gpus=capability)])
    clusters = [cluster(f"c{place}", gpus) for place, gpus in enumerate(free)]
    before = unit("rigid", *[8] * rigid, age=0) if rigid else None
    if before is not None:
        update(state, before.key, before, now=NOW)
    waiting = unit_of(observed(elastic(least, most), clusters=clusters))
    assert waiting is not None
    update(state, waiting.key, waiting, now=NOW)
    schedule(state, clusters, now=NOW)
    slots = sum(gpus // 8 for gpus in free)
    allowed = slots if capability is None else capability // 8
    if before is not None and rigid <= min(slots, allowed):
        slots, allowed = slots - rigid, allowed - rigid
    fitting = min(slots, allowed, most)
    entry = state.entries[waiting.key]
    assert len(entry.holding) == (fitting if fitting >= least else 0)
    held = sum(len(each.holding) for each in state.entries.values())
    assert state.usage.used("default").get(GPU, 0) == held * 8 * NANO, "it is charged what runs"
    assert entry.unit.choice == (("trainer", str(max(fitting, least))),)


def test_it_waits_as_the_smallest_size_and_grows_with_the_room_until_it_starts() -> None:
    state = new_state(Settings(lag=LAG))
    set_queues(state, [queue("default")])
    waiting = unit_of(observed(elastic(2, 4)))
    assert waiting is not None
    update(state, waiting.key, waiting, now=NOW)
    schedule(state, [cluster("a", 8, total=32)], now=NOW)
    assert choice_in(state, waiting.key) == (("trainer", "2"),)
    schedule(state, [cluster("a", 24, total=32)], now=NOW)
    assert choice_in(state, waiting.key) == (("trainer", "3"),)
    assert len(state.entries[waiting.key].holding) == 3


def test_the_status_has_the_size_before_a_sub_job_exists() -> None:
    verdict = QueueVerdict(admitted=frozenset(NAMES[:3]), chosen=Chosen.LARGEST)
    seen = observed(elastic(2, 4), clusters=(cluster("a", 24),))
    first = plan(
        replace(seen, hyperjob=choosing(seen.hyperjob, (("trainer", "3"),)), verdict=verdict)
    )
    assert first.status is not None
    assert (first.actions, first.requeue_after) == ((), timedelta())
    (written,) = first.status["alternatives"]
    assert (written["name"], written["reason"]) == ("3", "LargestWithRoom")
    again = observed(elastic(2, 4, status=first.status), clusters=(cluster("a", 24),))
    second = plan(replace(again, verdict=verdict))
    assert [each.name for each in second.actions if isinstance(each, CreateChild)] == NAMES[:3]


def test_room_alone_decides_about_a_size() -> None:
    made = elastic(2, 4)
    made["spec"]["replicatedJobs"][0]["templateSpec"]["runningEstimate"] = "2h"
    assert remaining(parse_hyperjob(made)) is None
    assert [dict(each)["trainer"] for each in choices(parse_hyperjob(made))] == ["4", "3", "2"]


def restarted(
    number: int,
    *clusters: Cluster,
    seconds: int = 0,
    least: int = 2,
    minutes: float = 0,
    **spec: Any,
) -> Observed:
    """Make a HyperJob whose sub-jobs are about to start again after a restart."""
    since = rfc3339(NOW - timedelta(seconds=seconds, minutes=minutes))
    records = [
        {
            "name": name,
            "replicatedJob": "trainer",
            "index": index,
            "phase": "Unplaced",
            "reason": "Restarting",
            "attempt": 1,
            "admitted": True,
            "lastTransitionTime": since,
        }
        for index, name in enumerate(NAMES[:number])
    ]
    status = {"alternatives": size(number), "jobs": records}
    seen = observed(elastic(least, 4, status=status, **spec), clusters=clusters)
    return replace(seen, verdict=QueueVerdict(admitted=frozenset(NAMES[:number])))


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        pytest.param(restarted(4, cluster("a", 32)), 4, id="room for all"),
        pytest.param(
            restarted(4, cluster("a", 16), cluster("b", 16, unusable="lost")),
            2,
            id="the other cluster is lost",
        ),
        pytest.param(restarted(4, cluster("a", 24)), 3, id="the other cluster is gone"),
        pytest.param(restarted(4, cluster("a", 8, total=8)), 4, id="fewer than it needs at least"),
        pytest.param(
            restarted(4, cluster("a", 16, total=32), seconds=3),
            4,
            id="clusters may not show yet that its pods have ended",
        ),
        pytest.param(
            restarted(4, cluster("a", 16, total=32), seconds=11), 2, id="others took the room"
        ),
        pytest.param(
            restarted(4, cluster("a", 16), cluster("b", 16), maxDomains=1),
            2,
            id="in as few clusters as it may use",
        ),
        pytest.param(restarted(2, cluster("a", 32)), 2, id="it does not grow"),
    ],
)
def test_what_is_left_after_a_restart_goes_on_with_its_share(seen: Observed, left: int) -> None:
    first = plan(seen)
    assert first.status is not None
    (written,) = first.status["alternatives"]
    assert written["name"] == str(left)
    assert [each["name"] for each in first.status["jobs"]] == NAMES[:left]
    had = len(seen.hyperjob.records)
    if left == had:
        return
    assert written["reason"] == "LargestThatIsLeft"
    assert (first.actions, first.requeue_after) == ((), timedelta())
    assert all(each["admitted"] for each in first.status["jobs"])
    raw = elastic(2, 4, status=first.status)
    again = replace(observed(raw, clusters=seen.clusters), verdict=seen.verdict)
    second = plan(again)
    assert [each.name for each in second.actions if isinstance(each, CreateChild)] == NAMES[:left]
    assert second.status is not None
    assert second.status["alternatives"] == [written], "the reason stays"


def test_the_queue_charges_a_smaller_size_once_the_status_has_it() -> None:
    state = new_state(Settings(lag=LAG))
    set_queues(state, [queue("default")])
    seen = restarted(4, cluster("a", 16), cluster("b", 16, unusable="lost"))
    before = unit_of(seen)
    assert before is not None
    update(state, before.key, before, now=NOW)
    assert state.usage.used("default")[GPU] == 32 * NANO
    decided = plan(seen)
    assert decided.status is not None
    raw = elastic(2, 4, status=decided.status)
    again = observed(raw, clusters=seen.clusters)
    after = unit_of(replace(again, hyperjob=choosing(again.hyperjob, choice_in(state, before.key))))
    assert after is not None
    update(state, after.key, after, now=NOW)
    assert after.choice == (("trainer", "2"),)
    assert state.usage.used("default")[GPU] == 16 * NANO


@pytest.mark.parametrize(
    ("spec", "again", "spent"),
    [
        pytest.param({}, 2, 0, id="without a policy"),
        pytest.param({"failurePolicy": {"maxRestarts": 0}}, 2, 0, id="no program has failed"),
        pytest.param(
            {
                "failurePolicy": {
                    "maxRestarts": 3,
                    "rules": [{"action": "RestartJob", "onClusterLost": True}],
                }
            },
            1,
            1,
            id="a rule of the user decides",
        ),
        pytest.param({"quorum": 1}, 1, 0, id="the others train on"),
    ],
)
def test_a_lost_cluster_restarts_all_that_are_one_world(
    spec: Object, again: int, spent: int
) -> None:
    objects = []
    for name, where in zip(NAMES[:2], "ab", strict=True):
        running = vcjob_status("Running", {"running": 8})
        objects += [
            job(name, phase="Running", pods={"running": 8}),
            policy(name, cluster=where),
            binding(name, cluster=where, status=running),
        ]
    lost = cluster("b", 0, unusable="lost", not_ready_since=NOW - timedelta(hours=1))
    seen = observed(
        elastic(1, 2, status={"alternatives": size(2)}, **spec),
        *objects,
        clusters=(cluster("a", 0, total=8), lost),
    )
    draft = scale(seen, resolve(seen), expand(seen.hyperjob))
    decided = judge(seen, draft.children, losses_of(seen, draft.children))
    assert (len(decided.again), decided.spent) == (again, spent)
