"""Expected starts of those behind the head of a line, by the estimates of all before them."""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import QueueAdmission, QueueVerdict
from hyperjob_engine.plan import plan
from hyperjob_engine.queueing.forecast import start_of
from hyperjob_engine.queueing.messages import message_facts, stale_messages
from hyperjob_engine.queueing.state import update
from hyperjob_engine.queueing.verdict import verdict_of
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.reasons.waiting import wait_text
from tests.unit.controller.builders import NOW, hyperjob, observed
from tests.unit.controller.queueworld import queue, unit
from tests.unit.controller.test_queueing_backfill import HOUR, Estimating, job, world


def expected(made: Estimating) -> dict[str, tuple[float, str]]:
    found = {}
    for key in made.state.entries:
        start = start_of(made.state, key)
        if start is not None and not start.overdue:
            found[key] = ((start.at - NOW).total_seconds() / HOUR, start.after)
    return found


def test_those_behind_the_head_start_when_those_ahead_of_them_end() -> None:
    made = world(a=16)
    made.submit(job("run", 8, 2 * HOUR, age=0), job("head", 16, HOUR, age=1))
    made.submit(job("second", 16, HOUR, age=2), job("third", 8, None, age=3))
    made.settle()
    assert expected(made) == {
        "ns/head": (2.0, "ns/run"),
        "ns/second": (3.0, "ns/head"),
        "ns/third": (4.0, "ns/second"),
    }
    told = wait_text(verdict_of(made.state, "ns/second").wait)
    assert "; it is expected to start about 2026-01-02T06:04:00Z, when ns/head ends by its" in told


def test_what_rests_on_a_missing_estimate_has_no_time() -> None:
    made = world(a=16)
    made.submit(job("run", 8, HOUR, age=0), job("head", 16, None, age=1))
    made.submit(job("behind", 8, HOUR, age=2))
    made.settle()
    assert expected(made) == {"ns/head": (1.0, "ns/run")}, "the head itself may run for ever"
    assert "expected" not in wait_text(verdict_of(made.state, "ns/behind").wait)


def test_a_start_is_written_at_once_when_it_is_first_known() -> None:
    made = world(a=16)
    made.submit(job("run", 8, None, age=0), job("head", 16, HOUR, age=1))
    made.settle()
    made.message("head")
    assert list(stale_messages(made.state, now=made.now)) == []
    estimated = replace(made.units["ns/run"], estimate=timedelta(hours=1))
    update(made.state, "ns/run", estimated, now=made.now)
    made.settle()
    assert expected(made) == {"ns/head": (1.0, "ns/run")}
    assert list(stale_messages(made.state, now=made.now)) == [("ns/head", timedelta(), True)]


def test_behind_one_that_runs_longer_than_its_estimate_nothing_is_known() -> None:
    made = world(a=16)
    made.submit(job("run", 8, HOUR, age=0), job("head", 16, HOUR, age=1))
    made.submit(job("behind", 16, HOUR, age=2))
    made.settle()
    made.now += timedelta(hours=2)
    made.submit(job("last", 16, HOUR, age=3))
    made.settle()
    assert expected(made) == {}


def test_a_gang_larger_than_its_queue_allows_has_no_time_and_those_behind_it_have_theirs() -> None:
    made = Estimating(gpus={"a": 16})
    made.set_queues(queue("default", gpus=12))
    made.submit(job("run", 12, HOUR, age=0), job("never", 16, HOUR, age=1))
    made.submit(job("behind", 8, HOUR, age=2))
    made.settle()
    assert expected(made).keys() <= {"ns/behind"}
    told = verdict_of(made.state, "ns/never")
    assert told.reason is Reason.EXCEEDS_QUEUE
    assert "expected" not in wait_text(told.wait)


