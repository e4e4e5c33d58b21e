"""Backfill by estimates: the room kept for a head is in use until the head can start."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import HyperJob, QueueAdmission
from hyperjob_engine.plan import plan
from hyperjob_engine.queueing.forecast import CapacityTimeline, end_of, ends
from hyperjob_engine.queueing.queues import ESTIMATE, Tree, parse_queue
from hyperjob_engine.queueing.read import unit_of
from hyperjob_engine.queueing.round import begin, next_change, schedule
from hyperjob_engine.queueing.state import Settings, new_state, update
from hyperjob_engine.queueing.verdict import verdict_of
from hyperjob_engine.queueing.workload import Entry, QueuedHyperJob
from hyperjob_engine.reasons.waiting import wait_text
from hyperjob_engine.resources import subtract
from tests.unit.controller.builders import GPU, NOW, Object, hyperjob, observed
from tests.unit.controller.queueworld import LAG, QueueWorld, queue, unit

HOUR = 3600


@dataclass
class Estimating(QueueWorld):
    """A world whose HyperJobs say when they began, and that notes what was expected of heads."""

    expected: dict[str, datetime] = field(default_factory=dict)
    latest: dict[str, datetime] = field(default_factory=dict)

    def make(self, key: str) -> None:
        super().make(key)
        self.units[key] = replace(self.units[key], since=rfc3339(self.now))
        update(self.state, key, self.units[key], now=self.now)

    def settle(self) -> None:
        """Play rounds until nothing more is granted, and note when heads are expected to start."""
        while self.decide():
            pass
        for key, start in self.state.last.starts.items():
            self.expected.setdefault(key, start.at)
            self.latest[key] = start.at

    def run(self, arrivals: list[tuple[int, QueuedHyperJob]], lengths: dict[str, int]) -> None:
        self.lengths = lengths
        coming = sorted(arrivals, key=lambda each: (each[0], each[1].key))
        while coming or self.ends:
            moments = [*self.ends.values()]
            moments += [NOW + timedelta(seconds=coming[0][0])] if coming else []
            self.now = max(self.now, min(moments))
            for key in [key for key, at in self.ends.items() if at <= self.now]:
                self.end(key)
                self.ends.pop(key, None)
            while coming and NOW + timedelta(seconds=coming[0][0]) <= self.now:
                self.submit(coming.pop(0)[1])
            self.settle()

    def start(self, name: str) -> int:
        return round((self.started[f"ns/{name}"] - NOW).total_seconds())


def world(**gpus: int) -> Estimating:
    made = Estimating(gpus=gpus)
    made.set_queues(queue("default"))
    return made


def job(name: str, gpus: int, seconds: int | None, *, age: int) -> QueuedHyperJob:
    estimate = None if seconds is None else timedelta(seconds=seconds)
    return replace(unit(name, gpus, age=age), estimate=estimate)


def lying() -> Estimating:
    """A head that waits an hour for `run`, and a HyperJob that passed it by an estimate of 1 s."""
    made = world(a=16)
    made.submit(job("run", 8, HOUR, age=0))
    made.settle()
    made.submit(job("head", 16, HOUR, age=1), job("liar", 8, 1, age=2))
    made.settle()
    return made


def test_one_that_runs_beyond_its_estimate_makes_way_for_the_head_that_it_passed() -> None:
    made = lying()
    assert made.running() == {"run", "liar"}
    made.now += timedelta(minutes=5)
    assert made.decide() == [], "the head has no room yet without it either"
    made.end("ns/run")
    made.now += LAG
    assert schedule(made.state, made.clusters(), now=made.now).keys == ["ns/liar"]
    ending = "takes back the room of ns/liar, which overran its estimate"
    assert made.message("head").endswith(ending)
    assert made.verdict("liar").overran
    made.give_back("ns/liar")
    made.now += LAG
    assert made.decide() == ["ns/head"]


def test_a_new_leader_knows_from_the_status_which_head_was_passed() -> None:
    made = lying()
    verdict = made.verdict("liar")
    assert verdict.passed == {"uid of head"}
    seen = observed(hyperjob(), admission=QueueAdmission.BUILTIN)
    status = plan(replace(seen, verdict=verdict)).status
    assert status is not None
    assert status["passed"] == ["uid of head"]
    read = unit_of(observed(hyperjob(status=status), admission=QueueAdmission.BUILTIN))
    assert read is not None
    made.state = new_state(Settings(lag=LAG))
    made.set_queues(queue("default"))
    made.units["ns/liar"] = replace(made.units["ns/liar"], passed=read.passed)
    made.submit(*made.units.values())
    made.settle()
    assert made.verdict("liar").passed == {"uid of head"}
    made.now += timedelta(minutes=5)
    made.end("ns/run")
    made.now += LAG
    assert schedule(made.state, made.clusters(), now=made.now).keys == ["ns/liar"]
    made.give_back("ns/liar")
    assert made.verdict("liar").passed == frozenset()
    forgotten = replace(verdict, passed=frozenset())
    stopped = plan(replace(seen, hyperjob=read_status(status), verdict=forgotten))
    assert stopped.status is not None
    assert stopped.status["passed"] is None


def read_status(status: Object) -> HyperJob:
    return observed(hyperjob(status=status)).hyperjob


def test_a_later_hyperjob_of_the_name_of_a_passed_head_was_not_passed() -> None:
    made = lying()
    made.end("ns/head")
    made.submit(replace(job("head", 16, HOUR, age=9), uid="another"))
    made.now += timedelta(minutes=5)
    made.end("ns/run")
    made.now += LAG
    assert schedule(made.state, made.clusters(), now=made.now).keys == []


def test_one_within_its_estimate_does_not_make_way_for_the_head_that_it_passed() -> None:
    made = world(a=16)
    made.submit(job("run", 8, HOUR, age=0))
    made.settle()
    made.submit(job("head", 16, HOUR, age=1), job("small", 8, HOUR // 2, age=2))
    made.settle()
    made.now += timedelta(minutes=5)
    made.end("ns/run")
    made.now += LAG
    assert made.decide() == []
    assert made.running() == {"small"}


def test_the_one_that_overran_makes_way_before_one_of_lower_priority() -> None:
    made = world(a=24)
    low = replace(unit("low", 8, priority=-5), estimate=timedelta(hours=9))
    made.submit(low, job("run", 8, HOUR, age=0))
    made.settle()
    liar = replace(unit("liar", 8, age=2), estimate=timedelta(seconds=1))
    head = replace(job("head", 16, HOUR, age=1), preempts=False)
    made.submit(head, liar)
    made.settle()
    assert made.running() == {"low", "run", "liar"}
    made.submit(replace(made.units["ns/head"], preempts=True))
    made.end("ns/run")
    made.now += 2 * LAG
    assert made.decide() == ["ns/liar"]


def test_the_round_at_which_an_estimate_is_over_comes_by_itself() -> None:
    made = lying()
    made.submit(unit("waits", 99, age=9))
    wait = next_change(made.state, now=made.now)
    assert wait == timedelta(seconds=1)


@pytest.mark.parametrize(
    ("runs", "head", "small", "starts"),
    [
        (HOUR, HOUR, HOUR // 2, 0),  # it ends before the head has room
        (HOUR, HOUR, 2 * HOUR, 2 * HOUR),  # it would end after that
        (HOUR, HOUR, HOUR - 30, 0),  # its end shows just then
        (HOUR, HOUR, HOUR - 29, 2 * HOUR),  # its end would show too late
        (None, HOUR, HOUR // 2, 2 * HOUR),  # nothing is known of the head's start
        (HOUR, None, HOUR // 2, 0),  # the head's own estimate does not matter
        (HOUR, HOUR, None, 2 * HOUR),  # it says nothing of itself
    ],
)
def test_one_that_ends_in_time_passes_the_head(
    runs: int | None, head: int | None, small: int | None, starts: int
) -> None:
    made = world(a=16)
    jobs = [job("run", 8, runs, age=0), job("head", 16, head, age=1), job("small", 8, small, age=2)]
    lengths = {"run": HOUR, "head": HOUR, "small": small or HOUR}
    made.run([(0, each) for each in jobs], lengths)
    assert made.start("head") == HOUR
    assert made.start("small") == starts


def test_those_that_pass_the_head_in_one_round_share_the_room_until_its_start() -> None:
    made = world(a=16)
    made.submit(job("run", 8, HOUR, age=0))
    made.settle()
    made.submit(job("head", 16, HOUR, age=1))
    made.submit(*(job(f"small-{index}", 4, HOUR // 2, age=2 + index) for index in range(3)))
    made.settle()
    assert made.running() == {"run", "small-0", "small-1"}


def test_a_closed_queue_lets_nothing_pass_the_head_of_another() -> None:
    made = world(a=16)
    made.set_queues(queue("default"), queue("shut", state="Closed"))
    made.submit(job("run", 8, HOUR, age=0))
    made.settle()
    small = replace(unit("small", 8, queue="shut", age=2), estimate=timedelta(minutes=5))
    made.submit(job("head", 16, HOUR, age=1), small)
    made.settle()
    assert made.running() == {"run"}


def test_the_head_knows_whose_end_gives_it_room() -> None:
    made = world(a=16)
    jobs = [job("one", 8, HOUR, age=0), job("two", 8, 2 * HOUR, age=1)]
    made.submit(*jobs, job("head", 16, None, age=2))
    made.settle()
    start = made.state.last.starts["ns/head"]
    assert (start.at, start.after) == (NOW + timedelta(hours=2), "ns/two")
    told = wait_text(verdict_of(made.state, "ns/head").wait)
    assert told.endswith("; it is expected to start about 2026-01-02T05:04:00Z, when ns/two ends by"
                         " its estimate")  # fmt: skip
    assert "expected" not in wait_text(verdict_of(made.state, "ns/one").wait)


def test_what_has_ended_and_does_not_show_yet_ends_now() -> None:
    made = world(a=16)
    made.submit(job("run", 16, HOUR, age=0))
    made.settle()
    made.end("ns/run")
    (shown,) = made.clusters()
    still = {GPU: 12 * NANO}  # as its cluster says still, but for 4
    late = replace(shown, free=subtract(shown.free, still), ending={"": still})
    begin(made.state, [late], now=made.now)
    (end,) = ends(made.state, now=made.now)
    assert (end.at, end.key) == (made.now, "")
    assert [(name, freed[GPU]) for name, freed in end.frees] == [("a", 12 * NANO)]


def test_of_a_head_that_has_room_already_no_end_is_the_start() -> None:
    made = world(a=16)
    made.submit(job("run", 8, HOUR, age=0))
    made.settle()
    made.submit(job("head", 8, HOUR, age=1))
    begin(made.state, made.clusters(), now=made.now)
    waiting = made.state.entries["ns/head"].waiting
    assert waiting is not None
    known = ends(made.state, now=made.now)
    assert len(known) == 1
    assert CapacityTimeline(made.state.last.open, known).earliest(waiting) is None


def test_a_head_behind_one_that_overran_its_estimate_is_given_no_time() -> None:
    made = world(a=16)
    made.submit(job("one", 8, HOUR, age=0), job("head", 16, None, age=2))
    made.settle()
    made.now += timedelta(hours=2)
    made.submit(job("small", 8, 60, age=3))
    made.settle()
    told = wait_text(verdict_of(made.state, "ns/head").wait)
    assert told.endswith("; it starts when ns/one ends, which runs longer than its estimate")
    assert "ns/small" not in made.started


def test_a_queue_gives_a_default_to_those_without_an_estimate() -> None:
    made = Estimating(gpus={"a": 16})
    raw = {
        "metadata": {
            "name": "default",
            "annotations": {"training.volcano.sh/running-estimate": "30m"},
        }
    }
    made.set_queues(parse_queue(raw))
    jobs = [job("run", 8, HOUR, age=0), job("head", 16, HOUR, age=1), job("small", 8, None, age=2)]
    made.run([(0, each) for each in jobs], {"run": HOUR, "head": HOUR, "small": HOUR // 2})
    assert (made.start("small"), made.start("head")) == (0, HOUR)


def test_a_strict_line_lets_nothing_pass() -> None:
    made = Estimating(gpus={"a": 16})
    made.set_queues(queue("default", dequeueStrategy="fifo"))
    jobs = [job("run", 8, HOUR, age=0), job("head", 16, HOUR, age=1), job("small", 8, 60, age=2)]
    made.run([(0, each) for each in jobs], {"run": HOUR, "head": HOUR, "small": 60})
    assert made.start("small") == 2 * HOUR


def test_one_that_runs_beyond_its_estimate_does_not_delay_the_head() -> None:
    made = world(a=16)
    jobs = [job("run", 8, HOUR, age=0), job("head", 16, HOUR, age=1), job("small", 8, 1800, age=2)]
    made.run([(0, each) for each in jobs], {"run": HOUR, "head": HOUR, "small": 3 * 1800})
    assert made.start("head") == HOUR
    assert made.reclaimed == ["small"]


JOBS = st.lists(
    st.tuples(st.sampled_from([1, 2, 4, 8, 12, 16]), st.integers(1, 20), st.integers(0, 30)),
    min_size=3,
    max_size=14,
)


def arrivals(
    rows: list[tuple[int, int, int]], *, factors: list[float]
) -> list[tuple[int, QueuedHyperJob]]:
    ordered = sorted(rows, key=lambda row: row[2])
    return [
        (
            minute * 60,
            job(f"j{place}", gpus, round(length * 300 * factor), age=minute * 60 + place),
        )
        for place, ((gpus, length, minute), factor) in enumerate(zip(ordered, factors, strict=True))
    ]


def lengths(rows: list[tuple[int, int, int]]) -> dict[str, int]:
    ordered = sorted(rows, key=lambda row: row[2])
    return {f"j{place}": length * 300 for place, (_, length, _) in enumerate(ordered)}


@settings(max_examples=80, deadline=None)
@given(rows=JOBS, clusters=st.sampled_from([(16,), (8, 8), (16, 8)]))
def test_with_exact_estimates_a_head_never_starts_later_than_first_expected(
    rows: list[tuple[int, int, int]], clusters: tuple[int, ...]
) -> None:
    made = world(**{f"c{place}": size for place, size in enumerate(clusters)})
    rows = [(min(gpus, max(clusters)), length, minute) for gpus, length, minute in rows]
    made.run(arrivals(rows, factors=[1.0] * len(rows)), lengths(rows))
    assert len(made.started) == len(rows)
    for key, expected in made.expected.items():
        assert made.started[key] <= expected, key


@settings(max_examples=60, deadline=None)
@given(rows=JOBS, data=st.data())
def test_with_wrong_estimates_a_head_is_late_by_no_more_than_others_overran(
    rows: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    made = world(c0=16)
    factors = [data.draw(st.floats(1 / 3, 3)) for _ in rows]
    made.run(arrivals(rows, factors=factors), lengths(rows))
    real = lengths(rows)
    ordered = sorted(rows, key=lambda row: row[2])
    overrun = sum(
        max(0, real[f"j{place}"] - round(real[f"j{place}"] * factor))
        for place, (_, factor) in enumerate(zip(ordered, factors, strict=True))
    )
    for key, expected in made.expected.items():
        assert made.started[key] <= expected + timedelta(seconds=overrun) + LAG, key


@pytest.mark.parametrize(("own", "minutes"), [(None, 40), (timedelta(minutes=5), 5)])
def test_an_end_by_the_estimate_of_a_queue_moves_with_that_estimate(
    own: timedelta | None, minutes: int
) -> None:
    made = replace(unit("j", 8), since=rfc3339(NOW), estimate=own)
    entry = Entry(made)
    entry.hold({part.name: (part, "a") for part in made.parts})
    for default in ("20m", "40m"):
        raw = {"metadata": {"name": "default", "annotations": {ESTIMATE: default}}}
        end = end_of(made.key, entry, Tree([parse_queue(raw)], {}), now=NOW)
        assert end is not None
    assert end.at == NOW + timedelta(minutes=minutes)
