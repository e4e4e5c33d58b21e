"""What differs between two statuses."""

from typing import Any

import pytest

from hyperjob_engine.status.transitions import Weight, weigh
from tests.unit.engine.builders import Object

BASE: Object = {
    "splitCount": 1,
    "state": {"phase": "Pending", "reason": "InsufficientCapacity", "message": "a lacks 1"},
    "jobs": [{"name": "x", "phase": "Unplaced", "reason": "r", "message": "a lacks 1"}],
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"state": {**BASE["state"], "message": "a lacks 2"}}, Weight.WORDS),
        ({"jobs": [{**BASE["jobs"][0], "message": "a lacks 2"}]}, Weight.WORDS),
        ({"state": {**BASE["state"], "reason": "Refused"}}, Weight.FACTS),
        ({"jobs": [{**BASE["jobs"][0], "phase": "Placed"}]}, Weight.FACTS),
        ({"jobs": [*BASE["jobs"], {"name": "y"}]}, Weight.FACTS),
        ({"splitCount": 2}, Weight.FACTS),
        ({}, Weight.NOTHING),
        ({"training": {"step": 7}}, Weight.PROGRESS),
        ({"training": {"step": 7, "straggler": {"pod": "p", "rank": 3}}}, Weight.FACTS),
        ({"goodput": {"ratio": "0.5"}}, Weight.PROGRESS),
        ({"jobs": [{**BASE["jobs"][0], "training": {"step": 7}}]}, Weight.PROGRESS),
        ({"jobs": [{**BASE["jobs"][0], "training": {}, "phase": "Placed"}]}, Weight.FACTS),
        ({"gang": {"attempts": 1}}, Weight.FACTS),
        ({"gang": None}, Weight.NOTHING),  # there is none that could be taken away
    ],
)
def test_words_and_progress_are_told_from_facts(change: Object, expected: Weight) -> None:
    assert weigh(BASE, BASE | change) is expected


def test_a_saved_step_of_a_sub_job_that_is_being_stopped_is_a_fact() -> None:
    stopping = BASE | {"stop": {"cause": "Suspended", "jobs": ["x"]}}
    jobs = [{**BASE["jobs"][0], "training": {"step": 7, "savedStep": 7}}]
    assert weigh(stopping, stopping | {"jobs": jobs}) is Weight.FACTS
    assert weigh(BASE, BASE | {"jobs": jobs}) is Weight.PROGRESS
    later = [{**BASE["jobs"][0], "training": {"step": 8, "savedStep": 7}}]
    stopping |= {"jobs": jobs}
    assert weigh(stopping, stopping | {"jobs": later}) is Weight.PROGRESS


def sub_job(**fields: Any) -> Object:
    return {
        "name": "x",
        "cluster": "a",
        "phase": "Placed",
        "reason": "Dispatching",
        "pods": 2,
    } | fields


def starting(*jobs: Object, **fields: Any) -> Object:
    state = {"phase": "Starting", "reason": "Dispatching", "message": "0 of 2 run"}
    return {"state": state, "jobs": list(jobs), "jobsReady": "0/2", "runningPods": 0} | fields


OTHER = sub_job(name="y")
REFUSED = sub_job(reason="ApplyFailed", message="no such class")
PLACED = starting(sub_job())
BEHIND_GATE = starting(sub_job(reason="WaitingForGang"), OTHER)
RUNNING = sub_job(phase="Running", running=1, startTime="12:00", reason="")
PENDING = sub_job(phase="Pending", reason="PodsPending")
GANG = {"admitted": 1, "attempts": 1, "incompleteSince": "12:00"}


STEPS = {
    "a gate is opened": (BEHIND_GATE, starting(sub_job(), OTHER)),
    "one of two runs": (
        starting(sub_job(), OTHER),
        starting(RUNNING, OTHER, jobsReady="1/2", runningPods=1, clusters=[{"name": "a"}]),
    ),
    "pods are pending": (PLACED, starting(PENDING | {"message": "0 of 2 pods run"})),
    "a message follows a step": (
        starting(sub_job(message="waits for Karmada")),
        starting(sub_job(message="is being dispatched")),
    ),
    "the gang is seen to be incomplete": (
        BEHIND_GATE | {"gang": {"attempts": 1}},
        BEHIND_GATE | {"gang": GANG},
    ),
}
FACTS = {
    "pods are pending by a known cause": (
        PLACED,
        starting(PENDING | {"message": "0 of 2 pods run: no node has 16 for one pod"}),
    ),
    "the gang is given back": (
        BEHIND_GATE | {"gang": GANG},
        BEHIND_GATE | {"gang": {"admitted": 0, "attempts": 2, "retryTime": "12:09"}},
    ),
    "a cluster refuses the vcjob": (PLACED, starting(REFUSED)),
    "trouble is over": (starting(REFUSED), PLACED),
    "one has failed": (PLACED, starting(sub_job(phase="Failed"))),
    "one has moved": (PLACED, starting(sub_job(cluster="b"))),
    "one starts again": (PLACED, starting(sub_job(attempt=2))),
    "there is one more": (PLACED, starting(sub_job(), OTHER)),
    "the HyperJob runs": (
        PLACED,
        starting(RUNNING, state={"phase": "Running", "reason": "JobsRunning"}),
    ),
    "the HyperJob has trouble": (
        PLACED,
        starting(sub_job(), state={"phase": "Starting", "reason": "NoProgress"}),
    ),
    "the HyperJob ran before": (
        starting(sub_job(), state={"phase": "Running"}),
        starting(RUNNING, state={"phase": "Running"}),
    ),
    "a stop goes on": (PLACED, starting(RUNNING, stop={"jobs": ["x"]})),
    "a counter changes": (PLACED, starting(RUNNING, restarts=1)),
}


@pytest.mark.parametrize(("old", "new"), STEPS.values(), ids=list(STEPS))
def test_a_step_of_a_start_is_less_than_a_fact(old: Object, new: Object) -> None:
    assert weigh(old, new) is Weight.STEPS


@pytest.mark.parametrize(("old", "new"), FACTS.values(), ids=list(FACTS))
def test_trouble_during_a_start_is_a_fact(old: Object, new: Object) -> None:
    assert weigh(old, new) is Weight.FACTS


def test_another_message_of_a_refusal_is_words() -> None:
    again = REFUSED | {"message": "no such queue"}
    assert weigh(starting(REFUSED), starting(again)) is Weight.WORDS


def test_each_weight_is_more_than_the_one_before() -> None:
    weights = (Weight.NOTHING, Weight.WORDS, Weight.PROGRESS, Weight.STEPS, Weight.FACTS)
    assert list(weights) == sorted(set(weights))
