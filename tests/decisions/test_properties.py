"""What holds of the decisions about any generated case, whatever is decided."""

import re
from functools import cache
from typing import Any

import orjson
import pytest

from hyperjob_engine.placement.ground import Ground
from hyperjob_engine.reasons.reason import NEVER_RUNS
from tests.decisions import entry, stories
from tests.decisions.draw import Draw
from tests.decisions.karmada import STOPPED, Began, patched_by
from tests.decisions.reviews import AROUND, binding_of, documents
from tests.decisions.rows import Row
from tests.decisions.stage import RESTART, Stage, Story, envelope, play, reviewed, rows_of

pytestmark = pytest.mark.long

MODES = entry.MODES
DAYS, ROUNDS, CONTESTS, CROWDS, STOPS, GANGS = 6, 4, 14, 3, 2, 4
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
    for load in contest(number).plane.karmada.loads:
        assert load.asked <= load.accelerators, load


@pytest.mark.parametrize(
    ("members", "kills", "others"),
    [("off", 0.0, 0.0), ("nodes", 0.0, 0.0), ("nodes", 0.04, 0.0), ("nodes", 0.04, 0.1)],
    ids=["by summaries", "by the members' pods", "a new leader", "beside others that change"],
)
def test_free_room_is_that_of_the_pods_and_nothing_stops_while_there_is_room(
    members: str, kills: float, others: float
) -> None:
    """By summaries, the pods of a deleted vcjob are not seen until they are gone."""
    stops = 0
    for number in range(CROWDS):
        karmada = play(entry, stories.crowd(number, members, kills=kills, others=others))
        for load in karmada.plane.karmada.loads:
            ending = 0 if members == "off" else load.ending
            assert load.asked + ending <= load.accelerators, (number, load)
        for stop in karmada.plane.karmada.stopped:
            assert stop.room < int(stop.head.partition("of")[2]), (number, stop)
            stops += 1
    assert stops or members == "off", "by summaries few are stopped"


def test_after_a_bug_of_placement_by_nodes_all_hyperjobs_are_placed_by_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Ground, "most", fails)
    stage = play(entry, stories.stops(0, "nodes"))
    assert len(stage.plane.karmada.begun) > 8
    assert phases(stage) == {"Running"}


@pytest.mark.parametrize("mode", MODES)
def test_gangs_start_whole_within_their_queues_and_all_end(mode: str) -> None:
    for number in range(GANGS):
        stage = play(entry, stories.gangs(number, mode, kills=0.02 * (number % 2)))
        assert stage.plane.karmada.wrong == [], stage.story.title
        assert mode != "builtin" or stage.plane.karmada.beyond == [], stage.story.title
        for load in stage.plane.karmada.loads:
            assert load.asked <= load.accelerators, load
        left = {
            each["metadata"]["name"]: each["status"]["state"]
            for each in stage.items("HyperJob")
            if each["status"]["state"]["phase"] != "Completed"
        }
        stuck = [name for name, state in left.items() if state["reason"] not in NEVER_RUNS]
        assert stuck == [], (stage.story.title, left)


@pytest.mark.parametrize("large", [2, 3], ids=["all clusters", "more than there is"])
@pytest.mark.parametrize("mode", ["none", "volcano-global"])
def test_no_accelerator_waits_for_a_large_hyperjob_and_it_starts_after_those_that_pass(
    mode: str, large: int
) -> None:
    stage = play(entry, stories.stream(mode, large=large))
    small = [
        starts(stage.plane.rows, f"small{minute}x{each}")[0] - 60.0 * minute
        for minute in range(10)
        for each in (1, 2)
    ]
    assert max(small) < 130.0, "as long as those before it run"
    begun = starts(stage.plane.rows, "large")
    assert [540.0 < moment < 780.0 for moment in begun[:1]] == ([True] if large == 2 else [])


def phases(stage: Stage) -> set[str]:
    return {each["status"]["state"]["phase"] for each in stage.items("HyperJob")}


def resumed(stage: Stage) -> list[Began]:
    """Return how the sub-jobs went on, where no new controller came when their pods ended."""
    killed = [moment for moment, act in stage.story.acts if act is RESTART]
    return [
        each
        for each in stage.plane.karmada.begun
        if each.key.endswith("-g0-0")
        and not any(at - 1.0 <= each.ended <= at + stage.story.away + 1.0 for at in killed)
    ]


@pytest.mark.parametrize("kills", [False, True], ids=["one controller", "killed at random"])
def test_no_two_attempts_run_together_and_the_last_saved_step_is_resumed(*, kills: bool) -> None:
    for number in range(STOPS):
        stage = play(entry, stories.stops(number, "logs", kills=kills))
        assert stage.plane.karmada.met == []
        again = resumed(stage)
        assert len(again) > 8
        assert [each for each in again if each.given != each.saved] == []
        assert phases(stage) == {"Running"}


@pytest.mark.parametrize("members", ["pods", "nodes", "logs"])
def test_a_member_that_shows_its_changes_a_minute_late_delays_only_its_own_sub_jobs(
    members: str,
) -> None:
    waits: dict[str, list[float]] = {"a": [], "b": []}
    stage = play(entry, stories.stops(2, members, late=60.0))
    assert stage.plane.karmada.met == []
    for each in stage.plane.karmada.begun:
        if int(each.key[len("default/j")]) % 2 == 0:  # it has one sub-job, in one cluster
            waits[each.site].append(each.at - each.ended)
    assert max(waits["a"]) < 15.0 < max(waits["b"])


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
