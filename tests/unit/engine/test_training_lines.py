"""What a log may hold, and what of it is believed."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.lines import (
    MAX_LINE,
    MAX_METRICS,
    MAX_STEP,
    LogLine,
    ProgressLine,
    progress_lines,
)
from hyperjob_core.api.lines import parse as parse_line
from hyperjob_core.api.training import SubJobTraining
from hyperjob_engine.model.training import Track, advance, speed, time_of, training_of

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STAMP = b"2026-01-02T03:04:05.25Z "


def parse(raw: bytes) -> ProgressLine | None:
    return parse_line(LogLine.of(raw))


def parsed(log: bytes) -> list[ProgressLine]:
    return progress_lines([LogLine.of(raw) for raw in log.split(b"\n")])


def line(told: Any, *, before: bytes = b"", after: bytes = b"") -> bytes:
    return STAMP + before + json.dumps({"hyperjob": told}).encode() + after


GOOD = {
    "a step alone": ({"step": 7}, ProgressLine(time=T0, step=7)),
    "all fields": (
        {"step": 7, "steps": 9, "saved": 5, "metrics": {"loss": 2.5, "lr": 1}},
        ProgressLine(time=T0, step=7, steps=9, saved=5, metrics={"loss": "2.5", "lr": "1"}),
    ),
    "a language with one kind of number": ({"step": 7.0}, ProgressLine(time=T0, step=7)),
    "fields of a later release": ({"step": 7, "epoch": {"of": [1]}}, ProgressLine(time=T0, step=7)),
    "no number of steps is none": ({"step": 7, "steps": 0}, ProgressLine(time=T0, step=7)),
    "steps that are no number": ({"step": 7, "steps": "many"}, ProgressLine(time=T0, step=7)),
    "a checkpoint from the future": ({"step": 7, "saved": 8}, ProgressLine(time=T0, step=7)),
    "metrics that are none": (
        {"step": 7, "metrics": {"a": "1", "b": True, "c": None, "d e": 1, "ok": 3}},
        ProgressLine(time=T0, step=7, metrics={"ok": "3"}),
    ),
    "metrics that are a list": ({"step": 7, "metrics": [1]}, ProgressLine(time=T0, step=7)),
}


@pytest.mark.parametrize(("told", "wanted"), GOOD.values(), ids=GOOD)
def test_a_progress_line_is_read(told: Any, wanted: ProgressLine) -> None:
    found = parse(line(told))
    assert found.time == T0 + timedelta(milliseconds=250)
    assert (found.step, found.steps, found.saved, found.metrics) == (
        wanted.step, wanted.steps, wanted.saved, wanted.metrics,
    )  # fmt: skip


BAD = {
    "no step": {},
    "a step that is a text": {"step": "7"},
    "a step that is true": {"step": True},
    "a step below zero": {"step": -1},
    "a step with a fraction": {"step": 7.5},
    "a step beyond every program": {"step": MAX_STEP + 1},
    "a step of a thousand digits": {"step": 10**1000},
    "a list": [7],
    "nothing": None,
}


@pytest.mark.parametrize("told", BAD.values(), ids=BAD)
def test_what_is_no_progress_is_passed_over(told: Any) -> None:
    assert parse(line(told)) is None


BYTES = {
    "no timestamp": b'{"hyperjob": {"step": 7}}',
    "no object": STAMP + b"step 1",
    "broken JSON": STAMP + b'{"hyperjob": {"step": 7}',
    "two objects": STAMP + b'{"hyperjob": {"step": 7}} {"hyperjob": {"step": 8}}',
    "not a number": STAMP + b'{"hyperjob": {"step": NaN}}',
    "bytes that are no text": STAMP + b'{"hyperjob": {"step": 7, "x": "\xff\xfe"}}',
    "a thousand levels": STAMP + b'{"hyperjob": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "a month thirteen": b'2026-13-02T03:04:05Z {"hyperjob": {"step": 7}}',
    "too long a line": STAMP + b'{"hyperjob": {"step": 7, "x": "' + b"x" * MAX_LINE + b'"}}',
}


@pytest.mark.parametrize("raw", BYTES.values(), ids=BYTES)
def test_a_hostile_line_is_passed_over(raw: bytes) -> None:
    assert parse(raw) is None
    assert parsed(raw + b"\n" + line({"step": 1})) == [parse(line({"step": 1}))]


def test_what_a_launcher_puts_around_a_line_is_left_out() -> None:
    found = parse(line({"step": 7}, before=b"\x1b[32m[rank0]:", after=b"\x1b[0m\r"))
    assert found.step == 7


def test_the_address_of_a_run_is_one_that_a_link_may_have_and_stays() -> None:
    track = None
    for step, url in enumerate(("https://wandb.ai/me/run/7", "javascript:alert(1)", "", 7)):
        raw = json.dumps({"hyperjob": {"step": step, "url": url}}).encode()
        line = parse_line(LogLine.of(STAMP + raw))
        assert line.url == (url if step == 0 else "")
        track = advance(track, line, now=T0 + timedelta(days=1))
    assert training_of(track, attempt=0).url == "https://wandb.ai/me/run/7"


def test_metrics_are_few() -> None:
    found = parse(line({"step": 7, "metrics": {f"m{number}": number for number in range(100)}}))
    assert len(found.metrics) == MAX_METRICS


@given(st.binary(max_size=300))
def test_no_bytes_raise(raw: bytes) -> None:
    parsed(raw)
    parsed(STAMP + b'{"hyperjob":' + raw + b"}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(JSON, JSON, JSON, JSON)
def test_no_value_is_believed_beyond_its_bounds(step: Any, steps: Any, saved: Any, m: Any) -> None:
    found = parse(line({"step": step, "steps": steps, "saved": saved, "metrics": m}))
    if found is not None:
        assert 0 <= found.step <= MAX_STEP
        assert found.steps is None or 0 < found.steps <= MAX_STEP
        assert found.saved is None or 0 <= found.saved <= found.step
        assert all(len(text) < 20 for text in found.metrics.values())


@pytest.mark.parametrize("lines", [1, 64, 65, 66, 1000])
def test_of_a_flood_the_first_line_the_last_ones_and_the_checkpoint_are_parsed(lines: int) -> None:
    told = [
        {"step": step, **({"saved": step} if step == 20 else {})} for step in range(1, lines + 1)
    ]
    found = parsed(b"\n".join(map(line, told)))
    steps = [each.step for each in found]
    last = [*range(max(1, lines - 63), lines + 1)]
    assert steps == ([1] if lines > 64 else []) + ([20] if lines == 1000 else []) + last
    assert any(each.saved == 20 for each in found) is (lines > 20)
    if lines == 1000:
        assert [each.step for each in found if each.skipped] == [20, 937], "this is no long pause"


def test_a_flood_of_lines_that_are_none_is_no_progress() -> None:
    assert parsed(b"\n".join([line({"step": "x", "saved": 1})] * 2000)) == []


# The track of a program.


def track(*points: tuple[float, int] | tuple[float, int, int], now: float = 1e6) -> Track:
    """Follow lines given as (seconds, step) or (seconds, step, saved)."""
    made: Track | None = None
    for seconds, step, *saved in points:
        each = ProgressLine(time=at(seconds), step=step, saved=saved[0] if saved else None)
        made = advance(made, each, now=at(now))
    return made


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def test_the_number_of_steps_is_the_last_that_was_said() -> None:
    made: Track | None = None
    for second, steps in enumerate((None, 100, None, 200, None)):
        made = advance(made, ProgressLine(time=at(second), step=second, steps=steps), now=at(9))
        assert made.steps == (None, 100, 100, 200, 200)[second]


@pytest.mark.parametrize(
    ("points", "steps_per_second"),
    [
        pytest.param([(0, 5)], None, id="one line gives none"),
        pytest.param([(0, 0), (3600, 36)], 0.01, id="two lines far apart"),
        pytest.param([(0, 0), (1000, 10), (1100, 110), (1200, 210)], 1.0, id="the last minutes"),
        pytest.param([(0, 0), (600, 600), (1200, 660)], 0.1, id="the pause in the last ten"),
        pytest.param([(0, 0), (1, 600), (601, 660)], 0.1, id="the last ten minutes exactly"),
        pytest.param([(0, 0), (0.9, 600), (601, 660), (602, 760)], 100, id="not one before them"),
    ],
)
def test_the_speed_looks_back_ten_minutes_and_no_further(
    points: list[tuple[float, int]], steps_per_second: float | None
) -> None:
    found = speed(track(*points).samples)
    assert found == (None if steps_per_second is None else pytest.approx(steps_per_second))


def test_a_lower_step_is_a_new_start_at_which_the_checkpoint_stays() -> None:
    made = training_of(track((0, 0), (10, 100, 100), (20, 200), (30, 100), (31, 110)), attempt=2)
    assert (made.start_step, made.started) == (100, at(30))
    assert (made.saved_step, made.saved) == (100, at(30))
    assert made.steps_per_second == pytest.approx(10)


def test_a_start_below_its_checkpoint_has_none() -> None:
    made = training_of(track((0, 0), (10, 100, 100), (30, 0)), attempt=0)
    assert made.saved_step is None


def test_a_line_of_another_process_that_comes_late_is_no_new_start() -> None:
    made = track((0, 0), (10, 100), (10.5, 99), (20, 200))
    assert made.start_step == 0
    assert made.last == (200, at(20))


def test_the_moment_of_a_checkpoint_is_when_its_step_was_made() -> None:
    """A checkpoint that is written aside is told of later."""
    made = track((0, 0), (10, 100), (20, 200), (30, 300, 150))
    assert made.saved == at(15)


def test_a_clock_that_is_ahead_is_not_believed() -> None:
    assert track((50, 1), now=10).last == (1, at(10))


POINTS = st.lists(
    st.tuples(st.floats(-1e6, 1e6), st.integers(0, MAX_STEP), st.integers(0, MAX_STEP)),
    min_size=1,
    max_size=200,
)


@given(POINTS)
def test_a_track_is_bounded_and_in_order(points: list[tuple[float, int, int]]) -> None:
    made: Track | None = None
    for seconds, step, saved in points:
        each = ProgressLine(time=at(seconds), step=step, saved=min(saved, step))
        made = advance(made, each, now=at(0))
    assert len(made.samples) <= 64
    assert all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(made.samples))
    told = training_of(made, attempt=0)
    assert told.started <= told.updated <= at(0)
    assert told.saved is None or told.saved <= at(0)
    assert told.steps_per_second is None or told.steps_per_second > 0


def job(start: int, saved: int | None, step: int) -> SubJobTraining:
    return SubJobTraining(
        start_step=start, started=at(start), step=step, updated=at(step),
        saved_step=saved, saved=None if saved is None else at(saved),
    )  # fmt: skip


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100), st.integers(0, 300))
def test_the_moment_of_a_step_is_on_the_line(start: int, a: int, b: int, step: int) -> None:
    training = job(start, start + min(a, b), start + max(a, b))
    if training.step > start:
        wanted = at(max(step, start))
        assert abs(time_of(training, step) - wanted) < timedelta(milliseconds=1)
    else:
        assert time_of(training, step) == training.started


def test_a_line_is_read_up_to_its_longest_length() -> None:
    long = line({"step": 1}, after=b" " * (MAX_LINE - len(line({"step": 1}))))
    assert len(long) == MAX_LINE
    assert parse(long) is not None
    assert parse(long + b" ") is None


def test_the_last_64_steps_are_remembered() -> None:
    made = track(*((float(number), number) for number in range(100)))
    assert [step for step, _ in made.samples] == list(range(36, 100))
