"""Built-in queue admission without Volcano Global: the order of starts, and the waits."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import yaml

from e2e.support.closedqueues import goes_elsewhere
from e2e.support.manifests import both, group, hyperjob
from e2e.support.scenario import clusters_of, phase_of
from e2e.support.settings import from_environment
from e2e.support.world import CLUSTERS_FILE, World, open_world
from hyperjob_core.api.quantity import NANO
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_queueing.consumed import FAIR_SHARING, Consumed, consumed_text
from tests.support.stack import controller_service

if from_environment().embedded:

    @pytest.fixture(scope="module")
    def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
        """Yield a world whose controller has built-in queue admission."""
        directory = tmp_path_factory.mktemp("queues")
        alone = yaml.safe_load(CLUSTERS_FILE.read_text()) | {"volcanoGlobal": {"enabled": False}}
        file = directory / "clusters.yaml"
        file.write_text(yaml.safe_dump(alone))
        with open_world(
            from_environment(), directory, clusters=file, queue_admission="builtin"
        ) as opened:
            yield opened

else:

    @pytest.fixture(scope="module")
    def world(shared_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
        """Yield the shared world with a controller that has built-in queue admission."""
        shared = shared_world
        if shared.stack is None:
            pytest.skip("the installed release may run in another mode")
        if shared.volcano_global:
            pytest.skip("Volcano Global is there, and must not be beside our own queue admission")
        admitting = controller_service(
            tmp_path_factory.mktemp("queues"), shared.kubeconfig, queue_admission="builtin"
        )
        shared.stack.controller.stop()
        try:
            admitting.start()
            yield replace(shared, stack=replace(shared.stack, controller=admitting))
        finally:
            admitting.stop()
            shared.stack.controller.start()


def of(world: World, name: str, *, pods: int, seconds: float = 2, **template: object):
    """Return a HyperJob of `pods` pods on the largest member."""
    only = {"only_on": [world.largest]}
    return hyperjob(
        name,
        group(
            world,
            "g",
            pods=pods,
            accelerators=world.per_pod,
            seconds=seconds,
            **only,
            **template,
        ),
    )


async def says(scenario, name: str, text: str):
    """Wait until the message of a HyperJob contains a text."""
    return await scenario.until(
        HYPERJOBS,
        name,
        lambda found: (
            found is not None
            and text in (found.get("status", {}).get("state", {}).get("message") or "")
        ),
        what=f"saying {text!r}",
    )


async def test_two_gangs_that_need_everything_run_one_after_the_other(scenario):
    world = scenario.world
    async with scenario.queue() as queue, scenario.sightings() as sightings:
        await scenario.apply(both(world, "a", queue=queue), both(world, "b", queue=queue))
        waiting = await says(scenario, "b", "2 sub-jobs must start together")
        assert waiting["status"]["state"]["phase"] == "Queued", waiting["status"]
        assert set(await scenario.children("b")) == set(), "a HyperJob that waits has no objects"
        for name in ("a", "b"):
            ended = await scenario.until_phase(name, "Completed", "Failed")
            assert ended["status"]["state"]["phase"] == "Completed"
            assert len(set(clusters_of(ended).values())) == 2
    for alive in sightings.together():
        assert len({job.partition("-")[0] for job in alive}) <= 1, "two gangs at a time"


async def test_a_queue_that_is_missing_is_waited_for(scenario):
    await scenario.apply(of(scenario.world, "early", pods=1, queue=scenario.namespace))
    waiting = await says(scenario, "early", f"queue {scenario.namespace} does not exist")
    assert waiting["status"]["state"]["reason"] == "InvalidQueue"
    async with scenario.queue():
        await scenario.until_phase("early", "Completed")


async def test_a_queue_that_one_member_has_closed_sends_hyperjobs_elsewhere(scenario):
    await goes_elsewhere(scenario)


async def test_the_urgent_one_overtakes_in_its_queue(scenario):
    world = scenario.world
    whole = world.sizes[world.largest]
    # A class that preempts would stop the running HyperJob before the line can be seen.
    overtaking = scenario.priority(1000, policy="Never")
    async with overtaking as urgent, scenario.queue() as queue:
        await scenario.apply(of(world, "on", pods=whole, seconds=8, queue=queue))
        await scenario.until_phase("on", "Starting", "Running")
        await scenario.apply(of(world, "low", pods=whole, queue=queue))
        await says(scenario, "low", "first of 1 in queue")
        high = of(world, "high", pods=whole, queue=queue, priorityClassName=urgent)
        await scenario.apply(high)
        await says(scenario, "high", "first of 2 in queue")
        await says(scenario, "low", "number 2 of 2 in queue")
        await scenario.until_phase("high", "Starting", "Running", "Completed")
        low = await scenario.kube.get(HYPERJOBS, "low", namespace=scenario.namespace)
        assert phase_of(low) == "Queued"
        await scenario.until_phase("low", "Completed")


async def test_three_queues_share_by_weight(scenario):
    world = scenario.world
    part = world.sizes[world.largest] // 6
    if not part:
        pytest.skip("the largest member holds fewer than six pods")
    rest = world.sizes[world.largest] - 6 * part
    async with contextlib.AsyncExitStack() as stack:
        queues = [
            await stack.enter_async_context(scenario.queue(f"-{weight}", weight=weight))
            for weight in (1, 2, 3)
        ]
        # The HyperJob has its own queue: it counts against its queue until its last pods have
        # ended.
        other = await stack.enter_async_context(scenario.queue("-other"))
        if rest:  # exactly six fit into the remaining accelerators
            await scenario.apply(of(world, "filler", pods=rest, seconds=3600, queue=other))
            await scenario.until_phase("filler", "Running")
        await scenario.apply(of(world, "blocker", pods=6 * part, seconds=12, queue=other))
        await scenario.until_phase("blocker", "Starting", "Running")
        jobs = [
            of(world, f"w{weight}-{number}", pods=part, seconds=120, queue=queue)
            for weight, queue in zip((1, 2, 3), queues, strict=True)
            for number in range(4)
        ]
        await scenario.apply(*jobs)
        for made in jobs:
            await says(scenario, made["metadata"]["name"], "in queue")
        await scenario.until_phase("blocker", "Completed")
        deadline = time.monotonic() + world.settings.timeout
        while (started := await admitted(scenario, "w")).total() < 6:
            assert time.monotonic() < deadline, started
            await asyncio.sleep(0.2)
        assert started == {"w1": 1, "w2": 2, "w3": 3}


async def test_what_was_lent_comes_back_at_once_where_the_queue_is_reclaimable(scenario):
    world = scenario.world
    whole = world.sizes[world.largest]
    async with (
        scenario.queue("-lent", weight=1, reclaimable=True) as lent,
        scenario.queue("-owner", weight=8) as owner,
    ):
        await scenario.apply(of(world, "borrower", pods=whole, seconds=3600, queue=lent))
        await scenario.until_phase("borrower", "Running")
        await scenario.apply(of(world, "owner", pods=whole, queue=owner))
        await scenario.until_phase("owner", "Completed")
        waiting = await scenario.until_phase("borrower", "Queued", "Starting", "Running")
        assert [job["attempt"] for job in waiting["status"]["jobs"]] == [1]
        assert not waiting["status"].get("restarts"), "giving back costs no restart"
        await scenario.until_phase("borrower", "Running")


async def test_a_gang_above_its_share_runs_in_place_of_a_queue_that_has_consumed_more(scenario):
    world = scenario.world
    amount = world.sizes[world.largest] * world.per_pod
    consumed = Consumed({world.accelerator: 100 * amount * NANO}, datetime.now(UTC))
    async with (
        scenario.queue(
            "-ahead", annotations={FAIR_SHARING: consumed_text(consumed)}, reclaimable=True
        ) as ahead,
        scenario.queue("-behind", reclaimable=True) as behind,
    ):
        whole = of(world, "runs", pods=world.sizes[world.largest], seconds=3600, queue=ahead)
        await scenario.apply(whole)
        await scenario.until_phase("runs", "Running")
        await scenario.apply(both(world, "large", queue=behind))
        await scenario.until_phase("large", "Completed")
        waiting = await scenario.until_phase("runs", "Queued", "Starting", "Running")
        assert [job["attempt"] for job in waiting["status"]["jobs"]] == [1]
        await scenario.until_phase("runs", "Running")


async def admitted(scenario, stem: str) -> Counter[str]:
    """Return the number of admitted, unfinished HyperJobs, by the first part of their name.

    Only names that begin with `stem` count.
    """
    found = await scenario.kube.list(HYPERJOBS, namespace=scenario.namespace)
    return Counter(
        each["metadata"]["name"].partition("-")[0]
        for each in found.items
        if each["metadata"]["name"].startswith(stem)
        and any(job.get("admitted") for job in each.get("status", {}).get("jobs", ()))
    )
