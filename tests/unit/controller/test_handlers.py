import copy
from datetime import datetime, timedelta
from typing import Any

import pytest

from hyperjob_controller.caches import hyperjob_keys, job_key_of_binding, slim_binding
from hyperjob_controller.memory import Memory, Unplaced
from hyperjob_controller.reservations import Reservations
from hyperjob_controller.wake.handlers import Handlers
from hyperjob_core.api.names import GATE, GATE_OPEN
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
    Resource,
)
from hyperjob_engine.model.parse import parse_binding
from hyperjob_engine.model.planned import Plan
from hyperjob_engine.resources import Resources, parse_resources
from tests.support.feeds import Feed
from tests.support.walls import no_wall
from tests.unit.engine.builders import (
    GPU,
    NOW,
    Object,
    binding,
    hyperjob,
    job,
    labels,
    policy,
    vcjob_status,
)

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED
HELD = {"dispatching": True}
TIME = "2026-01-02T03:04:00Z"


class Engine:
    """The queue engine, which is woken and does nothing."""

    def wake(self) -> None:
        pass


class Books(Reservations):
    """Reservations of clusters that all have the same left."""

    left: Resources = parse_resources({GPU: "8"})

    def room(self, cluster: str, *, now: datetime) -> Resources:
        return self.left


class Rig:
    """Handlers between feeds and a queue that only remembers."""

    def __init__(self, *, lag: timedelta = timedelta()) -> None:
        self.hyperjobs, self.jobs, self.policies = Feed(), Feed(), Feed()
        self.bindings, self.clusters, self.priority_classes = Feed(), Feed(), Feed()
        self.claim_templates = Feed()
        self.known: dict[str, Object] = {}
        self.expected: dict[str, Object] = {}
        self.queued: list[str] = []
        self.later: list[str] = []
        self.low: list[str] = []
        self.reservations = Books(
            hyperjob=self.hyperjob,
            job=self.job,
            policy=self.policy,
            binding=lambda _: None,
            lag=lag,
        )
        self.pinned: Object | None = None
        self.settle: dict[str, float] = {}
        unused: Any = None
        admission: Any = Engine()
        self.memory = Memory(
            reservations=self.reservations,
            admission=admission,
            unplaced=Unplaced(self.add_after),
            refusals=unused,
            tombstones=unused,
            closed_queues=unused,
        )
        self.handlers = self.connected()
        list(self.handlers.begin())

    def users_of_claim(self, old: Object | None, new: Object | None) -> list[str]:
        return []

    def connected(self) -> Handlers:
        return Handlers(
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            self.memory,
            wall=no_wall(),
            settle=lambda key: self.settle.get(key, 0.1),
            now=lambda: NOW,
        )

    def waits(self, key: str, plan: Plan) -> None:
        namespace, _, name = key.partition("/")
        raw = hyperjob(name=name)
        raw["metadata"]["namespace"] = namespace
        self.memory.decided(key, plan)

    def add_handler(self, resource: Resource, handler: Any) -> None:
        feeds = {
            HYPERJOBS: self.hyperjobs,
            VCJOBS: self.jobs,
            PROPAGATION_POLICIES: self.policies,
            RESOURCE_BINDINGS: self.bindings,
        }
        feeds[resource].add_handler(handler)

    def is_expected(self, key: str, status: object) -> bool:
        return status == self.expected.get(key)

    def job(self, key: str) -> Object | None:
        return self.known.get(key)

    def policy(self, _key: str) -> Object | None:
        return self.pinned

    def add(self, key: str, *, low: bool = False) -> None:
        if low:
            self.low.append(key)
            return
        self.queued.append(key)

    def hyperjob(self, key: str) -> Object | None:
        return self.known.get(key)

    def jobs_of(self, key: str) -> list[Object]:
        return [each for each in self.known.values() if key in hyperjob_keys(each)]

    def add_after(self, key: str, delay: float) -> None:
        (self.queued if delay < 1 else self.later).append(key)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def changed(document: Object, *path: str, value: Any) -> Object:
    result = copy.deepcopy(document)
    target = result
    for step in path[:-1]:
        target = target.setdefault(step, {})
    target[path[-1]] = value
    return result


