"""Pods that a member refuses by a ResourceQuota run elsewhere, or the HyperJob waits for them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import pytest

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import Scenario, clusters_of, phase_of
from e2e.support.settings import from_environment
from e2e.support.world import World, open_world
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import HYPERJOBS, Resource

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
CLUSTERS = """
clusters:
- name: east
  nodes: [{count: 2, allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 8}}]
- name: west
  nodes: [{count: 2, allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 8}}]
queues: [{name: default}]
runTimes: {defaultSeconds: 600}
"""


@pytest.fixture(scope="module", params=["nodes", "off"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Yield an embedded world whose controller reads the members, or none."""
    settings, directory = from_environment(), tmp_path_factory.mktemp("refused")
    if not settings.embedded:
        pytest.skip("benchmarks.night plays the same on a real Karmada")
    file = directory / "clusters.yaml"
    file.write_text(CLUSTERS)
    reads = [f"--members={request.param}"]
    with open_world(
        settings, directory, clusters=file, queue_admission="builtin", controller=reads
    ) as opened:
        yield opened


@dataclass
class Told:
    """What the status of a HyperJob has said: its phases, and the messages of its sub-jobs."""

    phases: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)

    def note(self, _: EventType, _old: Object | None, new: Object | None) -> None:
        if new is not None and new.get("status"):
            self.phases.add(phase_of(new))
            self.messages += [job.get("message", "") for job in new["status"].get("jobs", ())]


@contextlib.asynccontextmanager
async def told(scenario: Scenario) -> AsyncIterator[Told]:
    """Watch the HyperJobs of the scenario for the length of the block."""
    found = Told()
    informer = Informer(scenario.kube, HYPERJOBS, namespace=scenario.namespace)
    informer.add_handler(found.note)
    task = asyncio.create_task(informer.run())
    try:
        yield found
    finally:
        task.cancel()


async def refuse(scenario: Scenario, *members: str) -> None:
    """Let members refuse all pods of the scenario."""
    quota: Object = QUOTAS.head
    quota |= {"metadata": {"name": "full"}, "spec": {"hard": {"pods": "0"}}}
    for member in members:
        await scenario.members[member].create(QUOTAS, quota, namespace=scenario.namespace)


async def allow(scenario: Scenario, *members: str) -> None:
    for member in members:
        await scenario.members[member].delete(QUOTAS, "full", namespace=scenario.namespace)


async def test_a_gang_whose_pods_a_quota_refuses_runs_on_another_cluster(scenario):
    world = scenario.world
    await scenario.passed_through()  # the members have the namespace from now on
    await refuse(scenario, "east")
    gang = group(world, "g", replicas=2, accelerators=4, seconds=600, first_on=["east"])
    async with told(scenario) as seen:
        await scenario.apply(hyperjob("gang", gang))
        running = await scenario.until_phase("gang", "Running", "Failed")
    assert phase_of(running) == "Running"
    assert set(clusters_of(running).values()) == {"west"}
    assert "Failed" not in seen.phases
    assert running["status"].get("restarts", 0) == 0
    words = ["exceeded quota: full", "ended its vcjob before a pod ran"]
    assert any(each in message for message in seen.messages for each in words)


async def test_a_gang_that_no_cluster_lets_start_waits_without_a_share(scenario):
    world = scenario.world
    await scenario.passed_through()
    await refuse(scenario, "east", "west")
    gang = group(world, "g", replicas=2, accelerators=4, seconds=600)
    async with told(scenario) as seen:
        await scenario.apply(hyperjob("gang", gang))
        waiting = await scenario.until(
            HYPERJOBS,
            "gang",
            lambda found: found is not None and _tries(found) >= 2 and _backs_off(found),
            what="in a back-off after two tries",
        )
        assert phase_of(waiting) in ("Pending", "Queued")
        assert not any(job.get("admitted") for job in waiting["status"]["jobs"])
        await scenario.until_members_have(0)
        await allow(scenario, "east", "west")
        running = await scenario.until_phase("gang", "Running", "Failed")
    assert phase_of(running) == "Running"
    assert "Failed" not in seen.phases
    assert running["status"].get("restarts", 0) == 0


def _tries(found: Object) -> int:
    jobs = (found.get("status") or {}).get("jobs") or ()
    return max((job.get("attempt", 0) for job in jobs), default=0)


def _backs_off(found: Object) -> bool:
    return bool(found["status"].get("state", {}).get("reason") == "GangBackOff")
