"""Whose logs are read, in what order, and how often; and what comes of what they hold."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_controller.training.reader import Reader, Trouble
from hyperjob_controller.training.schedule import Lane, Schedule
from hyperjob_controller.training.watch import (
    LIMIT_BYTES,
    LoggedTask,
    Source,
    Watch,
    sources_of,
    watch,
)
from hyperjob_controller.watchdog import LONGEST, Place
from hyperjob_core.api.lines import MAX_LINE, LogLine, ProgressLine, progress_lines
from hyperjob_core.api.training import SubJobTraining
from hyperjob_core.kube.errors import unreachable
from hyperjob_core.virtualtime import run
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.planned import Plan
from tests.support.apiserver import refusal
from tests.support.counts import Counts
from tests.support.walls import Cpu
from tests.unit.engine.builders import binding, hyperjob, job, labels, observed, pod, template

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
A, B = ("ns/a", "a-0"), ("ns/b", "b-0")


# Turns.


def test_a_search_has_a_turn_under_any_load() -> None:
    schedule = Schedule()
    for number in range(40):
        schedule.put((f"ns/{number}", "r"), due=0, lane=Lane.REPORT)
        schedule.put((f"ns/{number}", "s"), due=0, lane=Lane.SEARCH)
    kinds = Counter(item[1] for item in (schedule.take(1) for _ in range(40)) if item)
    assert kinds == {"r": 30, "s": 10}


ITEMS = st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"))
CHANGES = st.lists(st.tuples(ITEMS, st.integers(0, 20), st.sampled_from([*Lane, None])))


@given(CHANGES)
def test_whatever_is_put_is_taken_once_and_never_early(changes: list[Any]) -> None:
    schedule, wanted = Schedule(), dict[tuple[str, str], int]()
    for item, due, lane in changes:
        if lane is None:
            schedule.remove(item)
            wanted.pop(item, None)
        else:
            schedule.put(item, due=due, lane=lane)
            wanted[item] = due
    for now in range(21):
        while (taken := schedule.take(now)) is not None:
            assert wanted.pop(taken) <= now
        assert all(due > now for due in wanted.values())
    assert not wanted


# Sources.


def seen(
    *jobs: Any, name: str = "hj", cluster: str = "a", status: Mapping[str, Any] | None = None
) -> Observed:
    entries = [
        {"name": each["metadata"]["name"], "replicatedJob": "trainer", "index": number}
        for number, each in enumerate(jobs)
    ]
    bindings = [binding(each["metadata"]["name"], cluster=cluster) for each in jobs]
    raw = hyperjob(name=name, status={"jobs": entries, **(status or {})})
    return observed(raw, *jobs, *bindings)


@pytest.mark.parametrize(
    ("phase", "found"),
    [("Running", True), ("Completing", True), ("Completed", True), ("Pending", False), ("", False)],
)
def test_what_runs_or_has_ended_is_read(phase: str, found: bool) -> None:
    assert bool(list(sources_of(seen(job(phase=phase))))) is found


def test_a_sub_job_that_is_being_stopped_is_leaving() -> None:
    (source,) = sources_of(seen(job(phase="Running", deleting=True)))
    assert source.leaving
    (source,) = sources_of(seen(job(phase="Running"), status={"stop": {"jobs": ["hj-trainer-0"]}}))
    assert source.leaving


def test_pods_are_named_by_volcano_s_rule_first_ones_first() -> None:
    many = pod()
    many["containers"] = [{"name": "proxy"}, {"name": "main"}]
    annotated = {"annotations": {"kubectl.kubernetes.io/default-container": "main"}}
    spec = template(
        {"name": "master", "replicas": 1, "template": {"spec": pod()}},
        {"name": "worker", "replicas": 3, "template": {"spec": many, "metadata": annotated}},
    )
    (source,) = sources_of(seen(job(phase="Running", spec=spec)))
    pods = [source.pod(number) for number in range(source.size)]
    assert [(each.name, container) for each, container in pods] == [
        ("hj-trainer-0-master-0", "main"),
        ("hj-trainer-0-worker-0", "main"),
        ("hj-trainer-0-worker-1", "main"),
        ("hj-trainer-0-worker-2", "main"),
    ]


# One sub-job.


def source(**fields: Any) -> Source:
    known = {"name": "j", "uid": "u", "attempt": 0, "namespace": "ns", "cluster": "a"}
    tasks = (LoggedTask("worker", "main", fields.pop("pods", 4)),)
    return Source(**{**known, "tasks": tasks, **fields})


def text(second: float, step: int | None = None, more: str = "") -> bytes:
    stamp = (T0 + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    said = f'{{"hyperjob": {{"step": {step}{more}}}}}' if step is not None else "loss is falling"
    return f"{stamp} {said}\n".encode()


NOW = T0 + timedelta(hours=1)


def hear(made: Watch, log: bytes, *, now: datetime = NOW) -> bool:
    """Read a log whose server repeats the lines of the last second."""
    position = replace(made.position)
    position.begin()
    lines = position.fresh(LogLine.of(raw) for raw in log.splitlines())
    return made.read_log(lines, position=position, size=len(log), now=now)


def test_the_pod_that_reports_is_found_and_remembered() -> None:
    made = watch(source())
    assert not hear(made, text(1))
    made.miss()
    assert (made.number, made.lane) == (2, Lane.SEARCH)
    assert hear(made, text(1) + text(2, 5))
    assert (made.number, made.lane) == (2, Lane.REPORT)
    assert made.position.since == {"sinceTime": "2026-01-02T03:04:07Z"}
    assert not hear(made, text(2, 5))
    assert made.number == 2
    for _ in range(3):
        made.miss()
    assert made.lane is Lane.SEARCH


def test_where_nothing_is_ever_said_looks_grow_rare() -> None:
    made, pauses = watch(source(pods=2)), []
    for _ in range(60):
        hear(made, text(1))
        pauses.append(made.pause(30))
    assert pauses[0] == 2
    assert pauses[1::2] == sorted(pauses[1::2])
    assert max(pauses) == 900
    alone = watch(source(pods=1))
    hear(alone, text(1))
    assert [alone.pause(each) for each in (10, 30)] == [3, 3], "a first line is found soon"
    made.others, made.number = True, 0
    hear(made, text(1))
    assert made.number == 0, "only first pods are searched where another sub-job reports"


def test_a_program_is_read_as_often_as_it_says_something() -> None:
    made = watch(source())
    hear(made, text(0, 1) + text(100, 2), now=T0 + timedelta(seconds=101))
    assert made.pause(30) == 100
    hear(made, b"", now=T0 + timedelta(seconds=201))
    assert made.pause(30) == 200
    assert made.pause(1000) == 500, "a look at its silence is due before"


def test_a_log_that_says_too_much_is_read_in_other_portions() -> None:
    made = watch(source())
    hear(made, text(1) * 100)
    assert made.tail == 100, "another pod is tried first"
    made.found = True
    hear(made, text(1) * 99)
    assert made.tail == 100, "no line was left out"
    hear(made, text(1) * 100)
    assert made.tail == 400
    hear(made, b"x" * LIMIT_BYTES)
    assert made.tail == 100


@given(st.lists(st.binary(max_size=200) | st.sampled_from([text(1, 1), text(2, 0), b"\n"])))
def test_no_log_does_harm(logs: list[bytes]) -> None:
    made: Watch = watch(source())
    for log in logs:
        hear(made, log)
        assert 0 <= made.number < 4
        assert 0 < made.pause(30) <= 900
        made.query()


# Reading.


class Logs:
    """A client whose logs are made up; `answers` gives a log, or an error, by cluster and pod."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes | Exception] = {}
        self.asked: list[str] = []
        self.times: list[float] = []
        self.queries: list[dict[str, str]] = []
        self.hung: set[str] = set()
        self.released = asyncio.Event()
        self.holding = asyncio.Event()

    async def stream(
        self,
        path: str,
        *,
        params: Mapping[str, str],
        idle_limit: float | None = None,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        parts = path.split("/")
        name = f"{parts[5]}/{parts[parts.index('pods') + 1]}"
        self.asked.append(name)
        self.times.append(asyncio.get_running_loop().time())
        self.queries.append(dict(params))
        if name in self.hung:
            await self.released.wait()
        answer = self.answers.get(name, b"")
        if isinstance(answer, Exception):
            raise answer
        if opened is not None:
            opened()
        yield answer
        if "follow" in params:
            await self.holding.wait()


READS = "hyperjob_progress_reads_total"


class Bench:
    """A reader over made-up logs."""

    def __init__(
        self,
        *,
        qps: float = 1000,
        interval: float = 0.05,
        now: Callable[[], datetime] = lambda: NOW,
    ) -> None:
        self.logs, self.counts, self.woken = Logs(), Counts(), list[tuple[str, float]]()
        self.cpu = Cpu()
        self.faults: list[BaseException] = []
        self.reader = Reader(
            self.logs,  # type: ignore[arg-type]  # all that it calls
            qps=qps,
            interval=interval,
            now=now,
            wake=lambda key, seconds: self.woken.append((key, seconds)),
            faulty=self.faults.append,
            in_turn=partial(self.cpu.watchdog.turn, Place.PROGRESS, most=LONGEST),
        )

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self.reader.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def planned(self, observed: Observed) -> None:
        """Report a pass whose plan, whatever it is, makes no difference to the reader."""
        self.reader.planned(observed, Plan())

    async def hears(self, pod: int = 0, log: bytes = text(1, 7), **fields: Any) -> None:
        """Have the HyperJob run, and wait until the reader has what this pod of it says."""
        self.logs.answers[f"a/hj-trainer-0-worker-{pod}"] = log
        self.planned(seen(job(phase="Running", **fields)))
        await self.until(self.trainings)

    def trainings(self) -> dict[str, SubJobTraining]:
        """Return the sub-jobs that have reported, or whose logs have ended."""
        found = self.reader.trainings(KEY)
        return {name: each for name, each in found.items() if each.reported or each.ended}

    async def reads_another(self, count: int) -> None:
        """Have HyperJob other run on cluster b, and wait until its pod is read so often."""
        pod = "b/other-trainer-0-worker-0"
        self.logs.answers[pod] = text(1, 7)
        other = job("other-trainer-0", phase="Running", gpus=1, marked=labels("other"))
        self.planned(seen(other, name="other", cluster="b"))
        await self.until(lambda: self.logs.asked.count(pod) >= count)

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.005)


