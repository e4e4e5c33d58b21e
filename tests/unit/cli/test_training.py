"""How far a training is and what its time went to, in the words of the commands."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperjob.cli.get import header, row
from hyperjob.client.errors import NeverError
from hyperjob.client.summary import read
from hyperjob.client.training import Goodput, goodput_of, sizes_text, training_of, words
from hyperjob.client.waiting import parse_goal
from hyperjob_core.api.duration import micro_time
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.status import MeasuredSpeed

NOW = datetime(2026, 1, 2, 3, 10, 0, tzinfo=UTC)
TRAINING = {
    "step": 1200,
    "steps": 5000,
    "percent": 24,
    "progress": "24%",
    "stepsPerSecond": "12.5",
    "estimatedCompletionTime": "2026-01-02T03:15:00Z",
    "savedStep": 1000,
    "savedTime": "2026-01-02T03:09:14.000000Z",
    "updateTime": "2026-01-02T03:09:30.000000Z",
    "metrics": {"loss": "2.1"},
}
GOODPUT = {
    "state": "productive",
    "since": "2026-01-02T03:05:00.000000Z",
    "ratio": "0.5",
    "milliseconds": {"starting": 100000, "suspended": 50000},
}


def hyperjob(phase: str = "Running", **status: Any) -> Any:
    known = {"state": {"phase": phase}, "observedGeneration": 1}
    metadata = {"name": "llm", "namespace": "default", "generation": 1}
    metadata["creationTimestamp"] = "2026-01-02T03:00:00Z"
    return {"metadata": metadata, "spec": {}, "status": known | status}


def test_a_training_is_said_in_a_line() -> None:
    training = training_of({"training": TRAINING})
    assert training is not None
    assert words(training, NOW) == (
        "24%, step 1200 of 5000, 12.5 steps/s, done in 5m, saved step 1000, made 46s ago,"
        " reported 30s ago"
    )
    few = training_of({"training": {"step": 7, "progress": "step 7"}})
    assert few is not None
    assert words(few, NOW) == "step 7"
    assert training_of({"training": {}}) is None


def test_the_accelerator_time_by_size() -> None:
    since = micro_time(NOW - timedelta(minutes=10))
    small = MeasuredSpeed(alternatives="trainer=1", accelerators=8, milliseconds=1_200_000)
    large = MeasuredSpeed(alternatives="trainer=3", accelerators=24, since=since)
    never = MeasuredSpeed(alternatives="trainer=2", steps_per_second="3")
    both = [small, never, large]
    assert sizes_text(both, {}, None, NOW) == "trainer=3 10m (60%), trainer=1 20m (40%)"
    assert not sizes_text([never, large], {}, None, NOW), "it had one size"
    made = {"trainer=1": 900_000, "trainer=3": 120_000}
    goodput = {"since": micro_time(NOW - timedelta(minutes=6)), "state": "productive"}
    assert sizes_text(both, {**goodput, "productive": made}, None, NOW) == (
        "trainer=3 10m (60%, 80% productive), trainer=1 20m (40%, 75% productive)"
    ), "it goes on while it is not written"


def spent(goodput: Goodput) -> dict[str, float]:
    """The seconds of each use that took time."""
    return {use.name: seconds for use, seconds in goodput.seconds.items() if seconds}


def test_goodput_goes_on_while_it_is_not_written() -> None:
    goodput = goodput_of(GOODPUT, None, NOW)
    assert goodput.ratio == pytest.approx(0.75)
    assert spent(goodput) == {"STARTING": 100, "PRODUCTIVE": 300, "SUSPENDED": 50}
    assert goodput_of({}, None, NOW) is None


def test_what_a_training_does_since_its_last_line_is_not_counted_yet() -> None:
    training = training_of({"training": TRAINING})
    goodput = goodput_of(GOODPUT, training, NOW)
    assert spent(goodput) == {"STARTING": 100, "PRODUCTIVE": 270, "SUSPENDED": 50}
    assert goodput.unreported == 30
    assert goodput.ratio == pytest.approx(270 / 370)
    for known, line in (
        ({**GOODPUT, "state": "stalled"}, training),
        (GOODPUT, training_of({"training": {**TRAINING, "phase": "evaluate"}})),
    ):
        certain = goodput_of(known, line, NOW)
        assert (certain.unreported, sum(certain.seconds.values())) == (0, 450)


def test_the_table_has_progress_and_goodput() -> None:
    summary = read(hyperjob(training=TRAINING, goodput=GOODPUT))
    cells = dict(zip(header(wide=True), row(summary, NOW, wide=True), strict=True))
    assert (cells["PROGRESS"], cells["GOODPUT"]) == ("24%", "73%")
    cells = dict(zip(header(wide=True), row(read(hyperjob()), NOW, wide=True), strict=True))
    assert (cells["PROGRESS"], cells["GOODPUT"]) == ("-", "-")


STEPS = {
    "it is beyond the step": ("step=1000", "Running", {"step": 1200}, True),
    "it is not there yet": ("step=2000", "Running", {"step": 1200}, False),
    "nothing was said": ("step=1", "Running", {}, False),
    "its last lines are still to come": ("step=5", "Completed", {"step": 4, "steps": 5}, False),
}


@pytest.mark.parametrize(("goal", "phase", "training", "held"), STEPS.values(), ids=STEPS)
def test_a_step_is_waited_for(goal: str, phase: str, training: Any, held: bool) -> None:
    assert parse_goal(goal).holds(hyperjob(phase, training=training), "llm") is held


@pytest.mark.parametrize(
    ("phase", "training"),
    [(Phase.FAILED, {"step": 4}), (Phase.COMPLETED, {"step": 4, "steps": 4}), ("Completed", {})],
)
def test_a_step_that_never_comes_is_not_waited_for(phase: str, training: Any) -> None:
    with pytest.raises(NeverError, match="never is at step 5"):
        parse_goal("step=5").holds(hyperjob(phase, training=training), "llm")


def test_a_phase_and_the_pod_for_which_the_others_wait_are_shown() -> None:
    slow = {"cluster": "west", "pod": "llm-trainer-1-worker-0", "part": "0.45", "seconds": "0.9"}
    training = training_of({"training": {**TRAINING, "phase": "evaluate", "straggler": slow}})
    assert training is not None
    assert words(training, NOW).endswith(
        "in phase evaluate, the others wait for pod llm-trainer-1-worker-0 in west 45% of the time,"
        " 0.9 s of each step"
    )