def test_a_hyperjob_is_looked_at_when_it_comes_changes_and_goes(rig: Rig) -> None:
    first = hyperjob()
    second = changed(first, "metadata", "generation", value=2)
    rig.hyperjobs.tell(ADDED, None, first)
    rig.hyperjobs.tell(MODIFIED, first, second)
    rig.hyperjobs.tell(DELETED, second, None)
    assert rig.queued == ["default/hj"] * 3


@pytest.mark.parametrize(
    ("path", "value", "updated"),
    [
        (("metadata", "deletionTimestamp"), "2026-01-02T03:04:05Z", True),
        (("metadata", "uid"), "another", True),
        (("spec", "minAvailable"), 3, False),
    ],
)
def test_sub_jobs_are_taken_in_again_where_their_hyperjob_goes_or_is_another(
    rig: Rig, path: tuple[str, ...], value: object, updated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    rig.known["default/hj-trainer-0"] = job()
    monkeypatch.setattr(rig.handlers, "_update", seen.append)
    first = hyperjob()
    rig.hyperjobs.tell(MODIFIED, first, changed(first, *path, value=value))
    assert seen == (["default/hj-trainer-0"] if updated else [])


def test_our_own_status_writes_make_no_pass_and_those_of_others_do(rig: Rig) -> None:
    first = hyperjob()
    second = changed(first, "status", "splitCount", value=2)
    rig.expected["default/hj"] = second["status"]
    rig.hyperjobs.tell(MODIFIED, first, second)
    assert rig.queued == []
    rig.hyperjobs.tell(MODIFIED, second, changed(second, "metadata", "labels", value={}))
    assert rig.queued == ["default/hj"]
    rig.hyperjobs.tell(MODIFIED, second, first)
    assert rig.queued == ["default/hj"] * 2


@pytest.mark.parametrize("feed", ["jobs", "policies"])
def test_children_lead_to_their_hyperjob(rig: Rig, feed: str) -> None:
    child = job() if feed == "jobs" else policy()
    getattr(rig, feed).tell(ADDED, None, child)
    getattr(rig, feed).tell(DELETED, child, None)
    assert rig.queued == ["default/hj"] * 2


def test_a_child_that_changes_its_label_leads_to_both(rig: Rig) -> None:
    old = job(owners=[])
    new = changed(old, "metadata", "labels", value={"volcano.sh/hyperjob-name": "other"})
    rig.jobs.tell(MODIFIED, old, new)
    assert rig.queued == ["default/hj", "default/other"]


def test_what_changes_keeps_the_pace_of_its_hyperjob_and_what_is_gone_does_not_wait(
    rig: Rig,
) -> None:
    rig.known["default/hj-trainer-0"] = job()
    rig.settle = {"default/hj": 5.0}
    rig.jobs.tell(MODIFIED, job(), job(phase="Running"))
    rig.bindings.tell(MODIFIED, binding(), binding(cluster="a"))
    rig.policies.tell(ADDED, None, policy())
    assert (rig.queued, rig.later) == ([], ["default/hj"] * 3)
    rig.jobs.tell(DELETED, job(), None)
    rig.policies.tell(DELETED, policy(), None)
    assert rig.queued == ["default/hj"] * 2


OPENED = changed(policy(), "metadata", "annotations", value={GATE: GATE_OPEN})


def test_the_opening_of_a_gate_changes_no_plan(rig: Rig) -> None:
    rig.known["default/hj-trainer-0"], rig.pinned = job(), OPENED
    rig.policies.tell(MODIFIED, policy(suspended=True), OPENED)
    held = binding(cluster="a", suspension={"dispatching": True})
    for left in ({}, {"scheduling": None}, None):
        rig.bindings.tell(MODIFIED, held, changed(held, "spec", "suspension", value=left))
    assert (rig.queued, rig.later) == ([], [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (policy(), policy(cluster="b")),
        (policy(suspended=True), policy()),
        (policy(suspended=True), changed(OPENED, "spec", "placement", value={})),
        (policy(suspended=True), changed(OPENED, "metadata", "labels", value=labels("other"))),
        (policy(), changed(OPENED, "spec", "suspension", value=HELD)),
        (OPENED, changed(OPENED, "spec", "suspension", value=HELD)),
        (changed(OPENED, "spec", "suspension", value=HELD), OPENED),
    ],
)
def test_any_other_change_of_a_policy_makes_a_pass(rig: Rig, old: Object, new: Object) -> None:
    rig.policies.tell(MODIFIED, old, new)
    assert "default/hj" in rig.queued


@pytest.mark.parametrize(
    ("pinned", "path", "value"),
    [
        (None, (), None),
        (policy(), (), None),
        (changed(OPENED, "spec", "suspension", value=HELD), (), None),
        (OPENED, ("spec", "suspension"), {"scheduling": True}),
        (OPENED, ("spec", "clusters"), [{"name": "b"}]),
        (OPENED, ("status", "conditions"), [{"type": "Scheduled", "status": "False"}]),
        (OPENED, ("metadata", "labels"), {"a": "b"}),
    ],
)
def test_a_binding_that_does_more_than_follow_the_gate_makes_a_pass(
    rig: Rig, pinned: Object | None, path: tuple[str, ...], value: Any
) -> None:
    rig.known["default/hj-trainer-0"], rig.pinned = job(), pinned
    held = binding(cluster="a", suspension=HELD)
    new = changed(held, "spec", "suspension", value={})
    rig.bindings.tell(MODIFIED, held, changed(new, *path, value=value) if path else new)
    assert rig.queued == ["default/hj"]


@pytest.mark.parametrize(
    "status",
    [
        {"aggregatedStatus": [{"clusterName": "a", "applied": True}]},
        {"aggregatedStatus": [{"clusterName": "a", "status": vcjob_status("Running")}]},
        {"conditions": [{"type": "FullyApplied", "status": "False", "lastTransitionTime": TIME}]},
    ],
)
def test_the_waits_for_a_member_begin_with_the_pass_of_a_gate_that_opens_late(
    rig: Rig, status: Object
) -> None:
    rig.known["default/hj-trainer-0"], rig.pinned = job(), OPENED
    held = changed(binding(cluster="a", suspension=HELD), "status", value=status)
    rig.bindings.tell(MODIFIED, held, changed(held, "spec", "suspension", value={}))
    assert rig.queued == ["default/hj"]


def test_what_was_there_before_the_start_is_looked_at_last_and_each_sub_job_taken_in_once(
    rig: Rig,
) -> None:
    old, new = hyperjob(name="old"), hyperjob(name="new")
    old["status"] = {"observedGeneration": old["metadata"]["generation"]}
    rig.known = {"default/hj-trainer-0": job()}
    for feed in (rig.hyperjobs, rig.jobs, rig.bindings):
        feed.handlers.clear()
    handlers = rig.connected()
    rig.hyperjobs.tell(ADDED, None, old)
    rig.hyperjobs.tell(ADDED, None, new)
    rig.jobs.tell(ADDED, None, job())
    rig.bindings.tell(ADDED, None, binding())
    assert (rig.queued, rig.low) == (["default/new"], ["default/old", "default/hj"])
    assert not rig.reservations.counts("default/hj-trainer-0")
    rig.jobs.held = [job()]
    assert len(list(handlers.begin())) == 1
    rig.known["default/hj"] = hyperjob()
    list(handlers.begin())
    assert rig.reservations.counts("default/hj-trainer-0")
    rig.hyperjobs.tell(ADDED, None, old)
    assert rig.queued == ["default/new", "default/old"]


@pytest.mark.parametrize(
    ("path", "value", "passes"),
    [
        (("metadata", "resourceVersion"), "8", 0),
        (("metadata", "annotations", "policy.karmada.io/applied-placement"), "{}", 0),
        (("spec", "resource", "resourceVersion"), "9", 0),
        (("status", "lastScheduledTime"), "now", 0),
        (("metadata", "annotations", "training.volcano.sh/gate"), "open", 1),
        (("spec", "suspension"), {"scheduling": False}, 1),
        (("spec", "clusters"), [{"name": "b"}], 1),
        (("status", "aggregatedStatus"), [{"clusterName": "a"}], 1),
    ],
)
def test_only_what_is_read_of_a_binding_makes_a_pass(
    rig: Rig, path: tuple[str, ...], value: Any, passes: int
) -> None:
    rig.known["default/hj-trainer-0"] = job()
    old = binding(cluster="a")
    rig.bindings.tell(MODIFIED, old, changed(old, *path, value=value))
    assert rig.queued == ["default/hj"] * passes


def test_bindings_of_other_kinds_and_unknown_jobs_concern_nobody(rig: Rig) -> None:
    rig.bindings.tell(ADDED, None, binding("unknown-0"))
    other = binding()
    other["spec"]["resource"]["kind"] = "Deployment"
    rig.bindings.tell(ADDED, None, other)
    assert rig.queued == []


def free(gpus: int, *, version: str = "v1") -> Object:
    """A Cluster that reports so many free GPUs."""
    summary = {"allocatable": {GPU: "100"}, "allocated": {GPU: str(100 - gpus)}}
    status = {"resourceSummary": summary, "kubernetesVersion": version}
    return {"metadata": {"name": "m"}, "status": status}


def waiting(rig: Rig, key: str, *gpus: int) -> None:
    needs = tuple(parse_resources({GPU: str(each)}) for each in gpus)
    rig.waits(key, Plan(waits_for_capacity=True, needs=needs))


def test_new_capacity_wakes_those_that_wait_for_it(rig: Rig) -> None:
    waiting(rig, "ns/b", 8)
    waiting(rig, "ns/c", 4)
    waiting(rig, "ns/a", 8)
    rig.waits("ns/c", Plan())
    rig.queued.clear()
    rig.clusters.tell(MODIFIED, free(8), free(8, version="v2"))
    assert (rig.queued, rig.later) == ([], [])
    rig.clusters.tell(MODIFIED, free(7), free(8))
    assert (rig.queued, rig.later) == (["ns/b", "ns/a"], [])


def test_a_summary_that_counts_a_sub_job_ends_its_reservation_and_wakes_those_that_wait() -> None:
    rig, key = Rig(lag=timedelta(seconds=30)), "default/hj-trainer-0"
    complete = job(gpus=8, phase="Pending", pods={"pending": 8})
    rig.known = {"default/hj": hyperjob(), key: complete}
    rig.pinned = policy(cluster="m")
    rig.reservations.update(key, now=NOW - timedelta(seconds=6))
    waiting(rig, "ns/a", 8)
    rig.clusters.tell(MODIFIED, free(16), free(16, version="v2"))
    assert rig.reservations.reserved(now=NOW).keys() == {"m"}
    assert rig.queued == []
    rig.clusters.tell(MODIFIED, free(16), free(8))
    assert rig.reservations.reserved(now=NOW) == {}
    assert rig.queued == ["ns/a"]


def test_room_wakes_only_those_of_which_something_fits(rig: Rig) -> None:
    waiting(rig, "ns/big", 9)
    waiting(rig, "ns/mixed", 9, 8)
    waiting(rig, "ns/unknown")
    rig.memory.wake_freed(["m"], now=NOW)
    assert rig.queued == ["ns/mixed", "ns/unknown"]
    assert rig.later == ["ns/big"], "its message may have changed"


def test_less_room_only_changes_what_is_said(rig: Rig) -> None:
    waiting(rig, "ns/a", 8)
    rig.clusters.tell(MODIFIED, free(8), free(7))
    rig.clusters.tell(DELETED, free(7), None)
    assert (rig.queued, rig.later) == ([], ["ns/a", "ns/a"])


NOT_READY = changed(free(8), "status", "conditions", value=[{"type": "Ready", "status": "False"}])


@pytest.mark.parametrize(
    ("kind", "new", "looked_at"),
    [(MODIFIED, NOT_READY, True), (DELETED, None, True), (MODIFIED, free(9), False)],
    ids=["not Ready", "deleted", "with more room"],
)
def test_a_cluster_that_is_lost_concerns_the_hyperjobs_on_it(
    rig: Rig, kind: EventType, new: Object | None, looked_at: bool
) -> None:
    for name in ("m", "n"):
        rig.hyperjobs.held.append(hyperjob(name=name, status={"jobs": [{"cluster": name}]}))
    rig.clusters.tell(kind, free(8), new)
    assert rig.queued == ["default/m"] * looked_at


@pytest.mark.parametrize("path", [("spec", "taints"), ("status", "conditions")])
def test_a_cluster_that_becomes_a_candidate_wakes(rig: Rig, path: tuple[str, ...]) -> None:
    waiting(rig, "ns/a", 8)
    rig.clusters.tell(MODIFIED, free(8), changed(free(8), *path, value=[{}]))
    assert rig.queued == ["ns/a"]


def test_the_more_wait_the_less_often_each_says_something_new() -> None:
    found = Unplaced(lambda _key, _delay: None)
    for number in range(5000):
        found.put(f"ns/{number}", needs=())
        if number == 9:
            assert found.message_seconds == 5
    assert 5000 / found.message_seconds == 20
    assert len(found) == 5000


def test_a_child_that_ends_wakes_those_that_wait(rig: Rig) -> None:
    waiting(rig, "ns/waiting")
    rig.known["default/hj"] = hyperjob()
    rig.pinned = policy()
    rig.known["default/hj-trainer-0"] = job()
    rig.jobs.tell(ADDED, None, job())
    rig.queued.clear()
    ended = job(phase="Completed")
    ended["metadata"]["resourceVersion"] = "99"
    rig.known["default/hj-trainer-0"] = ended
    rig.jobs.tell(MODIFIED, job(), ended)
    rig.queued.remove("default/hj")
    assert rig.queued == ["ns/waiting"]


def test_an_object_concerns_its_controller_and_the_hyperjob_of_its_label() -> None:
    assert set(hyperjob_keys(job())) == {"default/hj"}
    assert set(hyperjob_keys(job(owners=[], marked={}))) == set()
    assert set(hyperjob_keys({"metadata": None})) == set()


def test_a_binding_that_goes_after_its_job_wakes_who_may_wait_for_it(rig: Rig) -> None:
    rig.known["default/hj"] = hyperjob()
    rig.bindings.tell(DELETED, binding("hj-trainer-0"), None)
    rig.bindings.tell(DELETED, binding("other-trainer-0"), None)
    assert rig.queued == ["default/hj"]


def test_of_a_foreign_binding_only_what_volcano_global_sums_up_is_kept() -> None:
    foreign = binding(requests={GPU: "1"}, suspension={"scheduling": True})
    foreign["spec"]["resource"]["apiVersion"] = "apps/v1"
    foreign["spec"] |= {"replicas": 2, "placement": {"clusterAffinity": {}}}
    foreign["metadata"]["managedFields"] = [{}]
    slim = slim_binding(copy.deepcopy(foreign))
    kept = ("resource", "replicas", "replicaRequirements", "suspension")
    assert slim["spec"] == {name: foreign["spec"][name] for name in kept}
    assert set(slim["metadata"]) == {"name", "namespace", "uid"}
    assert job_key_of_binding(slim) is None


def test_of_a_binding_of_ours_all_that_is_read_is_kept_and_nothing_else() -> None:
    status = vcjob_status("Running", {"running": 1})
    ours = binding(
        cluster="a", status=status, requests={GPU: "1"}, suspension={"dispatching": True}
    )
    whole = copy.deepcopy(ours)
    whole["metadata"] |= {"labels": {"id": "x"}, "managedFields": [{}], "generation": 3}
    whole["metadata"].setdefault("annotations", {})["policy.karmada.io/applied-placement"] = "{}"
    whole["spec"]["resource"]["resourceVersion"] = "17"
    whole["spec"]["propagateDeps"] = True
    slim = slim_binding(whole)
    assert parse_binding(slim) == parse_binding(ours)
    assert job_key_of_binding(slim) == job_key_of_binding(ours)
    text = str(slim)
    for dropped in ("managedFields", "applied-placement", "17", "propagateDeps", "labels"):
        assert dropped not in text


def test_priorities_are_read_again_only_where_the_value_of_a_class_changed(rig: Rig) -> None:
    changes: list[None] = []
    engine: Any = rig.memory.admission
    engine.priorities_changed = lambda: changes.append(None)
    rig.handlers = rig.connected()
    urgent = {"metadata": {"name": "urgent", "resourceVersion": "1"}, "value": 5}
    labelled = changed(urgent, "metadata", "labels", value={"team": "x"})
    (handler,) = rig.priority_classes.handlers[-1:]
    for kind, old, new, expected in (
        (EventType.ADDED, None, urgent, 1),
        (EventType.MODIFIED, urgent, labelled, 1),
        (EventType.MODIFIED, labelled, changed(labelled, "value", value=6), 2),
        (EventType.DELETED, labelled, None, 3),
    ):
        handler(kind, old, new)
        assert len(changes) == expected
