"""What has ended holds no quota of Volcano Global, and nothing else of it changes."""

from typing import Any

import pytest

from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.planned import ReleaseQuota
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import (
    binding,
    child,
    hyperjob,
    job,
    observed,
    owner,
)
from tests.unit.engine.plans import FULL, GLOBAL

Object = dict[str, Any]
GPU = {"nvidia.com/gpu": "8"}


def _ended(*names: str) -> Object:
    jobs = [{"name": name, "replicatedJob": "trainer", "phase": "Completed"} for name in names]
    condition = {"type": "Completed", "status": "True"}
    return {"state": {"phase": "Completed"}, "conditions": [condition], "jobs": jobs}


def _sub_job(name: str, phase: str, *, requests: dict[str, str] | None = GPU) -> list[Object]:
    return child(
        name,
        phase,
        pods={"failed": 1},
        gate="open",
        suspension={"scheduling": False},
        requests=requests,
    )


def _released(
    *objects: Object, admission: QueueAdmission = GLOBAL, status: Object | None = None
) -> list[str]:
    raw = hyperjob(status=status) if status is not None else hyperjob()
    decided = plan(observed(raw, *objects, clusters=FULL, admission=admission))
    return [action.binding for action in decided.actions if isinstance(action, ReleaseQuota)]


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Aborted", "Terminated"])
def test_a_sub_job_that_has_ended_beside_one_that_runs_asks_for_nothing(phase: str) -> None:
    both = [*_sub_job("hj-trainer-0", phase), *_sub_job("hj-trainer-1", "Running")]
    assert _released(*both) == ["hj-trainer-0-job"]


@pytest.mark.parametrize("phase", ["Running", "Pending", "Restarting", "Completing"])
def test_a_sub_job_that_has_not_ended_keeps_its_request(phase: str) -> None:
    assert _released(*_sub_job("hj-trainer-0", phase)) == []


def test_the_bindings_of_a_hyperjob_that_has_ended_ask_for_nothing_again_and_again() -> None:
    status = _ended("hj-trainer-0", "hj-trainer-1")
    both = [*_sub_job("hj-trainer-0", "Completed"), *_sub_job("hj-trainer-1", "Completed")]
    assert _released(*both, status=status) == ["hj-trainer-0-job", "hj-trainer-1-job"]
    without = [*_sub_job("hj-trainer-0", "Completed", requests=None), *both[3:]]
    assert _released(*without, status=status) == ["hj-trainer-1-job"]


@pytest.mark.parametrize("admission", [QueueAdmission.BUILTIN, QueueAdmission.NONE])
def test_no_binding_is_written_where_volcano_global_counts_nothing(
    admission: QueueAdmission,
) -> None:
    status = _ended("hj-trainer-0")
    assert (
        _released(*_sub_job("hj-trainer-0", "Completed"), admission=admission, status=status) == []
    )


def test_a_strangers_binding_is_left_alone() -> None:
    stranger = job("hj-trainer-0", phase="Completed", owners=owner("uid-other", "other"))
    bound = binding(
        "hj-trainer-0", cluster="a", requests=GPU, status={"state": {"phase": "Completed"}}
    )
    assert _released(stranger, bound) == []