KEY = "default/hj"


async def test_progress_is_read_and_the_hyperjob_looked_at() -> None:
    async with Bench() as bench:
        await bench.hears(3, gpus=8)
        assert bench.trainings()["hj-trainer-0"].step == 7
        assert bench.logs.asked == [f"a/hj-trainer-0-worker-{number}" for number in range(4)]
        assert bench.woken == [(KEY, 0)]
        bench.logs.answers["a/hj-trainer-0-worker-3"] = text(1, 7) + text(2, 8)
        await bench.until(lambda: bench.trainings()["hj-trainer-0"].step == 8)
        assert set(bench.logs.asked[4:]) == {"a/hj-trainer-0-worker-3"}
        assert {int(query["limitBytes"]) for query in bench.logs.queries} == {LIMIT_BYTES}


async def test_the_pod_that_reported_before_a_restart_is_read_first_after_it() -> None:
    async with Bench() as bench:
        await bench.hears(3, gpus=8)
        first = seen(job(phase="Running", gpus=8))
        jobs = {name: replace(each, uid="another") for name, each in first.jobs.items()}
        bindings = {n: replace(each, job_uid="another") for n, each in first.bindings.items()}
        asked = len(bench.logs.asked)
        bench.planned(replace(first, jobs=jobs, bindings=bindings))
        await bench.until(lambda: len(bench.logs.asked) > asked + 1)
        assert set(bench.logs.asked[asked + 1 :]) == {"a/hj-trainer-0-worker-3"}


