"""A gang that stays in parts gives back what it holds, and asks again later."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from hyperjob_core.api.wire import rfc3339, timestamp
from hyperjob_engine.gang.giveback import SOON, backs_off
from hyperjob_engine.model.observed import Limits, Observed, QueueAdmission
from hyperjob_engine.model.planned import CreateChild, DeleteChild, OpenGate, Plan
from hyperjob_engine.plan import plan
from tests.support.structural import assert_status
from tests.unit.engine.builders import (
    NOW,
    Object,
    binding,
    cluster,
    gated,
    group,
    hyperjob,
    observed,
    vcjob_status,
)

GLOBAL = QueueAdmission.VOLCANO_GLOBAL
LIMIT = timedelta(minutes=5)
SECOND = timedelta(seconds=1)
FULL = (cluster("a", 0),)


def look(
    *objects: Object,
    gang: Object | None = None,
    now: datetime = NOW,
    contended: bool = False,
    uid: str = "hj-uid",
    **spec: object,
) -> Observed:
    raw = hyperjob(status={"gang": gang} if gang else {}, **spec)
    seen = observed(raw, *objects, clusters=FULL, admission=GLOBAL, now=now)
    return replace(
        seen,
        contended=contended,
        hyperjob=replace(seen.hyperjob, uid=uid),
        limits=Limits(gang=LIMIT),
    )


def gang_of(decided: Plan) -> Object | None:
    assert_status(decided.status)
    return decided.status.get("gang")


HALF = [*gated(0, released=True), *gated(1, released=False)]


def test_an_incomplete_gang_is_given_its_time() -> None:
    decided = plan(look(*HALF))
    assert decided.actions == ()
    assert gang_of(decided) == {"admitted": 1, "attempts": 0, "incompleteSince": rfc3339(NOW)}
    assert decided.requeue_after == LIMIT


def test_each_further_admission_begins_the_time_anew() -> None:
    gang = {"admitted": 0, "attempts": 2, "incompleteSince": rfc3339(NOW - LIMIT / 2)}
    decided = plan(look(*HALF, gang=gang))
    assert gang_of(decided) == {"admitted": 1, "attempts": 2, "incompleteSince": rfc3339(NOW)}
    again = plan(look(*HALF, gang=gang_of(decided), now=NOW + LIMIT / 2))
    assert gang_of(again) == gang_of(decided)
    assert again.requeue_after == LIMIT / 2


def test_over_time_it_is_written_first_and_nothing_is_done_yet() -> None:
    gang = {"admitted": 1, "attempts": 0, "incompleteSince": rfc3339(NOW - LIMIT)}
    decided = plan(look(*HALF, gang=gang))
    assert decided.actions == ()
    assert decided.requeue_after == SOON
    written = gang_of(decided)
    assert set(written) == {"admitted", "attempts", "retryTime"}
    assert written["attempts"] == 1


@pytest.mark.parametrize("contended", [True, False])
def test_a_gang_of_which_nothing_is_admitted_keeps_its_room_while_nobody_wants_it(
    contended: bool,
) -> None:
    """It holds no quota, and would only lose its place in the queue."""
    gang = {"admitted": 0, "attempts": 0, "incompleteSince": rfc3339(NOW - LIMIT)}
    waiting = [*gated(0, released=False), *gated(1, released=False)]
    decided = plan(look(*waiting, gang=gang, contended=contended))
    assert ("retryTime" in (gang_of(decided) or {})) is contended
    assert decided.requeue_after == (SOON if contended else LIMIT)


@pytest.mark.parametrize(
    ("released", "seconds", "gives_back"), [(False, 29, False), (False, 30, True), (True, 0, True)]
)
def test_a_gang_that_the_queue_passes_over_makes_room_for_others_after_30_seconds(
    released: bool, seconds: int, gives_back: bool
) -> None:
    """A half that was released holds a quota, and gives it back at once."""
    since = NOW - timedelta(seconds=seconds)
    gang = {"admitted": int(released), "attempts": 0, "incompleteSince": rfc3339(since)}
    waiting = [*gated(0, released=released), *gated(1, released=False)]
    seen = look(*waiting, gang=gang, contended=True)
    decided = plan(replace(seen, passed_over=frozenset({"hj-trainer-1"})))
    assert ("retryTime" in (gang_of(decided) or {})) is gives_back
    assert decided.requeue_after == (SOON if gives_back else SECOND)


def backing_off(*objects: Object, **options: object) -> Plan:
    gang = {"admitted": 0, "attempts": 1, "retryTime": rfc3339(NOW + timedelta(minutes=1))}
    return plan(look(*objects, gang=gang, **options))  # type: ignore[arg-type]  # passed on


def test_what_was_decided_is_done_and_told() -> None:
    decided = backing_off(*HALF)
    assert [(type(item), item.name) for item in decided.actions] == [
        (DeleteChild, "hj-trainer-0"),
        (DeleteChild, "hj-trainer-1"),
    ]
    state = decided.status["state"]
    assert (state["phase"], state["reason"]) == ("Pending", "GangBackOff")
    assert "next try at 03:05:05Z: the gang stayed incomplete (time 1), and the" in state["message"]
    assert [(event.type, event.reason) for event in decided.events] == [("Warning", "GangBackOff")]


def test_nothing_is_made_before_the_time_has_come() -> None:
    half_gone = backing_off(*gated(1, released=True))
    assert [item.name for item in half_gone.actions] == ["hj-trainer-1"]
    gone = backing_off()
    assert gone.actions == ()
    assert gone.requeue_after == timedelta(minutes=1)


def test_then_all_is_made_again_and_the_number_of_tries_is_kept() -> None:
    gang = {"attempts": 1, "retryTime": rfc3339(NOW)}
    seen = look(gang=gang)
    decided = plan(replace(seen, clusters=(cluster("a"),)))
    assert [type(item) for item in decided.actions] == [CreateChild, CreateChild]
    assert gang_of(decided) == {"admitted": 0, "attempts": 1}


def test_a_gang_that_becomes_whole_meanwhile_goes_and_is_forgotten() -> None:
    decided = backing_off(*gated(0, released=True), *gated(1, released=True))
    assert [type(item) for item in decided.actions] == [OpenGate, OpenGate]
    assert gang_of(decided) is None


def test_what_a_member_has_seen_is_never_given_back() -> None:
    running = gated(0, released=True, gate="open")
    running[2] = binding("hj-trainer-0", cluster="a", gate="open", status=vcjob_status("Running"))
    stamped_late = gated(1, released=True)
    stamped_late[2]["status"] = {"aggregatedStatus": [{"clusterName": "a", "applied": True}]}
    rest = gated(2, released=False)
    decided = backing_off(*running, *stamped_late, *rest, replicatedJobs=[group(replicas=3)])
    assert [item.name for item in decided.actions] == ["hj-trainer-2"]


def test_a_late_sub_job_of_a_gang_that_runs_gives_back_alone() -> None:
    running = gated(0, released=True, gate="open")
    running[2] = binding("hj-trainer-0", cluster="a", gate="open", status=vcjob_status("Running"))
    decided = backing_off(*running, *gated(1, released=False), minAvailable=1)
    assert [item.name for item in decided.actions] == ["hj-trainer-1"]
    assert gang_of(decided) is not None


def retry(uid: str, attempts: int) -> timedelta:
    gang = {
        "admitted": 1,
        "attempts": attempts - 1,
        "incompleteSince": rfc3339(NOW - LIMIT),
    }
    moment = timestamp((gang_of(plan(look(*HALF, gang=gang, uid=uid))) or {})["retryTime"])
    return moment - NOW


def test_waits_grow_are_bounded_and_differ_between_hyperjobs() -> None:
    waits = {
        uid: [retry(uid, attempts) for attempts in range(1, 12)] for uid in ("first", "second")
    }
    for found in waits.values():
        assert found[0] >= LIMIT / 4
        assert max(found) <= LIMIT * 8 + timedelta(seconds=1)
        assert all(later > earlier for earlier, later in pairwise(found[:5]))
    assert all(
        abs(one - other) > timedelta(seconds=1)
        for one, other in zip(waits["first"], waits["second"], strict=True)
    )


def test_without_volcano_global_there_is_no_gang_to_remember() -> None:
    seen = look(*HALF, gang={"attempts": 3, "retryTime": rfc3339(NOW + LIMIT)})
    decided = plan(replace(seen, admission=QueueAdmission.NONE))
    assert gang_of(decided) is None
    assert [type(item) for item in decided.actions] == [OpenGate, OpenGate]


@pytest.mark.parametrize(
    ("admission", "gang", "waits"),
    [
        (GLOBAL, {"retryTime": rfc3339(NOW + SECOND)}, True),
        (GLOBAL, {"retryTime": rfc3339(NOW)}, False),
        (GLOBAL, {"incompleteSince": rfc3339(NOW)}, False),
        (GLOBAL, None, False),
        (QueueAdmission.BUILTIN, {"retryTime": rfc3339(NOW + SECOND)}, True),
        (QueueAdmission.NONE, {"retryTime": rfc3339(NOW + SECOND)}, False),
    ],
)
def test_a_gang_that_gave_back_waits_until_its_time_has_come(
    admission: QueueAdmission, gang: Object | None, waits: bool
) -> None:
    seen = look(gang={"admitted": 0, "attempts": 1, **gang} if gang else None)
    assert backs_off(replace(seen, admission=admission)) is waits
