"""Karmada in a simulation: bindings, dispatch and statuses, each after a delay."""

import asyncio
from typing import Any

import pytest

from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import (
    CLUSTERS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
)
from hyperjob_core.virtualtime import now
from hyperjob_sandbox.simulate.karmada import Karmada
from hyperjob_sandbox.simulate.member import Member, Pods
from hyperjob_sandbox.simulate.nodes import Nodes
from hyperjob_sandbox.simulate.sites import site
from tests.support.virtually import virtually
from tests.unit.simulate.scenarios import NODE

Object = dict[str, Any]
PERIOD = 10.0
CONTAINER = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
SPEC = {"tasks": [{"replicas": 2, "template": {"spec": {"containers": [CONTAINER]}}}]}


class World:
    """Clusters `east` and `west` of a node each, and what Karmada says of vcjobs."""

    def __init__(self) -> None:
        self.plane = MemoryServer(now=now)
        self.said: list[tuple[str, ...]] = []
        self.members: dict[str, Member] = {}
        for name in ("east", "west"):
            self.plane.create(CLUSTERS, site(name, [("gpu", NODE, 1)]).cluster)
            nodes = Nodes(site(name, [("gpu", NODE, 1)]).nodes)
            self.members[name] = Member(name, nodes, placed=self._placed)
        self.karmada = Karmada(
            self.plane,
            self.members,
            now=now,
            status_period=PERIOD,
            sent=lambda key, _uid, cluster: self.said.append(("sent", key, cluster)),
            gone=lambda key, cluster: self.said.append(("gone", key, cluster)),
        )

    def _placed(self, pods: Pods) -> None:
        self.said.append(("placed", pods.key))

    def submit(self, *clusters: str, held: bool = False) -> None:
        """Create the vcjob ml/job, and its policy for these clusters."""
        self.plane.create(VCJOBS, {"metadata": {"name": "job", "namespace": "ml"}, "spec": SPEC})
        placement = {"clusterAffinity": {"clusterNames": list(clusters)}}
        spec: Object = {"placement": placement}
        if held:
            spec["suspension"] = {"dispatching": True}
        self.plane.create(
            PROPAGATION_POLICIES,
            {"metadata": {"name": "job", "namespace": "ml"}, "spec": spec},
        )

    def policy(self, change: Object) -> None:
        self.plane.change(PROPAGATION_POLICIES, "ml/job", {"spec": change})

    def binding(self) -> Object:
        """Return the binding of the vcjob; empty without one."""
        return self.plane.get(RESOURCE_BINDINGS, "ml/job-job") or {}

    @property
    def state(self) -> Object:
        """Return the status of the vcjob."""
        job = self.plane.get(VCJOBS, "ml/job")
        found: Object = job.get("status") or {}
        return {**found, "state": (found.get("state") or {}).get("phase")}

    def ready(self, cluster: str) -> str:
        found = self.plane.get(CLUSTERS, cluster)
        (condition,) = found["status"]["conditions"]
        return str(condition["status"])

    def summary(self, cluster: str) -> Object:
        found = self.plane.get(CLUSTERS, cluster)
        summary: Object = found["status"]["resourceSummary"]
        return {key: each.get("nvidia.com/gpu", "0") for key, each in summary.items()}


@virtually
async def test_a_vcjob_is_bound_and_then_dispatched_and_then_has_a_status() -> None:
    world = World()
    world.submit("east")
    await asyncio.sleep(0.4)
    assert world.binding() == {}
    await asyncio.sleep(0.2)
    assert world.binding()["spec"]["clusters"] == [{"name": "east"}]
    assert "suspension" not in world.binding()["spec"]
    assert (world.karmada.where("ml/job"), world.said) == ("", [])
    await asyncio.sleep(1)
    assert world.said == [("sent", "ml/job", "east"), ("placed", "ml/job")]
    assert world.karmada.where("ml/job") == "east"
    assert (world.karmada.sent_to("east"), world.karmada.sent_to("west")) == (["ml/job"], [])
    assert world.state == {"state": None}
    await asyncio.sleep(1)
    assert world.state == {"state": "Pending", "pending": 2}
    (item,) = world.binding()["status"]["aggregatedStatus"]
    assert (item["clusterName"], item["applied"]) == ("east", True)
    assert item["status"]["state"]["phase"] == "Pending"


