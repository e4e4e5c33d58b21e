"""The watch of a log: when the next read is due, which checkpoint counts, and which pods report."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from hyperjob_controller.training.watch import Doing, Watch, sources_of, watch
from hyperjob_core.api.lines import LogLine
from hyperjob_core.api.training import SubJobTraining
from hyperjob_engine.model.training import Track, WaitShare
from tests.unit.controller.test_training_reader import T0, source, text
from tests.unit.engine.builders import (
    Object,
    binding,
    hyperjob,
    job,
    job_status,
    observed,
    owner,
    policy,
)
from tests.unit.engine.builders import vcjob_status as reported


def at(second: float) -> datetime:
    return T0 + timedelta(seconds=second)


def track(*seconds: float, **fields: Any) -> Track:
    """Build the progress of a program that made its steps at these seconds."""
    samples = tuple((step, at(second)) for step, second in enumerate(seconds))
    return Track(start_step=0, started=at(seconds[0]), samples=samples, **fields)


def reporting(*seconds: float, **fields: Any) -> Watch:
    return Watch(source=source(), track=track(*seconds), found=True, **fields)


PAUSES: dict[str, tuple[Watch, float, float]] = {
    "the first pod of a search": (Watch(source=source()), 15, 2),
    "the next pod of the same search": (Watch(source=source(), number=1, cycles=9), 15, 2),
    "a search with a short interval": (Watch(source=source(), number=1), 1, 1),
    "the second search": (Watch(source=source(), cycles=1), 15, 3),
    "the third search": (Watch(source=source(), cycles=2), 15, 4.5),
    "the third search with a short interval": (Watch(source=source(), cycles=2), 1, 2.25),
    "progress is known from the status, its pod not yet": (
        Watch(source=source(), track=track(0, 60)),
        15,
        2,
    ),
    "the hundredth search": (Watch(source=source(), cycles=99), 15, 900),
    "a program that loads": (Watch(source=source(), found=True), 15, 5),
    "a program that loads, with a short interval": (Watch(source=source(), found=True), 3, 3),
    "after the first line": (reporting(0), 15, 5),
    "after the first line, with a short interval": (reporting(0), 3, 3),
    "two silent reads after the first line": (reporting(0, silent=2), 15, 20),
    "many silent reads after the first line": (reporting(0, silent=9), 15, 5 * 2**6),
    "two lines a minute apart": (reporting(0, 60), 15, 60),
    "three lines in two minutes": (reporting(0, 20, 120), 15, 60),
    "lines closer than the interval": (reporting(0, 1, 2), 15, 15),
    "lines a long time apart": (reporting(0, 1000), 15, 300),
    "an interval that is longer than all": (reporting(0, 1000), 600, 600),
    "a silent read": (reporting(0, 60, silent=1), 15, 120),
    "many silent reads": (reporting(0, 1, silent=30), 15, 300),
    "many silent reads of a program that has stalled": (
        reporting(0, 1, silent=30, stalled=True, looked=at(600)),
        15,
        15,
    ),
    "a silent read that was the first": (reporting(0, 1, 2, silent=1), 120, 240),
    "a silent read of a program that has announced a phase": (
        replace(reporting(0, looked=at(5), silent=1), track=track(0, 1, 2, phase="evaluate")),
        120,
        240,
    ),
}


@pytest.mark.parametrize(("made", "interval", "seconds"), PAUSES.values(), ids=list(PAUSES))
def test_the_next_read_is_due_after(made: Watch, interval: float, seconds: float) -> None:
    assert made.pause(interval) == pytest.approx(seconds)


# A step each second: the patience is 20 s after the last one, the read a second later.
LOOKS: dict[str, tuple[dict[str, Any], float]] = {
    "the first look at the silence": ({"looked": at(5)}, 18),
    "a look that is overdue": ({"looked": at(60)}, 1),
    "the second look, at one and a half times the patience": (
        {"looked": at(23), "doubted": at(23)},
        10,
    ),
    "the second look, five seconds after the first": ({"looked": at(40), "doubted": at(40)}, 6),
    "a look at a program that does something": ({"looked": at(32), "doubted": at(23)}, 91),
    "a late look at a program that does something": ({"looked": at(200), "doubted": at(150)}, 6),
    "a step was seen while the clock of the node was behind": (
        {"looked": at(5), "fresh": at(4)},
        20,
    ),
}


@pytest.mark.parametrize(("fields", "seconds"), LOOKS.values(), ids=list(LOOKS))
def test_the_look_at_a_silence_comes_before_the_usual_read(
    fields: dict[str, Any], seconds: float
) -> None:
    assert reporting(0, 1, 2, silent=1, **fields).pause(120) == pytest.approx(seconds)


def test_the_checkpoint_of_a_stopping_sub_job_is_the_oldest_that_a_pod_reports() -> None:
    made = reporting(0, 1, 2)
    made.track = track(0, 1, 2, saved_step=8, saved=at(2))
    assert (made.training.saved_step, made.training.saved) == (8, at(2))
    made.saved = {1: (9, at(3)), 2: (7, at(1))}
    assert (made.training.saved_step, made.training.saved) == (7, at(1))
    made.saved = {1: (9, at(3))}
    assert made.training.saved_step == 8, "the reporting pod has an older one"
    made.track = track(0, 1, 2)
    assert made.training.saved_step == 9, "the reporting pod reports none"


@pytest.mark.parametrize(
    ("found", "waits", "share"),
    [(True, (0.5,) * 9, 0.5), (False, (0.5,) * 9, None), (True, (), None)],
)
def test_the_wait_for_others_is_that_of_the_pod_that_reports(
    found: bool, waits: tuple[float, ...], share: float | None
) -> None:
    made = Watch(source=source(), number=2, found=found, track=track(0, 1, waits=waits))
    assert made.wait == (share and WaitShare(source().pod(2)[0], share))
    assert Watch(source=source(), found=True).wait is None


def test_a_stall_is_said_only_of_a_program_that_goes_on() -> None:
    made = reporting(0, 1, 2, stalled=True, fresh=at(9))
    stall = made.stall
    assert (stall.since, stall.step, stall.usual) == (at(9), 2, timedelta(seconds=1))
    assert (stall.attempt, stall.patience) == (0, timedelta(seconds=20))
    for quiet in (
        replace(made, stalled=False),
        replace(made, track=None),
        replace(made, source=source(leaving=True)),
        replace(made, source=source(ended=True)),
    ):
        assert quiet.stall is None


@pytest.mark.parametrize(
    ("pods", "reporting", "followed", "searched"),
    [
        (1, None, [0], []),
        (3, 1, [0, 1, 2], []),
        (40, None, range(16), range(16, 40)),
        (40, 37, [*range(16), 37], []),
        (1000, None, range(16), range(16, 256)),
    ],
)
def test_sixteen_pods_are_followed_to_their_end_and_the_one_that_reports(
    pods: int, reporting: int | None, followed: Sequence[int], searched: Sequence[int]
) -> None:
    made = Watch(source=source(pods=pods), number=reporting or 0, found=reporting is not None)
    assert made.peers() == ([*followed], [*searched])


def test_the_first_pod_of_a_stopping_sub_job_that_reports_has_its_progress() -> None:
    made = Watch(source=source(pods=3))

    def hears(number: int, log: bytes) -> bool:
        return made.hear(number, [LogLine.of(log.rstrip())], now=at(9))

    assert not hears(0, text(1))
    assert hears(2, text(2, 4, ', "saved": 4'))
    assert not hears(1, text(3, 9, ', "saved": 3'))
    assert (made.number, made.training.step, made.training.saved_step) == (2, 4, 3)


def test_a_watch_from_the_status_goes_on_with_its_progress() -> None:
    recorded = SubJobTraining(
        step=7, updated=at(60), start_step=3, started=at(10), saved_step=5, saved=at(40)
    )
    made = watch(source(recorded=recorded))
    assert made.track == Track(
        start_step=3, started=at(10), samples=((7, at(60)),), saved_step=5, saved=at(40)
    )
    assert made.position.since == {"sinceTime": "2026-01-02T03:05:05Z"}
    assert not made.found
    assert not made.following
    assert replace(made, doing=Doing.FOLLOWING).following


RECORDED = {
    "uid": "uid-hj-trainer-0",
    "attempt": 1,
    "step": 7,
    "updateTime": "2026-01-02T03:04:00Z",
    "startTime": "2026-01-02T03:03:00Z",
}


def entry(**fields: Any) -> Object:
    known = job_status(0, cluster="recorded")
    return {"jobs": [{**known, **fields}]}


PLACES: dict[str, tuple[list[Object], list[str]]] = {
    "the cluster of its ResourceBinding": (
        [job(phase="Running"), binding(cluster="bound")],
        ["bound"],
    ),
    "the cluster of its policy": ([job(phase="Running"), policy(cluster="pinned")], ["pinned"]),
    "the recorded cluster": ([job(phase="Running")], ["recorded"]),
    "none, of the vcjob of another HyperJob": (
        [job(phase="Running", owners=owner("other"), marked={})],
        [],
    ),
}


@pytest.mark.parametrize(("objects", "clusters"), PLACES.values(), ids=list(PLACES))
def test_the_log_of_a_sub_job_is_read_in(objects: list[Object], clusters: list[str]) -> None:
    found = sources_of(observed(hyperjob(status=entry()), *objects))
    assert [each.cluster for each in found] == clusters


def test_a_source_has_the_times_of_its_vcjob_and_no_progress_of_an_earlier_one() -> None:
    status = entry(attempt=1, training=RECORDED)
    live = job(phase="Running")
    live["metadata"]["labels"]["training.volcano.sh/attempt"] = "1"
    live["metadata"]["creationTimestamp"] = "2026-01-02T03:02:00Z"
    running = reported("Running", since="2026-01-02T03:02:30Z")
    seen = observed(hyperjob(status=status), live, binding(cluster="a", status=running))
    (found,) = sources_of(seen)
    assert (found.uid, found.attempt, found.namespace) == ("uid-hj-trainer-0", 1, "default")
    assert (found.created, found.since) == (at(-125), at(-95))
    assert (found.leaving, found.ended, found.deleted) == (False, False, False)
    assert found.recorded.step == 7
    live["metadata"]["uid"] = "a-later-one"
    (found,) = sources_of(observed(hyperjob(status=status), live))
    assert found.recorded is None


STOP = {
    "cause": "Restarted",
    "since": "2026-01-02T03:04:00Z",
    "until": "2026-01-02T03:09:00Z",
    "jobs": ["hj-trainer-0"],
}
ENDED: dict[str, tuple[Object, tuple[str, int, str] | None]] = {
    "suspended": ({"attempt": 1}, ("recorded", 1, "uid-hj-trainer-0")),
    "of another attempt than its progress": ({"attempt": 2}, ("recorded", 2, "")),
    "restarted": (
        {"cluster": "", "attempt": 2, "history": [{"attempt": 1, "cluster": "c"}]},
        ("c", 1, "uid-hj-trainer-0"),
    ),
    "of no known cluster": ({"cluster": "", "attempt": 3}, None),
    "removed from the spec": ({"replicatedJob": "gone"}, None),
}


@pytest.mark.parametrize(("fields", "place"), ENDED.values(), ids=list(ENDED))
def test_a_stopped_sub_job_without_its_vcjob_is_read_where_it_ran_with_the_progress_of_its_attempt(
    fields: Object, place: tuple[str, int, str] | None
) -> None:
    status = entry(**fields, training=RECORDED)
    found = list(sources_of(observed(hyperjob(status={**status, "stop": STOP}))))
    assert [(each.cluster, each.attempt, each.uid) for each in found] == ([place] if place else [])
    for each in found:
        assert (each.leaving, each.deleted, each.recorded is not None) == (
            True,
            True,
            bool(each.uid),
        )
        assert (each.namespace, each.pod(0)[0].name) == ("default", "hj-trainer-0-worker-0")
    assert not list(sources_of(observed(hyperjob(status=status)))), "nothing stops it"
