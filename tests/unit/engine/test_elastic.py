"""HyperJobs with minReplicas: the size at a start, and the size that is left after a loss."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.overlay import sizes_of
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.expansion.auto import resolve
from hyperjob_engine.expansion.expand import expand
from hyperjob_engine.lifecycle.decisions import losses_of
from hyperjob_engine.lifecycle.failures import judge
from hyperjob_engine.model.observed import Cluster, Observed, QueueVerdict
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.planned import CreateChild, DeleteChild
from hyperjob_engine.model.subjobs import choices, choosing
from hyperjob_engine.plan import plan
from hyperjob_engine.steps.settle import scale
from hyperjob_queueing.read import remaining, unit_of
from hyperjob_queueing.round import schedule
from hyperjob_queueing.state import Settings, new_state, set_queues, update
from hyperjob_queueing.verdict import choice_in, verdict_of
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.engine import views
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    child,
    cluster,
    group,
    hyperjob,
    job_status,
    observed,
)
from tests.unit.engine.elasticworld import (
    NAMES,
    PLACES,
    contest,
    elastic,
    running,
    running_objects,
    size,
)
from tests.unit.queueing.queueworld import LAG, making_way, queue, unit, world


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
        pytest.param({"replicas": 2, "maxReplicas": 4}, [4, 3, 2], id="more than it would like"),
        pytest.param(
            {"replicas": 3, "minReplicas": 1, "maxReplicas": 4}, [4, 3, 2, 1], id="both ways"
        ),
        pytest.param({"replicas": 3, "maxReplicas": 2}, [], id="refused too"),
        pytest.param(
            {"replicas": 19, "minReplicas": 8, "maxReplicas": 40},
            [40, 37, 34, 31, 28, 25, 22, 19, 16, 13, 10, 8],
            id="what it would like is among them",
        ),
    ],
)
def test_the_sizes_of_a_replicated_job(fields: Object, sizes: list[int]) -> None:
    assert sizes_of({"name": "trainer", **fields}) == sizes
    made = parse_hyperjob(hyperjob({**group(), "replicas": None, **fields}))
    assert [each.replicas for each in made.replicated_jobs[0].options] == sizes


@given(st.lists(st.integers(1, 300), min_size=3, max_size=3).map(sorted))
def test_there_are_at_most_16_sizes_and_all_that_it_names_are_among_them(named: list[int]) -> None:
    least, wanted, most = named
    found = sizes_of({"replicas": wanted, "minReplicas": least, "maxReplicas": most})
    assert (found[0], found[-1]) == (most, least)
    assert wanted in found
    assert len(found) <= 16
    assert sorted(set(found), reverse=True) == found


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
    update(state, waiting.key, waiting, now=NOW)
    schedule(state, [cluster("a", 8, total=32)], now=NOW)
    assert choice_in(state, waiting.key) == (("trainer", "2"),)
    schedule(state, [cluster("a", 24, total=32)], now=NOW)
    assert choice_in(state, waiting.key) == (("trainer", "3"),)
    assert len(state.entries[waiting.key].holding) == 3


@pytest.mark.parametrize(("others", "taken"), [((), 4), ((64,), 2)], ids=["alone", "others wait"])
def test_it_starts_beyond_what_it_would_like_only_if_nobody_else_waits(
    others: tuple[int, ...], taken: int
) -> None:
    state = new_state(Settings(lag=LAG))
    set_queues(state, [queue("default")])
    waiting = unit_of(observed(elastic(1, 4, wish=2)))
    assert waiting.choice == (("trainer", "2"),)
    for each in (waiting, *(unit("o", gpus) for gpus in others)):
        update(state, each.key, each, now=NOW)
    schedule(state, [cluster("a", 32, total=64)], now=NOW)
    assert choice_in(state, waiting.key) == (("trainer", str(taken)),)


def test_room_alone_decides_about_a_size() -> None:
    made = elastic(2, 4)
    made["spec"]["replicatedJobs"][0]["templateSpec"]["runningEstimate"] = "2h"
    assert remaining(parse_hyperjob(made)) is None
    assert [dict(each)["trainer"] for each in choices(parse_hyperjob(made), lambda _: ())] == [
        "4",
        "3",
        "2",
    ]


def restarted(
    number: int,
    *clusters: Cluster,
    seconds: int = 0,
    least: int = 2,
    **spec: Any,
) -> Observed:
    """Make a HyperJob whose sub-jobs are about to start again after a restart."""
    since = rfc3339(NOW - timedelta(seconds=seconds))
    records = [
        job_status(
            index,
            phase="Unplaced",
            reason="Restarting",
            attempt=1,
            admitted=True,
            lastTransitionTime=since,
        )
        for index in range(number)
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
    assert second.status["alternatives"] == [written], "the reason stays"


def test_the_queue_charges_a_smaller_size_once_the_status_has_it() -> None:
    state = new_state(Settings(lag=LAG))
    set_queues(state, [queue("default")])
    seen = restarted(4, cluster("a", 16), cluster("b", 16, unusable="lost"))
    before = unit_of(seen)
    update(state, before.key, before, now=NOW)
    assert state.usage.used("default")[GPU] == 32 * NANO
    decided = plan(seen)
    raw = elastic(2, 4, status=decided.status)
    again = observed(raw, clusters=seen.clusters)
    after = unit_of(replace(again, hyperjob=choosing(again.hyperjob, choice_in(state, before.key))))
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
    objects = [*child(0, "Running"), *child(1, "Running", on="b")]
    lost = cluster("b", 0, unusable="lost", not_ready_since=NOW - timedelta(hours=1))
    seen = observed(
        elastic(1, 2, status={"alternatives": size(2)}, **spec),
        *objects,
        clusters=(cluster("a", 0, total=8), lost),
    )
    draft = scale(seen, resolve(seen), expand(seen.hyperjob))
    decided = judge(seen, draft.children, losses_of(seen, draft.children))
    assert (len(decided.again), decided.spent) == (again, spent)


SAVES: Object = {"checkpoint": {"directory": "/c"}}


def urgent(*gpus: int, **fields: Any) -> QueuedHyperJob:
    return unit("urgent", *gpus, priority=1000, age=50, **fields)


@pytest.mark.parametrize(
    ("least", "asks", "victims"),
    [
        pytest.param(1, (8,), {"default/hj": (("trainer", "3"),)}, id="one sub-job is enough"),
        pytest.param(1, (8, 8), {"default/hj": (("trainer", "2"),)}, id="two are needed"),
        pytest.param(1, (8, 8, 8), {"default/hj": (("trainer", "1"),)}, id="all that it can spare"),
        pytest.param(1, (8, 8, 8, 8), {"default/hj": ()}, id="it stops as a whole"),
        pytest.param(3, (8, 8), {"default/hj": ()}, id="its fewest are not enough"),
        pytest.param(1, (16,), {"default/hj": (("trainer", "2"),)}, id="room in one cluster"),
    ],
)
def test_a_more_urgent_hyperjob_takes_what_another_can_spare(
    least: int, asks: tuple[int, ...], victims: dict[str, Any]
) -> None:
    made = contest(running(4, least=least), urgent(*asks), a=16, b=16)
    made.round()
    assert making_way(made.state) == victims


def test_one_whose_sizes_are_all_beyond_its_wish_keeps_its_size_while_another_waits() -> None:
    made = world([], a=8)
    for age in range(2):
        made.submit(unit(f"other-{age}", 8, age=age))
    large, larger = (
        replace(unit("e", *[4] * n, age=9), elastic=True, beyond=True, choice=(("t", str(n)),))
        for n in (1, 2)
    )
    made.submit(replace(larger, variants=(larger, large)))
    made.round()
    assert made.state.entries["ns/e"].unit.choice == (("t", "2"),)


@pytest.mark.parametrize(
    ("only_on", "asks", "gone"),
    [
        pytest.param(("a",), (8, 8), {1}, id="one of the cluster"),
        pytest.param(("a",), (24,), {0, 1}, id="all of the cluster"),
        pytest.param(("b",), (16,), {2, 3}, id="all of the other"),
        pytest.param((), (24,), {0, 1}, id="where a larger one has room then"),
        pytest.param((), (8, 8), {3}, id="that of the highest index, where any will do"),
    ],
)
@pytest.mark.parametrize("spec", [{"quorum": 1}, SAVES], ids=["quorum", "world"])
def test_the_sub_jobs_go_where_the_other_may_run(
    spec: Object, only_on: tuple[str, ...], asks: tuple[int, ...], gone: set[int]
) -> None:
    seen = running(4, **spec)
    made = contest(seen, urgent(*asks, only_on=only_on), a=24, b=16)
    made.round()
    verdict = verdict_of(made.state, "default/hj")
    assert verdict.leaving == {NAMES[each] for each in gone}
    decided = plan(replace(seen, verdict=verdict))
    left = [NAMES[index] for index in range(4) if index not in gone]
    assert [each["name"] for each in decided.status["jobs"]] == left
    raw = elastic(1, 4, status=decided.status, **spec)
    following = plan(observed(raw, *running_objects(4), clusters=seen.clusters))
    if "quorum" in spec:
        assert "stop" not in decided.status, "the others train on"
        assert not any(each.get("attempt") for each in decided.status["jobs"])
        assert {each.name for each in following.actions} == set(NAMES[:4]) - set(left)


def test_what_an_elastic_hyperjob_can_spare_goes_before_a_whole_one() -> None:
    made = contest(running(2), urgent(8), a=16, b=8)
    rigid = replace(
        unit("rigid", 8, age=1), held=frozenset({"rigid-0"}), made=frozenset({"rigid-0"})
    )
    made.submit(replace(rigid, clusters={"rigid-0": "b"}, since=rfc3339(NOW)))
    made.round()
    assert making_way(made.state) == {"default/hj": (("trainer", "1"),)}


@pytest.mark.parametrize(
    ("head", "victims"),
    [
        pytest.param(unit("o", 8), {"default/hj": (("trainer", "3"),)}, id="any other"),
        pytest.param(
            unit("o", 8, 8, priority=-9),
            {"default/hj": (("trainer", "2"),)},
            id="not urgent",
        ),
        pytest.param(unit("o", 8, 8, 8), None, id="but nothing that it would like"),
        pytest.param(
            unit("o", 8, 8, 8, priority=9), {"default/hj": (("trainer", "1"),)}, id="an urgent one"
        ),
        pytest.param(
            unit("o", 8, queue="other"), {"default/hj": (("trainer", "3"),)}, id="another queue"
        ),
    ],
)
def test_what_is_beyond_its_wish_is_for_any_that_waits(
    head: QueuedHyperJob, victims: dict[str, Any] | None
) -> None:
    queues = (queue("default"), queue("other"))
    made = contest(running(4, least=1, wish=2), head, queues=queues, a=16, b=16)
    made.round()
    assert making_way(made.state) == (victims or {})
    if victims and head.priority <= 0:
        verdict = verdict_of(made.state, "default/hj")
        assert verdict.preempted == "waits for the room that this one has beyond what it would like"


def test_surplus_makes_way_for_one_behind_a_head_that_it_does_not_help() -> None:
    made = contest(running(4, least=1, wish=2), unit("large", 32), unit("small", 8), a=16, b=48)
    rigid = replace(unit("rigid", 32, age=1), held=frozenset({"rigid-0"}), since=rfc3339(NOW))
    made.submit(replace(rigid, made=rigid.held, clusters={"rigid-0": "b"}))
    made.round()
    assert making_way(made.state) == {"default/hj": (("trainer", "3"),)}
    assert verdict_of(made.state, "default/hj").reclaimed_for == "ns/small"
    assert made.round() == [], "it goes on"
    made.submit(replace(unit_of(running(3, least=1, wish=2)) or rigid, key="default/hj"))
    assert made.round() == ["ns/small"]


@pytest.mark.parametrize("beside", ["a", "z"])
def test_surplus_goes_first_from_nodes_that_others_use_too(beside: str) -> None:
    """Surplus has a node alone, with what `beside` gives up last."""
    made, held = world([unit("waits", 1)], a=24), {}
    for name, number in ((beside, 2), ("other", 1), ("k", 1), ("m", 1)):
        names = [f"{name}-{index}" for index in range(number)]
        held |= {each: views.held(each, 4, job=each) for each in names}
        known = replace(unit(name, *[4] * number), held=frozenset(names), made=frozenset(names))
        if name != "other":
            spare = tuple(((("t", str(left)),), {names[-1 - left]: None}) for left in range(number))
            known = replace(known, elastic=True, spare=spare[::-1], surplus=number)
        made.submit(replace(known, clusters=dict.fromkeys(names, "a"), since=rfc3339(NOW)))
    nodes = [
        views.node("1", 8, held[f"{beside}-0"], held["other-0"]),
        views.node("2", 12, held["k-0"], held["m-0"], held[f"{beside}-1"]),
    ]
    schedule(made.state, [views.seen(views.view(nodes))], now=made.now)
    assert making_way(made.state) == {f"ns/{beside}": (("t", "1"),)}


def test_surplus_goes_before_what_others_can_spare() -> None:
    made = contest(running(4, least=1), urgent(8), a=16, b=16, c=16)
    names = [f"more-{index}" for index in range(2)]
    spare = (((("t", "1"),), {names[1]: None}),)
    held = frozenset(names)
    more = replace(unit("more", 8, 8, priority=500), held=held, made=held, elastic=True)
    where = dict.fromkeys(names, "c")
    made.submit(
        replace(
            more, clusters=where, choice=(("t", "2"),), spare=spare, surplus=1, since=rfc3339(NOW)
        )
    )
    made.round()
    assert making_way(made.state) == {"ns/more": (("t", "1"),)}


def test_a_head_beyond_patience_takes_what_another_can_spare() -> None:
    made = contest(running(4, least=1, step=70, **SAVES), unit("o", 8), a=16, b=16)
    made.now += timedelta(hours=49)
    entry = made.state.entries["default/hj"]
    later_kept = micro_time(made.now - timedelta(minutes=1))
    made.submit(replace(entry.unit, kept=later_kept, since=rfc3339(NOW)))
    made.round()
    assert making_way(made.state) == {"default/hj": (("trainer", "3"),)}


def test_one_that_made_way_with_a_part_keeps_its_place_in_the_line() -> None:
    decided = plan(asked(running(4, step=70, **SAVES), 2))
    again = unit_of(observed(elastic(1, 4, status=decided.status, **SAVES)))
    assert not again.again


def test_a_queue_takes_back_no_more_than_was_lent_and_spares_the_rest() -> None:
    lender = unit("lender", 8, queue="own", age=9)
    queues = (queue("default", weight=1, reclaimable=True), queue("own", weight=1))
    made = contest(running(4), lender, queues=queues, a=16, b=16)
    made.round()
    assert making_way(made.state) == {"default/hj": (("trainer", "3"),)}


def asked(seen: Observed, number: int) -> Observed:
    verdict = QueueVerdict(
        admitted=frozenset(seen.hyperjob.records),
        reclaimed_for="default/urgent",
        preempted="has a higher priority",
        shrinks_to=(("trainer", str(number)),),
    )
    return replace(seen, verdict=verdict)


def test_one_world_stops_at_a_saved_step_and_starts_smaller_with_its_share() -> None:
    checkpoint = {"directory": "/c", "gracePeriodSeconds": 30}
    first = plan(asked(running(4, step=70, checkpoint=checkpoint), 2))
    (written,) = first.status["alternatives"]
    assert (written["name"], written["reason"]) == ("2", "MadeWay")
    found = first.status["jobs"]
    assert [(each["name"], each["attempt"]) for each in found] == [(n, 1) for n in NAMES[:2]]
    assert all(each["admitted"] for each in found)
    assert first.status["stop"]["cause"] == "Preempted"
    made_way = "trainer goes from 4 to 2: the sub-jobs beyond it made way for another"
    assert any(each.note.startswith(made_way) for each in first.events if each.reason == "Resized")
    two = "hj-trainer-0, hj-trainer-1: is preempted by default/urgent"
    assert first.status["state"]["message"].count(two) == 1
    assert sorted(first.status["stop"]["jobs"]) == NAMES[:4], "all save their step"
    assert first.status["checkpoint"]["resumeStep"] == 70
    assert not first.status.get("restarts"), "no program has failed"
    raw = elastic(1, 4, status=first.status, checkpoint=checkpoint)
    seen = observed(raw, *running_objects(4), clusters=(cluster("a", 0, total=16),))
    stopping = plan(replace(seen, verdict=QueueVerdict(admitted=frozenset(NAMES[:2]))))
    gone = {each.name for each in stopping.actions if isinstance(each, DeleteChild)}
    assert gone == set(NAMES[:4])


@pytest.mark.parametrize(
    ("left", "waits"),
    [
        pytest.param({NAMES[0]: 0, NAMES[1]: 0}, False, id="no pod is left"),
        pytest.param({NAMES[0]: 0, NAMES[1]: 1}, True, id="what it gave up still saves"),
        pytest.param({NAMES[0]: 0}, True, id="its member is not known"),
    ],
)
def test_the_others_start_after_what_was_given_up_has_saved(
    left: dict[str, int], waits: bool
) -> None:
    seen = restarted(1, cluster("a", 8), least=1, checkpoint={"directory": "/c"})
    stop = {"cause": "Preempted", "until": rfc3339(NOW + timedelta(minutes=1)), "jobs": NAMES[:2]}
    raw = elastic(1, 4, status={**seen.hyperjob.status, "stop": stop})
    raw["spec"]["checkpoint"] = {"directory": "/c"}
    again = replace(observed(raw, clusters=seen.clusters), verdict=seen.verdict, pods_left=left)
    decided = plan(again)
    assert (decided.status["stop"] is not None) is waits


def test_a_victim_that_has_its_new_size_makes_way_for_nobody_any_more() -> None:
    seen = running(4)
    made = contest(seen, urgent(8), a=16, b=16)
    made.round()
    verdict = verdict_of(made.state, "default/hj")
    assert verdict.shrinks_to == (("trainer", "3"),)
    decided = plan(replace(seen, verdict=verdict))
    raw = elastic(1, 4, status=decided.status)
    after = unit_of(observed(raw, clusters=seen.clusters))
    update(made.state, after.key, after, now=NOW)
    assert not made.state.eviction.victims
    assert not verdict_of(made.state, "default/hj").reclaimed_for
    kept = made.state.entries["default/hj"].reserved_clusters
    assert kept == dict(zip(NAMES[:3], PLACES, strict=False)), "it starts again where it ran"


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3)), min_size=1, max_size=3),
    asks=st.lists(st.sampled_from([8, 16]), min_size=1, max_size=4),
)
def test_what_makes_way_is_enough_and_nothing_of_it_can_be_spared(
    sizes: list[tuple[int, int]], asks: list[int]
) -> None:
    made = world([], a=16, b=16, c=16)
    slots = [name for name in "abc" for _ in range(2)]
    for number, (least, more) in enumerate(sizes):
        total = min(least + more, len(slots))
        if total < least:
            continue
        names = [f"e{number}-{index}" for index in range(total)]
        where = {name: slots.pop(0) for name in names}
        spare = tuple(
            ((("t", str(left)),), {names[left]: None}) for left in range(total - 1, least - 1, -1)
        )
        held = frozenset(names)
        each = unit(f"e{number}", *[8] * total, age=number)
        each = replace(each, held=held, made=held, clusters=where, spare=spare, elastic=True)
        made.submit(replace(each, since=rfc3339(NOW), choice=(("t", str(total)),)))
    before = made.clusters()
    made.submit(urgent(*asks))
    schedule(made.state, before, now=made.now)
    free = {each.name: each.free[GPU] // NANO for each in before}
    fits = sum(room // 16 for room in free.values()) >= asks.count(16) and sum(
        free.values()
    ) >= sum(asks)
    if made.state.entries["ns/urgent"].holding:
        assert fits
        return
    victims = making_way(made.state)
    stopped = []
    for key, taken in victims.items():
        entry = made.state.entries[key]
        left = int(taken[0][1]) if taken else 0
        going = sorted(entry.holding)[left:]
        assert not taken or left >= len(entry.holding) - len(entry.unit.spare), "never below"
        stopped += [entry.holding[name][1] for name in going]
    for name in stopped:
        free[name] += 8
    if victims:
        assert sum(free.values()) >= sum(asks), "the head can start"
        assert sum(free.values()) - sum(asks) < 48
