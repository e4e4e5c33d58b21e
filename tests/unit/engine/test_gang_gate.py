"""When the gate of a gang opens: for all of it, where there is room, whatever came before."""

from dataclasses import replace
from typing import Any

import pytest

from hyperjob_engine.gang.gang import is_through
from hyperjob_engine.model.observed import Cluster, QueueAdmission
from hyperjob_engine.model.planned import CreateChild, OpenGate, Plan, Repin
from hyperjob_engine.model.subjobs import child_of
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import (
    Object,
    binding,
    child,
    cluster,
    gated,
    group,
    hyperjob,
    job,
    observed,
    policy,
    task,
    template,
    vcjob_status,
)
from tests.unit.engine.plans import GLOBAL

FULL, NONE_LEFT, ROOMY = cluster("a", 0), cluster("a", -16, total=16), cluster("b", 16)
LOST = cluster("a", unusable="is not Ready")
ONE = {"replicatedJobs": [group(replicas=1)]}


def look(*objects: Object, on: tuple[Cluster, ...] = (FULL,), **spec: object) -> Plan:
    return plan(observed(hyperjob(**spec), *objects, clusters=on, admission=GLOBAL))


def told(decided: Plan) -> list[tuple[type, str]]:
    return [(type(action), action.name) for action in decided.actions]


BOTH = [*gated(0), *gated(1)]
OPENS = [(OpenGate, "hj-trainer-0"), (OpenGate, "hj-trainer-1")]
MOVES = [(Repin, "hj-trainer-0"), (Repin, "hj-trainer-1")]


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        pytest.param((FULL, ROOMY), OPENS, id="its reservation is its room"),
        pytest.param((NONE_LEFT, ROOMY), MOVES, id="others took its room"),
        pytest.param((LOST, ROOMY), MOVES, id="its cluster is lost"),
        pytest.param((NONE_LEFT,), [], id="there is no other"),
        pytest.param((LOST, cluster("b", 15)), MOVES[:1], id="there is another for one half"),
    ],
)
def test_before_it_goes_its_places_are_looked_at_again(
    on: tuple[Cluster, ...], expected: list[tuple[type, str]]
) -> None:
    assert told(look(*BOTH, on=on)) == expected


def test_a_gang_without_room_says_so() -> None:
    decided = look(*BOTH, on=(NONE_LEFT,))
    state = decided.status["state"]
    assert (state["phase"], state["reason"]) == ("Queued", "InsufficientCapacity")
    assert "has admitted it, but its place is gone: needs 8 nvidia.com/gpu" in state["message"]
    assert decided.waits_for_capacity
    assert decided.needs


def test_half_of_it_goes_where_half_is_enough() -> None:
    half = replace(FULL, free={**FULL.free, "nvidia.com/gpu": -8 * 10**9})
    decided = look(*BOTH, on=(half,), minAvailable=1)
    assert told(decided) == OPENS[:1]


def test_what_has_begun_to_go_goes_to_the_end_though_room_is_short_now() -> None:
    """The controller died between two gates; room had been found for both."""
    begun = [*gated(0, gate="open"), *gated(1)]
    assert told(look(*begun, on=(NONE_LEFT,))) == OPENS[1:]


def test_a_moved_sub_job_goes_when_karmada_has_read_its_new_pin() -> None:
    objects = [*gated(0), *gated(1)]
    objects[4] = policy("hj-trainer-1", cluster="b", suspended=True)
    both = (FULL, cluster("b", 0))
    assert told(look(*objects, on=both)) == []
    objects[5]["spec"]["clusters"] = [{"name": "b"}]
    assert told(look(*objects, on=both)) == OPENS


def test_a_release_that_comes_twice_changes_nothing() -> None:
    gone = [*gated(0, gate="open"), *gated(1, gate="open")]
    for item in (gone[2], gone[5]):
        item["spec"]["suspension"] = {"scheduling": False}
    assert told(look(*gone)) == []


def test_what_a_member_has_seen_unstamped_holds_nobody_up_and_its_policy_is_lifted() -> None:
    """The webhook's configuration was missing when its binding was made."""
    seen = gated(0, gate="", suspended=True)
    seen[2] = binding("hj-trainer-0", cluster="a", status=vcjob_status("Running"))
    decided = look(*seen, *gated(1))
    assert told(decided) == OPENS
    first = decided.actions[0]
    assert isinstance(first, OpenGate)
    assert first.policy_uid == "pp-hj-trainer-0"


