"""A vcjob that follows one of the same name is remembered, for as long as it matters."""

from datetime import datetime, timedelta

import pytest

from hyperjob_controller.memory import WINDOW, Tombstones
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType
from tests.support.feeds import Feed
from tests.unit.engine.builders import NOW


class Clock:
    time = NOW

    def __call__(self) -> datetime:
        return self.time


def vcjob(uid: str, name: str = "hj-trainer-0") -> Object:
    return {"metadata": {"namespace": "ml", "name": name, "uid": uid}}


@pytest.mark.parametrize(
    ("name", "later", "expected"),
    [
        ("hj-trainer-0", timedelta(), True),
        ("hj-trainer-0", WINDOW, True),
        ("hj-trainer-0", WINDOW + timedelta(seconds=1), False),
        ("hj-trainer-1", timedelta(), False),
    ],
)
def test_who_follows(name: str, later: timedelta, expected: bool) -> None:
    clock = Clock()
    tombstones = Tombstones(Feed(), now=clock)  # type: ignore[arg-type]
    tombstones._changed(EventType.ADDED, None, vcjob("old"))
    assert not tombstones.is_follower("old")
    tombstones._changed(EventType.DELETED, vcjob("old"), None)
    clock.time += later
    tombstones._changed(EventType.ADDED, None, vcjob("new", name))
    assert tombstones.is_follower("new") is expected


def test_one_that_could_not_be_applied_may_follow_a_strangers() -> None:
    tombstones = Tombstones(Feed(), now=Clock())  # type: ignore[arg-type]
    tombstones._changed(EventType.ADDED, None, vcjob("new"))
    tombstones.not_applied("new")
    assert tombstones.is_follower("new")
    tombstones._changed(EventType.DELETED, vcjob("new"), None)
    assert not tombstones.is_follower("new")


def test_what_has_gone_is_forgotten_in_time() -> None:
    clock = Clock()
    tombstones = Tombstones(Feed(), now=clock)  # type: ignore[arg-type]
    for number in range(100):
        clock.time += timedelta(minutes=1)
        for uid in (f"{number}-old", f"{number}-new"):
            tombstones._changed(EventType.ADDED, None, vcjob(uid, f"hj-{number}"))
            assert tombstones.is_follower(uid) is uid.endswith("new")
            tombstones._changed(EventType.DELETED, vcjob(uid, f"hj-{number}"), None)
            assert not tombstones.is_follower(uid)
    assert len(tombstones._gone) <= WINDOW / timedelta(minutes=1) + 1
    assert not tombstones._followers
