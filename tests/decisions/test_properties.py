"""What holds of the decisions about any generated case, whatever is decided."""

import re
from functools import cache

import orjson
import pytest

from tests.decisions import entry, stories
from tests.decisions.draw import Draw
from tests.decisions.karmada import patched_by
from tests.decisions.reviews import AROUND, binding_of, documents
from tests.decisions.rows import Row
from tests.decisions.stage import RESTART, Stage, Story, envelope, play, reviewed, rows_of

pytestmark = pytest.mark.long

MODES = entry.MODES
DAYS, ROUNDS, CONTESTS = 6, 4, 14
STOPPED = re.compile(r"(?:makes way for|is preempted by) default/(\w+)")
WORDS = re.compile(r"status\.(state\.message|jobs\[.*\]\.message|expectedStart)")
"""What a waiting HyperJob says: a controller repeats it when it begins."""


def told(number: int) -> list[Story]:
    days = [stories.days(each, MODES) for each in range(DAYS)]
    return [*days, *(stories.rounds(each, MODES) for each in range(ROUNDS))][number::2]


@cache
def contest(number: int) -> Stage:
    return play(entry, stories.without_nodes(stories.contests(number, MODES)))


@pytest.mark.parametrize("number", range(2))
def test_equal_cases_are_decided_equally(number: int) -> None:
    for story in told(number)[:2]:
        assert rows_of(play(entry, story)) == rows_of(play(entry, story)), story.title


@pytest.mark.parametrize("number", range(CONTESTS))
def test_no_accelerator_is_given_twice(number: int) -> None:
    for moment, cluster, load, accelerators in contest(number).plane.karmada.loads:
        assert load <= accelerators, f"{cluster} at {moment:g} s"


def starts(rows: list[Row], name: str) -> list[float]:
    """Return when sub-jobs of a HyperJob begin to run."""
    return [
        moment
        for moment, about, fact in rows
        if about == f"HyperJob {name}" and re.match(r'status\.jobs\[.*\.phase = "Running"', fact)
    ]


@pytest.mark.parametrize("number", range(CONTESTS))
def test_nobody_is_stopped_in_vain(number: int) -> None:
    rows = contest(number).plane.rows
    for moment, about, fact in rows:
        found = STOPPED.search(fact)
        if found and fact.startswith("status.jobs[") and ".message = " in fact:
            after = [each - moment for each in starts(rows, found[1]) if each >= moment]
            assert after, f"{about} is stopped at {moment:g} s, and {found[1]} never starts"
            assert after[0] < 60.0, f"{about} is stopped at {moment:g} s for {found[1]}"


def test_hyperjobs_are_stopped_for_others() -> None:
    facts = [fact for number in range(CONTESTS) for _, _, fact in contest(number).plane.rows]
    assert sum(1 for fact in facts if STOPPED.search(fact)) > 8


@pytest.mark.parametrize("number", range(2))
def test_at_rest_a_new_controller_changes_nothing(number: int) -> None:
    rested = 0
    for story in map(stories.settled, told(number)):
        rows = play(entry, story).plane.rows
        begun = next(
            moment for moment, act in story.acts if act is RESTART and moment > story.seconds / 2
        )
        if any(begun - stories.HOUR / 2 < moment < begun for moment, _, _ in rows):
            continue
        rested += 1
        soon = begun + 600.0
        after = [row for row in rows if begun < row[0] < soon and not WORDS.match(row[2])]
        assert after == [], story.title
    assert rested > 1


def test_defaults_and_stamps_are_given_once() -> None:
    for name, raw in documents().items():
        whole = patched_by(raw, reviewed(entry, "default", raw, None, AROUND))
        assert "patch" not in reviewed(entry, "default", whole, None, AROUND), name
    for number in range(80):
        new = binding_of(Draw(f"binding {number}"))
        for old in (None, new):
            body = orjson.dumps(envelope("stamp", new, old))
            stamped = patched_by(new, orjson.loads(entry.review("stamp", body, ())[1])["response"])
            again = orjson.dumps(envelope("stamp", stamped, stamped))
            assert "patch" not in orjson.loads(entry.review("stamp", again, ())[1])["response"]
