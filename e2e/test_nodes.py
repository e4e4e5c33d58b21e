"""Placement by the nodes of the members: a gang waits that the sum could hold and no node can."""

from collections.abc import Iterator

import pytest

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import Scenario
from e2e.support.settings import from_environment
from e2e.support.world import World, open_world
from hyperjob_core.kube.resources import NODES
from tests.unit.engine.test_members_fold import node

CLUSTERS = """
clusters:
- name: east
  nodes:
  - {count: 4, labels: {gpu: A100}, others: {nvidia.com/gpu: 2},
     allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 8}}
- name: west
  nodes: [{count: 2, allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 4}}]
queues: [{name: default}]
runTimes: {defaultSeconds: 600}
# The Cluster summaries are far too late here: only the list of nodes shows a new node.
karmada: {clusterStatusSeconds: 600}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield an embedded world whose controller reads nodes."""
    settings, directory = from_environment(), tmp_path_factory.mktemp("nodes")
    if not settings.embedded:
        pytest.skip("the members need free nodes of a known size")
    file = directory / "clusters.yaml"
    file.write_text(CLUSTERS)
    with open_world(
        settings,
        directory,
        clusters=file,
        queue_admission="builtin",
        controller=["--members=nodes"],
    ) as opened:
        yield opened


async def add_node(scenario: Scenario, member: str, name: str, gpus: int, **labels: str) -> None:
    made = node(name, gpus)
    made["metadata"]["labels"] |= labels
    made["status"]["allocatable"] |= {"cpu": 64, "memory": "1Ti"}
    await scenario.members[member].create(NODES, {"apiVersion": "v1", "kind": "Node", **made})


async def test_a_gang_that_no_node_holds_waits_with_the_reason_until_a_node_is_added(
    scenario: Scenario,
) -> None:
    wanted = group(scenario.world, "trainer", accelerators=8)
    await scenario.apply(hyperjob("large", wanted))
    waiting = await scenario.until_phase("large", "Queued")
    assert waiting["status"]["jobs"][0].get("cluster") is None
    said = " ".join((await scenario.hyperjob("why", "large")).split())
    assert "no node with 8 free (largest 6)" in said
    await add_node(scenario, "east", "east-new", 8)
    running = await scenario.until_phase("large", "Running")
    assert running["status"]["jobs"][0]["cluster"] == "east"


async def test_a_selector_that_no_node_matches_is_named(scenario: Scenario) -> None:
    selector = {"nodeSelector": {"gpu": "H100"}}
    wanted = group(scenario.world, "trainer", accelerators=2)
    template = wanted["templateSpec"]["tasks"][0]["template"]
    template["spec"] |= selector
    await scenario.apply(hyperjob("picky", wanted))
    waiting = await scenario.until_phase("picky", "Queued")
    assert "no node matches gpu=H100" in waiting["status"]["state"]["message"]
    await add_node(scenario, "west", "west-new", 4, gpu="H100")
    running = await scenario.until_phase("picky", "Running")
    assert running["status"]["jobs"][0]["cluster"] == "west"
