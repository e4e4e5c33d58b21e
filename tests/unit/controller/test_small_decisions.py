"""Small decisions whose other side no story reaches: absent values, equal limits, ends."""

from datetime import timedelta

import pytest

from hyperjob_core.api.training import SubJobTraining
from hyperjob_engine.expansion.expand import expand
from hyperjob_engine.expansion.members import growth
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.subjobs import SubJob, child_of
from hyperjob_engine.model.training import time_of
from hyperjob_engine.plan import plan
from hyperjob_engine.status.transitions import status_events
from hyperjob_queueing.queues import preempts
from tests.unit.engine.builders import (
    NOW,
    Object,
    cluster,
    group,
    hyperjob,
    job,
    job_status,
    observed,
    policy,
    task,
    template,
)


@pytest.mark.parametrize(("phase", "grows"), [("Running", True), ("Completed", False)])
def test_what_has_ended_does_not_grow(phase: str, grows: bool) -> None:
    raw = hyperjob(group(replicas=1, gpus=4))
    live = job(phase=phase, spec=template(task(replicas=2)))
    (whole,) = expand(parse_hyperjob(raw))
    sub_job = SubJob(name="hj-trainer-0", group=whole.replicated_job, index=0, size=whole.sizes[0])
    seen = observed(raw, live)
    found = growth(seen, sub_job, child_of(seen, sub_job.name))
    assert (found is not None) is grows


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("",), False),
        (("never",), False),
        (("low",), True),
        (("none",), True),
        (("low", "never"), False),
    ],
)
def test_a_template_without_a_class_has_the_preemption_policy_of_the_global_default(
    names: tuple[str, ...], expected: bool
) -> None:
    groups = [group(f"g{n}", templateSpec=template(priorityClassName=n)) for n in names]
    raw = {**hyperjob(), "spec": {"replicatedJobs": groups}}
    never = {"preemptionPolicy": "Never"}
    classes = {"low": {}, "never": never, "usual": {"globalDefault": True} | never}
    assert preempts(parse_hyperjob(raw), classes) is expected


def test_a_step_before_the_checkpoint_was_made_at_the_speed_until_it() -> None:
    slow_then_fast = SubJobTraining(
        start_step=0, started=NOW, saved_step=10, saved=NOW + timedelta(seconds=100),
        step=110, updated=NOW + timedelta(seconds=200),
    )  # fmt: skip
    assert time_of(slow_then_fast, 5) == NOW + timedelta(seconds=50)
    assert time_of(slow_then_fast, 60) == NOW + timedelta(seconds=150)


def test_a_failure_is_told_with_its_own_pod_while_the_history_stays() -> None:
    runs = [
        {"attempt": n, "cluster": "a", "phase": "Failed", "failure": {"pod": f"old-{n}"}}
        for n in range(2)
    ]
    before: Object = {"name": "hj-a-0", "phase": "Running", "cluster": "b", "history": runs}
    after = {**before, "phase": "Failed", "failure": {"pod": "new", "exitCode": 1}}
    notes = [each.note for each in status_events({"jobs": [before]}, {"jobs": [after]})]
    assert any("on b" in note and "new" in note for note in notes)
    assert not any("old" in note for note in notes)


def test_a_restarted_hyperjob_trains_again_with_its_quorum_while_others_wait() -> None:
    records = [
        job_status(n, attempt=1, phase="Unplaced", reason="Restarting")
        for n in range(2)
    ]  # fmt: skip
    raw = hyperjob(quorum=1, status={"state": {"phase": "Restarting"}, "jobs": records})
    runs = job(phase="Running", pods={"running": 8})
    runs["metadata"]["labels"]["training.volcano.sh/attempt"] = "1"
    decided = plan(observed(raw, runs, policy(), clusters=(cluster("a", 0),)))
    assert decided.status["state"]["phase"] == "Degraded"
