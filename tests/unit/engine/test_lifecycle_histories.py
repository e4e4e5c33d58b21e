"""Whatever happens, in any order: passes come to rest, and a HyperJob lives by its rules."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hyperjob_core.api.names import LABEL_ATTEMPT, MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.api.phases import JobPhase
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.reason import ClusterTrouble, Trouble
from tests.unit.engine.arrows import NEW, pairs
from tests.unit.engine.builders import (
    Object,
    cluster,
    group,
    hyperjob,
    job,
    owner,
    policy,
    vcjob_status,
)
from tests.unit.engine.world import World

pytestmark = pytest.mark.long

PHASES = ["Pending", "Running", "Completed", "Failed", "Aborted", "Terminated"]
ARROWS = pairs()
UID = "hj-uid-0"

rules = st.lists(
    st.fixed_dictionaries(
        {
            "action": st.sampled_from(
                ["FailHyperJob", "RestartHyperJob", "RestartJob", "MigrateJob"]
            )
        },
        optional={
            "onJobPhases": st.lists(st.sampled_from(["Failed", "Aborted"]), min_size=1, max_size=2),
            "onClusterLost": st.just(True),
            "targetReplicatedJobs": st.just(["first"]),
        },
    ),
    max_size=3,
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "minAvailable": st.integers(1, 3),
        "maxDomains": st.integers(1, 2),
        "plugins": st.sampled_from([{"svc": []}, {"env": [], "pytorch": []}]),
        "ttlSecondsAfterFinished": st.sampled_from([0, 30]),
        "failurePolicy": st.fixed_dictionaries(
            {"maxRestarts": st.integers(0, 3)}, optional={"rules": rules}
        ),
        "successPolicy": st.fixed_dictionaries(
            {"operator": st.sampled_from(["All", "Any"])},
            optional={"targetReplicatedJobs": st.just(["second"])},
        ),
    },
)
dependencies = st.sampled_from(["Ready", "Complete", None])


def made(spec: Object, dependency: str | None) -> Object:
    second: dict[str, Any] = {}
    if dependency is not None:
        second["dependsOn"] = [{"name": "first", "status": dependency}]
    raw = hyperjob(
        group("first", replicas=2, gpus=2), group("second", replicas=1, gpus=2, **second), **spec
    )
    raw["metadata"]["uid"] = UID
    return raw


class Lives(RuleBasedStateMachine):
    """One HyperJob, its clusters, and everybody who has something to say about it."""

    @initialize(
        spec=specs,
        dependency=dependencies,
        admission=st.sampled_from(list(QueueAdmission)),
        lingering=st.booleans(),
    )
    def begin(
        self, spec: Object, dependency: str | None, admission: QueueAdmission, lingering: bool
    ) -> None:
        clusters = {name: cluster(name, 8) for name in ("a", "b")}
        self.world = World(clusters=clusters, admission=admission, lingering=lingering)
        self.world.hyperjobs["hj"] = made(spec, dependency)
        self.budget = spec.get("failurePolicy", {}).get("maxRestarts", 0)
        self.requests = self.suspensions = self.refusals = 0
        self.attempts: Mapping[str, int] = {}
        self.phase, self.ended = NEW, None

    @property
    def alive(self) -> Object | None:
        return self.world.hyperjobs.get("hj")

    @rule()
    def reconcile(self) -> None:
        if self.alive is not None:
            self.world.reconcile("hj")

    @rule(after=st.integers(0, 3))
    def the_controller_dies_in_the_middle(self, after: int) -> None:
        if self.alive is not None:
            self.world.reconcile("hj", dies_after=after)

    @rule()
    def karmada_works(self) -> None:
        self.world.karmada()

    @rule()
    def garbage_goes(self) -> None:
        self.world.garbage_goes()

    @rule(data=st.data(), phase=st.sampled_from(PHASES))
    def a_child_changes_phase(self, data: st.DataObject, phase: str) -> None:
        if not self.world.jobs:
            return
        child = self.world.jobs[data.draw(st.sampled_from(sorted(self.world.jobs)))]
        now = child.get("status", {}).get("state", {}).get("phase", "")
        if not JobPhase(now).is_terminal or now == "Aborted":
            child["status"] = vcjob_status(phase)
            # Volcano terminates a vcjob whose cluster refuses its pods; it moves to another cluster
            self.refusals += phase == "Terminated"

    @rule(data=st.data())
    def somebody_deletes_a_vcjob(self, data: st.DataObject) -> None:
        if self.world.jobs:
            del self.world.jobs[data.draw(st.sampled_from(sorted(self.world.jobs)))]

    @rule(data=st.data())
    def somebody_deletes_a_policy(self, data: st.DataObject) -> None:
        if self.world.policies:
            del self.world.policies[data.draw(st.sampled_from(sorted(self.world.policies)))]

    @rule(data=st.data(), field=st.sampled_from(["labels", "ownerReferences"]))
    def somebody_takes_labels_or_owners_away(self, data: st.DataObject, field: str) -> None:
        if self.world.jobs:
            child = self.world.jobs[data.draw(st.sampled_from(sorted(self.world.jobs)))]
            child["metadata"][field] = {} if field == "labels" else []

    @rule(index=st.integers(0, 2), policy_too=st.booleans())
    def a_stranger_takes_a_name(self, index: int, policy_too: bool) -> None:
        name = f"hj-first-{index}"
        if name not in self.world.jobs:
            self.world.jobs[name] = job(name, owners=owner("somebody", "else"), marked={})
        if policy_too and name not in self.world.policies:
            self.world.policies[name] = policy(name, owners=owner("somebody", "else"))

    @rule(suspend=st.booleans())
    def a_user_suspends_or_resumes(self, suspend: bool) -> None:
        if self.alive is not None:
            self.suspensions += suspend and not self.alive["spec"].get("suspend", False)
            self.alive["spec"]["suspend"] = suspend
            self.alive["metadata"]["generation"] += 1

    @rule(which=st.sampled_from(["hj-first-0", "hj-second-0", ""]), moves=st.booleans())
    def a_user_asks(self, which: str, moves: bool) -> None:
        if self.alive is None or self.ended is not None:
            return
        self.requests += 1
        annotation = MIGRATE_REQUEST if moves else RESTART_REQUEST
        annotations = self.alive["metadata"].setdefault("annotations", {})
        annotations[annotation] = f"t{self.requests} {which}"

    @rule(replicas=st.integers(1, 3))
    def a_user_scales(self, replicas: int) -> None:
        if self.alive is not None:
            self.alive["spec"]["replicatedJobs"][0]["replicas"] = replicas
            self.alive["metadata"]["generation"] += 1

    @rule(name=st.sampled_from("ab"), ready=st.booleans())
    def a_cluster_is_lost_or_comes_back(self, name: str, ready: bool) -> None:
        known = self.world.clusters[name]
        since = known.not_ready_since or self.world.now
        # A gang that a lost cluster never received gives all of it back, and tries another cluster
        self.refusals += known.usable and not ready
        self.world.clusters[name] = replace(
            known,
            usable=ready,
            trouble=None if ready else Trouble(ClusterTrouble.NOT_READY),
            not_ready_since=None if ready else since,
        )

    @rule(minutes=st.integers(1, 10))
    def time_goes_by(self, minutes: int) -> None:
        self.world.now += timedelta(minutes=minutes)

    @rule(name=st.sampled_from("ab"), gpus=st.integers(0, 12))
    def a_cluster_changes(self, name: str, gpus: int) -> None:
        known = self.world.clusters[name]
        self.world.clusters[name] = replace(known, free=cluster(name, gpus).free)

    @rule()
    def a_user_deletes_it(self) -> None:
        if self.phase in ("Completed", "Failed"):
            self.world.hyperjobs.clear()

    @precondition(lambda self: hasattr(self, "world"))
    @rule()
    def it_comes_to_rest(self) -> None:
        for _ in range(3):
            self.world.settle()
            self.look()
        if self.alive is not None:
            again = plan(self.world.observe("hj"))
            assert (again.actions, again.events) == ((), ())
            assert again.status in (None, self.alive["status"])
            if self.phase not in ("Completed", "Failed"):
                return
        running = [
            name
            for name, raw in self.world.jobs.items()
            if UID in [each["uid"] for each in raw["metadata"]["ownerReferences"]]
            and raw["metadata"]["labels"]  # what lost them after the end is nobody's to find
            and not JobPhase(raw.get("status", {}).get("state", {}).get("phase", "")).is_terminal
        ]
        assert not running, "they outlive their HyperJob"

    @invariant()
    def look(self) -> None:
        if not hasattr(self, "world") or self.alive is None:
            return
        status = self.alive["status"]
        for phase in self.world.phases:
            assert phase == self.phase or (self.phase, phase) in ARROWS
            self.phase = phase
        self.world.phases.clear()
        if self.ended is not None:
            assert status["conditions"] == self.ended
        if self.phase in ("Completed", "Failed"):
            self.ended = status["conditions"]
        assert status.get("restarts", 0) <= self.budget
        attempts = {job["name"]: job.get("attempt", 0) for job in status.get("jobs", [])}
        for name, attempt in attempts.items():
            assert self.attempts.get(name, 0) <= attempt
            asked = self.requests + self.suspensions
            assert attempt <= status.get("restarts", 0) + asked + self.refusals
        self.attempts = attempts
        for name, raw in self.world.jobs.items():
            marks = raw["metadata"].get("annotations", {})
            assert int(marks.get(LABEL_ATTEMPT, "0")) <= attempts.get(name, 99)


Lives.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestLives = Lives.TestCase


def live(
    spec: Object, dependency: str | None, story: list[tuple[str, int]], deaths: bool
) -> Object:
    """Tell one story to the end; with deaths, every pass dies several times before it succeeds."""
    world = World(clusters={name: cluster(name, 8) for name in ("a", "b")})
    world.hyperjobs["hj"] = made(
        {key: value for key, value in spec.items() if key != "ttlSecondsAfterFinished"}, dependency
    )

    def settle() -> None:
        for _ in range(30):
            if deaths:
                for after in range(4):
                    world.reconcile("hj", dies_after=after)
                    world.garbage_goes()
            world.settle()
            again = world.reconcile("hj").requeue_after
            if again is None:
                return
            world.now += again

    settle()
    for name, number in story:
        if name in world.jobs:
            phase = PHASES[number % len(PHASES)]
            now = world.jobs[name].get("status", {}).get("state", {}).get("phase", "")
            if not JobPhase(now).is_terminal:
                world.jobs[name]["status"] = vcjob_status(phase)
        elif name == "suspend":
            world.hyperjobs["hj"]["spec"]["suspend"] = number % 2 == 0
        settle()
    status = world.hyperjobs["hj"]["status"]
    jobs = [
        {key: job.get(key) for key in ("name", "phase", "attempt", "excludedClusters", "cluster")}
        for job in status["jobs"]
    ]
    labels = {name: job["metadata"]["labels"] for name, job in world.jobs.items()}
    return {
        "phase": status["state"]["phase"],
        "reason": status["state"]["reason"],
        "restarts": status["restarts"],
        "conditions": [item["reason"] for item in status.get("conditions", [])],
        "jobs": jobs,
        "labels": labels,
    }


@settings(max_examples=25)
@given(
    spec=specs,
    dependency=dependencies,
    story=st.lists(
        st.tuples(
            st.sampled_from(["hj-first-0", "hj-first-1", "hj-second-0", "suspend"]),
            st.integers(0, 11),
        ),
        max_size=8,
    ),
)
def test_a_controller_that_dies_anywhere_comes_to_the_same_end(
    spec: Object, dependency: str | None, story: list[tuple[str, int]]
) -> None:
    assert live(spec, dependency, story, True) == live(spec, dependency, story, False)


def test_thirty_rounds_of_suspend_and_resume_spend_nothing() -> None:
    world = World(clusters={"a": cluster("a", 8)}, lingering=True)
    world.hyperjobs["hj"] = made({"failurePolicy": {"maxRestarts": 1}}, None)
    seen: Counter[str] = Counter()
    for number in range(60):
        world.hyperjobs["hj"]["spec"]["suspend"] = number % 2 == 1
        world.settle()
        if number % 2:
            assert not world.jobs
            assert not world.policies
        else:
            assert len(world.jobs) == 3
            for child in world.jobs.values():
                child["status"] = vcjob_status("Running")
            world.settle()
        seen[world.hyperjobs["hj"]["status"]["state"]["phase"]] += 1
    assert seen == {"Running": 30, "Suspended": 30}
    status = world.hyperjobs["hj"]["status"]
    assert status["restarts"] == 0
    assert {job["attempt"] for job in status["jobs"]} == {30}, "each run has its number"


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from(list(QueueAdmission)))
def test_the_order_in_which_things_are_seen_changes_nothing(
    seed: int, admission: QueueAdmission
) -> None:
    chance = random.Random(seed)
    world = World(
        clusters={f"c{i}": cluster(f"c{i}", chance.randrange(40)) for i in range(3)},
        admission=admission,
    )
    for name in ("hj0", "hj1"):
        raw = hyperjob(group("x", replicas=2), group("y", replicas=2, gpus=4), name=name)
        raw["spec"]["minAvailable"] = chance.randrange(1, 5)
        world.hyperjobs[name] = raw
    world.reconcile("hj0")
    world.karmada()
    for child in world.jobs.values():
        child["status"] = vcjob_status(chance.choice(["Completing", *PHASES]))
    for name in ("hj0", "hj1"):
        seen = world.observe(name)
        expected = plan(seen)
        for _ in range(3):
            shuffled = replace(
                seen,
                jobs=dict(chance.sample(sorted(seen.jobs.items()), len(seen.jobs))),
                policies=dict(chance.sample(sorted(seen.policies.items()), len(seen.policies))),
                clusters=tuple(chance.sample(seen.clusters, len(seen.clusters))),
            )
            assert plan(shuffled) == expected


def test_competing_hyperjobs_never_share_what_only_one_can_have() -> None:
    world = World(clusters={"a": cluster("a", 16), "b": cluster("b", 16)})
    for number in range(3):
        raw = hyperjob(group(replicas=2, gpus=12), name=f"hj{number}")
        raw["metadata"]["uid"] = f"hj-uid-{number}"
        world.hyperjobs[f"hj{number}"] = raw
    world.settle()
    told = [raw["status"]["state"]["phase"] for raw in world.hyperjobs.values()]
    assert told == ["Starting", "Pending", "Pending"]
    for child in world.jobs.values():
        child["status"] = vcjob_status("Completed")
    world.settle()
    told = [raw["status"]["state"]["phase"] for raw in world.hyperjobs.values()]
    assert told == ["Completed", "Starting", "Pending"]