@virtually
async def test_a_suspended_binding_is_dispatched_where_its_policy_says_after_the_suspension() -> (
    None
):
    world = World()
    world.submit("east", held=True)
    await asyncio.sleep(60)
    assert world.binding()["spec"]["suspension"] == {"dispatching": True}
    assert world.said == []
    placement = {"clusterAffinity": {"clusterNames": ["west"]}}
    world.policy({"placement": placement, "suspension": None})
    await asyncio.sleep(1.4)
    assert world.said == []
    await asyncio.sleep(0.2)
    assert world.said[0] == ("sent", "ml/job", "west")
    world.policy({"placement": {"clusterAffinity": {"clusterNames": ["east"]}}})
    await asyncio.sleep(60)
    assert world.karmada.where("ml/job") == "west", "a dispatched vcjob stays in its cluster"


@virtually
async def test_a_vcjob_without_a_cluster_or_whose_policy_is_gone_is_not_dispatched() -> None:
    world = World()
    world.submit()
    await asyncio.sleep(60)
    assert ("clusters" in world.binding()["spec"], world.said) == (False, [])
    other = World()
    other.submit("east")
    other.plane.remove(PROPAGATION_POLICIES, "ml/job")
    await asyncio.sleep(60)
    assert (other.binding(), other.said) == ({}, [])


@virtually
async def test_a_vcjob_that_is_created_again_gets_one_binding_of_its_own() -> None:
    world = World()
    world.submit("east")
    await asyncio.sleep(0.3)
    world.plane.remove(VCJOBS, "ml/job")
    world.plane.remove(PROPAGATION_POLICIES, "ml/job")
    world.submit("west")
    await asyncio.sleep(0.3)
    assert world.binding() == {}, "the first vcjob is gone"
    await asyncio.sleep(1.4)
    assert world.said[0] == ("sent", "ml/job", "west")


@virtually
async def test_a_dispatch_and_a_status_wait_until_the_cluster_answers() -> None:
    world = World()
    world.submit("east")
    world.members["east"].down = True
    await asyncio.sleep(5)
    assert world.said == []
    world.members["east"].down = False
    await asyncio.sleep(PERIOD)
    assert world.said[0] == ("sent", "ml/job", "east")
    world.karmada.report("ml/job", "Running", pods=2, state="running")
    world.members["east"].down = True
    await asyncio.sleep(5)
    assert world.state["state"] != "Running"
    world.members["east"].down = False
    await asyncio.sleep(PERIOD)
    assert world.state == {"state": "Running", "running": 2}


@virtually
async def test_only_the_last_status_of_the_present_vcjob_is_collected() -> None:
    world = World()
    world.karmada.report("ml/job", "Running", pods=1, state="running")
    world.submit("east")
    await asyncio.sleep(10)
    world.karmada.report("ml/job", "Running", pods=2, state="running")
    world.karmada.report("ml/job", "Failed", pods=0, state="failed")
    await asyncio.sleep(2)
    assert world.state == {"state": "Failed"}
    world.karmada.report("ml/job", "Completed", pods=2, state="succeeded")
    world.plane.remove(VCJOBS, "ml/job")
    world.plane.remove(PROPAGATION_POLICIES, "ml/job")
    assert world.said[-1] == ("gone", "ml/job", "east")
    assert world.karmada.where("ml/job") == ""
    world.members["east"].drop("ml/job")
    world.submit("east")
    await asyncio.sleep(10)
    assert world.state["state"] == "Pending", "the status of the deleted vcjob is gone"


@pytest.mark.parametrize("elapsed", [0.0, 7.0])
@virtually
async def test_the_status_of_a_cluster_is_collected_at_the_next_turn(elapsed: float) -> None:
    world = World()
    await asyncio.sleep(elapsed)
    world.members["east"].take(Pods("ml/x", "1", {}))
    world.members["east"].down = True
    world.karmada.touch("east")
    world.karmada.touch("east")
    await asyncio.sleep(PERIOD - elapsed - 0.1)
    assert (world.ready("east"), world.ready("west")) == ("True", "True")
    await asyncio.sleep(0.2)
    assert (world.ready("east"), world.ready("west")) == ("False", "True")
    requests = world.plane.get(CLUSTERS, "east")
    world.karmada.touch("east")
    await asyncio.sleep(PERIOD)
    assert world.plane.get(CLUSTERS, "east") == requests, "it is not Ready already"
    world.members["east"].down = False
    world.karmada.touch("east")
    await asyncio.sleep(PERIOD)
    assert world.ready("east") == "True"


@virtually
async def test_the_summary_of_a_cluster_has_what_dispatched_vcjobs_take() -> None:
    world = World()
    world.submit("east")
    assert world.summary("east")["allocatable"] == "8"
    await asyncio.sleep(2 * PERIOD)
    assert world.summary("east") == {"allocatable": "8", "allocated": "8", "allocating": "0"}
    world.plane.remove(CLUSTERS, "west")
    world.karmada.touch("west")
    await asyncio.sleep(PERIOD)
    assert world.plane.get(CLUSTERS, "west") is None
