"""What a plan does with the verdict of our own queue admission."""

from dataclasses import replace
from typing import Any

from controller.model.observed import QueueAdmission, Verdict
from controller.model.planned import CreateChild, OpenGate, Plan
from controller.plan import plan
from tests.unit.controller.builders import (
    Object,
    binding,
    cluster,
    group,
    hyperjob,
    job,
    observed,
    policy,
)

BOTH = frozenset({"hj-trainer-0", "hj-trainer-1"})
WAITS = Verdict(reason="InsufficientCapacity", message="first of 3 in queue research")


def decided(verdict: Verdict, *objects: Object, raw: Object | None = None, gpus: int = 100) -> Plan:
    seen = observed(
        raw,
        *objects,
        clusters=(cluster("a", gpus),),
        admission=QueueAdmission.BUILTIN,
    )
    return plan(replace(seen, verdict=verdict))


def status(made: Plan) -> Any:
    assert made.status is not None
    return made.status


def test_nothing_is_made_of_a_hyperjob_that_waits() -> None:
    made = decided(WAITS)
    assert made.actions == ()
    state = status(made)["state"]
    assert (state["phase"], state["reason"]) == ("Queued", "InsufficientCapacity")
    assert state["message"] == "first of 3 in queue research"
    assert [job["phase"] for job in status(made)["jobs"]] == ["Queued", "Queued"]
    assert all("admitted" not in job for job in status(made)["jobs"])
    assert "clusters" not in status(made)
    assert not made.waits_for_capacity


def test_what_is_admitted_is_made_held_and_recorded() -> None:
    made = decided(Verdict(admitted=BOTH))
    created = [action for action in made.actions if isinstance(action, CreateChild)]
    assert {action.name for action in created} == BOTH
    for action in created:
        assert action.policy is not None
        assert action.policy["spec"]["suspension"] == {"dispatching": True}
    assert all(job["admitted"] for job in status(made)["jobs"])


def test_only_the_admitted_part_of_an_elastic_hyperjob_is_made() -> None:
    made = decided(
        Verdict(admitted=frozenset({"hj-trainer-0"}), reason="QueueLimitReached", message="m"),
        raw=hyperjob(group(), minAvailable=1),
    )
    assert [action.name for action in made.actions] == ["hj-trainer-0"]
    assert [job.get("admitted") for job in status(made)["jobs"]] == [True, None]
    assert [job["phase"] for job in status(made)["jobs"]][1] == "Queued"


def test_a_grant_that_finds_no_room_is_not_recorded() -> None:
    made = decided(Verdict(admitted=BOTH), gpus=8)
    assert made.actions == ()
    assert all("admitted" not in job for job in status(made)["jobs"])


def test_an_admitted_sub_job_keeps_its_share_while_it_is_made_again() -> None:
    records = [
        {"name": name, "replicatedJob": "trainer", "index": index, "admitted": True}
        for index, name in enumerate(sorted(BOTH))
    ]
    raw = hyperjob(status={"jobs": records})
    made = decided(Verdict(admitted=BOTH), raw=raw, gpus=0)
    assert all(job["admitted"] for job in status(made)["jobs"])
    assert made.waits_for_capacity


def test_the_gate_opens_when_karmada_has_placed_the_gang() -> None:
    names = sorted(BOTH)
    objects = [made for name in names for made in (job(name), policy(name, suspended=True))]
    one = decided(Verdict(admitted=BOTH), *objects, binding(names[0], cluster="a"))
    assert not [action for action in one.actions if isinstance(action, OpenGate)]
    both = decided(
        Verdict(admitted=BOTH), *objects, *(binding(name, cluster="a") for name in names)
    )
    assert [type(action) for action in both.actions] == [OpenGate, OpenGate]
    assert not any(a.release_scheduling for a in both.actions if isinstance(a, OpenGate))