@pytest.mark.parametrize("suspension", [{"dispatching": True}, {"scheduling": True}])
def test_a_users_suspension_of_one_that_went_stays(suspension: Object) -> None:
    gone = gated(0, gate="open", suspended="dispatching" in suspension)
    gone[2]["spec"]["suspension"] = suspension
    assert told(look(*gone, **ONE)) == []


def test_what_has_ended_is_through_though_its_binding_is_gone() -> None:
    ended = job("hj-trainer-0", phase="Completed")
    assert is_through(child_of(observed(hyperjob(), ended), "hj-trainer-0"))
    assert not is_through(child_of(observed(hyperjob(), job("hj-trainer-0")), "hj-trainer-0"))


def test_what_a_member_has_received_is_not_moved_though_its_gate_is_closed() -> None:
    received = gated(0)
    received[2]["status"] = {"aggregatedStatus": [{"clusterName": "a", "applied": True}]}
    decided = look(*received, *gated(1), on=(LOST, cluster("b", 16)))
    assert told(decided) == MOVES[1:]


@pytest.mark.parametrize(
    ("first", "second", "opened"),
    [
        pytest.param({"released": False}, {"released": False}, 0, id="none admitted"),
        pytest.param({}, {"released": False}, 0, id="half of the gang admitted"),
        pytest.param({}, {"cluster": ""}, 0, id="admitted but not placed"),
        pytest.param({}, {"cluster": "b"}, 0, id="placed elsewhere than pinned"),
        pytest.param({}, {}, 2, id="all admitted and placed"),
    ],
)
def test_the_gate_opens_for_all_at_once(
    first: dict[str, Any], second: dict[str, Any], opened: int
) -> None:
    decided = look(*gated(0, **first), *gated(1, **second))
    gates = [action for action in decided.actions if isinstance(action, OpenGate)]
    assert len(gates) == opened
    for gate in gates:
        assert gate.binding == f"{gate.name}-job"
        assert (gate.binding_uid, gate.policy_uid) == (f"rb-{gate.name}", f"pp-{gate.name}")
        assert not gate.release_scheduling


def test_a_late_sub_job_follows_a_gang_that_is_through() -> None:
    through = child(0, "Running", gate="open", suspension={"scheduling": False})
    assert told(look(*through, *gated(1))) == OPENS[1:]


def test_a_crash_between_the_two_patches_of_a_gate_is_made_good() -> None:
    objects = [*gated(0), *gated(1, gate="open")]
    objects[1]["spec"].pop("suspension")
    (gate,) = look(*objects).actions
    assert isinstance(gate, OpenGate)
    assert (gate.name, gate.policy_uid) == ("hj-trainer-0", None)


def test_without_a_queue_a_gate_from_before_is_opened_and_released() -> None:
    (gate,) = plan(observed(hyperjob(**ONE), *gated(0, released=False))).actions
    assert isinstance(gate, OpenGate)
    assert gate.release_scheduling


def test_without_a_webhook_the_policys_suspension_alone_is_a_gate() -> None:
    objects = gated(0)
    objects[2]["metadata"]["annotations"] = {}
    assert told(look(*objects, **ONE)) == OPENS[:1]


def test_a_queue_of_volcano_global_counts_no_part_of_a_device_that_no_cluster_reports() -> None:
    part = {"nvidia.com/gpu": "1", "volcano.sh/vgpu-cores": "50"}
    job_ = task()
    job_["template"]["spec"]["containers"][0]["resources"]["requests"] = part
    raw = hyperjob(group(replicas=1, templateSpec=template(job_)))
    free, reports = cluster("a"), cluster("b", unusable="is not Ready")
    reports = replace(reports, allocatable={"cpu": 1, "volcano.sh/vgpu-cores": 1})
    for clusters, admission, marks in (
        ((free,), GLOBAL, {"training.volcano.sh/uncounted": "volcano.sh/vgpu-cores"}),
        ((free, reports), GLOBAL, {}),
        ((free,), QueueAdmission.NONE, {}),
    ):
        (created,) = plan(observed(raw, clusters=clusters, admission=admission)).actions
        assert isinstance(created, CreateChild)
        assert created.job["metadata"].get("annotations", {}) == marks
