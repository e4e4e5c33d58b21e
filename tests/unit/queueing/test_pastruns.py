"""What completed HyperJobs took: when others of their template or queue are expected to end."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_queueing.read import template_of
from hyperjob_queueing.sizes import PastRuns
from tests.unit.engine.builders import NOW, Object, group, hyperjob
from tests.unit.queueing.queueworld import QueueWorld, queue, unit

HOUR = timedelta(hours=1)


def completed(
    took: timedelta, *, uid: str = "u1", ended: datetime = NOW, phase: str = "Completed", **of: str
) -> Object:
    """Make a HyperJob that has ended, of a queue and an image."""
    status: Object = {
        "state": {"phase": phase, "lastTransitionTime": rfc3339(ended)},
        "goodput": {"milliseconds": {"productive": round(took.total_seconds() * 1000)}},
    }
    made = hyperjob(pods(**of), status=status)
    made["metadata"]["uid"] = uid
    return made


def pods(queue: str = "default", image: str = "train:1", name: str = "trainer") -> Object:
    made = group(name)
    task = {"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"image": image}]}}}
    spec = {**made["templateSpec"], "queue": queue, "tasks": [task]}
    return {**made, "templateSpec": spec}


def template(**of: str) -> str:
    return template_of(parse_hyperjob(completed(HOUR, **of)))


MINE = template()


def noted(*jobs: Object) -> PastRuns:
    made = PastRuns()
    for each in jobs:
        made.note(each)
    return made


def past(*hours: float) -> PastRuns:
    return noted(*(completed(took * HOUR, uid=f"u{at}") for at, took in enumerate(hours)))


@pytest.mark.parametrize(
    ("runs", "ran", "hours", "by"),
    [
        ((), 0, None, ""),
        ((2,), 0, 2, "1 earlier run of its template"),
        ((2, 8, 3), 0, 3, "3 earlier runs of its template"),
        ((2, 8, 3), 2, 8, "2 earlier runs of its template"),
        ((2, 8, 3), 8, None, ""),
        ((0,), 0, None, ""),
    ],
)
def test_the_longer_one_has_run_the_longer_it_is_expected_to(
    runs: tuple[int, ...], ran: int, hours: int | None, by: str
) -> None:
    known = past(*runs).expect(MINE, "default", ran * HOUR)
    assert known == (None if hours is None else (hours * HOUR, by))


def test_of_a_new_template_the_runs_of_its_queue_count_and_of_no_other() -> None:
    known = past(1, 5, 6)
    assert known.expect("new", "default", HOUR) == (6 * HOUR, "2 earlier runs of its queue")
    assert known.expect("new", "other", HOUR) is None


def test_a_run_that_failed_says_nothing() -> None:
    assert noted(completed(HOUR, phase="Failed")) == PastRuns()


def test_a_template_is_what_the_pods_are_in_one_namespace_and_queue_whatever_their_names() -> None:
    assert template(name="worker") == MINE
    assert template(image="train:2") != MINE
    assert template(queue="other") != MINE
    assert template_of(replace(parse_hyperjob(completed(HOUR)), namespace="other")) != MINE


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=40), st.data()
)
def test_a_new_leader_learns_the_same_runs_in_any_order_and_twice(
    runs: list[tuple[int, int]], data: st.DataObject
) -> None:
    jobs = [
        completed(took * HOUR, uid=f"u{number:02}", ended=NOW + after * HOUR)
        for number, (took, after) in enumerate(runs)
    ]
    first, latest = noted(*jobs), sorted(range(len(jobs)), key=lambda number: runs[number][1])[-16:]
    assert noted(*data.draw(st.permutations(jobs + jobs))) == first
    assert first == noted(*(jobs[number] for number in latest)), "the latest 16 count"


def world(known: PastRuns) -> QueueWorld:
    """Return a world in which a HyperJob runs from now on, and a head waits for its end."""
    made = QueueWorld(gpus={"a": 8})
    made.state.past = known
    made.set_queues(queue("default"))
    made.submit(replace(unit("runs", 8), template=MINE), unit("head", 8, age=1))
    while made.decide():
        pass
    made.submit(replace(made.units["ns/runs"], since=rfc3339(NOW)))
    return made


def test_the_message_names_the_earlier_runs_and_its_time_moves_when_it_is_over() -> None:
    made = world(past(2, 5, 9))
    for hours, told, ends in ((1, "3 earlier runs", 5), (6, "1 earlier run", 9)):
        made.now = NOW + hours * HOUR
        made.decide()
        end = rfc3339((NOW + ends * HOUR).replace(second=0))
        assert f"about {end}, when ns/runs ends by {told} of its template" in made.message("head")