async def test_a_log_whose_lines_take_too_long_is_named_and_the_next_pod_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Bench() as bench:
        take_in = Watch.take_in

        def slow(made: Watch, lines: Any, **how: Any) -> bool:
            if made.number == 0:
                bench.cpu.spend(600.0)
            return take_in(made, lines, **how)

        monkeypatch.setattr(Watch, "take_in", slow)
        await bench.hears(1, gpus=8)
        assert bench.trainings()["hj-trainer-0"].step == 7
        assert "a log of sub-job hj-trainer-0 of default/hj was" in str(bench.faults[0])


async def test_a_pod_without_a_log_is_counted_and_the_next_one_is_read() -> None:
    async with Bench() as bench:
        bench.logs.answers["a/hj-trainer-0-worker-0"] = refusal(404, "NotFound")
        await bench.hears(1, gpus=8)
        assert bench.counts(READS, result="missing") == 1


async def test_the_budget_holds_over_all_hyperjobs() -> None:
    async with Bench(qps=50, interval=0.1) as bench:
        jobs = [job(f"hj-trainer-{number}", phase="Running", gpus=1) for number in range(100)]
        bench.planned(seen(*jobs))
        await bench.until(lambda: len(bench.logs.times) > 100)
        times = bench.logs.times
        # A burst of fifty, and fifty in each second after that.
        assert times[100] - times[0] > 0.9
        assert len(set(bench.logs.asked[:100])) > 90


