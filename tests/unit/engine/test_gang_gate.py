"""When the gate of a gang opens, with Volcano Global and without, and when quota is released."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.gang.gang import is_held, is_through
from hyperjob_engine.model.observed import Cluster, Observed, QueueAdmission
from hyperjob_engine.model.planned import CreateChild, OpenGate, Plan, ReleaseQuota, Repin
from hyperjob_engine.model.subjobs import child_of
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import (
    NOW,
    Object,
    binding,
    child,
    cluster,
    gated,
    group,
    hyperjob,
    job,
    observed,
    owner,
    policy,
    task,
    template,
    vcjob_status,
)
from tests.unit.engine.plans import FULL, GLOBAL

FULL_A, NONE_LEFT, ROOMY = cluster("a", 0), cluster("a", -16, total=16), cluster("b", 16)
LOST = cluster("a", unusable="is not Ready")
ONE = {"replicatedJobs": [group(replicas=1)]}


def look(*objects: Object, on: tuple[Cluster, ...] = (FULL_A,), **spec: object) -> Plan:
    return plan(observed(hyperjob(**spec), *objects, clusters=on, admission=GLOBAL))


def told(decided: Plan) -> list[tuple[type, str]]:
    return [(type(action), action.name) for action in decided.actions]


BOTH = [*gated(0), *gated(1)]
OPENS = [(OpenGate, "hj-trainer-0"), (OpenGate, "hj-trainer-1")]
MOVES = [(Repin, "hj-trainer-0"), (Repin, "hj-trainer-1")]


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        pytest.param((FULL_A, ROOMY), OPENS, id="its reservation is its room"),
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
    half = replace(FULL_A, free={**FULL_A.free, "nvidia.com/gpu": -8 * 10**9})
    decided = look(*BOTH, on=(half,), minAvailable=1)
    assert told(decided) == OPENS[:1]


def test_what_has_begun_to_go_goes_to_the_end_though_room_is_short_now() -> None:
    """The controller died between two gates; room had been found for both."""
    begun = [*gated(0, gate="open"), *gated(1)]
    assert told(look(*begun, on=(NONE_LEFT,))) == OPENS[1:]


def test_a_moved_sub_job_goes_when_karmada_has_read_its_new_pin() -> None:
    objects = [*gated(0), *gated(1)]
    objects[4] = policy("hj-trainer-1", cluster="b", suspended=True)
    both = (FULL_A, cluster("b", 0))
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


def test_the_suspension_of_a_deleted_policy_holds_only_what_has_not_started() -> None:
    left = binding(cluster="a", suspension={"dispatching": True})
    for phase, held in (("", True), ("Running", False)):
        seen = observed(hyperjob(), job(phase=phase), left)
        assert is_held(child_of(seen, "hj-trainer-0")) is held
    foreign = policy(suspended=True, owners=owner("other"))
    seen = observed(hyperjob(), job(), foreign, binding(cluster="a"))
    assert not is_held(child_of(seen, "hj-trainer-0"))


@pytest.mark.parametrize(
    ("on", "spec"),
    [((LOST, cluster("b", 8)), {}), ((LOST, cluster("b", 8), cluster("c", 8)), {"maxDomains": 1})],
    ids=["room", "domain"],
)
def test_no_sub_job_moves_where_the_same_pass_has_taken_the_last(
    on: tuple[Cluster, ...], spec: dict[str, Any]
) -> None:
    assert told(look(*gated(0), on=on, minAvailable=1, **spec)) == [(CreateChild, "hj-trainer-1")]


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


# Without Volcano Global the suspension of the PropagationPolicy alone is the gate


GATE = "training.volcano.sh/gate"
OPEN = {"annotations": {GATE: "open"}}


def decides_alone(*objects: Object, **spec: object) -> Observed:
    seen = observed(
        hyperjob(**spec), *objects, clusters=(cluster("a"),), admission=QueueAdmission.BUILTIN
    )
    return replace(seen, decides_alone=True)


def held(index: int, *, where: str = "a", gate: str = "", made=None) -> list[Object]:
    objects = child(
        index, cluster=where, gate=gate, suspended=True, suspension={"dispatching": True}
    )
    if made is not None:
        objects[0]["metadata"]["creationTimestamp"] = rfc3339(made)
    return objects


def policies(decided: Plan) -> list[Object]:
    return [
        action.policy
        for action in decided.actions
        if isinstance(action, CreateChild) and action.policy is not None
    ]


def affinity(policy: Object) -> str:
    (only,) = policy["spec"]["placement"]["clusterAffinities"]
    return str(only["affinityName"])


def openings(decided: Plan) -> list[OpenGate]:
    return [action for action in decided.actions if isinstance(action, OpenGate)]


def test_the_policies_of_a_gang_are_created_suspended_and_marked():
    made = policies(plan(decides_alone()))
    assert [each["spec"]["suspension"] for each in made] == [{"dispatching": True}] * 2
    assert [each["metadata"]["annotations"] for each in made] == [{GATE: "held"}] * 2
    assert {affinity(each) for each in made} == {"hyperjob-held"}


@pytest.mark.parametrize(
    "spec",
    [ONE, {"minAvailable": 1}],
    ids=["a single sub-job", "each may run alone"],
)
def test_what_leaves_no_gang_incomplete_has_no_gate(spec):
    made = policies(plan(decides_alone(**spec)))
    assert made
    for each in made:
        assert "suspension" not in each["spec"]
        assert affinity(each) == "hyperjob"


def test_the_last_sub_job_of_a_gang_that_runs_needs_no_gate():
    running = [job(phase="Running"), policy(), binding(cluster="a")]
    (last,) = policies(plan(decides_alone(*running)))
    assert last["metadata"]["name"] == "hj-trainer-1"
    assert "suspension" not in last["spec"]


def test_the_last_sub_job_of_a_gang_that_is_held_has_a_gate():
    (last,) = policies(plan(decides_alone(*held(0, where=""))))
    assert last["spec"]["suspension"] == {"dispatching": True}


@pytest.mark.parametrize(
    ("admission", "name"),
    [(QueueAdmission.VOLCANO_GLOBAL, "hyperjob-gang"), (QueueAdmission.BUILTIN, "hyperjob-held")],
)
def test_where_volcano_global_may_be_a_single_sub_job_has_a_gate(admission, name):
    alone = decides_alone(**ONE)
    (made,) = policies(plan(replace(alone, admission=admission, decides_alone=False)))
    assert made["spec"]["suspension"] == {"dispatching": True}
    assert affinity(made) == name


def test_a_complete_gang_is_opened_in_its_policies_alone():
    opened = openings(plan(decides_alone(*held(0), *held(1))))
    assert [(each.policy_uid, each.binding_uid) for each in opened] == [
        ("pp-hj-trainer-0", None),
        ("pp-hj-trainer-1", None),
    ]


def test_a_gang_of_which_one_is_not_scheduled_stays_held():
    assert openings(plan(decides_alone(*held(0), *held(1, where="")))) == []


def test_a_binding_that_the_webhook_holds_is_opened_too():
    opened = openings(plan(decides_alone(*held(0), *held(1, gate="held"))))
    assert [each.binding_uid for each in opened] == [None, "rb-hj-trainer-1"]


def test_a_gang_whose_policies_someone_deleted_stays_held():
    without = [each for each in (*held(0), *held(1)) if each["kind"] != "PropagationPolicy"]
    decided = plan(decides_alone(*without))
    assert openings(decided) == []
    assert [each["spec"]["suspension"] for each in policies(decided)] == [{"dispatching": True}] * 2


def message_of(seen) -> tuple[str, str]:
    decided = plan(seen)
    assert decided.actions == ()
    (only,) = decided.status["jobs"]
    return only["reason"], only["message"]


def test_a_suspension_after_the_opening_is_a_users():
    objects = held(0)
    objects[1]["metadata"] |= OPEN
    assert message_of(decides_alone(*objects, **ONE)) == (
        "DispatchingSuspended",
        "its policy suspends dispatching",
    )


def test_a_binding_that_karmada_has_not_released_yet_is_on_its_way():
    objects = held(0)
    objects[1]["metadata"] |= OPEN
    del objects[1]["spec"]["suspension"]
    assert message_of(decides_alone(*objects, **ONE)) == (
        "Dispatching",
        "is being dispatched",
    )


def gang(seen) -> tuple[object, timedelta | None]:
    decided = plan(seen)
    return decided.status.get("gang"), decided.requeue_after


def test_a_gang_that_becomes_complete_at_once_has_no_record():
    made = NOW - timedelta(seconds=2)
    objects = [*held(0, made=made), *held(1, where="", made=made)]
    assert gang(decides_alone(*objects)) == (None, timedelta(seconds=3))


def test_a_gang_that_stays_incomplete_counts_from_its_newest_vcjob():
    first, last = NOW - timedelta(seconds=60), NOW - timedelta(seconds=6)
    objects = [*held(0, made=first), *held(1, where="", made=last)]
    record, _ = gang(decides_alone(*objects))
    assert record["incompleteSince"] == rfc3339(last)


Object = dict[str, Any]
GPU = {"nvidia.com/gpu": "8"}


def ended(*names: str) -> Object:
    jobs = [{"name": name, "replicatedJob": "trainer", "phase": "Completed"} for name in names]
    condition = {"type": "Completed", "status": "True"}
    return {"state": {"phase": "Completed"}, "conditions": [condition], "jobs": jobs}


def sub_job(name: str, phase: str, *, requests: dict[str, str] | None = GPU) -> list[Object]:
    return child(
        name,
        phase,
        pods={"failed": 1},
        gate="open",
        suspension={"scheduling": False},
        requests=requests,
    )


def released(
    *objects: Object, admission: QueueAdmission = GLOBAL, status: Object | None = None
) -> list[str]:
    raw = hyperjob(status=status) if status is not None else hyperjob()
    decided = plan(observed(raw, *objects, clusters=FULL, admission=admission))
    return [action.binding for action in decided.actions if isinstance(action, ReleaseQuota)]


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Aborted", "Terminated"])
def test_a_sub_job_that_has_ended_beside_one_that_runs_asks_for_nothing(phase: str) -> None:
    both = [*sub_job("hj-trainer-0", phase), *sub_job("hj-trainer-1", "Running")]
    assert released(*both) == ["hj-trainer-0-job"]


@pytest.mark.parametrize("phase", ["Running", "Pending", "Restarting", "Completing"])
def test_a_sub_job_that_has_not_ended_keeps_its_request(phase: str) -> None:
    assert released(*sub_job("hj-trainer-0", phase)) == []


def test_the_bindings_of_a_hyperjob_that_has_ended_ask_for_nothing_again_and_again() -> None:
    status = ended("hj-trainer-0", "hj-trainer-1")
    both = [*sub_job("hj-trainer-0", "Completed"), *sub_job("hj-trainer-1", "Completed")]
    assert released(*both, status=status) == ["hj-trainer-0-job", "hj-trainer-1-job"]
    without = [*sub_job("hj-trainer-0", "Completed", requests=None), *both[3:]]
    assert released(*without, status=status) == ["hj-trainer-1-job"]


@pytest.mark.parametrize("admission", [QueueAdmission.BUILTIN, QueueAdmission.NONE])
def test_no_binding_is_written_where_volcano_global_counts_nothing(
    admission: QueueAdmission,
) -> None:
    status = ended("hj-trainer-0")
    assert released(*sub_job("hj-trainer-0", "Completed"), admission=admission, status=status) == []


def test_a_strangers_binding_is_left_alone() -> None:
    stranger = job("hj-trainer-0", phase="Completed", owners=owner("uid-other", "other"))
    bound = binding(
        "hj-trainer-0", cluster="a", requests=GPU, status={"state": {"phase": "Completed"}}
    )
    assert released(stranger, bound) == []
