"""What the time of a HyperJob went to: told by phases and progress lines, in stories."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.choices import TimeUse
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.training import SubJobTraining
from hyperjob_engine.reasons.reason import Reason
from hyperjob_engine.status.goodput import (
    GoodputAccount,
    Moment,
    OpenStop,
    account_object,
    advance,
    begin,
    finish,
    parse_account,
    ratio,
)

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FAILURE, PLANNED = TimeUse.LOST_TO_FAILURES, TimeUse.LOST_TO_PLANNED_STOPS


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


@dataclass(frozen=True)
class Look:
    """The phase at a second, and what the program has said until then."""

    second: float
    phase: Phase
    work: SubJobTraining | None = None
    reason: str = ""
    by: TimeUse | None = None
    share: float = 0.0
    stalled: float | None = None
    announced: bool = False
    size: str = ""


def work(start: tuple[int, float], last: tuple[int, float], saved: tuple[int, float] | None = None):
    return SubJobTraining(
        start_step=start[0], started=at(start[1]), step=last[0], updated=at(last[1]),
        saved_step=saved and saved[0], saved=saved and at(saved[1]),
    )  # fmt: skip


def play(looks: Sequence[Look], steps: int | None = None) -> GoodputAccount:
    """Take an account through looks, by way of the wire each time."""
    account: GoodputAccount | None = None
    before: SubJobTraining | None = None
    stalled: datetime | None = None
    for look in looks:
        moment = Moment(
            now=at(look.second), created=T0, phase=look.phase, reason=look.reason,
            share=look.share, stopped_by=look.by, before=before, work=look.work or before,
            steps=steps, announced=look.announced,
            stalled=None if look.stalled is None else at(look.stalled),
            was_stalled=stalled,
        )  # fmt: skip
        stalled = moment.stalled
        account = advance(account or begin(moment, look.size), moment)
        account = account.with_size(look.size, moment.now)
        told = account_object(account, now=moment.now)
        assert parse_account(told, look.size) == account
        assert advance(account, replace(moment, before=moment.work, stopped_by=None)) == account
        before = moment.work
    return account


def seconds(account: GoodputAccount) -> dict[str, float]:
    return {str(use): number / 1000 for use, number in account.spent.items()}


START, RUN, AGAIN = Phase.STARTING, Phase.RUNNING, Phase.RESTARTING
QUEUED, DONE, BROKEN = Phase.QUEUED, Phase.COMPLETED, Phase.FAILED
DEGRADED, SUSPENDED = Phase.DEGRADED, Phase.SUSPENDED

STORIES: dict[str, tuple[list[Look], dict[str, float]]] = {
    "it waits, starts and completes, and never says a word": (
        [Look(0, QUEUED), Look(5, START), Look(15, RUN), Look(115, DONE)],
        {"waitingForQueue": 5, "starting": 10, "productive": 100},
    ),
    "it waits for room": (
        [Look(0, Phase.PENDING, reason=Reason.INSUFFICIENT_CAPACITY), Look(9, RUN), Look(10, DONE)],
        {"waitingForCapacity": 9, "productive": 1},
    ),
    "its program takes ten seconds to load": (
        [Look(0, START), Look(10, RUN), Look(25, RUN, work((0, 20), (5, 25))), Look(120, DONE)],
        {"starting": 20, "productive": 100},
    ),
    "its first line is read before all sub-jobs are reported to run": (
        [Look(0, START), Look(12, START, work((0, 10), (2, 12))), Look(20, RUN), Look(110, DONE)],
        {"starting": 10, "productive": 100},
    ),
    "without a word all of an attempt that failed is lost": (
        [
            Look(0, START),
            Look(10, RUN),
            Look(60, AGAIN),
            Look(70, START),
            Look(80, RUN),
            Look(90, DONE),
        ],
        {"starting": 20, "productive": 10, "lostToFailures": 60},
    ),
    "after a failure it goes on from its checkpoint": (
        [
            Look(0, START),
            Look(10, RUN, work((0, 10), (0, 10))),
            Look(70, RUN, work((0, 10), (60, 70), (50, 60))),
            Look(75, AGAIN),
            Look(80, START),
            Look(85, RUN),
            Look(95, RUN, work((50, 90), (55, 95), (50, 90))),
            Look(140, DONE),
        ],
        # ten steps and the five seconds until it was noticed, five of standing still
        {"starting": 20, "productive": 100, "lostToFailures": 20},
    ),
    "it saved when it was told to stop, which is read later": (
        [
            Look(0, START),
            Look(10, RUN, work((0, 10), (0, 10))),
            Look(70, SUSPENDED, work((0, 10), (60, 70), (30, 40))),
            Look(72, SUSPENDED, work((0, 10), (60, 70), (60, 70))),
            Look(170, START),
            Look(180, RUN),
            Look(190, RUN, work((60, 190), (60, 190), (60, 190))),
            Look(230, DONE),
        ],
        {"starting": 30, "productive": 100, "suspended": 100},
    ),
    "it resumes further on than its checkpoint was known to be": (
        [
            Look(0, START),
            Look(10, RUN, work((0, 10), (0, 10))),
            Look(60, RUN, work((0, 10), (50, 60), (20, 30))),
            Look(70, AGAIN, by=PLANNED),
            Look(80, RUN),
            Look(91, RUN, work((55, 90), (56, 91))),
            Look(100, DONE),
        ],
        {"starting": 20, "productive": 65, "lostToPlannedStops": 15},
    ),
    "it resumes before the checkpoint it told of": (
        [
            Look(0, START),
            Look(10, RUN, work((0, 10), (50, 60), (50, 60))),
            Look(60, AGAIN),
            Look(80, RUN, work((40, 80), (40, 80))),
            Look(100, DONE),
        ],
        {"starting": 10, "productive": 60, "lostToFailures": 30},
    ),
    "its program begins again by itself": (
        [
            Look(0, START),
            Look(10, RUN, work((0, 10), (0, 10))),
            Look(70, RUN, work((0, 10), (60, 70), (40, 50))),
            Look(90, RUN, work((40, 80), (50, 90), (40, 80))),
            Look(100, DONE),
        ],
        {"starting": 10, "productive": 60, "lostToFailures": 30},
    ),
    "it stops twice before it says a word": (
        [
            Look(0, RUN, work((0, 0), (100, 100), (100, 100))),
            Look(100, AGAIN),
            Look(110, RUN),
            Look(120, AGAIN),
            Look(130, RUN),
            Look(140, RUN, work((100, 140), (100, 140))),
            Look(150, DONE),
        ],
        {"starting": 20, "productive": 110, "lostToFailures": 20},
    ),
    "three of five sub-jobs go on training": (
        [
            Look(0, RUN, work((0, 0), (0, 0))),
            Look(30, DEGRADED, work((0, 0), (30, 30)), share=0.6),
            Look(60, RUN, work((0, 0), (50, 60))),
            Look(70, DONE),
        ],
        {"productive": 58, "degraded": 12},
    ),
    "the sub-job that had started first is lost, and the others train on": (
        [
            Look(0, RUN, work((0, 0), (0, 0))),
            Look(30, DEGRADED, work((0, 0), (30, 30)), share=0.6),
            Look(32, DEGRADED, work((20, 20), (28, 29)), share=0.6),  # others told less so far
            Look(60, RUN, work((20, 20), (50, 60))),
            Look(70, DONE),
        ],
        {"productive": 58, "degraded": 12},
    ),
    "the sub-job that tells most began while a part trained": (
        [
            Look(0, RUN, work((0, 0), (0, 0))),
            Look(30, DEGRADED, work((0, 0), (30, 30)), share=0.6),
            Look(50, DEGRADED, work((0, 0), (42, 50)), share=0.6),
            Look(60, RUN, work((36, 40), (50, 60))),
            Look(70, DONE),
        ],
        {"productive": 58, "degraded": 12},
    ),
    "the line of a run is read after the restart": (
        [Look(0, RUN), Look(10, AGAIN), Look(20, RUN, work((0, 0), (9, 9))), Look(100, DONE)],
        {"productive": 80, "lostToFailures": 20},
    ),
    "it is suspended, and has not saved its last steps": (
        [
            Look(0, RUN, work((0, 0), (0, 0))),
            Look(30, RUN, work((0, 0), (30, 30), (20, 20))),
            Look(30, SUSPENDED),
            Look(40, BROKEN),
        ],
        {"productive": 20, "lostToPlannedStops": 10, "suspended": 10},
    ),
    "too few train for a while, and then go on": (
        [
            Look(0, RUN, work((0, 0), (0, 0))),
            Look(30, DEGRADED, work((0, 0), (30, 30))),
            Look(60, RUN),
            Look(65, RUN, work((0, 0), (35, 65))),
            Look(70, DONE),
        ],
        {"productive": 40, "degraded": 30},
    ),
    "none goes on training while one is lost": (
        [
            Look(0, RUN, work((0, 0), (0, 0))),
            Look(30, DEGRADED, work((0, 0), (30, 30), (20, 20))),
            Look(60, AGAIN),
            Look(70, RUN),
            Look(75, RUN, work((20, 75), (20, 75), (20, 75))),
            Look(85, DONE),
        ],
        {"starting": 5, "productive": 30, "degraded": 30, "lostToFailures": 20},
    ),
    "it is suspended while it loads again, makes one more step, and saves it": (
        [
            Look(0, RUN, work((0, 0), (0, 0))),
            Look(30, RUN, work((0, 0), (30, 30), (20, 20))),
            Look(30, AGAIN),
            Look(35, START),
            Look(40, SUSPENDED),
            Look(50, SUSPENDED, work((20, 45), (21, 46), (21, 46))),
            Look(60, START),
            Look(64, RUN),
            Look(80, RUN, work((21, 70), (31, 80))),
            Look(150, DONE, work((21, 70), (101, 150))),
        ],
        {"productive": 100, "lostToFailures": 15, "suspended": 20, "starting": 15},
    ),
    "it fails for good": (
        [Look(0, RUN, work((0, 0), (30, 30), (20, 20))), Look(40, BROKEN)],
        {"productive": 20, "lostToFailures": 20},
    ),
    "a part trained on, and then all of it began again from the first step": (
        [
            Look(0, RUN, work((0, 0), (0, 0))),
            Look(10, DEGRADED, work((0, 0), (10, 10), (10, 10)), share=0.5),
            Look(110, AGAIN, work((0, 0), (110, 110), (110, 110))),
            Look(120, RUN, work((0, 120), (1, 121))),
            Look(130, DONE),
        ],
        {"productive": 10, "degraded": 50, "lostToFailures": 70},
    ),
    "work of before a part was lost is lost with it": (
        [
            Look(0, RUN, work((0, 0), (0, 0))),
            Look(30, DEGRADED, work((0, 0), (30, 30), (10, 10)), share=0.5),
            Look(50, AGAIN),
            Look(50, BROKEN),
        ],
        {"productive": 10, "lostToFailures": 30, "degraded": 10},
    ),
}


@pytest.mark.parametrize(("looks", "wanted"), STORIES.values(), ids=STORIES)
def test_every_second_is_told_of(looks: list[Look], wanted: dict[str, float]) -> None:
    account = play(looks)
    found = seconds(account)
    assert found == pytest.approx(wanted)
    assert sum(found.values()) == pytest.approx(looks[-1].second)


def test_the_ratio_leaves_out_what_was_suspended() -> None:
    account = GoodputAccount(
        since=at(100),
        state=TimeUse.PRODUCTIVE,
        spent={TimeUse.SUSPENDED: 50_000, TimeUse.STARTING: 10_000, TimeUse.PRODUCTIVE: 40_000},
    )
    assert ratio(account, at(100)) == pytest.approx(0.8)
    assert ratio(account, at(150)) == pytest.approx(0.9)
    assert ratio(GoodputAccount(since=T0, state=TimeUse.STARTING), T0) == 0


def test_what_is_wrong_in_an_account_reads_as_absent() -> None:
    raw = {
        "since": "2026-01-02T03:04:05Z",
        "milliseconds": {"productive": -4, "starting": "7", "other": 3, "degraded": 8},
        "share": "much",
        "stopped": {"time": "then", "cause": "productive"},
    }
    assert parse_account(raw) == GoodputAccount(since=T0, state=None, spent={TimeUse.DEGRADED: 8})
    assert parse_account(raw | {"state": "asleep"}) is None, "what it did since then is not known"


PHASES = st.sampled_from([phase for phase in Phase if not phase.is_terminal])
STEPS = st.integers(0, 1000)


@st.composite
def histories(draw: st.DrawFn) -> list[Look]:
    looks: list[Look] = []
    moment = 0.0
    said: SubJobTraining | None = None
    for _ in range(draw(st.integers(1, 12))):
        moment += draw(st.integers(0, 100))
        if draw(st.booleans()):
            times = sorted(draw(st.integers(-20, int(moment))) for _ in range(3))
            first, kept, last = sorted(draw(STEPS) for _ in range(3))
            saved = (kept, times[1]) if draw(st.booleans()) else None
            said = work((first, times[0]), (last, times[2]), saved)
        by = draw(st.sampled_from([None, FAILURE, PLANNED]))
        share = draw(st.sampled_from([0.0, 0.5]))
        size = draw(st.sampled_from(["t=1", "t=2", "t=3"]))
        looks.append(Look(moment, draw(PHASES), said, by=by, share=share, size=size))
    return [*looks, Look(moment + 1, draw(st.sampled_from([DONE, BROKEN])), said, size=size)]


@given(histories())
def test_whatever_happens_every_millisecond_is_counted_once(looks: list[Look]) -> None:
    account = play(looks, steps=500)
    assert all(number >= 0 for number in account.spent.values())
    assert sum(account.spent.values()) == pytest.approx(looks[-1].second * 1000, abs=20)
    assert 0 <= ratio(account, at(1e6)) <= 1
    assert sum(account.by_size.values()) == account.spent.get(TimeUse.PRODUCTIVE, 0)
    assert all(number > 0 for number in account.by_size.values())


@pytest.mark.parametrize(
    ("state", "share", "trains"),
    [
        (TimeUse.PRODUCTIVE, 0.0, True),
        (TimeUse.DEGRADED, 0.0, False),
        (TimeUse.DEGRADED, 0.5, True),
        (TimeUse.BLOCKED, 0.5, False),
    ],
)
def test_steps_are_made_while_any_sub_job_trains(
    state: TimeUse, share: float, trains: bool
) -> None:
    assert GoodputAccount(since=T0, state=state, share=share).trains is trains


def test_what_a_stop_loses_counts_at_the_size_that_had_made_it() -> None:
    """A larger size starts after a stop; its first line says where it goes on."""
    small, large = work((0, 0), (90, 90), (50, 50)), work((70, 120), (80, 130))
    looks = [
        Look(0, Phase.RUNNING, work((0, 0), (1, 1)), size="trainer=1"),
        Look(90, Phase.RUNNING, small, size="trainer=1"),
        Look(100, Phase.RESTARTING, small, by=PLANNED, size="trainer=2"),
    ]
    assert play(looks).by_size == {"trainer=1": 50_000}
    looks.append(Look(130, Phase.RUNNING, large, size="trainer=2"))
    assert play(looks).by_size == {"trainer=1": 70_000, "trainer=2": 10_000}
    others_train_on = [*looks, Look(150, Phase.RUNNING, large, size="trainer=3")]
    assert play(others_train_on).by_size == {"trainer=1": 70_000, "trainer=2": 30_000}


def test_what_is_heard_after_the_end_changes_nothing() -> None:
    """A HyperJob may fail while a stop is open, and a last line of it be read afterwards."""
    before = SubJobTraining(step=5, updated=T0, start_step=0, started=T0 - timedelta(seconds=9))
    stop = OpenStop(time=T0, since=T0, kept_until=T0, cause=TimeUse.LOST_TO_FAILURES, work=before)
    spent = {TimeUse.PRODUCTIVE: 9000}
    ended = GoodputAccount(since=T0, state=None, spent=spent, stop=stop)
    later = Moment(
        now=T0 + timedelta(seconds=60),
        created=T0,
        phase=Phase.FAILED,
        reason="",
        before=before,
        work=replace(before, step=9, updated=T0 + timedelta(seconds=5)),
    )
    assert advance(ended, later) is ended


def test_only_the_account_of_a_hyperjob_that_has_ended_is_finished_and_once() -> None:
    done = SubJobTraining(step=9, updated=T0 - timedelta(seconds=4), start_step=0, started=T0)
    spent = {TimeUse.PRODUCTIVE: 9000}
    runs = GoodputAccount(since=T0, state=TimeUse.PRODUCTIVE, spent=spent)
    assert finish(runs, done, 9) is runs
    ended = replace(runs, state=None)
    assert finish(ended, None, 9) is ended
    assert finish(ended, done, None) is ended
    assert finish(ended, done, 10) is ended
    finished = finish(ended, done, 9)
    assert finished.spent == {TimeUse.PRODUCTIVE: 5000, TimeUse.FINISHING: 4000}
    assert finish(finished, done, 9) is finished
    assert finish(ended, done, 8).spent == finished.spent
