"""When a gang goes: whole, where there is room, whatever came before."""

from dataclasses import replace

import pytest

from hyperjob_engine.gang.gang import is_through
from hyperjob_engine.model.observed import Cluster, QueueAdmission
from hyperjob_engine.model.planned import OpenGate, Plan, Repin
from hyperjob_engine.model.subjobs import child_of
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import (
    Object,
    binding,
    cluster,
    gated,
    group,
    hyperjob,
    job,
    observed,
    policy,
    vcjob_status,
)

GLOBAL = QueueAdmission.VOLCANO_GLOBAL
FULL, NONE_LEFT, ROOMY = cluster("a", 0), cluster("a", -16, total=16), cluster("b", 16)
LOST = cluster("a", unusable="is not Ready")


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
    assert told(look(*gone, replicatedJobs=[group(replicas=1)])) == []


def test_what_has_ended_is_through_though_its_binding_is_gone() -> None:
    ended = job("hj-trainer-0", phase="Completed")
    assert is_through(child_of(observed(hyperjob(), ended), "hj-trainer-0"))
    assert not is_through(child_of(observed(hyperjob(), job("hj-trainer-0")), "hj-trainer-0"))


def test_what_a_member_has_received_is_not_moved_though_its_gate_is_closed() -> None:
    received = gated(0)
    received[2]["status"] = {"aggregatedStatus": [{"clusterName": "a", "applied": True}]}
    decided = look(*received, *gated(1), on=(LOST, cluster("b", 16)))
    assert told(decided) == MOVES[1:]
