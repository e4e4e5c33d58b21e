"""The wall: which HyperJobs an exception sets aside, what it wakes, logs and distrusts."""

import asyncio
import logging
from collections.abc import Callable
from itertools import pairwise

import pytest

from hyperjob_controller import wall as module
from hyperjob_controller.wall import Wall
from hyperjob_controller.watchdog import Place
from hyperjob_core.kube.informer import RestoredError
from hyperjob_core.virtualtime import run
from tests.unit.engine.builders import NOW, Object

A, B = "default/a", "default/b"


class NodesError(Exception):
    """An exception of placement by nodes."""


class Surroundings:
    """HyperJobs a and b, and what the wall asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "is_of_nodes", lambda error: isinstance(error, NodesError))
        self.objects: dict[str, Object] = {A: {}, B: {}}
        self.woken: list[str] = []
        self.aside: list[str] = []
        self.distrusted = 0
        self.fails_aside = False
        self.wall = Wall(
            self.objects.get,
            now=lambda: NOW,
            wake=self.woken.append,
            set_aside=self._set_aside,
            distrust=self._distrust,
        )

    def _set_aside(self, key: str) -> None:
        self.aside.append(key)
        if self.fails_aside:
            raise KeyError("another")

    def _distrust(self) -> None:
        self.distrusted += 1


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    return Surroundings(monkeypatch)


@pytest.mark.parametrize(
    ("place", "aside", "woken"),
    [
        (Place.RECONCILE, [A], []),
        (Place.EVENT, [A], [A]),
        (Place.ROUND, [], [A]),
        (Place.FORECAST, [A], [A]),
    ],
)
def test_a_failing_hyperjob_is_set_aside_and_has_a_pass_for_its_status(
    around: Surroundings, place: Place, aside: list[str], woken: list[str]
) -> None:
    incident = around.wall.caught(A, ValueError("x"), place)
    assert (around.aside, around.woken) == (aside, woken)
    assert around.wall.holds(A)
    assert around.wall.incident(A) == incident
    assert not around.wall.holds(B)
    around.wall.forget(A)
    assert not around.wall.holds(A)


def test_the_incident_of_a_second_exception_is_the_one_that_is_returned(
    around: Surroundings,
) -> None:
    around.fails_aside = True
    incident = around.wall.caught(A, ValueError("x"), Place.EVENT)
    assert around.wall.incident(A) == incident
    assert around.woken == [A]


@pytest.mark.parametrize("known", [[A], [A, B], []])
def test_a_block_sets_its_existing_hyperjobs_aside(
    around: Surroundings, known: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    for key in {A, B} - set(known):
        del around.objects[key]
    with around.wall.around((A, B), Place.EVENT):
        int("no number")
    assert around.aside == known
    words = "has set it aside" if known else "A part of the controller failed"
    assert [words in each.message for each in caplog.records] == [True] * max(1, len(known))


def test_placement_by_nodes_is_distrusted_after_two_hyperjobs_or_a_failure_of_none(
    around: Surroundings,
) -> None:
    around.wall.caught(A, ValueError(), Place.RECONCILE)
    around.wall.caught(B, ValueError(), Place.RECONCILE)
    around.wall.caught(A, NodesError(), Place.RECONCILE)
    around.wall.caught(A, NodesError(), Place.RECONCILE)
    assert around.distrusted == 0, "one HyperJob alone"
    around.wall.caught(B, NodesError(), Place.RECONCILE)
    assert around.distrusted == 1
    around.wall.caught(B, NodesError(), Place.RECONCILE)
    assert around.distrusted == 1, "it counts anew"
    around.wall.failed(Place.FORECAST, NodesError())
    assert around.distrusted == 2


def test_the_first_and_each_hundredth_of_equal_exceptions_are_logged(
    around: Surroundings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    for _ in range(200):
        around.wall.failed(Place.MEMBERS, ValueError("x"))
    assert [each.times for each in caplog.records] == [1, 100, 200]  # type: ignore[attr-defined]
    around.wall.failed(Place.CAUSES, ValueError("x"))
    assert len(caplog.records) == 4, "of another place"


def test_no_more_than_a_thousand_kinds_of_exceptions_are_remembered(
    around: Surroundings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "number_of", lambda _place, error: str(error))
    for number in range(1000):
        around.wall.failed(Place.MEMBERS, ValueError(number))
    caplog.clear()
    around.wall.failed(Place.MEMBERS, ValueError(0))
    assert caplog.records == [], "it is known"
    around.wall.failed(Place.MEMBERS, ValueError(1000))
    around.wall.failed(Place.MEMBERS, ValueError(0))
    assert len(caplog.records) == 2, "all were forgotten"


def times_of(around: Surroundings, work: Callable[[int], float | None], runs: int) -> list[float]:
    """Return when the task began; `work` gets the number of the run: seconds to its failure."""
    times: list[float] = []

    async def task() -> None:
        times.append(asyncio.get_running_loop().time())
        lasted = work(len(times)) if len(times) < runs else None
        if lasted is None:
            return
        await asyncio.sleep(lasted)
        raise ValueError("x")

    run(around.wall.keep(Place.MEMBERS, task))
    return times


def test_a_task_runs_again_after_pauses_that_double_up_to_a_minute(around: Surroundings) -> None:
    times = times_of(around, lambda _: 0.0, 9)
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60])


def test_the_pauses_begin_anew_after_a_run_that_lasted(around: Surroundings) -> None:
    lengths = {1: 0.0, 2: 0.0, 3: 61.0, 4: 60.0, 5: 0.0}
    times = times_of(around, lambda number: lengths[number], 6)
    ends = [time + lengths[number] for number, time in enumerate(times[:-1], start=1)]
    pauses = [after - end for end, after in zip(ends, times[1:], strict=True)]
    assert pauses == pytest.approx([1, 2, 1, 2, 4])


def test_a_restored_api_server_ends_the_process(around: Surroundings) -> None:
    async def restored() -> None:
        raise RestoredError("x")

    with pytest.raises(RestoredError):
        run(around.wall.keep(Place.MEMBERS, restored))
