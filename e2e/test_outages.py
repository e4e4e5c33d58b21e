"""Webhook and controller stop during scenarios, which need processes of the tests."""

import asyncio

import pytest

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import clusters_of
from hyperjob_core.api.names import GATE, LABEL_BINDING
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
)


@pytest.fixture
def stack(world):
    if world.stack is None:
        pytest.skip("webhook and controller are an installed release's, not ours to stop")
    yield world.stack
    for service in (world.stack.webhook, world.stack.controller):
        if service.process is None:
            service.start()


async def test_a_killed_controller_goes_on_where_it_was(scenario, stack):
    world = scenario.world
    await scenario.apply(
        hyperjob("first", group(world, "one", replicas=4, pods=2, accelerators=1, seconds=6))
    )
    await scenario.until_phase("first", "Pending", "Queued", "Starting", "Running")
    stack.controller.kill()
    made = {
        name: job["metadata"]["uid"] for name, job in (await scenario.children("first")).items()
    }
    await scenario.apply(hyperjob("second", group(world, "one", replicas=2, seconds=1)))
    stack.controller.start()
    for name in ("first", "second"):
        ended = await scenario.until_phase(name, "Completed", "Failed")
        assert ended["status"]["state"]["phase"] == "Completed"
    after = {
        name: job["metadata"]["uid"] for name, job in (await scenario.children("first")).items()
    }
    assert set(after) == {f"first-one-{index}" for index in range(4)}
    assert {name: after[name] for name in made} == made, "nothing is made twice"


async def test_a_gang_half_let_through_is_completed_after_a_kill(scenario, stack):
    world = scenario.world
    await scenario.apply(
        hyperjob("gang", group(world, "one", replicas=6, accelerators=1, seconds=5))
    )
    async with scenario.sightings() as sightings:
        await asyncio.wait_for(sightings.changed.wait(), world.settings.timeout)
        stack.controller.kill()
        stack.controller.start()
        ended = await scenario.until_phase("gang", "Completed", "Failed")
    assert ended["status"]["state"]["phase"] == "Completed"
    assert len(clusters_of(ended)) == 6


async def test_a_restart_with_running_and_ended_hyperjobs_writes_nothing(scenario, stack):
    world = scenario.world
    await scenario.apply(
        hyperjob("runs", group(world, "one", replicas=2, accelerators=1, seconds=300)),
        hyperjob("ended", group(world, "one", replicas=2, accelerators=1, seconds=1)),
    )
    await scenario.until_phase("runs", "Running")
    await scenario.until_phase("ended", "Completed")
    still = await scenario.settled()
    stack.controller.stop()
    stack.controller.start()
    for _ in range(2):
        await scenario.passed_through()
        assert await scenario.versions() == still


async def test_while_our_webhook_is_down_nobody_else_is_hindered(scenario, stack):
    world = scenario.world
    stack.webhook.stop()
    refused = await scenario.refused(hyperjob("closed", group(world, "one")))
    assert 'failed calling webhook "mhyperjob.training.volcano.sh"' in refused

    await scenario.apply(*others_job(world))
    async with scenario.sightings() as sightings:
        await scenario.until(VCJOBS, "others", is_completed, what="Completed")
    assert sightings.jobs == {"others"}
    binding = await scenario.kube.get(RESOURCE_BINDINGS, "others-job", namespace=scenario.namespace)
    assert LABEL_BINDING not in (binding["metadata"].get("labels") or {})
    assert GATE not in (binding["metadata"].get("annotations") or {})

    stack.webhook.start()
    await scenario.apply(hyperjob("closed", group(world, "one", seconds=1)))
    await scenario.until_phase("closed", "Completed")
    await scenario.kube.get(HYPERJOBS, "closed", namespace=scenario.namespace)


async def test_a_webhook_that_is_away_delays_a_gang_and_lets_none_of_it_through(scenario, stack):
    world = scenario.world
    if not world.volcano_global:
        pytest.skip("nothing is gated: Volcano Global is absent")
    ready = group(world, "ready", accelerators=1)
    late = group(world, "late", accelerators=1, queue=scenario.namespace)
    async with scenario.sightings() as sightings:
        await scenario.apply(hyperjob("gang", ready, late))
        await scenario.until_phase("gang", "Queued")
        stack.webhook.kill()
        async with scenario.queue():
            await scenario.until(
                VCJOBS, "gang-late-0", lambda found: found is not None, what="created"
            )
            await scenario.apply(*others_job(world))
            await scenario.until(VCJOBS, "others", is_completed, what="Completed")
            assert sightings.jobs == {"others"}, "Karmada works, and lets none of the gang through"
            await scenario.kubectl("delete", VCJOBS.group_resource, "others", "--timeout=60s")
            stack.webhook.start()
            ended = await scenario.until_phase("gang", "Completed", "Failed")
    assert ended["status"]["state"]["phase"] == "Completed"
    assert sightings.jobs == {"gang-ready-0", "gang-late-0", "others"}


def is_completed(job):
    """Return whether a vcjob exists and has completed."""
    return (((job or {}).get("status") or {}).get("state") or {}).get("phase") == "Completed"


def others_job(world):
    """Return a vcjob and a policy without a HyperJob."""
    template = group(world, "others", seconds=1)["templateSpec"]
    template |= {"schedulerName": "volcano", "queue": "default", "minAvailable": 1, "maxRetry": 3}
    return (
        {
            **VCJOBS.head,
            "metadata": {"name": "others"},
            "spec": template,
        },
        {
            **PROPAGATION_POLICIES.head,
            "metadata": {"name": "others"},
            "spec": {
                "resourceSelectors": [{**VCJOBS.head, "name": "others"}],
                "placement": {"clusterAffinity": {"clusterNames": [world.largest]}},
            },
        },
    )
