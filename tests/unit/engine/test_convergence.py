"""Whatever happens, passes come to rest, and on the way never do what they must not."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hyperjob_core.api.phases import JobPhase
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.planned import Action, CreateChild
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.reason import ClusterTrouble, Trouble
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

PHASES = ["Pending", "Running", "Completing", "Completed", "Failed", "Aborted", ""]


class Histories(RuleBasedStateMachine):
    """HyperJobs, clusters and people in any order."""

    @initialize(
        sizes=st.lists(st.integers(0, 30), min_size=1, max_size=3),
        admission=st.sampled_from(list(QueueAdmission)),
        specs=st.lists(
            st.tuples(
                st.integers(1, 3),
                st.integers(1, 8),
                st.one_of(st.none(), st.integers(1, 3)),
                st.one_of(st.none(), st.integers(1, 2)),
            ),
            min_size=1,
            max_size=3,
        ),
        plugins=st.sampled_from([{}, {"svc": []}, {"env": [], "pytorch": []}]),
    )
    def begin(
        self,
        sizes: list[int],
        admission: QueueAdmission,
        specs: list[tuple[int, int, int | None, int | None]],
        plugins: Object,
    ) -> None:
        clusters = {f"c{i}": cluster(f"c{i}", size) for i, size in enumerate(sizes)}
        self.world = World(clusters=clusters, admission=admission)
        for number, (replicas, gpus, least, domains) in enumerate(specs):
            raw = hyperjob(group(replicas=replicas, gpus=gpus), name=f"hj{number}", plugins=plugins)
            raw["metadata"]["uid"] = f"hj-uid-{number}"
            if least is not None:
                raw["spec"]["minAvailable"] = least
            if domains is not None:
                raw["spec"]["maxDomains"] = domains
            self.world.hyperjobs[f"hj{number}"] = raw
        self.ended: dict[str, Object] = {}

    def pick(self, data: st.DataObject, store: dict[str, Object]) -> str | None:
        return data.draw(st.sampled_from(sorted(store))) if store else None

    @rule(data=st.data())
    def reconcile(self, data: st.DataObject) -> None:
        name = self.pick(data, self.world.hyperjobs)
        assert name is not None
        self.world.reconcile(name)

    @rule()
    def karmada_works(self) -> None:
        self.world.karmada()

    @rule(data=st.data(), phase=st.sampled_from(PHASES))
    def a_child_changes_phase(self, data: st.DataObject, phase: str) -> None:
        name = self.pick(data, self.world.jobs)
        if name is None:
            return
        child = self.world.jobs[name]
        now = child.get("status", {}).get("state", {}).get("phase", "")
        if JobPhase(now).is_terminal and phase:
            return
        child["status"] = vcjob_status(phase) if phase else {}

    @rule(data=st.data())
    def somebody_deletes_a_vcjob(self, data: st.DataObject) -> None:
        name = self.pick(data, self.world.jobs)
        if name is not None:
            del self.world.jobs[name]

    @rule(data=st.data())
    def somebody_deletes_a_policy(self, data: st.DataObject) -> None:
        name = self.pick(data, self.world.policies)
        if name is not None:
            del self.world.policies[name]

    @rule(data=st.data())
    def somebody_orphans_a_vcjob(self, data: st.DataObject) -> None:
        name = self.pick(data, self.world.jobs)
        if name is not None:
            self.world.jobs[name]["metadata"]["ownerReferences"] = []

    @rule(index=st.integers(0, 2), policy_too=st.booleans())
    def a_stranger_takes_a_name(self, index: int, policy_too: bool) -> None:
        name = f"hj0-trainer-{index}"
        if name not in self.world.jobs:
            self.world.jobs[name] = job(name, owners=owner("somebody", "else"), marked={})
        if policy_too and name not in self.world.policies:
            self.world.policies[name] = policy(name, owners=owner("somebody", "else"))

    @rule(data=st.data(), replicas=st.integers(1, 4))
    def a_user_scales(self, data: st.DataObject, replicas: int) -> None:
        name = self.pick(data, self.world.hyperjobs)
        assert name is not None
        raw = self.world.hyperjobs[name]
        raw["spec"]["replicatedJobs"][0]["replicas"] = replicas
        raw["metadata"]["generation"] += 1

    @rule(data=st.data(), size=st.integers(0, 40))
    def a_cluster_changes(self, data: st.DataObject, size: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.world.clusters)))
        total = self.world.clusters[name].allocatable
        self.world.clusters[name] = replace(cluster(name, size), allocatable=total)

    @rule(data=st.data(), usable=st.booleans())
    def a_cluster_is_lost_or_comes_back(self, data: st.DataObject, usable: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.world.clusters)))
        trouble = None if usable else Trouble(ClusterTrouble.NOT_READY)
        known = self.world.clusters[name]
        self.world.clusters[name] = replace(known, usable=usable, trouble=trouble)

    @rule(seconds=st.integers(1, 100))
    def time_goes_by(self, seconds: int) -> None:
        """And alone makes nothing."""
        before = {name: self._creations(name) for name in self.world.hyperjobs}
        self.world.now += timedelta(seconds=seconds)
        assert before == {name: self._creations(name) for name in self.world.hyperjobs}

    @precondition(lambda self: hasattr(self, "world"))
    @rule()
    def it_comes_to_rest(self) -> None:
        self.world.settle()
        for name in self.world.hyperjobs:
            again = plan(self.world.observe(name))
            assert again.actions == ()
            assert again.status == self.world.hyperjobs[name]["status"]
            assert again.events == ()

    @invariant()
    def what_has_ended_never_changes(self) -> None:
        if not hasattr(self, "world"):
            return
        for name, raw in self.world.hyperjobs.items():
            status = raw["status"]
            phase = status.get("state", {}).get("phase")
            if name in self.ended:
                assert status["conditions"] == self.ended[name]
            if phase in ("Completed", "Failed"):
                self.ended[name] = status["conditions"]

    def _creations(self, name: str) -> list[Action]:
        actions = plan(self.world.observe(name)).actions
        return [action for action in actions if isinstance(action, CreateChild)]


Histories.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestHistories = Histories.TestCase


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
        child["status"] = vcjob_status(chance.choice(PHASES[:-1]))
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
