"""What a plan does with the verdict of our own queue admission."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_engine.model.line import Wait
from hyperjob_engine.model.observed import Observed, QueueAdmission, QueueVerdict
from hyperjob_engine.model.planned import CreateChild, OpenGate, Plan, Resize
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
    job_status,
    observed,
    place,
    policy,
    request,
    task,
    template,
    vcjob_status,
)
from tests.unit.engine.test_auto import auto

BOTH = frozenset({"hj-trainer-0", "hj-trainer-1"})
IN_LINE = Wait(
    queue="research",
    place=1,
    length=3,
    message="first of 3 in queue research: the queue engine has not considered it yet",
)
WAITS = QueueVerdict(reason="InsufficientCapacity", wait=IN_LINE)


def decided(
    verdict: QueueVerdict, *objects: Object, raw: Object | None = None, gpus: int = 100
) -> Plan:
    seen = observed(
        raw,
        *objects,
        clusters=(cluster("a", gpus),),
        admission=QueueAdmission.BUILTIN,
    )
    return plan(replace(seen, verdict=verdict))


def test_nothing_is_made_of_a_hyperjob_that_waits() -> None:
    made = decided(WAITS)
    assert made.actions == ()
    state = made.status["state"]
    assert (state["phase"], state["reason"]) == ("Queued", "InsufficientCapacity")
    why = "the queue engine has not considered it yet"
    assert state["message"] == f"first of 3 in queue research: {why}"
    assert [job["phase"] for job in made.status["jobs"]] == ["Queued", "Queued"]
    assert all("admitted" not in job for job in made.status["jobs"])
    assert "clusters" not in made.status
    assert not made.waits_for_capacity


def test_a_split_that_waits_for_its_queue_is_woken_by_the_queue_and_not_by_every_free_cluster() -> (
    None
):
    raw = hyperjob(auto(128))
    assert not decided(WAITS, raw=raw, gpus=8).waits_for_capacity
    admitted = QueueVerdict(admitted=frozenset({"hj-trainer-0"}))
    without_room = decided(admitted, raw=raw, gpus=8)
    assert (without_room.waits_for_capacity, without_room.needs) == (True, ())


def test_a_sub_job_that_waits_for_room_names_the_clusters_behind_its_queue() -> None:
    placed = place([request("hj-trainer-0", 8), request("hj-trainer-1", 8)], [cluster("a", 8)])
    lacks = {name: short.text for name, short in placed.unplaced.items()}
    told = decided(replace(WAITS, unplaced=lacks)).status
    assert [(job["phase"], job["reason"], job["message"]) for job in told["jobs"]] == [
        ("Queued", "WaitingForQueue", "waits for queue default"),
        (
            "Queued",
            "WaitingForQueue",
            "waits for queue default: needs 8 nvidia.com/gpu: a lacks 8 nvidia.com/gpu (0 free)",
        ),
    ]


def test_what_is_admitted_is_made_held_and_recorded() -> None:
    made = decided(QueueVerdict(admitted=BOTH))
    created = [action for action in made.actions if isinstance(action, CreateChild)]
    assert {action.name for action in created} == BOTH
    for action in created:
        assert action.policy["spec"]["suspension"] == {"dispatching": True}
    assert all(job["admitted"] for job in made.status["jobs"])


def test_only_the_admitted_part_of_an_elastic_hyperjob_is_made() -> None:
    made = decided(
        QueueVerdict(
            admitted=frozenset({"hj-trainer-0"}), reason="QueueLimitReached", wait=IN_LINE
        ),
        raw=hyperjob(group(), minAvailable=1),
    )
    assert [action.name for action in made.actions] == ["hj-trainer-0"]
    assert [job.get("admitted") for job in made.status["jobs"]] == [True, None]
    assert [job["phase"] for job in made.status["jobs"]][1] == "Queued"


def test_a_grant_that_finds_no_room_is_not_recorded() -> None:
    made = decided(QueueVerdict(admitted=BOTH), gpus=8)
    assert made.actions == ()
    assert all("admitted" not in job for job in made.status["jobs"])


def test_an_admitted_sub_job_keeps_its_share_while_it_is_made_again() -> None:
    records = [job_status(index, admitted=True) for index in range(2)]
    raw = hyperjob(status={"jobs": records})
    made = decided(QueueVerdict(admitted=BOTH), raw=raw, gpus=0)
    assert all(job["admitted"] for job in made.status["jobs"])
    assert made.waits_for_capacity


TAKEN_BACK = QueueVerdict(admitted=BOTH, reclaimed_for="team-b/base-model")


def running(**options: Any) -> tuple[Object, list[Object]]:
    """Return a HyperJob of which all runs, admitted, and the objects of its sub-jobs."""
    records = [job_status(index, admitted=True) for index in range(2)]
    raw = hyperjob(status={"jobs": records, "restarts": 2}, **options)
    return raw, [*child(0, "Running"), *child(1, "Running")]


@pytest.mark.parametrize(
    ("preempted", "why"),
    [
        ("", "makes way for team-b/base-model, whose queue takes back what it lent"),
        (
            "has a higher priority",
            "is preempted by team-b/base-model, which has a higher priority",
        ),
    ],
)
def test_a_hyperjob_that_must_give_back_is_recorded_to_be_made_again_behind_its_queue(
    preempted: str, why: str
) -> None:
    raw, objects = running()
    made = decided(replace(TAKEN_BACK, preempted=preempted), *objects, raw=raw)
    assert made.actions == (), "the record comes first"
    found = made.status
    assert found["state"]["phase"] == "Restarting"
    assert why in found["state"]["message"]
    assert any(why in event.note for event in made.events)
    assert found["restarts"] == 2, "it costs none of its restarts"
    assert [(each["attempt"], each.get("admitted")) for each in found["jobs"]] == [(1, None)] * 2
    assert [(event.type, event.reason) for event in made.events] == [("Normal", "Restarting")]


def test_what_was_recorded_is_taken_down_and_queues_again() -> None:
    raw, objects = running()
    recorded = decided(TAKEN_BACK, *objects, raw=raw)
    raw["status"] = recorded.status
    waits = WAITS
    leaving = decided(waits, *objects, raw=raw)
    assert {type(action).__name__ for action in leaving.actions} == {"DeleteChild"}
    assert decided(waits, raw=raw).status["state"]["phase"] == "Queued"


def test_what_leaves_already_is_not_given_back_a_second_time() -> None:
    raw, objects = running()
    raw["status"] = decided(TAKEN_BACK, *objects, raw=raw).status
    found = decided(TAKEN_BACK, *objects, raw=raw).status
    assert [each["attempt"] for each in found["jobs"]] == [1, 1]


def test_a_suspended_hyperjob_has_nothing_to_give_back() -> None:
    raw, objects = running(suspend=True)
    found = decided(TAKEN_BACK, *objects, raw=raw).status
    assert not any(each.get("attempt") for each in found["jobs"])


def test_sub_jobs_that_have_ended_are_not_made_again_for_a_queue() -> None:
    raw, objects = running()
    objects[2] = binding("hj-trainer-0", cluster="a", status=vcjob_status("Completed", {}))
    found = decided(TAKEN_BACK, *objects, raw=raw).status
    assert [each.get("attempt") for each in found["jobs"]] == [None, 1]


def test_the_gate_opens_when_karmada_has_placed_the_gang() -> None:
    names = sorted(BOTH)
    objects = [made for name in names for made in (job(name), policy(name, suspended=True))]
    one = decided(QueueVerdict(admitted=BOTH), *objects, binding(names[0], cluster="a"))
    assert not [action for action in one.actions if isinstance(action, OpenGate)]
    both = decided(
        QueueVerdict(admitted=BOTH), *objects, *(binding(name, cluster="a") for name in names)
    )
    assert [type(action) for action in both.actions] == [OpenGate, OpenGate]
    assert not any(a.release_scheduling for a in both.actions if isinstance(a, OpenGate))


BOTH_RUN = [*child(0, "Running", gate="open"), *child(1, "Running", gate="open")]


def test_growth_of_what_runs_waits_for_its_queue_and_says_so() -> None:
    larger = hyperjob(group(gpus=12))
    made = decided(replace(WAITS, admitted=BOTH), *BOTH_RUN, raw=larger)
    assert made.actions == ()
    told = made.status
    assert told["state"]["phase"] == "Running", "what runs is untouched"
    text = (
        "waits to grow to 12 pods: first of 3 in queue research: the queue engine has not"
        " considered it yet"
    )
    assert [each["message"] for each in told["jobs"]] == [text, text]
    assert told["state"]["message"].endswith(
        f"on a; each of hj-trainer-0, hj-trainer-1 is Running on a: {text}"
    )
    late = cluster("a", 16, unusable="not Ready", not_ready_since=NOW - timedelta(minutes=1))
    seen = observed(larger, *BOTH_RUN, clusters=(late,))
    told = plan(replace(seen, verdict=replace(WAITS, admitted=BOTH))).status
    assert [each["reason"] for each in told["jobs"]] == ["ClusterNotReady"] * 2, "it is worse"


def test_growth_that_its_queue_admits_is_made_one_sub_job_after_the_other() -> None:
    larger = hyperjob(group(gpus=12))
    admitted = BOTH | {"hj-trainer-1+"}
    made = decided(replace(WAITS, admitted=admitted), *BOTH_RUN, raw=larger)
    assert [(type(each), each.name) for each in made.actions] == [(Resize, "hj-trainer-1")]
    smaller = decided(QueueVerdict(admitted=BOTH), *BOTH_RUN, raw=hyperjob(group(gpus=4)))
    assert {each.name for each in smaller.actions} == BOTH, "to have less needs no admission"


def test_a_binding_that_volcano_global_should_have_released_says_where_to_look() -> None:
    silent = replace(held_by_volcano_global(), unanswered=frozenset({"hj-trainer-0"}))
    told = plan(silent).status["state"]
    assert (told["phase"], told["reason"]) == ("Queued", "DispatcherSilent")
    assert "check that its dispatcher runs" in told["message"]
    urgent = held_by_volcano_global(priorityClassName="urgent")
    told = plan(replace(urgent, unanswered=frozenset({"hj-trainer-0"}))).status["state"]
    assert "check that PriorityClass urgent exists and its dispatcher runs" in told["message"]


def held_by_volcano_global(**fields: Any) -> Observed:
    held = binding(gate="held", suspension={"scheduling": True, "dispatching": True})
    spec = {**template(task()), **fields}
    seen = observed(
        hyperjob(group(replicas=1, templateSpec=spec)),
        *(job(), policy(suspended=True), held),
        clusters=(cluster("a"),),
        admission=QueueAdmission.VOLCANO_GLOBAL,
    )
    return replace(seen, verdict=QueueVerdict(admitted=frozenset({"hj-trainer-0"})))


@pytest.mark.parametrize(
    ("queues", "reason", "message"),
    [
        (None, "WaitingForQueue", "1 needed sub-jobs are admitted; waits for queue default"),
        ({"default": "Open"}, "WaitingForQueue", "waits for queue default"),
        ({"default": "Closed"}, "QueueNotOpen", "queue default is Closed"),
        ({"default": ""}, "QueueNotOpen", "queue default is not Open yet"),
        ({}, "InvalidQueue", "queue default does not exist"),
    ],
)
def test_a_queue_that_volcano_global_cannot_admit_to_is_the_reason(
    queues: dict[str, str] | None, reason: str, message: str
) -> None:
    found = plan(replace(held_by_volcano_global(), queues=queues)).status
    told, (entry,) = found["state"], found["jobs"]
    assert (told["phase"], told["reason"]) == ("Queued", reason)
    assert message in told["message"]
    waits = "queue default has not admitted it yet"
    assert entry["message"] == (waits if reason == "WaitingForQueue" else message)
