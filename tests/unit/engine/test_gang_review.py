"""The second look at places: keep, move, wait; and what Karmada could not schedule."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.status import JobStatus, Rejection
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.gang.gang import PinnedPlace, Review, check_rejection, domains, review
from hyperjob_engine.model.observed import Cluster
from hyperjob_engine.model.planned import Plan, Repin
from hyperjob_engine.model.subjobs import child_of
from hyperjob_engine.placement.room import Room
from hyperjob_engine.plan import plan
from hyperjob_engine.resources import Resources, fits, parse_resources, subtract, total
from tests.support.structural import assert_status
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    binding,
    child,
    cluster,
    group,
    hyperjob,
    job_status,
    observed,
    policy,
    request,
)
from tests.unit.engine.views import job, node, seen, task, view


def seat(
    name: str, pin: str, gpus: int = 8, *, released: bool = True, **fields: object
) -> PinnedPlace:
    held = bool(fields.pop("held", True))
    wanted = request(name, gpus, **fields)
    return PinnedPlace(request=wanted, pin=pin, held=held, released=released)


def look(*seats: PinnedPlace, on: list[Cluster], max_domains: int | None = None) -> Review:
    return review(seats, Room(on), standing=(), max_domains=max_domains)


def test_a_place_that_karmada_refuses_is_left_though_there_is_room() -> None:
    refused = seat("x", "a", excluded=frozenset({"a"}))
    assert look(refused, on=[cluster("a"), cluster("b")]).moves == {"x": "b"}


def test_only_places_on_usable_clusters_that_nothing_excludes_count_as_domains() -> None:
    known = observed(clusters=(cluster("a"), cluster("b", unusable="yes"), cluster("c")))
    places = [
        seat("x", "a"),
        seat("y", "b"),
        seat("z", "gone"),
        seat("v", "c", excluded=frozenset({"c"})),
    ]
    assert domains(known, places) == [("trainer", "a")]


def test_what_may_be_counted_twice_moves_nobody_but_is_waited_for() -> None:
    doubled = replace(cluster("a", -8), settling=parse_resources({GPU: "8", "pods": "8"}))
    found = look(seat("x", "a"), on=[doubled, cluster("b", 8)])
    assert (found.ready, dict(found.moves)) == (frozenset(), {})
    (waits,) = found.short.values()
    counts = "the status of a counts the pods that have just started there"
    assert waits.text == f"waits until {counts}"


def test_what_was_made_a_moment_ago_goes_though_others_may_be_counted_twice() -> None:
    """It waited at its gate for as long as what had started before it took to settle."""
    doubled = replace(cluster("a", -8), settling=parse_resources({GPU: "8", "pods": "8"}))
    fresh = [replace(seat(name, "a"), fresh=True) for name in ("x", "y")]
    assert look(fresh[0], on=[doubled]) == Review(ready=frozenset({"x"}))
    crowded = look(*fresh, on=[replace(doubled, free=cluster("a", -16).free)])
    assert len(crowded.ready) == 1, "no more go than there is room for"


def test_what_the_queue_released_keeps_its_place_before_what_it_did_not() -> None:
    seats = [seat("x", "a", released=False), seat("y", "a")]
    found = look(*seats, on=[cluster("a", -8)])
    assert found.ready == {"y"}
    assert set(found.short) == {"x"}


def test_a_gang_that_must_stay_together_moves_together() -> None:
    seats = [seat("x", "a"), seat("y", "a")]
    found = look(*seats, on=[cluster("a", -8), cluster("b", 16)], max_domains=1)
    assert found == Review(moves={"x": "b", "y": "b"})


def test_what_keeps_its_place_makes_way_when_all_fit_only_so() -> None:
    """Only b takes the large one, and the small one sits there."""
    seats = [seat("small", "b", 4), seat("large", "a", 12)]
    found = look(*seats, on=[cluster("a", -4), cluster("b", 8)])
    assert found == Review(moves={"small": "a", "large": "b"})


def test_of_those_that_are_placed_anew_some_keep_their_place() -> None:
    seats = [seat("small", "b", 4), seat("large", "a", 12), seat("other", "c", 16)]
    found = look(*seats, on=[cluster("a", -4), cluster("b", 8), cluster("c", 0)])
    assert found == Review(ready=frozenset({"other"}), moves={"small": "a", "large": "b"})


amounts = st.integers(-12, 20)


@given(
    st.lists(st.tuples(amounts, st.booleans()), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(1, 8), st.booleans(), st.booleans()), max_size=6
    ),
    st.one_of(st.none(), st.integers(1, 3)),
)
def test_nobody_is_ready_or_moves_without_room(
    rooms: list[tuple[int, bool]],
    wishes: list[tuple[int, int, bool, bool]],
    max_domains: int | None,
) -> None:
    clusters = [
        cluster(f"c{i}", size, unusable="" if usable else "is not Ready")
        for i, (size, usable) in enumerate(rooms)
    ]
    seats = [
        seat(f"s{i}", f"c{pin}", gpus, held=held, released=released)
        for i, (pin, gpus, held, released) in enumerate(wishes)
    ]
    found = look(*seats, on=clusters, max_domains=max_domains)
    assert found == look(*seats, on=clusters[::-1], max_domains=max_domains)
    usable = {item.name: item for item in clusters if item.usable}
    free: dict[str, Resources] = {name: item.free for name, item in usable.items()}
    for item in seats:
        if item.held and item.pin in free:
            free[item.pin] = total((free[item.pin], item.request.demand))
    for item in seats:
        where = item.pin if item.name in found.ready else found.moves.get(item.name, "")
        if where:
            assert fits(item.request.demand, free[where])
            free[where] = subtract(free[where], item.request.demand)
    told = {*found.ready, *found.moves, *found.short}
    assert {item.name for item in seats if item.held} <= told


def test_the_reservation_of_a_sub_job_that_stays_counts_once_on_the_nodes() -> None:
    tasks = task(1, 4, name="main", cpu=4), task(1, 4, cpu=2)
    stays, moves = job(*tasks, name="x"), job(*tasks, name="y")
    known = seen(view([node("n0"), node("n1")]), stays)
    places = [
        PinnedPlace(request=request, pin=pin, held=True, released=True)
        for request, pin in ((stays, "a"), (moves, "gone"))
    ]
    assert look(*places, on=[known]) == Review(ready=frozenset({"x"}), moves={"y": "a"})


A, B, SMALL = cluster("a"), cluster("b"), cluster("b", 7)


def refused(*, pin: str = "a", reason: str = "NoClusterFit") -> list[Object]:
    found = binding(unscheduled=(reason, "0/2 clusters are available: 2 no room."))
    found["spec"]["placement"] = policy(cluster="a")["spec"]["placement"]
    return [*child(0, on=pin)[:2], found]


def decide(
    *objects: Object, rejections: list[Object] | None = None, clusters: object = (A, B)
) -> Plan:
    record: Object = job_status()
    if rejections:
        record["rejections"] = rejections
    raw = hyperjob(group(replicas=1), status={"jobs": [record]})
    return plan(observed(raw, *objects, clusters=clusters))  # type: ignore[arg-type]


def rejections(decided: Plan) -> list[Object]:
    assert_status(decided.status)
    return decided.status["jobs"][0].get("rejections", [])


@pytest.mark.parametrize("reason", ["NoClusterFit", "Unschedulable", "SchedulerError"])
def test_a_refusal_must_stand_before_it_counts(reason: str) -> None:
    decided = decide(*refused(reason=reason))
    assert decided.actions == ()
    assert rejections(decided) == [{"cluster": "a", "since": rfc3339(NOW)}]
    assert decided.requeue_after == timedelta(seconds=10)


def test_then_the_cluster_is_left_out_and_the_sub_job_moves() -> None:
    since = [{"cluster": "a", "since": rfc3339(NOW - timedelta(seconds=10))}]
    decided = decide(*refused(), rejections=since)
    (move,) = decided.actions
    assert isinstance(move, Repin)
    assert move.cluster == "b"
    until = rfc3339(NOW + timedelta(minutes=1))
    assert rejections(decided) == [{"cluster": "a", "times": 1, "retryTime": until}]
    assert decided.status["jobs"][0]["message"].endswith(
        "; Karmada could not schedule it on a, left out until 03:05:05Z"
    )
    assert [(event.reason, event.note) for event in decided.events if event.type == "Warning"] == [
        (
            "Unschedulable",
            "Karmada could not schedule hj-trainer-0 on a: left out until 2026-01-02T03:05:05Z",
        )
    ]


def test_a_refusal_of_an_earlier_pin_is_not_this_ones() -> None:
    """The policy says b; the binding that is read still says a."""
    left_out = [{"cluster": "a", "times": 1, "retryTime": rfc3339(NOW + timedelta(minutes=1))}]
    decided = decide(*refused(pin="b"), rejections=left_out)
    assert decided.actions == ()
    assert rejections(decided) == left_out


def test_it_is_not_put_back_before_the_time_has_come() -> None:
    left_out = [{"cluster": "a", "times": 1, "retryTime": rfc3339(NOW + timedelta(minutes=1))}]
    full = decide(*refused(), rejections=left_out, clusters=(A, SMALL))
    assert full.actions == ()
    assert full.requeue_after == timedelta(minutes=1)
    assert full.waits_for_capacity
    freed = decide(*refused(), rejections=left_out, clusters=(A, B))
    assert [type(action) for action in freed.actions] == [Repin]


@pytest.mark.parametrize(("times", "minutes"), [(0, 1), (1, 2), (3, 8), (20, 60)])
def test_each_further_refusal_counts_longer_up_to_a_limit(times: int, minutes: int) -> None:
    since = [{"cluster": "a", "times": times, "since": rfc3339(NOW - timedelta(seconds=10))}]
    until = rfc3339(NOW + timedelta(minutes=minutes))
    found = rejections(decide(*refused(), rejections=since))
    assert found == [{"cluster": "a", "times": times + 1, "retryTime": until}]
    placed = refused()  # Karmada may leave the cluster in the ResourceBinding that it refuses
    placed[2]["spec"]["clusters"] = [{"name": "a"}]
    assert rejections(decide(*placed, rejections=since)) == found


def test_after_the_time_the_cluster_is_tried_again_and_the_number_is_kept() -> None:
    over = [{"cluster": "a", "times": 2, "retryTime": rfc3339(NOW)}]
    decided = decide(*refused(), rejections=over)
    assert decided.actions == ()
    assert rejections(decided) == [{"cluster": "a", "times": 2, "since": rfc3339(NOW)}]


def test_a_refusal_that_passes_by_itself_is_forgotten() -> None:
    since = [{"cluster": "a", "since": rfc3339(NOW)}]
    decided = decide(*child(), rejections=since)
    assert rejections(decided) == []


def test_a_sub_job_that_started_forgets_all() -> None:
    left_out = [{"cluster": "b", "times": 1, "retryTime": rfc3339(NOW + timedelta(minutes=1))}]
    assert rejections(decide(*child(0, "Running"), rejections=left_out)) == []


def test_what_is_made_again_is_not_made_where_it_was_refused() -> None:
    left_out = [{"cluster": "a", "times": 1, "retryTime": rfc3339(NOW + timedelta(minutes=1))}]
    decided = decide(rejections=left_out)
    assert [getattr(action, "cluster", "") for action in decided.actions] == ["b"]
    waits = decide(rejections=left_out, clusters=(A,))
    assert waits.actions == ()
    assert waits.requeue_after == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (
            'Failed: admission webhook "job.volcano.sh" denied the request: queue q is closed',
            "RefusedByCluster",
            "cluster a refuses it: admission webhook job.volcano.sh says: queue q is closed",
        ),
        ("connection refused", "ApplyFailed", "connection refused"),
    ],
)
def test_why_a_member_does_not_take_a_vcjob(error: str, reason: str, message: str) -> None:
    decided = decide(*child(0)[:2], binding(cluster="a", apply_error=error))
    told = decided.status["jobs"][0]
    assert (told["reason"], told["message"]) == (reason, message)
    assert [event.reason for event in decided.events if event.type == "Warning"] == [reason]


def test_a_cluster_that_karmada_schedules_on_after_all_is_no_longer_left_out() -> None:
    earlier = Rejection(cluster="a", times=3, retry_time=NOW + timedelta(minutes=5))
    record = JobStatus(
        name="hj-trainer-0", replicated_job="trainer", index=0, rejections=(earlier,)
    )
    seen = observed(hyperjob(), *child(), clusters=(A, B))
    made = replace(child_of(seen, "hj-trainer-0"), record=record)
    assert check_rejection(made, now=NOW).rejections == ()
    elsewhere = replace(made, record=replace(record, rejections=(replace(earlier, cluster="b"),)))
    assert [item.cluster for item in check_rejection(elsewhere, now=NOW).rejections] == ["b"]
