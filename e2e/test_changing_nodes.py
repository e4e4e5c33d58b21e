"""Nodes change under HyperJobs that wait or run: what is said, and after how many seconds.

The members have four nodes of 8 GPUs each, embedded and on a real Karmada alike; every scenario
leaves them as they were.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import Scenario
from e2e.support.settings import from_environment
from e2e.support.world import World, open_world
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import HYPERJOBS, NODES, PODS

CLUSTERS = """
clusters:
- name: member1
  nodes: [{count: 4, allocatable: {cpu: 256, memory: 1Ti, nvidia.com/gpu: 8}}]
- name: member2
  nodes: [{count: 4, allocatable: {cpu: 256, memory: 1Ti, nvidia.com/gpu: 8}}]
queues: [{name: default}]
runTimes: {defaultSeconds: 600}
"""
SIZES = {"member1": 32, "member2": 32}
WITHIN = 20.0
"""The most seconds until a change of nodes is in the status, on a slow machine."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield a world whose controller reads nodes; on a real Karmada with free nodes of 8."""
    settings, directory = from_environment(), tmp_path_factory.mktemp("changing")
    file = directory / "clusters.yaml"
    file.write_text(CLUSTERS)
    more = ["--members=nodes", "--unschedulable-timeout=600"]
    with open_world(
        settings, directory, clusters=file, queue_admission="builtin", controller=more
    ) as opened:
        if {each: number * opened.per_pod for each, number in opened.sizes.items()} != SIZES:
            pytest.skip("the members are not two with nodes of 8")
        yield opened


def wants(scenario: Scenario, name: str, pods: int, gpus: int = 8, **template: object) -> Object:
    """Return a HyperJob of one sub-job that may run in member1 alone."""
    only = {"only_on": ["member1"], "seconds": 600, **template}
    return hyperjob(name, group(scenario.world, "trainer", pods=pods, accelerators=gpus, **only))  # type: ignore[arg-type]


async def says(scenario: Scenario, name: str, *words: str) -> tuple[str, float]:
    """Wait for words in the status; return the message and after how many seconds it came."""
    began = time.monotonic()

    def told(found: Object | None) -> bool:
        state = ((found or {}).get("status") or {}).get("state") or {}
        return all(word in f"{state.get('reason')} {state.get('message')}" for word in words)

    found = await scenario.until(HYPERJOBS, name, told, what=f"told {words}", seconds=60)
    return str(found["status"]["state"]["message"]), time.monotonic() - began


async def nodes_of(member: Kube) -> list[Object]:
    return sorted((await member.list(NODES)).items, key=lambda each: str(each["metadata"]["name"]))


@contextlib.asynccontextmanager
async def tainted(member: Kube) -> AsyncIterator[None]:
    """Give all nodes of a member a taint for the length of the block."""
    names = [each["metadata"]["name"] for each in await nodes_of(member)]
    taint = {"key": "maintenance", "value": "yes", "effect": "NoSchedule"}
    for name in names:
        await member.patch(NODES, name, {"spec": {"taints": [taint]}}, kind=PatchType.MERGE)
    try:
        yield
    finally:
        for name in names:
            await member.patch(NODES, name, {"spec": {"taints": None}}, kind=PatchType.MERGE)


@contextlib.asynccontextmanager
async def without(member: Kube, name: str) -> AsyncIterator[None]:
    """Remove a node for the length of the block."""
    node = await member.get(NODES, name)
    await member.delete(NODES, name)
    try:
        yield
    finally:
        kept = {key: node["metadata"].get(key) for key in ("name", "labels", "annotations")}
        made = {"apiVersion": "v1", "kind": "Node", "metadata": kept, "spec": {}}
        await member.create(NODES, {**made, "status": node["status"]})
        status = {"status": node["status"]}
        # The API server gives a new node the taint not-ready.
        await member.patch(NODES, name, {"spec": {"taints": None}}, kind=PatchType.MERGE)
        await member.patch(NODES, name, status, kind=PatchType.MERGE, subresource="status")


async def test_a_taint_under_a_waiting_gang_is_told_and_its_end_starts_the_gang(
    scenario: Scenario,
) -> None:
    member = scenario.members["member1"]
    await scenario.apply(wants(scenario, "first", 1), wants(scenario, "waits", 4))
    await scenario.until_phase("first", "Running")
    message, _ = await says(scenario, "waits", "8 nvidia.com/gpu")
    assert "maintenance" not in message
    async with tainted(member):
        message, seconds = await says(scenario, "waits", "maintenance")
        assert seconds < WITHIN, message
        assert "maintenance" in await scenario.hyperjob("why", "waits")
        await scenario.kubectl("delete", "hyperjob", "first")
    began = time.monotonic()
    await scenario.until_phase("waits", "Running", seconds=60)
    assert time.monotonic() - began < 2 * WITHIN


async def test_pods_of_another_scheduler_hold_their_nodes(scenario: Scenario) -> None:
    member = scenario.members["member1"]
    resources = {"limits": {scenario.world.accelerator: 8}}
    image = scenario.world.settings.image
    names = []
    for each in (await nodes_of(member))[:2]:
        names.append(f"{scenario.namespace}-{each['metadata']['name']}")
        spec = {
            "schedulerName": "another",
            "nodeName": each["metadata"]["name"],
            "containers": [{"name": "main", "image": image, "resources": resources}],
        }
        metadata = {
            "name": names[-1],
            **scenario.world.pod_metadata(seconds=600, exit_code=0),
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        await member.create(PODS, pod, namespace="default")
    try:
        await scenario.apply(wants(scenario, "waits", 3))
        message, seconds = await says(scenario, "waits", "lacks 8 nvidia.com/gpu (16 free)")
        assert seconds < WITHIN, message
    finally:
        for name in names:
            await member.delete(PODS, name, namespace="default")
    await scenario.until_phase("waits", "Running", seconds=60)


async def test_a_gang_that_starts_with_its_minimum_says_with_how_many_pods_it_runs(
    scenario: Scenario,
) -> None:
    await scenario.apply(wants(scenario, "small", 5, minAvailable=2))
    await scenario.until_phase("small", "Running", seconds=60)
    message, seconds = await says(scenario, "small", "4 of 5 pods")
    assert seconds < WITHIN, message
    for command in ("why small", "tree small", "top"):
        assert "4 of 5 pods" in await scenario.hyperjob(*command.split()), command
    assert "4/5" in await scenario.hyperjob("get")


async def test_a_node_that_goes_under_a_waiting_gang_is_no_longer_counted(
    scenario: Scenario,
) -> None:
    member = scenario.members["member1"]
    await scenario.apply(wants(scenario, "first", 1), wants(scenario, "waits", 4))
    await scenario.until_phase("first", "Running")
    await says(scenario, "waits", "8 nvidia.com/gpu")
    taken = {
        pod["spec"].get("nodeName")
        for pod in (await member.list(PODS, namespace=scenario.namespace)).items
    }
    last = [
        name for each in await nodes_of(member) if (name := each["metadata"]["name"]) not in taken
    ][-1]
    async with without(member, last):
        message, seconds = await says(scenario, "waits", "ExceedsClusters", "has 24")
        assert seconds < WITHIN, message
    message, seconds = await says(scenario, "waits", "24 free")
    assert seconds < WITHIN, message
