"""The gate without Volcano Global: the suspension of the PropagationPolicy alone."""

from dataclasses import replace
from datetime import timedelta

import pytest

from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.planned import CreateChild, OpenGate, Plan
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import (
    NOW,
    Object,
    binding,
    child,
    cluster,
    group,
    hyperjob,
    job,
    observed,
    policy,
)

GATE = "training.volcano.sh/gate"
OPEN = {"annotations": {GATE: "open"}}


def look(*objects: Object, gang: Object | None = None, now=NOW, gpus: int = 99, **spec: object):
    raw = hyperjob(*spec.pop("groups", ()), status={"gang": gang} if gang else {}, **spec)
    seen = observed(
        raw, *objects, clusters=(cluster("a", gpus),), admission=QueueAdmission.BUILTIN, now=now
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
    made = policies(plan(look()))
    assert [each["spec"]["suspension"] for each in made] == [{"dispatching": True}] * 2
    assert [each["metadata"]["annotations"] for each in made] == [{GATE: "held"}] * 2
    assert {affinity(each) for each in made} == {"hyperjob-held"}


@pytest.mark.parametrize(
    "spec",
    [{"groups": [group(replicas=1)]}, {"groups": [group(replicas=2)], "minAvailable": 1}],
    ids=["a single sub-job", "each may run alone"],
)
def test_what_leaves_no_gang_incomplete_has_no_gate(spec):
    made = policies(plan(look(**spec)))
    assert made
    for each in made:
        assert "suspension" not in each["spec"]
        assert affinity(each) == "hyperjob"


def test_the_last_sub_job_of_a_gang_that_runs_needs_no_gate():
    running = [job(phase="Running"), policy(), binding(cluster="a")]
    (last,) = policies(plan(look(*running)))
    assert last["metadata"]["name"] == "hj-trainer-1"
    assert "suspension" not in last["spec"]


def test_the_last_sub_job_of_a_gang_that_is_held_has_a_gate():
    (last,) = policies(plan(look(*held(0, where=""))))
    assert last["spec"]["suspension"] == {"dispatching": True}


@pytest.mark.parametrize(
    ("admission", "name"),
    [(QueueAdmission.VOLCANO_GLOBAL, "hyperjob-gang"), (QueueAdmission.BUILTIN, "hyperjob-held")],
)
def test_where_volcano_global_may_be_a_single_sub_job_has_a_gate(admission, name):
    alone = look(groups=[group(replicas=1)])
    (made,) = policies(plan(replace(alone, admission=admission, decides_alone=False)))
    assert made["spec"]["suspension"] == {"dispatching": True}
    assert affinity(made) == name


def test_a_complete_gang_is_opened_in_its_policies_alone():
    opened = openings(plan(look(*held(0), *held(1))))
    assert [(each.policy_uid, each.binding_uid) for each in opened] == [
        ("pp-hj-trainer-0", None),
        ("pp-hj-trainer-1", None),
    ]


def test_a_gang_of_which_one_is_not_scheduled_stays_held():
    assert openings(plan(look(*held(0), *held(1, where="")))) == []


def test_a_binding_that_the_webhook_holds_is_opened_too():
    opened = openings(plan(look(*held(0), *held(1, gate="held"))))
    assert [each.binding_uid for each in opened] == [None, "rb-hj-trainer-1"]


def test_a_gang_whose_policies_someone_deleted_stays_held():
    without = [each for each in (*held(0), *held(1)) if each["kind"] != "PropagationPolicy"]
    decided = plan(look(*without))
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
    assert message_of(look(*objects, groups=[group(replicas=1)])) == (
        "DispatchingSuspended",
        "its policy suspends dispatching",
    )


def test_a_binding_that_karmada_has_not_released_yet_is_on_its_way():
    objects = held(0)
    objects[1]["metadata"] |= OPEN
    del objects[1]["spec"]["suspension"]
    assert message_of(look(*objects, groups=[group(replicas=1)])) == (
        "Dispatching",
        "is being dispatched",
    )


def gang(seen) -> tuple[object, timedelta | None]:
    decided = plan(seen)
    return decided.status.get("gang"), decided.requeue_after


def test_a_gang_that_becomes_complete_at_once_has_no_record():
    made = NOW - timedelta(seconds=2)
    objects = [*held(0, made=made), *held(1, where="", made=made)]
    assert gang(look(*objects)) == (None, timedelta(seconds=3))


def test_a_gang_that_stays_incomplete_counts_from_its_newest_vcjob():
    first, last = NOW - timedelta(seconds=60), NOW - timedelta(seconds=6)
    objects = [*held(0, made=first), *held(1, where="", made=last)]
    record, _ = gang(look(*objects))
    assert record["incompleteSince"] == rfc3339(last)
