"""Volcano Global's account as the controller follows it: what is overdue, and what is forgotten."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_controller.admission.releases import Releases
from hyperjob_controller.caches import Caches
from hyperjob_core.api.quantity import NANO
from hyperjob_core.kube.client import EventType, WatchEvent
from hyperjob_core.kube.informer import Informer
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.planned import ReleaseScheduling
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import GPU, NOW, binding, hyperjob, job, observed, policy
from tests.unit.engine.plans import FULL
from tests.unit.queueing.queueworld import queue

Object = dict[str, Any]
QUEUES = (queue("default", gpus=32),)


class Followed:
    """What the API server says of bindings, and the account of it."""

    def __init__(self) -> None:
        self.caches = Caches(None)  # type: ignore[arg-type]  # no call is made
        self.releases = Releases(self.caches, changed=lambda: None)
        self.releases.switch(on=True)
        self.version = 0

    def tell(self, informer: Informer, obj: Object, *, deleted: bool = False) -> None:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        kind = EventType.DELETED if deleted else EventType.MODIFIED
        informer._take(WatchEvent(kind, obj))

    def bound(self, name: str, *, waits: bool, gpus: int = 8) -> None:
        """Have a vcjob, and its binding that Volcano Global has released or not."""
        if self.caches.jobs.get(f"default/{name}") is None:
            self.tell(self.caches.jobs, job(name))
        found = binding(name, suspension={"scheduling": waits}, requests={GPU: str(gpus)})
        found["spec"]["replicas"] = 1
        self.tell(self.caches.bindings, found)

    def look(self, seconds: float) -> set[str]:
        return self.releases.look(QUEUES, now=NOW + timedelta(seconds=seconds))

    def is_unanswered(self, name: str, seconds: float) -> bool:
        now = NOW + timedelta(seconds=seconds)
        return self.releases.unanswered(f"default/{name}", now=now)

    def is_forgotten(self, name: str, seconds: float) -> bool:
        now = NOW + timedelta(seconds=seconds)
        return self.releases.forgotten(f"default/{name}", now=now)


def test_what_becomes_overdue_between_two_looks_is_looked_at_at_once() -> None:
    """A round takes time: what is due when it ends must not wait for the next event."""
    followed = Followed()
    followed.bound("a", waits=True)
    followed.look(0)
    assert followed.releases.next_change(now=NOW + timedelta(seconds=10)) == timedelta(seconds=20)
    assert followed.look(29.9) == set()
    late = NOW + timedelta(seconds=30.1)
    assert followed.releases.next_change(now=late) == timedelta()
    assert followed.look(30.1) == {"default/hj"}
    assert followed.releases.next_change(now=late) is None


def test_what_is_left_out_while_others_are_released_is_forgotten() -> None:
    followed = Followed()
    followed.bound("a", waits=True)
    followed.look(0)
    followed.bound("b", waits=True)
    followed.look(9)
    followed.bound("b", waits=False)
    followed.look(10)
    assert not followed.is_forgotten("a", 29), "it has 30 seconds"
    assert followed.look(31) == {"default/hj"}
    assert followed.is_forgotten("a", 31)
    followed.bound("a", waits=False)
    followed.look(32)
    assert not followed.is_forgotten("a", 90)


def test_bindings_that_come_or_change_and_wait_on_release_nothing() -> None:
    followed = Followed()
    followed.bound("a", waits=True)
    followed.look(0)
    followed.bound("b", waits=True)
    followed.bound("a", waits=True, gpus=4)
    followed.look(10)
    followed.bound("c", waits=False)
    followed.look(31)
    assert followed.is_unanswered("a", 31)
    assert not followed.is_forgotten("a", 31), "the dispatcher released nothing since"


def test_what_is_due_for_a_moment_only_is_not_forgotten() -> None:
    followed = Followed()
    followed.bound("a", waits=True)
    followed.bound("b", waits=True)
    followed.look(0)
    followed.bound("b", waits=False)
    followed.look(1)
    followed.look(40)
    assert followed.is_unanswered("a", 40)
    assert not followed.is_forgotten("a", 40), "one cycle releases one after the other"


def test_what_had_no_quota_while_others_were_released_is_not_forgotten() -> None:
    followed = Followed()
    followed.bound("a", waits=True, gpus=24)
    followed.bound("on", waits=False, gpus=16)
    followed.look(0)
    followed.bound("b", waits=True)
    followed.look(10)
    followed.bound("b", waits=False)
    followed.look(40)
    followed.tell(followed.caches.bindings, binding("on"), deleted=True)
    followed.look(41)
    followed.look(72)
    assert followed.is_unanswered("a", 72)
    assert not followed.is_forgotten("a", 72), "it had no quota when b was released"


def test_a_forgotten_binding_is_released_and_its_gate_stays() -> None:
    held = binding(gate="held", suspension={"scheduling": True, "dispatching": True})
    seen = observed(
        hyperjob(),
        *(job(), policy(suspended=True), held),
        clusters=FULL,
        admission=QueueAdmission.VOLCANO_GLOBAL,
    )

    def released(**fields: Any) -> list[ReleaseScheduling]:
        made = plan(replace(seen, **fields))
        return [action for action in made.actions if isinstance(action, ReleaseScheduling)]

    assert released() == []
    assert [each.binding for each in released(forgotten=frozenset({"hj-trainer-0"}))] == [
        "hj-trainer-0-job"
    ]


def test_no_binding_is_followed_while_another_confirms_gangs() -> None:
    followed = Followed()
    told: list[str] = []
    followed.releases = Releases(followed.caches, changed=lambda: told.append("changed"))
    followed.bound("a", waits=True)
    followed.bound("a", waits=False)
    assert told == []
    assert followed.releases.others(lambda _job: False) == {}
    followed.releases.switch(on=True)
    assert followed.releases.others(lambda _job: False) == {"default": {GPU: 8 * NANO}}
    followed.releases.switch(on=False)
    assert followed.releases.others(lambda _job: False) == {}


@pytest.mark.parametrize("first", ["binding", "vcjob"])
def test_a_vcjob_of_no_hyperjob_counts_whichever_of_it_and_its_binding_comes_first(
    first: str,
) -> None:
    followed = Followed()
    stranger = job("stranger", marked={}, owners=[])
    found = binding("stranger", suspension={"scheduling": False}, requests={GPU: "8"})
    found["spec"]["replicas"] = 1
    arrivals = [(followed.caches.bindings, found), (followed.caches.other_jobs, stranger)]
    for informer, obj in arrivals if first == "binding" else arrivals[::-1]:
        followed.tell(informer, obj)
    assert followed.releases.others(lambda _job: False) == {"default": {GPU: 8 * NANO}}


def test_only_what_changes_the_account_asks_for_a_look() -> None:
    followed = Followed()
    told: list[str] = []
    followed.releases = Releases(followed.caches, changed=lambda: told.append("changed"))
    followed.releases.switch(on=True)
    told.clear()
    followed.bound("a", waits=True)
    assert told
    told.clear()
    followed.bound("a", waits=True)
    assert told == [], "the same again"
    followed.bound("a", waits=False)
    assert told


def test_what_has_no_quota_is_passed_over_after_five_seconds_and_counts_anew_with_quota() -> None:
    followed = Followed()
    followed.bound("a", waits=True, gpus=32)
    followed.bound("on", waits=False, gpus=8)

    def states(name: str, seconds: float) -> tuple[bool, bool]:
        key, now = f"default/{name}", NOW + timedelta(seconds=seconds)
        found = followed.releases
        return found.passed_over(key, now=now), found.unanswered(key, now=now)

    assert followed.look(0) == set()
    assert states("a", 4.9) == (False, False)
    assert states("a", 5) == (True, False)
    assert followed.look(5) == {"default/hj"}
    followed.bound("on", waits=True, gpus=8)
    followed.tell(followed.caches.bindings, binding("on"), deleted=True)
    assert followed.look(6) == set()
    assert states("a", 6) == (False, False)
    assert followed.look(35.9) == set()
    assert states("a", 35.9) == (False, False), "its quota is there for less than 30 seconds"
    assert followed.look(36) == {"default/hj"}
    assert states("a", 36) == (False, True)
    assert states("gone", 36) == (False, False)


def test_a_vcjob_is_released_from_its_own_queue() -> None:
    followed = Followed()
    full, free = queue("full", gpus=4), queue("free", gpus=32)
    for name in ("full", "free"):
        made = job(f"hj-{name}-0")
        made["spec"]["queue"] = name
        followed.tell(followed.caches.jobs, made)
        followed.bound(f"hj-{name}-0", waits=True)
    followed.releases.look((*QUEUES, full, free), now=NOW)
    late = NOW + timedelta(seconds=31)
    found = followed.releases
    assert [
        [check(f"default/hj-{name}-0", now=late) for check in (found.passed_over, found.unanswered)]
        for name in ("full", "free")
    ] == [[True, False], [False, True]]
