"""What becomes of a HyperJob that has ended, and of objects that a person has deleted."""

from datetime import timedelta
from typing import Any

import pytest

from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.planned import CreateChild
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import (
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    job_status,
    observed,
    owner,
    policy,
)

NAME = "hj-trainer-0"


def entry(number: int = 0, **fields: Any) -> Object:
    known = job_status(number)
    return {**known, "phase": "Running", "cluster": "a", **fields}


def ended(*conditions: Object, **status: Any) -> Object:
    """Build a HyperJob that completed, with conditions as the Go controller writes them too."""
    end = {"type": "Completed", "status": "True", "reason": "JobsCompleted", "message": "m"}
    state = {"phase": "Completed", "reason": "JobsCompleted", "message": "m"}
    return {"state": state, "conditions": [{**end, **each} for each in conditions], **status}


TIMES = [{"lastTransitionTime": f"2026-01-02T03:0{minute}:05Z"} for minute in range(5)]


ENDS: dict[str, tuple[Object, timedelta]] = {
    "its completionTime": (
        ended(TIMES[4], completionTime="2026-01-02T03:02:05Z"),
        timedelta(minutes=8),
    ),
    "the last condition that is true": (
        ended(TIMES[1], TIMES[3], {"type": "Suspended", "status": "False", **TIMES[4]}),
        timedelta(minutes=9),
    ),
    "now, without a time": (ended({}), timedelta(minutes=10)),
}


@pytest.mark.parametrize(("status", "left"), ENDS.values(), ids=list(ENDS))
def test_the_time_to_live_counts_from(status: Object, left: timedelta) -> None:
    found = plan(observed(hyperjob(ttlSecondsAfterFinished=600, status=status)))
    assert (found.actions, found.requeue_after) == ((), left)


LEFT: dict[str, tuple[Object, list[Object], list[str]]] = {
    "a policy without a vcjob and a record": (entry(1), [policy(NAME)], [NAME]),
    "its own vcjob without a record": (entry(1), [job(NAME)], [NAME]),
    "its own vcjob without the labels": (entry(1), [job(NAME, marked={})], []),
    "the vcjob of another": (entry(1), [job(NAME, owners=owner("other"))], []),
    "one that completed": (entry(phase="Completed"), [job(NAME, phase="Completed")], []),
    "one that its end stopped": (
        entry(phase="Terminated", reason="EndedWithHyperJob"),
        [job(NAME, phase="Running")],
        [NAME],
    ),
    "one of an earlier attempt": (entry(attempt=1), [job(NAME, phase="Running")], [NAME]),
    "one that failed": (entry(phase="Failed"), [job(NAME, phase="Failed")], []),
    "one that failed and runs again": (entry(phase="Failed"), [job(NAME, phase="Running")], [NAME]),
    "one that completed and runs again": (
        entry(phase="Completed"),
        [job(NAME, phase="Running")],
        [],
    ),
}


@pytest.mark.parametrize(("record", "objects", "deleted"), LEFT.values(), ids=list(LEFT))
def test_an_ended_hyperjob_keeps_its_sub_jobs_except(
    record: Object, objects: list[Object], deleted: list[str]
) -> None:
    status = ended({}, jobs=[record])
    found = plan(observed(hyperjob(status=status), *objects))
    assert [each.name for each in found.actions] == deleted


def test_a_success_policy_for_no_sub_job_is_never_satisfied() -> None:
    policy_ = {"operator": "All", "targetReplicatedJobs": ["nobody"]}
    status = {"state": {"phase": "Running"}}
    objects = [job(NAME, phase="Completed"), job("hj-trainer-1", phase="Running")]
    decided = plan(observed(hyperjob(successPolicy=policy_, status=status), *objects))
    assert decided.status["state"]["phase"] != "Completed"


@pytest.mark.parametrize(
    ("admission", "bound", "held"),
    [
        (QueueAdmission.BUILTIN, binding(NAME, cluster="a", gate="held"), True),
        (QueueAdmission.BUILTIN, binding(NAME, cluster="a", gate="open"), False),
        (QueueAdmission.NONE, binding(NAME, cluster="a", gate="held"), False),
    ],
)
def test_a_policy_that_a_person_deleted_is_created_with_the_gate_of_its_vcjob(
    admission: QueueAdmission, bound: Object, held: bool
) -> None:
    seen = observed(
        hyperjob(group(replicas=1), status={"jobs": [entry(phase="Placed")]}),
        job(NAME),
        bound,
        clusters=(cluster("a"),),
        admission=admission,
    )
    created = next(each for each in plan(seen).actions if isinstance(each, CreateChild))
    assert created.job is None
    suspension = created.policy["spec"].get("suspension") or {}
    assert bool(suspension.get("dispatching")) is held
    (affinity,) = created.policy["spec"]["placement"]["clusterAffinities"]
    # The webhook closes the gate of a ResourceBinding with this name.
    named = "hyperjob-held" if admission is QueueAdmission.BUILTIN else "hyperjob"
    assert affinity["affinityName"] == named


def test_the_start_stays_while_a_hyperjob_waits_again() -> None:
    first = "2026-01-02T03:01:00Z"
    waits = plan(observed(hyperjob(status={"startTime": first}), clusters=(cluster("a", 0),)))
    assert waits.status["state"]["phase"] == "Pending"
    assert waits.status["startTime"] == first
    new = plan(observed(hyperjob(), clusters=(cluster("a", 0),)))
    assert new.status is not None
    assert "startTime" not in new.status
