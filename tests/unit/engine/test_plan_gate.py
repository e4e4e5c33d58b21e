"""When the gate of a gang opens, and what is left of it."""

from dataclasses import replace

import pytest

from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.planned import (
    CreateChild,
    OpenGate,
)
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import (
    binding,
    cluster,
    group,
    hyperjob,
    job,
    observed,
    policy,
)
from tests.unit.engine.plans import FULL, GLOBAL, gated, kinds, phase


@pytest.mark.parametrize(
    ("first", "second", "opened"),
    [
        pytest.param((True, ""), (True, ""), 0, id="none admitted"),
        pytest.param((False, "a"), (True, ""), 0, id="half of the gang admitted"),
        pytest.param((False, "a"), (False, ""), 0, id="admitted but not placed"),
        pytest.param((False, "a"), (False, "b"), 0, id="placed elsewhere than pinned"),
        pytest.param((False, "a"), (False, "a"), 2, id="all admitted and placed"),
    ],
)
def test_the_gate_opens_for_all_at_once(
    first: tuple[bool, str], second: tuple[bool, str], opened: int
) -> None:
    objects = [
        *gated("hj-trainer-0", scheduling=first[0], where=first[1]),
        *gated("hj-trainer-1", scheduling=second[0], where=second[1]),
    ]
    decided = plan(observed(hyperjob(), *objects, clusters=FULL, admission=GLOBAL))
    gates = [action for action in decided.actions if isinstance(action, OpenGate)]
    assert len(gates) == opened
    for gate in gates:
        assert gate.binding == f"{gate.name}-job"
        assert (gate.binding_uid, gate.policy_uid) == (f"rb-{gate.name}", f"pp-{gate.name}")
        assert not gate.release_scheduling


def test_a_queue_of_volcano_global_counts_no_part_of_a_device_that_no_cluster_reports() -> None:
    raw = hyperjob(group(replicas=1))
    (container,) = raw["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["template"]["spec"][
        "containers"
    ]
    container["resources"]["requests"] |= {"volcano.sh/vgpu-cores": "50"}
    free, reports = cluster("a"), cluster("b", unusable="is not Ready")
    reports = replace(reports, allocatable={"cpu": 1, "volcano.sh/vgpu-cores": 1})
    for clusters, admission, marks in (
        ((free,), GLOBAL, {"training.volcano.sh/uncounted": "volcano.sh/vgpu-cores"}),
        ((free, reports), GLOBAL, {}),
        ((free,), QueueAdmission.NONE, {}),
    ):
        decided = plan(observed(raw, clusters=clusters, admission=admission))
        (created,) = [each for each in decided.actions if isinstance(each, CreateChild)]
        assert created.job["metadata"].get("annotations", {}) == marks


def test_a_late_sub_job_follows_a_gang_that_is_through() -> None:
    through = [
        job("hj-trainer-0", phase="Running"),
        policy("hj-trainer-0"),
        binding("hj-trainer-0", cluster="a", gate="open", suspension={"scheduling": False}),
    ]
    late = gated("hj-trainer-1", scheduling=False, where="a")
    decided = plan(observed(hyperjob(), *through, *late, clusters=FULL, admission=GLOBAL))
    assert kinds(decided) == [("OpenGate", "hj-trainer-1")]


def test_a_crash_between_the_two_patches_of_a_gate_is_made_good() -> None:
    objects = [
        *gated("hj-trainer-0", scheduling=False, where="a"),
        *gated("hj-trainer-1", scheduling=False, where="a", gate="open"),
    ]
    objects[1]["spec"].pop("suspension")
    decided = plan(observed(hyperjob(), *objects, clusters=FULL, admission=GLOBAL))
    assert [
        (action.name, action.policy_uid)
        for action in decided.actions
        if isinstance(action, OpenGate)
    ] == [("hj-trainer-0", None)]


def test_a_users_own_suspension_after_the_gate_is_left_alone_and_told() -> None:
    objects = gated("hj-trainer-0", scheduling=False, where="a", gate="open")
    objects[1]["spec"]["suspension"] = {"dispatching": True}
    decided = plan(observed(hyperjob(group(replicas=1)), *objects, clusters=FULL, admission=GLOBAL))
    assert decided.actions == ()
    assert phase(decided) == ("Starting", "DispatchingSuspended")


def test_without_a_queue_a_gate_from_before_is_opened_and_released() -> None:
    objects = gated("hj-trainer-0", scheduling=True)
    decided = plan(observed(hyperjob(group(replicas=1)), *objects))
    assert [type(action) for action in decided.actions] == [OpenGate]
    action = decided.actions[0]
    assert isinstance(action, OpenGate)
    assert action.release_scheduling


def test_without_a_webhook_the_policys_suspension_alone_is_a_gate() -> None:
    objects = gated("hj-trainer-0", scheduling=False, where="a")
    objects[2]["metadata"]["annotations"] = {}
    decided = plan(observed(hyperjob(group(replicas=1)), *objects, clusters=FULL, admission=GLOBAL))
    assert [type(action) for action in decided.actions] == [OpenGate]


@pytest.mark.parametrize(("gate", "suspended"), [("held", True), ("open", False)])
def test_a_policy_that_is_made_again_suspends_where_the_gate_is_still_shut(
    gate: str, suspended: bool
) -> None:
    bound = binding(cluster="a", gate=gate, suspension={"scheduling": False})
    made = plan(
        observed(hyperjob(group(replicas=1)), job(), bound, clusters=FULL, admission=GLOBAL)
    )
    (action,) = made.actions
    assert isinstance(action, CreateChild)
    assert ("suspension" in action.policy["spec"]) is suspended
