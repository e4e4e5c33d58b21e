import copy
from datetime import timedelta
from typing import Any

import pytest

from controller.caches import hyperjob_keys, job_key_of_binding, slim_binding
from controller.handlers import Handlers
from controller.ledger import Ledger
from hyperjob.kube.client import EventType
from tests.unit.controller.builders import NOW, Object, binding, hyperjob, job, policy

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


class Feed:
    """An informer whose events a test hands in."""

    def __init__(self) -> None:
        self.handlers: list[Any] = []

    def add_handler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def tell(self, kind: EventType, old: Object | None, new: Object | None) -> None:
        for handler in self.handlers:
            handler(kind, old, new)


class Rig:
    """Handlers between feeds and a queue that only remembers."""

    def __init__(self) -> None:
        self.hyperjobs, self.jobs, self.policies = Feed(), Feed(), Feed()
        self.bindings, self.clusters = Feed(), Feed()
        self.known: dict[str, Object] = {}
        self.queued: list[str] = []
        self.handlers = Handlers(self, self, now=lambda: NOW)  # type: ignore[arg-type]
        ledger = Ledger(
            job=self.job,
            policy=lambda _: None,
            binding=lambda _: None,
            lag=timedelta(),
            freed=self.handlers.freed,
        )
        self.handlers.connect(ledger)

    def job(self, key: str) -> Object | None:
        return self.known.get(key)

    def add(self, key: str) -> None:
        self.queued.append(key)

    def add_after(self, key: str, _: float) -> None:
        self.queued.append(key)


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


def test_our_own_status_writes_make_no_pass(rig: Rig) -> None:
    first = hyperjob()
    rig.hyperjobs.tell(MODIFIED, first, changed(first, "status", "splitCount", value=2))
    assert rig.queued == []


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


def test_new_capacity_wakes_those_that_wait_for_it_in_their_order(rig: Rig) -> None:
    for key in ("ns/b", "ns/a", "ns/c"):
        rig.handlers.waits(key, True)
    rig.handlers.waits("ns/c", False)
    old: Object = {"metadata": {"name": "m"}, "status": {"resourceSummary": {"allocated": {}}}}
    rig.clusters.tell(MODIFIED, old, changed(old, "status", "kubernetesVersion", value="v2"))
    assert rig.queued == []
    rig.clusters.tell(MODIFIED, old, changed(old, "status", "resourceSummary", value={}))
    assert rig.queued == ["ns/b", "ns/a"]


def test_a_child_that_ends_wakes_those_that_wait(rig: Rig) -> None:
    rig.handlers.waits("ns/waiting", True)
    pinned = Ledger(
        job=rig.job,
        policy=lambda _: policy(),
        binding=lambda _: None,
        lag=timedelta(),
        freed=rig.handlers.freed,
    )
    rig.known["default/hj-trainer-0"] = job()
    pinned.update("default/hj-trainer-0", now=NOW)
    rig.known["default/hj-trainer-0"] = job(phase="Completed")
    pinned.update("default/hj-trainer-0", now=NOW)
    assert rig.queued == ["ns/waiting"]


def test_an_object_concerns_its_controller_and_the_hyperjob_of_its_label() -> None:
    assert set(hyperjob_keys(job())) == {"default/hj"}
    assert set(hyperjob_keys(job(owners=[], marked={}))) == set()
    assert set(hyperjob_keys({"metadata": None})) == set()


def test_of_a_foreign_binding_only_the_identity_is_kept() -> None:
    foreign = binding()
    foreign["spec"]["resource"]["apiVersion"] = "apps/v1"
    foreign["metadata"]["managedFields"] = [{}]
    slim = slim_binding(copy.deepcopy(foreign))
    assert "spec" not in slim
    assert set(slim["metadata"]) == {"name", "namespace", "uid"}
    assert job_key_of_binding(slim) is None
    assert slim_binding(copy.deepcopy(binding())) == binding()
