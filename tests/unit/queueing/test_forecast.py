"""Expected starts of heads of lines and of those behind them, by the estimates of all before them.

In a fifo queue a start is no later than expected where all estimates are exact. In others smaller
ones may pass and delay it: no decision depends on an estimate.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.wire import rfc3339
from hyperjob_engine.model.observed import QueueAdmission, QueueVerdict
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.resources import subtract
from hyperjob_queueing.forecast import ends, forecasts, start_of
from hyperjob_queueing.messages import stale_messages
from hyperjob_queueing.queues import ESTIMATE, parse_queue
from hyperjob_queueing.read import template_of
from hyperjob_queueing.reserve import begin
from hyperjob_queueing.sizes import PastRuns
from hyperjob_queueing.state import update
from hyperjob_queueing.verdict import verdict_of
from hyperjob_queueing.workload import QueuedHyperJob
from tests.unit.engine.builders import GPU, NOW, Object, group, hyperjob, observed
from tests.unit.queueing.queueworld import QueueWorld, queue, unit

HOUR = 3600


@dataclass
class Estimating(QueueWorld):
    """A world whose HyperJobs say when they began, and that notes what was expected of heads."""

    expected: dict[str, datetime] = field(default_factory=dict)

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


def world(**gpus: int) -> Estimating:
    made = Estimating(gpus=gpus)
    made.set_queues(queue("default", dequeueStrategy="fifo"))
    return made


def job(name: str, gpus: int, seconds: int | None, *, age: int) -> QueuedHyperJob:
    estimate = None if seconds is None else timedelta(seconds=seconds)
    return replace(unit(name, gpus, age=age), estimate=estimate)


def in_queue(each: QueuedHyperJob, name: str) -> QueuedHyperJob:
    return replace(each, parts=tuple(replace(part, queue=name) for part in each.parts))


def expected(made: Estimating) -> dict[str, tuple[float, str]]:
    found = {}
    for key in made.state.entries:
        start = start_of(made.state, key)
        if start is not None and not start.overdue:
            found[key] = ((start.at - NOW).total_seconds() / HOUR, start.after)
    return found


def test_those_behind_the_head_start_when_those_ahead_of_them_end() -> None:
    made = world(a=24)
    made.submit(job("run", 8, 2 * HOUR, age=0), job("short", 8, HOUR, age=0))
    made.submit(job("head", 24, HOUR, age=1))
    made.submit(job("second", 24, HOUR, age=2), job("third", 8, None, age=3))
    made.settle()
    assert expected(made) == {
        "ns/head": (2.0, "ns/run"),
        "ns/second": (3.0, "ns/head"),
        "ns/third": (4.0, "ns/second"),
    }
    told = verdict_of(made.state, "ns/second").message
    assert "; it is expected to start about 2026-01-02T06:04:00Z, when ns/head ends by its" in told


def test_a_fifo_head_holds_up_its_queue_also_where_another_queue_was_refused_the_same() -> None:
    made = world(a=24)
    made.set_queues(*(queue(name, dequeueStrategy="fifo") for name in ("default", "other")))
    for hours in (1, 2, 3):
        made.submit(job(f"run{hours}", 8, hours * HOUR, age=0))
    others = (job("second", 24, HOUR, age=2), job("small", 8, HOUR, age=3))
    made.submit(job("first", 24, HOUR, age=1), *(in_queue(each, "other") for each in others))
    made.settle()
    found = {key: each.after for key, each in forecasts(made.state, now=made.now).items()}
    assert found == {"ns/first": "ns/run3", "ns/second": "ns/first", "ns/small": "ns/second"}


def test_what_rests_on_a_missing_estimate_has_no_time() -> None:
    made = world(a=16)
    made.submit(job("run", 8, HOUR, age=0), job("head", 16, None, age=1))
    made.submit(job("behind", 8, HOUR, age=2))
    made.settle()
    assert expected(made) == {"ns/head": (1.0, "ns/run")}, "the head itself may run for ever"
    assert "expected" not in verdict_of(made.state, "ns/behind").message


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
    assert "expected" not in told.message


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


@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([1, 4, 8, 12, 16]), st.integers(1, 20), st.integers(0, 30)),
        min_size=3,
        max_size=12,
    ),
    strategy=st.sampled_from(["traverse", "fifo"]),
    data=st.data(),
)
def test_no_start_depends_on_an_estimate(
    rows: list[tuple[int, int, int]], strategy: str, data: st.DataObject
) -> None:
    """An estimate that lies gives nobody a place that the HyperJob would not have without it."""
    lengths = {f"j{place}": length * 300 for place, (_, length, _) in enumerate(rows)}
    lies = st.none() | st.sampled_from([1, 60, 3600, 10**6])

    def starts(estimates: list[int | None]) -> dict[str, datetime]:
        made = Estimating(gpus={"a": 16, "b": 8})
        made.set_queues(queue("default", dequeueStrategy=strategy))
        arrivals = [
            (minute * 60, job(f"j{place}", gpus, estimate, age=minute * 60 + place))
            for place, ((gpus, _, minute), estimate) in enumerate(zip(rows, estimates, strict=True))
        ]
        made.run(arrivals, lengths)
        return made.started

    assert starts([data.draw(lies) for _ in rows]) == starts([None] * len(rows))


@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([1, 2, 4, 8, 12, 16]), st.integers(1, 20)),
        min_size=2,
        max_size=10,
    ),
    strategy=st.sampled_from(["traverse", "fifo"]),
    clusters=st.sampled_from([(16,), (16, 8)]),
)
def test_with_exact_estimates_all_of_a_line_start_when_the_forecast_says(
    rows: list[tuple[int, int]], strategy: str, clusters: tuple[int, ...]
) -> None:
    jobs = [
        job(f"j{place}", gpus, length * 300, age=place) for place, (gpus, length) in enumerate(rows)
    ]
    told: dict[str, datetime] = {}

    class Noting(Estimating):
        def settle(self) -> None:
            super().settle()
            if not told:
                found = forecasts(self.state, now=self.now)
                told.update((key, start.at) for key, start in found.items())

    made = Noting(gpus={f"c{place}": size for place, size in enumerate(clusters)})
    made.set_queues(queue("default", dequeueStrategy=strategy))
    made.run(
        [(0, each) for each in jobs],
        {f"j{place}": length * 300 for place, (_, length) in enumerate(rows)},
    )
    waited = {key: at for key, at in made.started.items() if at > NOW}
    assert told == waited


def test_the_expected_start_is_written_follows_the_forecast_and_is_taken_away() -> None:
    made = world(a=16)
    made.submit(job("run", 8, 2 * HOUR, age=0), job("head", 16, HOUR, age=1))
    made.settle()
    verdict = verdict_of(made.state, "ns/head")
    start = {"time": rfc3339(NOW + timedelta(hours=2)), "after": "ns/run"}

    def written(old: dict[str, object], verdict: QueueVerdict) -> object:
        seen = observed(hyperjob(status=old), admission=QueueAdmission.BUILTIN)
        decided = plan(replace(seen, verdict=verdict))
        return decided.status.get("expectedStart", "no such field")

    without = replace(verdict, wait=replace(verdict.wait, start=None))
    assert written({}, verdict) == start
    assert written({}, without) == "no such field"
    assert written({"expectedStart": start}, verdict) == start
    assert written({"expectedStart": start}, without) is None


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


def test_a_head_behind_one_that_overran_its_estimate_is_given_no_time() -> None:
    made = world(a=16)
    made.submit(job("one", 8, HOUR, age=0), job("head", 16, None, age=2))
    made.settle()
    made.now += timedelta(hours=2)
    made.settle()
    told = verdict_of(made.state, "ns/head").message
    assert told.endswith("; it starts when ns/one ends, which runs longer than its estimate")


@pytest.mark.parametrize(
    ("fields", "default", "hours", "by"),
    [
        ({}, None, None, ""),
        ({"estimate": 4}, None, 4, "its estimate"),
        ({}, "5h", 5, "the estimate of its queue"),
        ({"estimate": 4}, "5h", 4, "its estimate"),
        ({"ends": 2, "estimate": 4}, "5h", 2, "its progress"),
        ({"ends": 9, "estimate": 4}, None, 9, "its progress"),
        ({"ends": -1, "estimate": 4}, None, 4, "its estimate"),
        ({"limit": 3}, None, 3, "its activeDeadlineSeconds"),
        ({"ends": 9, "estimate": 4, "limit": 3}, None, 3, "its activeDeadlineSeconds"),
        ({"ends": 2, "limit": 3}, None, 2, "its progress"),
        ({"estimate": 4, "limit": 6}, None, 4, "its estimate"),
    ],
)
def test_an_expected_end_comes_from_the_best_source_which_the_message_names(
    fields: dict[str, int], default: str | None, hours: int | None, by: str
) -> None:
    marks = {} if default is None else {ESTIMATE: default}
    made = Estimating(gpus={"a": 16})
    made.set_queues(parse_queue({"metadata": {"name": "default", "annotations": marks}}))
    known = {name: timedelta(hours=number) for name, number in fields.items()}
    ends_at = rfc3339(NOW + known.pop("ends")) if "ends" in known else ""
    made.submit(replace(unit("runs", 16), ends=ends_at, **known))
    made.settle()
    made.submit(unit("head", 16, age=1))
    made.settle()
    assert expected(made) == ({} if hours is None else {"ns/head": (hours, "ns/runs")})
    assert (f"when ns/runs ends by {by}" in made.message("head")) is bool(by)


def test_an_expected_end_follows_the_progress_as_it_is_reported() -> None:
    made = world(a=16)
    made.submit(job("runs", 16, 4 * HOUR, age=0), job("head", 16, HOUR, age=1))
    made.settle()
    for hours, told in ((7, 7.0), (3, 3.0), (None, 4.0)):
        ends_at = "" if hours is None else rfc3339(NOW + timedelta(hours=hours))
        made.submit(replace(made.units["ns/runs"], ends=ends_at))
        made.settle()
        assert expected(made) == {"ns/head": (told, "ns/runs")}


ONE_HOUR = timedelta(hours=1)


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
    return template_of(parse_hyperjob(completed(ONE_HOUR, **of)))


MINE = template()


def noted(*jobs: Object) -> PastRuns:
    made = PastRuns()
    for each in jobs:
        made.note(each)
    return made


def past(*hours: float) -> PastRuns:
    return noted(*(completed(took * ONE_HOUR, uid=f"u{at}") for at, took in enumerate(hours)))


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
    known = past(*runs).expect(MINE, "default", ran * ONE_HOUR)
    assert known == (None if hours is None else (hours * ONE_HOUR, by))


def test_of_a_new_template_the_runs_of_its_queue_count_and_of_no_other() -> None:
    known = past(1, 5, 6)
    assert known.expect("new", "default", ONE_HOUR) == (6 * ONE_HOUR, "2 earlier runs of its queue")
    assert known.expect("new", "other", ONE_HOUR) is None


def test_a_run_that_failed_says_nothing() -> None:
    assert noted(completed(ONE_HOUR, phase="Failed")) == PastRuns()


def test_a_template_is_what_the_pods_are_in_one_namespace_and_queue_whatever_their_names() -> None:
    assert template(name="worker") == MINE
    assert template(image="train:2") != MINE
    assert template(queue="other") != MINE
    assert template_of(replace(parse_hyperjob(completed(ONE_HOUR)), namespace="other")) != MINE


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=40), st.data()
)
def test_a_new_leader_learns_the_same_runs_in_any_order_and_twice(
    runs: list[tuple[int, int]], data: st.DataObject
) -> None:
    jobs = [
        completed(took * ONE_HOUR, uid=f"u{number:02}", ended=NOW + after * ONE_HOUR)
        for number, (took, after) in enumerate(runs)
    ]
    first, latest = noted(*jobs), sorted(range(len(jobs)), key=lambda number: runs[number][1])[-16:]
    assert noted(*data.draw(st.permutations(jobs + jobs))) == first
    assert first == noted(*(jobs[number] for number in latest)), "the latest 16 count"


def runs_and_waits(known: PastRuns) -> QueueWorld:
    """Let a HyperJob run from now on, and a head wait for its end."""
    made = QueueWorld(gpus={"a": 8})
    made.state.past = known
    made.set_queues(queue("default"))
    made.submit(replace(unit("runs", 8), template=MINE), unit("head", 8, age=1))
    while made.decide():
        pass
    made.submit(replace(made.units["ns/runs"], since=rfc3339(NOW)))
    return made


def test_the_message_names_the_earlier_runs_and_its_time_moves_when_it_is_over() -> None:
    made = runs_and_waits(past(2, 5, 9))
    for hours, told, until in ((1, "3 earlier runs", 5), (6, "1 earlier run", 9)):
        made.now = NOW + hours * ONE_HOUR
        made.decide()
        end = rfc3339((NOW + until * ONE_HOUR).replace(second=0))
        assert f"about {end}, when ns/runs ends by {told} of its template" in made.message("head")
