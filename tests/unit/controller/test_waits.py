"""The process for which the others wait, from the waiting that programs report."""

from dataclasses import replace
from itertools import product

import pytest

from hyperjob_controller.training.watch import watch
from hyperjob_core.api.lines import parse
from hyperjob_core.api.training import SubJobTraining
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.model.training import WaitShare, straggler
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.stacks import Pod
from tests.unit.controller.test_training_reader import (
    KEY,
    Bench,
    LogLine,
    hear,
    job,
    seen,
    source,
    text,
)
from tests.unit.engine.test_training_status import said, told
from tests.unit.engine.test_training_status import seen as observed_with

EAST, WEST, NORTH = (Pod(name, f"{name}-pod", name) for name in ("east", "west", "north"))


@pytest.mark.parametrize(
    ("parts", "slow"),
    [
        ([0.5, 0.55, 0.02], "north"),
        ([0.02, 0.5], "east"),
        ([0.1, 0.12, 0.05], ""),
        ([0.5, 0.5, 0.5], ""),
        ([0.6, 0.05, 0.02], ""),
        ([0.4], ""),
        ([], ""),
    ],
)
def test_the_slow_one_waits_least_and_the_others_for_long(parts: list[float], slow: str) -> None:
    waits = [WaitShare(*each) for each in zip((EAST, WEST, NORTH), parts, strict=False)]
    found = straggler(waits, steps_per_second=2.0)
    assert (found.cluster if found else "") == slow


def test_the_status_has_the_pod_and_how_long_the_others_wait_in_each_step() -> None:
    waits = (WaitShare(EAST, 0.52), WaitShare(WEST, 0.02))
    read = said(5, steps_per_second=0.5)
    seen_waits = replace(observed_with(read), waits=waits)
    status = plan(seen_waits).status
    assert status["training"]["straggler"] == {
        "cluster": "west", "pod": "west-pod", "job": "west", "part": "0.50", "seconds": "1",
    }  # fmt: skip
    assert "straggler" not in told(read)


def test_a_part_that_a_program_only_sampled_counts_once_the_training_is_slow() -> None:
    made = watch(source(pods=1))
    usual = [text(step, step, ', "sampled": 0.6') for step in range(20)]
    hear(made, b"".join(usual))
    assert made.wait is None
    slow = [text(19 + 3 * more, 19 + more, ', "sampled": 0.6') for more in range(1, 6)]
    hear(made, b"".join(slow))
    assert made.wait.part == 0.6
    assert made.training.usual == "1"


async def test_where_one_that_is_read_waits_all_others_are_read_too() -> None:
    async with Bench(interval=0.02) as bench:
        for job_number in range(2):
            for number in range(2):
                part = 0.02 if (job_number, number) == (1, 1) else 0.6
                log = b"".join(text(step, step, f', "waited": {part}') for step in range(9))
                bench.logs.answers[f"a/hj-trainer-{job_number}-worker-{number}"] = log
        bench.planned(seen(*(job(f"hj-trainer-{n}", phase="Running", gpus=2) for n in range(2))))
        await bench.until(lambda: len(bench.reader.trainings("default/hj")) == 2)

        def slow() -> str:
            found = straggler(bench.reader.waits("default/hj"), steps_per_second=None)
            return found.pod if found else ""

        bench.logs.answers["a/hj-trainer-0-worker-0"] += text(10, 10, ', "waited": 0.6')
        await bench.until(slow)
        assert slow() == "hj-trainer-1-worker-1"


async def test_of_several_processes_in_a_pod_the_slow_one_is_named_by_its_rank() -> None:
    async with Bench(interval=0.02) as bench:
        for index in range(2):
            lines = [text(step, step, ', "waited": 0.6') for step in range(9)]
            part = 0.02 if index else 0.6
            for step in range(9):
                line = text(step, step).replace(
                    f'"step": {step}'.encode(),
                    f'"rank": {index * 2 + 1}, "sampled": {part}'.encode(),
                )
                lines.append(line)
            bench.logs.answers[f"a/hj-trainer-{index}-worker-0"] = b"".join(lines)
        bench.planned(seen(*(job(f"hj-trainer-{n}", phase="Running", gpus=2) for n in range(2))))
        await bench.until(lambda: len(bench.reader.trainings(KEY)) == 2)
        bench.logs.answers["a/hj-trainer-0-worker-0"] += text(10, 10, ', "waited": 0.6')
        await bench.until(lambda: len(bench.reader.waits(KEY)) == 4)
        found = straggler(bench.reader.waits(KEY), steps_per_second=None)
        assert (found.pod, found.rank) == ("hj-trainer-1-worker-0", 3)


