"""A Queue that the administrator of one member has closed there by hand."""

import contextlib
from collections.abc import AsyncIterator

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import Scenario, clusters_of
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.resources import CLUSTER_RESOURCE_BINDINGS, HYPERJOBS, QUEUES
from hyperjob_queueing.queues import closed_queue


@contextlib.asynccontextmanager
async def closed_in(scenario: Scenario, queue: str, member: str) -> AsyncIterator[None]:
    """Close a Queue in one member as its administrator does, and open it at the end."""
    kube = scenario.members[member]
    await scenario.until(QUEUES, queue, _is("Open"), what="Open in the member", kube=kube)
    await set_state(scenario, queue, member, "Closed")
    try:
        yield
    finally:
        await set_state(scenario, queue, member, "Open")


async def set_state(scenario: Scenario, queue: str, member: str, state: str) -> None:
    """Set the state of a Queue in one member, and wait until Karmada reports it."""
    body = {"status": {"state": state}}
    await scenario.members[member].patch(
        QUEUES, queue, body, kind=PatchType.MERGE, subresource="status"
    )
    await scenario.until(
        CLUSTER_RESOURCE_BINDINGS,
        f"{queue}-queue",
        lambda found: found is not None and (member in _closed(found)) == (state != "Open"),
        what=f"{state} in {member}",
    )


async def goes_elsewhere(scenario: Scenario) -> None:
    """Play a Queue that one member has closed: HyperJobs go to another, or wait and say why."""
    world = scenario.world
    first, second = world.pair
    async with scenario.queue() as queue:
        stays = group(
            world, "g", accelerators=world.per_pod, seconds=600, first_on=[first], queue=queue
        )
        await scenario.apply(hyperjob("stays", stays))
        running = await scenario.until_phase("stays", "Running")
        assert set(clusters_of(running).values()) == {first}
        async with closed_in(scenario, queue, first):
            await scenario.apply(hyperjob("free", stays))
            running = await scenario.until_phase("free", "Running")
            assert set(clusters_of(running).values()) == {second}
            bound = group(
                world, "g", accelerators=world.per_pod, seconds=600, only_on=[first], queue=queue
            )
            await scenario.apply(hyperjob("bound", bound))
            words = f"{first} has closed queue {queue}"
            await scenario.until(HYPERJOBS, "bound", _says(words), what=words)
            said = await scenario.hyperjob("why", "bound")
            assert words in " ".join(said.split())
            assert f"Open, closed in {first}" in await scenario.hyperjob("top", "--by", "queue")
            assert await scenario.children("bound") == {}
            still = await scenario.kube.get(HYPERJOBS, "stays", namespace=scenario.namespace)
            assert clusters_of(still) == {"stays-g-0": first}
            assert still["status"]["jobs"][0].get("attempt", 0) == 0
        running = await scenario.until_phase("bound", "Running")
        assert set(clusters_of(running).values()) == {first}


def _says(words: str):  # type: ignore[no-untyped-def]  # a predicate
    return lambda found: words in str(((found or {}).get("status") or {}).get("state"))


def _is(state: str):  # type: ignore[no-untyped-def]  # a predicate
    return lambda found: ((found or {}).get("status") or {}).get("state") == state


def _closed(binding: Object) -> frozenset[str]:
    found = closed_queue(binding)
    return frozenset() if found is None else found.clusters