def test_what_was_expected_of_a_head_is_forgotten_when_another_takes_its_place() -> None:
    made = world(a=16)
    made.submit(job("run", 8, 2 * HOUR, age=0), job("head", 16, HOUR, age=1))
    made.settle()
    assert expected(made) == {"ns/head": (2.0, "ns/run")}
    made.submit(replace(job("urgent", 16, HOUR, age=2), priority=5, preempts=False))
    made.settle()
    assert set(made.state.last.starts) == {"ns/urgent"}
    assert expected(made)["ns/urgent"] == (2.0, "ns/run")


def test_each_line_goes_on_in_its_turn() -> None:
    made = Estimating(gpus={"a": 16})
    made.set_queues(queue("default"), queue("other"))
    made.submit(job("run", 16, HOUR, age=0))
    mine, theirs = job("mine", 16, HOUR, age=1), job("theirs", 16, HOUR, age=2)
    part = theirs.parts[0]
    made.submit(mine, replace(theirs, parts=(replace(part, queue="other"),)))
    made.settle()
    assert sorted(hours for hours, _ in expected(made).values()) == [1.0, 1.0], "both are heads"


def test_of_a_gang_that_starts_with_fewer_those_without_room_take_none() -> None:
    made = Estimating(gpus={"a": 16})
    made.set_queues(queue("default"))
    elastic = replace(unit("head", 12, 12, minimum=1, age=1), estimate=timedelta(hours=1))
    made.submit(job("run", 16, HOUR, age=0), elastic, job("next", 4, HOUR, age=2))
    made.settle()
    assert expected(made)["ns/head"] == (1.0, "ns/run")


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([2, 4, 8, 12, 16]), st.integers(1, 20)), min_size=3, max_size=9
    )
)
def test_with_exact_estimates_none_of_a_line_starts_later_than_expected(
    rows: list[tuple[int, int]],
) -> None:
    jobs = [
        job(f"j{place}", gpus, length * 300, age=place) for place, (gpus, length) in enumerate(rows)
    ]
    first: dict[str, datetime] = {}

    class Noting(Estimating):
        def settle(self) -> None:
            super().settle()
            for key in self.state.entries:
                start = start_of(self.state, key)
                if start is not None:
                    first.setdefault(key, start.at)

    made = Noting(gpus={"a": 16})
    made.set_queues(queue("default"))
    made.run(
        [(0, each) for each in jobs],
        {f"j{place}": length * 300 for place, (_, length) in enumerate(rows)},
    )
    for key, at in first.items():
        assert made.started[key] <= at, key


def test_the_expected_start_is_written_follows_the_forecast_and_is_taken_away() -> None:
    made = world(a=16)
    made.submit(job("run", 8, 2 * HOUR, age=0), job("head", 16, HOUR, age=1))
    made.settle()
    verdict = verdict_of(made.state, "ns/head")
    start = {"time": rfc3339(NOW + timedelta(hours=2)), "after": "ns/run"}

    def written(old: dict[str, object], verdict: QueueVerdict) -> object:
        seen = observed(hyperjob(status=old), admission=QueueAdmission.BUILTIN)
        decided = plan(replace(seen, verdict=verdict))
        assert decided.status is not None
        return decided.status.get("expectedStart", "no such field")

    assert verdict.wait is not None
    without = replace(verdict, wait=replace(verdict.wait, start=None))
    assert written({}, verdict) == start
    assert written({}, without) == "no such field"
    assert written({"expectedStart": start}, verdict) == start
    assert written({"expectedStart": start}, without) is None


def test_the_first_ten_of_a_line_are_told_what_their_queue_uses() -> None:
    made = world(a=8)
    made.submit(unit("runs", 8))
    made.decide()
    made.submit(*(unit(f"j{number}", 8, age=number) for number in range(1, 13)))
    made.decide()
    entry = made.state.entries["ns/j1"]
    told = [message_facts(made.state, entry, place).used for place in (1, 10, 11)]
    assert told == [8 * NANO, 8 * NANO, 0]