async def test_three_slow_lines_name_the_process_for_which_the_others_wait() -> None:
    async with Bench(interval=0.02) as bench:
        usual = b"".join(text(step, step, ', "sampled": 0.1') for step in range(20))
        for index, part in enumerate((0.8, 0.02)):
            lines = (text(19 + 5 * n, 19 + n, f', "sampled": {part}') for n in range(1, 4))
            bench.logs.answers[f"a/hj-trainer-{index}-worker-0"] = usual + b"".join(lines)
        bench.planned(seen(*(job(f"hj-trainer-{n}", phase="Running", gpus=1) for n in range(2))))
        await bench.until(lambda: bench.reader.waits(KEY))
        found = straggler(bench.reader.waits(KEY), steps_per_second=None)
        assert found.pod == "hj-trainer-1-worker-0"


@pytest.mark.parametrize(("least", "learns"), [(0.6, True), (0.02, False)])
async def test_a_training_that_waits_for_no_single_process_gets_used_to_its_pace(
    least: float, learns: bool
) -> None:
    async with Bench(interval=0.02) as bench:
        seconds = [*range(18), *range(33, 720, 16)]
        for index, part in enumerate((0.6, least)):
            sampled = f', "sampled": {part}'
            log = b"".join(text(at, step, sampled) for step, at in enumerate(seconds))
            bench.logs.answers[f"a/hj-trainer-{index}-worker-0"] = log
        jobs = [job(f"hj-trainer-{index}", phase="Running", gpus=2) for index in range(2)]
        bench.planned(seen(*jobs))

        def first() -> SubJobTraining:
            return bench.reader.trainings(KEY)["hj-trainer-0"]

        if learns:
            await bench.until(lambda: first().usual == "0.0625")
        else:
            await bench.until(lambda: len(bench.reader.waits(KEY)) == 2)
        assert first().slow is not learns


async def _surveyed(bench: Bench) -> Observed:
    """Have a survey of waiting processes wait for one log, and return the pass before it."""
    for index, number in product(range(2), repeat=2):
        part = 0.02 if (index, number) == (1, 1) else 0.6
        lines = (text(step, step, f', "waited": {part}') for step in range(9))
        bench.logs.answers[f"a/hj-trainer-{index}-worker-{number}"] = b"".join(lines)
    bench.logs.hung.add("a/hj-trainer-1-worker-1")
    jobs = (job(f"hj-trainer-{index}", phase="Running", gpus=2) for index in range(2))
    first = seen(*jobs)
    bench.planned(first)
    await bench.until(lambda: len(bench.reader.trainings(KEY)) == 2)
    bench.logs.answers["a/hj-trainer-0-worker-0"] += text(10, 10, ', "waited": 0.6')
    await bench.until(lambda: "a/hj-trainer-1-worker-1" in bench.logs.asked)
    return first


async def test_a_survey_that_ends_after_its_hyperjob_was_deleted_leaves_nothing() -> None:
    async with Bench(interval=0.02) as bench:
        await _surveyed(bench)
        bench.reader.forget(KEY)
        bench.logs.hung.clear()
        bench.logs.released.set()
        await bench.reads_another(3)
        assert bench.reader.waits(KEY) == ()
        assert not bench.reader.trainings(KEY)


@pytest.mark.parametrize(
    ("written", "read"), [("0.25", 0.25), ("1", 1.0), ("1.5", None), ("true", None), ('"x"', None)]
)
def test_a_line_has_the_part_of_the_time_and_nothing_else(written: str, read: float | None) -> None:
    line = parse(LogLine.of(text(1, 4, f', "waited": {written}').strip()))
    assert line.waited == read
