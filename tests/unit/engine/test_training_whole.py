"""How the progress of sub-jobs is put together to that of the HyperJob."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.training import SubJobTraining
from hyperjob_engine.plan import plan
from hyperjob_engine.status.training import combined
from tests.unit.engine.builders import NOW, binding, hyperjob, job, observed


def said(step: int, *, minute: int = 0, **fields: Any) -> SubJobTraining:
    at = NOW + timedelta(minutes=minute)
    given = {"updated": at, "start_step": 0, "started": at, **fields}
    return SubJobTraining(step=step, **given)


def voice(training: SubJobTraining | None, *, group: str = "a", attempt: int = 0) -> JobStatus:
    return JobStatus(name="", replicated_job=group, attempt=attempt, training=training)


def test_the_furthest_step_counts_since_the_first_start() -> None:
    first, second = said(5, minute=1, start_step=1), said(9, minute=2, start_step=4)
    for voices in ([voice(first), voice(second)], [voice(second), voice(first)]):
        found = combined(voices)
        assert (found.step, found.start_step, found.started) == (9, 1, first.started)


def test_of_equal_steps_the_latest_line_counts() -> None:
    early, late = said(5, minute=1, steps=7), said(5, minute=2, steps=8)
    found = combined([voice(late), voice(early)])
    assert (found.updated, found.steps) == (late.updated, 8)


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        ([3, 2, None], 2),
        ([3, None, 4], 3),
        ([0, 3], 0),
        ([1, 0], 0),
        ([None, None], None),
        ([2, 1], 1),
    ],
)
def test_the_checkpoint_is_the_oldest_of_those_that_have_one(
    saved: list[int | None], expected: int | None
) -> None:
    made = [
        said(9, saved_step=step, saved=None if step is None else NOW + timedelta(hours=step))
        for step in saved
    ]
    found = combined([voice(each) for each in made])
    assert found.saved_step == expected
    assert found.saved == (None if expected is None else NOW + timedelta(hours=expected))


def test_only_the_first_replicated_job_that_says_anything_counts() -> None:
    silent = voice(said(99, reported=False), group="silent")
    found = combined([voice(None), silent, voice(said(3), group="a"), voice(said(8), group="b")])
    assert found.step == 3


def test_what_an_earlier_attempt_said_counts_only_while_no_present_one_has_spoken() -> None:
    before, now = said(50, attempt=0), said(7, attempt=1)
    found = combined([voice(before, attempt=1), voice(now, attempt=1)])
    assert found.step == 7
    found = combined([voice(before, attempt=1), voice(said(40, attempt=0), attempt=1)])
    assert found.step == 50


def test_the_number_of_steps_is_the_furthest_ones_or_any_others() -> None:
    found = combined([voice(said(3, steps=10)), voice(said(9))])
    assert found.steps == 10
    found = combined([voice(said(3, steps=10)), voice(said(9, steps=20))])
    assert found.steps == 20


def test_nothing_is_made_of_nothing() -> None:
    assert combined([]) is None
    assert combined([voice(None), voice(said(1, reported=False))]) is None


@pytest.mark.parametrize("metrics", [{"loss": "2.5"}, {}])
def test_the_status_has_the_metrics_of_the_furthest_if_it_has_any(metrics: dict[str, str]) -> None:
    seen = observed(hyperjob(), job(phase="Running"), binding(cluster="a"))
    decided = plan(replace(seen, trainings={"hj-trainer-0": said(5, metrics=metrics)}))
    assert decided.status["training"].get("metrics", {}) == metrics
