"""What Karmada applied and no cluster reports of is asked for again, and at last made again."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.lifecycle.silence import FEW, TIMES, UNCOUNTED
from hyperjob_engine.model.observed import Limits, Observed
from hyperjob_engine.model.planned import AskAgain, DeleteChild, DeletionCause, Plan
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.pods import no_pod_text
from hyperjob_engine.status.transitions import action_events
from tests.support.structural import assert_status
from tests.unit.engine.builders import (
    NOW,
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    job_status,
    observed,
    policy,
    vcjob_status,
)

NAME = "hj-trainer-0"
LIMIT = timedelta(seconds=30)
READY = cluster("a")


def applied(since: datetime = NOW, *, name: str = NAME, **fields: object) -> Object:
    """Give a binding that is fully applied and has no status."""
    made = binding(name, cluster="a", status={}, **fields)  # type: ignore[arg-type]
    made["status"]["conditions"] = [
        {"type": "FullyApplied", "status": "True", "lastTransitionTime": rfc3339(since)}
    ]
    return made


def uncounted(since: datetime = NOW, *, name: str = NAME) -> Object:
    """Give a binding of which Karmada has counted the Works before there was one."""
    made = binding(name, cluster="a")
    made["status"] = {
        "conditions": [
            {"type": "FullyApplied", "status": "False", "lastTransitionTime": rfc3339(since)}
        ]
    }
    return made


def world(
    bound: Object | None,
    *,
    at: timedelta = LIMIT,
    silence: Object | None = None,
    phase: str = "Placed",
    reason: str = "",
    clusters: tuple[object, ...] = (READY,),
    vcjob: Object | None = None,
    followers: tuple[str, ...] = (),
    **spec: object,
) -> Observed:
    """Give one sub-job on cluster a, some time after it was applied."""
    record: Object = job_status(0, phase=phase, reason=reason)
    if silence is not None:
        record["silence"] = silence
    raw = hyperjob(group(replicas=1), status={"jobs": [record]}, **spec)
    objects = [vcjob or job(), policy(cluster="a"), *([bound] if bound else [])]
    seen = observed(
        raw,
        *objects,
        clusters=clusters,  # type: ignore[arg-type]  # of any kind
        now=NOW + at,
        followers=followers,
    )
    return replace(seen, limits=Limits(start=timedelta()))


def entry(decided: Plan) -> Object:
    """Give what the status is to say of the sub-job."""
    assert_status(decided.status)
    return decided.status["jobs"][0]


def after(times: int, at: timedelta) -> Object:
    return {"times": times, "retryTime": rfc3339(NOW + at)}


def test_a_moment_of_silence_is_waited_for() -> None:
    decided = plan(world(applied(), at=LIMIT - timedelta(seconds=1)))
    assert decided.actions == ()
    assert (entry(decided)["reason"], entry(decided)["message"]) == (
        "Dispatching",
        "is being dispatched",
    )
    assert decided.requeue_after == timedelta(seconds=1)


def test_a_longer_silence_has_karmada_apply_it_again() -> None:
    decided = plan(world(applied()))
    assert decided.actions == (AskAgain(name=NAME, uid=f"uid-{NAME}", mark="1"),)
    told = entry(decided)
    assert told["silence"] == after(1, LIMIT + 2 * LIMIT)
    assert told["reason"] == "NothingReported"
    assert told["message"] == (
        f"cluster a has reported nothing since Karmada applied the Job there at {rfc3339(NOW)};"
        " the controller has Karmada apply it again"
    )
    assert "attempt" not in told
    assert decided.requeue_after == 2 * LIMIT
    assert [(event.type, event.reason) for event in decided.events if event.type == "Warning"] == [
        ("Warning", "NothingReported")
    ]
    assert [event.note for event in action_events(decided.actions)] == [
        f"Asked Karmada to apply {NAME} again"
    ]


@pytest.mark.parametrize(
    ("times", "phase", "expected"),
    [
        (1, "Placed", AskAgain(name=NAME, uid=f"uid-{NAME}", mark="2")),
        (1, "Running", AskAgain(name=NAME, uid=f"uid-{NAME}", mark="2")),
        (TIMES - 1, "Running", AskAgain(name=NAME, uid=f"uid-{NAME}", mark=str(TIMES))),
        (
            TIMES - 1,
            "Placed",
            DeleteChild(
                name=NAME,
                job_uid=f"uid-{NAME}",
                policy_uid=f"pp-{NAME}",
                why=DeletionCause.NOTHING_REPORTED,
            ),
        ),
    ],
)
def test_what_never_ran_is_made_again_in_the_end(times: int, phase: str, expected: object) -> None:
    decided = plan(world(applied(), at=5 * LIMIT, silence=after(times, 5 * LIMIT), phase=phase))
    assert decided.actions == (expected,)
    assert entry(decided)["silence"] == after(times + 1, 5 * LIMIT + LIMIT * 2 ** (times + 1))


def test_what_is_being_made_again_keeps_its_count_and_spends_no_attempt() -> None:
    count = after(TIMES, 9 * LIMIT)
    seen = world(None, silence=count)
    seen = replace(seen, jobs={}, policies={})
    decided = plan(seen)
    assert [type(action).__name__ for action in decided.actions] == ["CreateChild"]
    assert entry(decided)["silence"] == count
    assert "attempt" not in entry(decided)


def test_in_the_end_a_person_is_told_what_to_do_and_nothing_is_done_at_rest() -> None:
    decided = plan(world(applied(), at=20 * LIMIT, silence=after(TIMES, 19 * LIMIT)))
    assert decided.actions == ()
    assert decided.requeue_after is None
    assert entry(decided)["message"].endswith(
        "this did not help 4 times: see in the cluster whether Job hj-trainer-0 is there and"
        " Volcano's controller runs, then: kubectl hyperjob restart hj --job hj-trainer-0"
    )


@pytest.mark.parametrize("again", [applied, uncounted])
@pytest.mark.parametrize(
    ("times", "before", "reason"),
    [
        pytest.param(1, "NothingReported", "NothingReported", id="applied again"),
        pytest.param(TIMES, "NothingReported", "Dispatching", id="recreated"),
        pytest.param(1, "Suspended", "Dispatching", id="resumed"),
    ],
)
def test_the_reason_stays_while_karmada_applies_it_again(
    again: Callable[..., Object], times: int, before: str, reason: str
) -> None:
    bound, count = again(NOW + LIMIT), after(times, 3 * LIMIT)
    decided = plan(world(bound, silence=count, reason=before))
    assert decided.actions == ()
    assert (entry(decided)["reason"], entry(decided)["silence"]) == (reason, count)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(world(None), id="no binding yet"),
        pytest.param(world(binding(cluster="a")), id="not applied yet"),
        pytest.param(world(binding(cluster="a", apply_error="no")), id="could not be applied"),
        pytest.param(world(applied(suspension={"scheduling": True})), id="waits for its queue"),
        pytest.param(world(applied(suspension={"dispatching": True})), id="held or suspended"),
        pytest.param(
            world(applied(), clusters=(replace(READY, not_ready_since=NOW),)), id="not ready"
        ),
        pytest.param(world(applied(), clusters=()), id="no such cluster"),
        pytest.param(world(applied(), vcjob=job(phase="Pending")), id="reported by the vcjob"),
        pytest.param(world(applied(), phase="Completed"), id="has ended"),
        pytest.param(world(applied(), vcjob=job(deleting=True)), id="on its way out"),
    ],
)
def test_silence_means_nothing_where_nothing_is_to_be_heard(seen: Observed) -> None:
    decided = plan(seen)
    assert not [each for each in decided.actions if isinstance(each, (AskAgain, DeleteChild))]
    assert entry(decided).get("reason") != "NothingReported"
    assert "silence" not in entry(decided)


def test_karmada_is_asked_again_where_it_counts_no_work_of_what_was_just_created() -> None:
    early = plan(world(uncounted(), at=UNCOUNTED - timedelta(seconds=1)))
    assert (early.actions, early.requeue_after) == ((), timedelta(seconds=1))
    decided = plan(world(uncounted(), at=UNCOUNTED))
    assert decided.actions == (AskAgain(name=NAME, uid=f"uid-{NAME}", mark="1"),)
    assert entry(decided)["reason"] == "NothingReported"
    assert entry(decided)["message"] == (
        f"Karmada has made no Work of {NAME} for a since {rfc3339(NOW)} (the Events of"
        f" ResourceBinding {NAME}-job say why);"
        " the controller has Karmada apply it again"
    )


def test_a_sub_job_of_which_karmada_can_make_no_work_says_where_the_reason_stands() -> None:
    """An OverridePolicy that does not fit: Karmada writes no condition, and a Warning Event."""
    made = binding(cluster="a")
    scheduled = {"type": "Scheduled", "status": "True", "lastTransitionTime": rfc3339(NOW)}
    made["status"] = {"conditions": [scheduled], "lastScheduledTime": rfc3339(NOW)}
    assert not plan(world(made, at=LIMIT - timedelta(seconds=1))).actions
    decided = plan(world(made))
    assert decided.actions == (AskAgain(name=NAME, uid=f"uid-{NAME}", mark="1"),)
    assert entry(decided)["message"].startswith(
        f"Karmada has made no Work of {NAME} for a since {rfc3339(NOW)} (the Events of"
        f" ResourceBinding {NAME}-job say why); "
    )


@pytest.mark.parametrize("silent", [FEW, FEW + 1])
def test_where_many_are_silent_nothing_was_lost(silent: int) -> None:
    """Karmada is behind, and what it is asked besides would only come on top."""
    names = [f"hj-trainer-{index}" for index in range(FEW + 1)]
    objects: list[Object] = []
    for index, name in enumerate(names):
        bound = applied(name=name)
        if index >= silent:
            bound["status"]["aggregatedStatus"][0]["status"] = vcjob_status("Running")
        objects += [job(name), policy(name), bound]
    raw = hyperjob(group(replicas=len(names)))
    decided = plan(observed(raw, *objects, clusters=(READY,), now=NOW + LIMIT))
    if silent <= FEW:
        assert [action.name for action in decided.actions] == names[:silent]
        return
    assert decided.actions == ()
    assert decided.requeue_after is None, "each report makes a pass"
    for entry in decided.status["jobs"]:
        assert entry["reason"] == "NothingReported"
        others = "like the clusters of many other sub-jobs"
        assert entry["message"].endswith(f"at 2026-01-02T03:04:05Z, {others}")
        assert "silence" not in entry


def test_karmada_counts_the_works_of_many_sub_jobs_only_after_it_is_asked() -> None:
    names = [f"hj-trainer-{index}" for index in range(FEW + 1)]
    made = [each for name in names for each in (job(name), policy(name), uncounted(name=name))]
    seen = observed(hyperjob(group(replicas=len(names))), *made, clusters=(READY,), now=NOW + LIMIT)
    assert [action.name for action in plan(seen).actions] == names


def test_what_is_reported_ends_it() -> None:
    bound = applied()
    bound["status"]["aggregatedStatus"][0]["status"] = vcjob_status("Running", {"running": 8})
    decided = plan(world(bound, silence=after(2, 3 * LIMIT)))
    assert decided.actions == ()
    assert "silence" not in entry(decided)


def test_a_suspended_hyperjob_forgets_it() -> None:
    decided = plan(world(applied(), silence=after(2, 0 * LIMIT), suspend=True))
    assert not any(isinstance(action, AskAgain) for action in decided.actions)
    assert "silence" not in entry(decided)


def unmoved(status: Object | None = None, name: str = NAME) -> Object:
    """Give a binding of a vcjob that Volcano took note of, and has told of no progress so far."""
    bound = applied(name=name)
    conditions = [{"status": "Pending", "lastTransitionTime": rfc3339(NOW)}]
    reported = vcjob_status("Pending") | {"conditions": conditions} | (status or {})
    bound["status"]["aggregatedStatus"][0]["status"] = reported
    return bound


def namesake(bound: Object, **fields: object) -> Observed:
    """Give a Pending vcjob that was made soon after one of the same name had gone."""
    return world(bound, phase="Pending", followers=(NAME,), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "patience", "what", "told"),
    [
        ({}, 2, "no pods", "0 of 8 pods run"),
        ({"pending": 8}, 4, "no progress", "0 of 8 pods run"),
        ({"taskStatusCount": {"w": {"phase": {"Pending": 1}}}}, 4, "no progress", "0 of 8"),
    ],
)
def test_a_namesake_that_volcano_does_nothing_with_is_made_again(
    status: Object, patience: int, what: str, told: str
) -> None:
    """It does nothing for ever where it lost it, whether the pods run or not."""
    early = plan(namesake(unmoved(status), at=patience * LIMIT - timedelta(seconds=1)))
    assert early.actions == ()
    assert entry(early)["message"].startswith(told)
    assert early.requeue_after == timedelta(seconds=1)
    decided = plan(namesake(unmoved(status), at=patience * LIMIT))
    why = DeletionCause.NO_PODS if what == "no pods" else DeletionCause.NO_PROGRESS
    assert decided.actions == (
        DeleteChild(name=NAME, job_uid=f"uid-{NAME}", policy_uid=f"pp-{NAME}", why=why),
    )
    told_now = entry(decided)
    assert told_now["silence"] == after(1, patience * LIMIT + 2 * LIMIT)
    assert told_now["reason"] == "PodsPending"
    assert "attempt" not in told_now


def test_what_is_no_namesake_only_waits_for_room_in_its_cluster() -> None:
    decided = plan(world(unmoved(), at=20 * LIMIT, phase="Pending"))
    assert (decided.actions, decided.requeue_after) == ((), None)
    assert entry(decided)["message"] == f"0 of 8 pods run: {no_pod_text('a', 'hj')}"


def test_a_namesake_is_left_alone_in_the_end() -> None:
    decided = plan(namesake(unmoved(), at=20 * LIMIT, silence=after(TIMES, 19 * LIMIT)))
    assert (decided.actions, decided.requeue_after) == ((), None)
    assert entry(decided)["message"] == (
        f"0 of 8 pods run: cluster a has reported no pods since Karmada applied the Job there at"
        f" {rfc3339(NOW)}; the controller recreates it; this did not help 4 times: its PodGroup in"
        " the cluster has the reason"
    )


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"running": 1, "pending": 7}, id="a pod runs"),
        pytest.param({"terminating": 1}, id="pods go"),
        pytest.param({"retryCount": 1}, id="Volcano restarted it"),
        pytest.param(
            {"conditions": [{"status": "Pending"}, {"status": "Running"}, {"status": "Pending"}]},
            id="it ran before",
        ),
        pytest.param({"state": {"phase": "Running"}}, id="it runs"),
    ],
)
def test_what_volcano_works_on_is_left_alone(status: Object) -> None:
    decided = plan(namesake(unmoved(status), at=20 * LIMIT))
    assert (decided.actions, decided.requeue_after) == ((), None)
    assert "silence" not in entry(decided)


@pytest.mark.parametrize(("count", "patience"), [(1, 2), (FEW, 2), (2 * FEW, 3), (4 * FEW, 5)])
def test_volcano_is_given_the_longer_the_more_it_has_to_do(count: int, patience: int) -> None:
    names = [f"hj-trainer-{index}" for index in range(count)]
    objects = [item for name in names for item in (job(name), policy(name), unmoved(name=name))]
    raw = hyperjob(group(replicas=count))

    def at(moment: timedelta) -> list[str]:
        seen = observed(raw, *objects, clusters=(READY,), now=NOW + moment, followers=names)
        return [action.name for action in plan(seen).actions if isinstance(action, DeleteChild)]

    assert at(patience * LIMIT - timedelta(seconds=1)) == []
    assert at(patience * LIMIT) == names


@given(st.lists(st.integers(1, 600), min_size=1, max_size=60), st.booleans())
def test_steps_are_few_and_ever_further_apart(looks: list[int], ran: bool) -> None:
    phase, silence, now = "Running" if ran else "Placed", None, timedelta()
    steps: list[timedelta] = []
    since = NOW
    for seconds in looks:
        now += timedelta(seconds=seconds)
        decided = plan(world(applied(since), at=now, silence=silence, phase=phase))
        silence = entry(decided).get("silence")
        if decided.actions:
            steps.append(now)
        if any(isinstance(action, DeleteChild) for action in decided.actions):
            assert not ran, "what may run is never taken away"
            since = NOW + now
    gaps = [later - earlier for earlier, later in pairwise(steps)]
    assert len(steps) <= TIMES
    assert all(gap >= LIMIT * 2 ** (number + 1) for number, gap in enumerate(gaps))
    if steps:
        assert steps[0] >= LIMIT


@pytest.mark.parametrize(("old", "asked"), [(3, 3), (4, 0)])
def test_sub_jobs_applied_a_moment_ago_do_not_count_as_silent(old: int, asked: int) -> None:
    """More than three silent sub-jobs mean that Karmada is behind; a fresh one is not silent."""
    names = [f"hj-trainer-{index}" for index in range(6)]
    objects: list[Object] = []
    for index, name in enumerate(names):
        since = NOW if index >= old else NOW - 2 * LIMIT
        objects += [job(name), policy(name), applied(since, name=name)]
    raw = hyperjob(group(replicas=len(names)))
    decided = plan(observed(raw, *objects, clusters=(READY,), now=NOW + LIMIT / 2))
    assert len([item for item in decided.actions if isinstance(item, AskAgain)]) == asked
