"""What is free on the clusters as a pass and a round of the queues read it."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from hyperjob_controller.memory import Memory
from hyperjob_controller.observe import Observer
from hyperjob_controller.reservations import Reservations
from hyperjob_core.kube.client import EventType
from hyperjob_engine.model.members import MemberView
from hyperjob_engine.model.observed import Limits, QueueVerdict
from tests.support.feeds import Feed
from tests.unit.controller.test_pass import member
from tests.unit.engine.builders import GPU, NOW, Object, hyperjob, job, observed, policy, request
from tests.unit.engine.views import held, node, view

KEY = "default/hj-trainer-0"
LAG = timedelta(seconds=30)


class Rig:
    def __init__(self) -> None:
        self.views: dict[str, MemberView] = {}
        self.jobs: dict[str, Object] = {}
        self.reservations = Reservations(
            hyperjob=lambda _: hyperjob(),
            job=self.jobs.get,
            policy=lambda _: policy(cluster="a"),
            binding=lambda _: None,
            lag=LAG,
            views=lambda *_: self.views,
        )
        self.clusters = Feed()
        self.clusters.add_handler(self.reservations.follow)

    def free(self, **promised: int) -> dict[str, int]:
        kept = {name: [request("other", gpus)] for name, gpus in promised.items()}
        found = self.reservations.clusters(now=NOW, promised=kept)
        return {each.name: each.free[GPU] // 10**9 for each in found}


def test_what_is_reserved_and_what_is_promised_to_others_is_not_free() -> None:
    rig = Rig()
    for name in ("a", "b"):
        rig.clusters.tell(EventType.ADDED, None, member(name, 16))
    assert rig.free() == {"a": 16, "b": 16}
    rig.jobs[KEY] = job(gpus=6)
    rig.reservations.update(KEY, now=NOW)
    assert rig.free() == {"a": 10, "b": 16}
    assert rig.free(b=5) == {"a": 10, "b": 11}, "room that is promised to another HyperJob"
    room = rig.reservations.room("a", now=NOW)
    assert room[GPU] == 10 * 10**9


def test_a_cluster_that_goes_or_becomes_unusable_has_no_room() -> None:
    rig = Rig()
    there, down = member("a", 16), member("a", 16)
    down["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    rig.clusters.tell(EventType.ADDED, None, there)
    rig.clusters.tell(EventType.MODIFIED, there, down)
    assert rig.reservations.room("a", now=NOW) is None
    rig.clusters.tell(EventType.DELETED, down, None)
    assert rig.free() == {}
    assert rig.reservations.room("a", now=NOW) is None


def test_more_than_a_cluster_has_is_never_reserved() -> None:
    rig = Rig()
    rig.clusters.tell(EventType.ADDED, None, member("a", 16))
    rig.jobs[KEY] = job(gpus=10**6)
    rig.reservations.update(KEY, now=NOW)
    assert rig.free() == {"a": 0}


def test_room_that_is_promised_to_another_hyperjob_is_not_free_in_a_pass() -> None:
    rig = Rig()
    for name in ("a", "b"):
        rig.clusters.tell(EventType.ADDED, None, member(name, 16))
    known: Any = SimpleNamespace(
        verdict=lambda _key: QueueVerdict(admitted=frozenset({"hj-trainer-0"})),
        is_contended=lambda _key: True,
        reserved=lambda key: {"b": [request("other", 5)]} if key == "default/hj" else {},
        releases=SimpleNamespace(
            passed_over=lambda job, now: job == "default/passed-over" and now == NOW,
            unanswered=lambda job, now: job == "default/unanswered" and now == NOW,
            forgotten=lambda job, now: job == "default/forgotten" and now == NOW,
        ),
    )
    judged = judge(rig, known)
    assert {each.name: each.free[GPU] // 10**9 for each in judged.clusters} == {"a": 16, "b": 11}
    assert judged.verdict == QueueVerdict(admitted=frozenset({"hj-trainer-0"}))
    assert judged.contended
    assert (judged.passed_over, judged.unanswered, judged.forgotten) == (
        {"passed-over"},
        {"unanswered"},
        {"forgotten"},
    )


def test_while_nothing_is_decided_nothing_is_promised() -> None:
    rig = Rig()
    rig.clusters.tell(EventType.ADDED, None, member("a", 16))
    undecided = QueueVerdict(undecided=True)
    known: Any = SimpleNamespace(verdict=lambda _key: undecided)
    judged = judge(rig, known)
    assert judged.verdict == undecided
    assert [each.free[GPU] // 10**9 for each in judged.clusters] == [16]
    assert judged.capacity_changes_in is None


def judge(rig: Rig, admission: Any) -> Any:
    """Judge a HyperJob as a pass does, once its objects are seen."""
    unused: Any = None
    observer = Observer(
        unused,
        Memory(
            reservations=rig.reservations,
            admission=admission,
            unplaced=unused,
            refusals=unused,
            tombstones=unused,
            closed_queues=unused,
        ),
        limits=Limits(),
        admission=unused,
        now=lambda: NOW,
    )
    jobs = dict.fromkeys(("passed-over", "unanswered", "forgotten"), unused)
    return observer.observe(replace(observed(), jobs=jobs))


def test_a_view_of_the_nodes_counts_at_once_what_the_summary_counts_later() -> None:
    rig = Rig()
    rig.clusters.tell(EventType.ADDED, None, member("a", 16))
    rig.views = {"a": view([node("n0", 8, held("p", 6)), node("n1", 16)])}
    rig.jobs[KEY] = job(gpus=2)
    rig.reservations.update(KEY, now=NOW)
    assert rig.free() == {"a": 16}
    room = rig.reservations.room("a", now=NOW)
    assert room[GPU] == 16 * 10**9
    (found,) = rig.reservations.clusters(now=NOW)
    assert found.allocatable[GPU] == 24 * 10**9
