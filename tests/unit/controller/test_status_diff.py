"""What differs between two statuses."""

import pytest

from hyperjob_engine.status.diff import Weight, weigh
from tests.unit.controller.builders import Object

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


def test_each_weight_is_more_than_the_one_before() -> None:
    weights = (Weight.NOTHING, Weight.WORDS, Weight.PROGRESS, Weight.FACTS)
    assert list(weights) == sorted(set(weights))
