"""A HyperJob with a quorum: what a lost or failed sub-job costs the others, and how it ends."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import Cluster, Observed
from hyperjob_engine.model.planned import CreateChild, DeleteChild, Plan
from hyperjob_engine.plan import plan
from hyperjob_queueing.read import unit_of
from tests.unit.engine.builders import (
    NOW,
    Object,
    child,
    cluster,
    group,
    hyperjob,
    job_status,
    observed,
)

LONG_AGO = NOW - timedelta(minutes=6)
FREE = cluster("a"), cluster("b"), cluster("c"), cluster("d")
RUNNING = "Running", "Running", "Running"


def lost(name: str) -> Cluster:
    return replace(cluster(name, unusable="is not Ready"), not_ready_since=LONG_AGO)


def without(*names: str) -> tuple[Cluster, ...]:
    return tuple(lost(each.name) if each.name in names else each for each in FREE)


def world(
    phases: Sequence[str],
    *,
    clusters: tuple[Cluster, ...] = FREE,
    before: str = "Running",
    attempts: Sequence[int] = (),
    restarts: int = 0,
    new: int = 0,
    **spec: Any,
) -> Observed:
    """Three sub-jobs on the clusters a, b and c; an empty phase: there is none of it.

    The last `new` of them have not run yet.
    """
    objects: list[Object] = []
    records: list[Object] = []
    for index, phase in enumerate(phases):
        attempt = attempts[index] if attempts else 0
        records.append(
            job_status(
                index,
                phase=phase or "Unplaced",
                reason="" if phase else "Restarting",
                attempt=attempt,
                startTime="" if index >= len(phases) - new else rfc3339(LONG_AGO),
            )
        )
        if phase:
            objects += child(index, phase, on="abc"[index], attempt=attempt)
    status = {"state": {"phase": before}, "jobs": records, "restarts": restarts}
    spec = {"quorum": 2, **spec}
    raw = hyperjob(group(replicas=3), status=status, **spec)
    return observed(raw, *objects, clusters=clusters)


def state(decided: Plan) -> tuple[str, str]:
    found = decided.status["state"]
    return found["phase"], found["reason"]


def attempts_of(decided: Plan) -> list[int]:
    return [each.get("attempt", 0) for each in decided.status["jobs"]]


def test_what_is_recorded_deletes_no_other_sub_job() -> None:
    observed_ = world(("Running", "Running", "Running"), clusters=without("b"))
    recorded = replace(observed_.hyperjob.records["hj-trainer-1"], attempt=1, phase="Unplaced")
    records = {**observed_.hyperjob.records, "hj-trainer-1": recorded}
    again = replace(observed_, hyperjob=replace(observed_.hyperjob, records=records))
    assert [a.name for a in plan(again).actions if isinstance(a, DeleteChild)] == ["hj-trainer-1"]


def test_the_lost_sub_job_is_placed_elsewhere_alone() -> None:
    decided = plan(world(("Running", "", "Running"), clusters=without("b")))
    made = [action for action in decided.actions if isinstance(action, CreateChild)]
    assert [(each.name, each.cluster) for each in made] == [("hj-trainer-1", "d")]
    assert state(decided) == ("Degraded", "QuorumMet")


def test_without_a_quorum_the_lost_ones_wait_for_each_other() -> None:
    room = (cluster("a", gpus=0), lost("b"), lost("c"), cluster("d", gpus=8))
    decided = plan(world(("Running", "", ""), clusters=room, quorum=None))
    assert not [action for action in decided.actions if isinstance(action, CreateChild)]


def test_what_starts_first_starts_together() -> None:
    room = (cluster("a", gpus=8), cluster("b", gpus=8))
    decided = plan(observed(hyperjob(group(replicas=3), quorum=1), clusters=room))
    assert decided.actions == ()
    assert state(decided)[0] == "Pending"


@pytest.mark.parametrize(
    ("phases", "before", "expected"),
    [
        (RUNNING, "Starting", ("Running", "JobsRunning")),
        (RUNNING, "Degraded", ("Running", "JobsRunning")),
        (("Running", "Running", "Pending"), "Running", ("Degraded", "QuorumMet")),
        (("Running", "Pending", "Pending"), "Running", ("Degraded", "QuorumNotMet")),
        (("Running", "Running", ""), "Restarting", ("Degraded", "QuorumMet")),
        (("Running", "Completed", "Failed"), "Running", ("Degraded", "QuorumMet")),
    ],
)
def test_the_phase_says_whether_the_training_goes_on(
    phases: tuple[str, ...], before: str, expected: tuple[str, str]
) -> None:
    decided = plan(world(phases, before=before))
    assert state(decided) == expected
    if expected[0] == "Degraded":
        goes_on = "goes on" if expected[1] == "QuorumMet" else "waits"
        assert f"quorum is 2: the training {goes_on}" in decided.status["state"]["message"]


@pytest.mark.parametrize(
    ("phases", "new", "expected"),
    [
        (("Running", "Running", "Pending"), 1, "Running"),
        (("Running", "Running", ""), 1, "Running"),
        (("Running", "Pending", ""), 1, "Degraded"),
        (("Running", "Pending", "Pending"), 2, "Degraded"),
        (("Running", "Running", "Failed"), 1, "Degraded"),
    ],
)
def test_a_sub_job_that_joins_is_no_degradation_while_the_others_train(
    phases: tuple[str, ...], new: int, expected: str
) -> None:
    decided = plan(world(phases, new=new))
    assert state(decided)[0] == expected
    assert "hj-trainer-2" in decided.status["state"]["message"]


def test_sub_jobs_that_start_together_are_not_degraded_on_their_way() -> None:
    phases = ("Running", "Running", "Pending")
    assert state(plan(world(phases, before="Starting")))[0] == "Starting"


@pytest.mark.parametrize(
    ("failure_policy", "restarts", "expected"),
    [
        pytest.param(None, 0, [0, 0, 0], id="without a policy nothing is restarted"),
        pytest.param({"maxRestarts": 3}, 0, [0, 1, 0], id="alone, and counted"),
        pytest.param({"maxRestarts": 3}, 3, [0, 0, 0], id="spent: the others train on"),
        pytest.param(
            {"maxRestarts": 3, "rules": [{"action": "RestartHyperJob"}]},
            0,
            [1, 1, 1],
            id="a rule decides",
        ),
    ],
)
def test_a_failed_sub_job_is_answered_by_the_policy(
    failure_policy: Object | None, restarts: int, expected: list[int]
) -> None:
    spec = {} if failure_policy is None else {"failurePolicy": failure_policy}
    decided = plan(world(("Running", "Failed", "Running"), restarts=restarts, **spec))
    assert attempts_of(decided) == expected
    assert state(decided)[0] != "Failed"


def test_too_few_left_without_restarts_fail_the_hyperjob() -> None:
    phases = ("Running", "Failed", "Failed")
    decided = plan(world(phases, restarts=3, failurePolicy={"maxRestarts": 3}))
    assert state(decided) == ("Failed", "MaxRestartsExceeded")


@pytest.mark.parametrize(
    ("phases", "ended"),
    [
        (("Completed", "Completed", "Completed"), True),
        (("Completed", "Completed", ""), True),
        (("Completed", "Completed", "Failed"), True),
        (("Completed", "Completed", "Pending"), True),
        (("Completed", "Completed", "Running"), False),
        (("Completed", "", ""), False),
        (("Completed", "Failed", "Failed"), False),
    ],
)
def test_the_training_is_complete_when_a_quorum_is_and_no_other_runs(
    phases: tuple[str, ...], ended: bool
) -> None:
    assert (state(plan(world(phases)))[0] == "Completed") is ended
    away = replace(lost("c"), not_ready_since=NOW - timedelta(seconds=20))
    seen = world(phases, clusters=(*FREE[:2], away, FREE[3]))
    assert (state(plan(seen))[0] == "Completed") is ended, "it may answer again"


def test_a_queue_admits_the_lost_ones_one_by_one() -> None:
    unit = unit_of(world(("Running", "", "")))
    assert unit.minimum == 2
    unit = unit_of(world(("", "", ""), before="Suspended"))
    assert unit.minimum == 3


@given(
    lost_ones=st.sets(st.sampled_from("abc")),
    quorum=st.integers(1, 3),
    restarts=st.integers(0, 3),
)
def test_losing_clusters_never_touches_the_sub_jobs_elsewhere(
    lost_ones: set[str], quorum: int, restarts: int
) -> None:
    seen = world(RUNNING, clusters=without(*lost_ones), quorum=quorum, restarts=restarts)
    decided = plan(seen)
    assert not [action for action in decided.actions if isinstance(action, DeleteChild)]
    touched = {"abc"[index] for index, attempt in enumerate(attempts_of(decided)) if attempt}
    assert touched == lost_ones
    assert decided.status["restarts"] == restarts, "no program has failed"