async def test_a_hyperjob_is_looked_at_once_an_interval() -> None:
    async with Bench(interval=0.5) as bench:
        jobs = [job(f"hj-trainer-{number}", phase="Running", gpus=1) for number in range(20)]
        for number in range(20):
            bench.logs.answers[f"a/hj-trainer-{number}-worker-0"] = text(1, 7)
        bench.planned(seen(*jobs))
        await bench.until(lambda: len(bench.trainings()) == 20)
        assert len(bench.woken) <= 2


@pytest.mark.parametrize("fault", [TimeoutError(), unreachable("GET x", "refused")])
async def test_a_cluster_that_does_not_answer_is_left_alone(fault: Exception) -> None:
    async with Bench(interval=0.02) as bench:
        for number in range(50):
            bench.logs.answers[f"a/hj-trainer-{number}-worker-0"] = fault
        jobs = [job(f"hj-trainer-{number}", phase="Running", gpus=1) for number in range(50)]
        bench.planned(seen(*jobs))
        await bench.until(lambda: bench.counts(READS, result="unreachable"))
        await bench.reads_another(5)
        asked = [name for name in bench.logs.asked if name.startswith("a/")]
        assert len(asked) <= 33, "those on their way when it was found out, and no more"


@pytest.mark.parametrize("spread", [1.0, 1.5])
def test_looks_at_a_cluster_in_trouble_are_spread_over_half_as_long_again(
    spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chosen(least: float, most: float) -> float:
        assert least <= spread <= most
        return spread

    monkeypatch.setattr("hyperjob_controller.training.reader.random.uniform", chosen)
    monkeypatch.setattr("hyperjob_controller.training.reader._clock", lambda: 1000.0)
    bench, waits = Bench(), list[float]()
    bench.reader._plan = lambda _item, _found, wait: waits.append(wait)  # type: ignore[method-assign]
    bench.reader._troubles["a"] = Trouble(1060.0, 1.0)
    assert bench.reader._put_off((KEY, "j"), watch(source()))
    assert waits == [60 * spread]


async def test_a_log_that_is_followed_is_not_read_again_when_its_sub_job_ends() -> None:
    async with Bench() as bench:
        name = "a/hj-trainer-0-worker-0"
        stop = {"cause": "Restarted", "until": "2026-01-02T03:05:00Z", "jobs": ["hj-trainer-0"]}
        bench.planned(seen(job(phase="Running"), status={"stop": stop}))
        await bench.until(lambda: name in bench.logs.asked)
        bench.planned(seen(job(phase="Completed")))
        await bench.reads_another(3)
        assert bench.logs.asked.count(name) == 1


async def test_the_first_line_of_a_program_has_its_pass_at_once_after_each_start() -> None:
    async with Bench(interval=60) as bench:
        for _ in range(2):
            await bench.hears()
            bench.planned(seen())
    assert bench.woken == [(KEY, 0)] * 2


async def test_a_hyperjob_of_a_forgotten_name_has_its_first_pass_at_once() -> None:
    async with Bench(interval=60) as bench:
        for step in (7, 8):
            await bench.hears(log=text(step, step))
            bench.reader.forget(KEY)
    assert bench.woken == [(KEY, 0)] * 2


async def test_the_log_of_a_sub_job_that_is_stopped_is_followed_to_its_end() -> None:
    async with Bench(interval=60) as bench:
        name = "a/hj-trainer-0-worker-0"
        await bench.hears()
        bench.logs.answers[name] = text(2, 8, ', "saved": 8')
        bench.planned(seen(job(phase="Running", deleting=True)))
        await bench.until(lambda: bench.trainings()["hj-trainer-0"].saved_step == 8)
        assert not bench.trainings()["hj-trainer-0"].ended
        bench.planned(seen())
        assert bench.trainings(), "it is kept until its log has ended"
        bench.logs.holding.set()
        await bench.until(lambda: bench.trainings()["hj-trainer-0"].ended)
        assert bench.woken[-1] == (KEY, 0)
        bench.planned(seen())
        assert bench.trainings() == {}


async def test_the_resume_step_is_the_last_one_that_every_reporting_pod_has_saved() -> None:
    async with Bench(interval=60) as bench:
        pods = [f"a/hj-trainer-0-worker-{number}" for number in range(4)]
        await bench.hears(gpus=4)
        bench.logs.answers[pods[0]] = text(2, 8, ', "saved": 8')
        bench.logs.answers[pods[1]] = text(1, 4, ', "saved": 4') + text(2, 6, ', "saved": 6')
        bench.logs.answers[pods[2]] = text(2, 7)
        bench.logs.answers[pods[3]] = refusal(503, "ServiceUnavailable")
        bench.logs.holding.set()
        bench.planned(seen(job(phase="Running", gpus=4, deleting=True)))
        await bench.until(lambda: bench.trainings()["hj-trainer-0"].ended)
        training = bench.trainings()["hj-trainer-0"]
        assert (training.step, training.saved_step) == (8, 6)
        assert set(bench.logs.asked) == set(pods)


async def test_a_planned_stop_knows_of_all_that_have_ended_until_it_is_over() -> None:
    async with Bench(interval=60) as bench:
        bench.logs.holding.set()
        names = ["hj-trainer-0", "hj-trainer-1"]
        stop = {"cause": "Restarted", "until": "2026-01-02T03:05:00Z", "jobs": names}
        jobs = [job(name, phase="Running", gpus=1, deleting=True) for name in names]
        bench.planned(seen(*jobs, status={"stop": stop}))
        await bench.until(lambda: [each.ended for each in bench.trainings().values()] == [True] * 2)
        bench.planned(seen(jobs[1], status={"stop": stop}))
        assert set(bench.trainings()) == set(names), "the first is gone, and has ended"
        bench.planned(seen())
        assert bench.trainings() == {}


async def test_the_last_lines_are_read_when_a_sub_job_has_ended() -> None:
    async with Bench(interval=60) as bench:
        name = "a/hj-trainer-0-worker-0"
        await bench.hears()
        bench.logs.answers[name] = text(2, 9)
        bench.planned(seen(job(phase="Completed")))
        await bench.until(lambda: bench.trainings()["hj-trainer-0"].step == 9)
        asked = bench.logs.asked.count(name)
        other = job("hj-trainer-1", phase="Running", gpus=1)
        bench.logs.answers["a/hj-trainer-1-worker-0"] = text(1, 7)
        bench.planned(seen(job(phase="Completed"), other))
        await bench.until(lambda: "hj-trainer-1" in bench.trainings())
        assert bench.logs.asked.count(name) == asked


async def test_a_log_without_end_is_cut_off() -> None:
    async with Bench() as bench:
        await bench.hears(log=text(1, 7) + b"x" * 1000 + b"\n" * 300_000)
        assert bench.trainings()["hj-trainer-0"].step == 7


# Fairness.


def test_namespaces_take_turns_however_many_hyperjobs_they_have() -> None:
    schedule = Schedule()
    for number in range(100):
        schedule.put((f"big/{number}", f"{number}-0"), due=0, lane=Lane.REPORT)
    for name in ("x", "y"):
        schedule.put((f"{name}/only", "only-0"), due=1, lane=Lane.REPORT)
    first = [schedule.take(2) for _ in range(3)]
    assert {item[0].partition("/")[0] for item in first if item} == {"big", "x", "y"}


def test_last_lines_come_before_all_other_reads() -> None:
    schedule = Schedule()
    for lane in reversed(Lane):
        for number in range(8):
            schedule.put((f"ns/{lane}-{number}", "j"), due=0, lane=lane)
    taken = [schedule.take(1) for _ in range(8)]
    assert {item[0].partition("-")[0] for item in taken if item} == {f"ns/{Lane.LAST}"}


def test_a_member_that_does_not_answer_delays_neither_other_reads_nor_last_lines() -> None:
    async def main() -> None:
        async with Bench(qps=40, interval=30) as bench:
            jobs = [job(f"hj-trainer-{number}", phase="Running", gpus=1) for number in range(200)]
            for number in range(200):
                bench.logs.hung.add(f"a/hj-trainer-{number}-worker-0")
            bench.planned(seen(*jobs))
            await asyncio.sleep(2)
            begun = asyncio.get_running_loop().time()
            await bench.reads_another(1)
            assert asyncio.get_running_loop().time() - begun < 3
            last = "b/third-trainer-0-worker-0"
            bench.logs.answers[last] = text(1, 7)
            begun = asyncio.get_running_loop().time()
            third = job("third-trainer-0", phase="Running", deleting=True, marked=labels("third"))
            bench.planned(seen(third, name="third", cluster="b"))
            await bench.until(lambda: last in bench.logs.asked)
            assert asyncio.get_running_loop().time() - begun < 0.2

    run(main())


WORST = {
    "progress lines": text(1, 7),
    "lines that look like progress": text(1, None).replace(b"loss is", b'{"hyperjob": {"saved": '),
    "the longest lines": text(1, 7)[:-2] + b" " * (MAX_LINE - 90) + b"}\n",
}


@pytest.mark.parametrize("worst", WORST.values(), ids=WORST)
def test_the_worst_logs_of_64_stopping_pods_take_turns_of_64_kib(
    monkeypatch: pytest.MonkeyPatch, worst: bytes
) -> None:
    """In one turn of the event loop the reader processes one batch of one log."""
    parsed: list[tuple[int, int, int]] = []
    turn = 0

    def spied(lines: Sequence[LogLine]) -> list[ProgressLine]:
        found = progress_lines(lines)
        parsed.append((turn, sum(len(each.raw) + 1 for each in lines), len(found)))
        return found

    def count() -> None:
        nonlocal turn
        turn += 1
        asyncio.get_running_loop().call_soon(count)

    async def main() -> None:
        async with Bench(qps=40) as bench:
            for number in range(64):
                bench.logs.answers[f"a/hj-trainer-{number}-worker-0"] = worst * (
                    2**17 // len(worst)
                )
            names = [f"hj-trainer-{number}" for number in range(64)]
            jobs = [job(name, phase="Running", gpus=1, deleting=True) for name in names]
            bench.logs.holding.set()
            bench.planned(seen(*jobs))
            asyncio.get_running_loop().call_soon(count)
            await bench.until(lambda: len(parsed) >= 64)

    monkeypatch.setattr("hyperjob_controller.training.watch.progress_lines", spied)
    # The loop never idles while the turns are counted, and time passes by itself.
    asyncio.run(main())
    turns = [turn for turn, _, _ in parsed]
    assert len(set(turns)) == len(turns), "one batch in each turn"
    assert max(size for _, size, _ in parsed) <= 64 * 1024 + MAX_LINE
    assert max(count for _, _, count in parsed) <= 66, "samples that a track holds, and two more"


def test_the_lines_of_an_earlier_vcjob_are_not_those_of_the_present_one() -> None:
    """The pod of the earlier one has the same name, and may still stop."""
    made = watch(source(created=T0 + timedelta(seconds=10)))
    assert not hear(made, text(8, 1400) + text(9, 1500, ', "saved": 1100'))
    assert hear(made, text(9, 1500) + text(12, 400))
    training = made.training
    assert (training.start_step, training.step, training.saved_step) == (400, 400, None)
