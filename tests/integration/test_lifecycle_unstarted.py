"""Pods larger than every node of their cluster: said, and not for ever at a cost to their queue."""

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from hyperjob.cli import main
from hyperjob_engine.model.observed import QueueAdmission
from tests.integration.test_lifecycle_members import Life, Object, group, jobs_of, living
from tests.support.controller import eventually, queue
from tests.support.sandbox import GPU

pytestmark = [pytest.mark.scenario, pytest.mark.asyncio]


def of_queue(name: str, gpus: int) -> Object:
    """Give a group of one pod with so many GPUs, in a queue."""
    made = group("trainer")
    made["templateSpec"]["queue"] = name
    container = made["templateSpec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {GPU: gpus}, "requests": {GPU: gpus}}
    return made


async def why(life: Life, name: str) -> str:
    """Give what `hyperjob why` prints; the servers answer from the loop of the test meanwhile."""
    words = ["why", name, "--kubeconfig", str(life.topology.kubeconfig)]
    done = await asyncio.to_thread(CliRunner().invoke, main, words, env={"COLUMNS": "300"})
    return done.output


async def test_a_pod_larger_than_every_node_is_said_and_gives_its_quota_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The status has the pending pods before the sub-job is given back.
    monkeypatch.setattr("hyperjob_controller.write.STEP_SECONDS", 0.5)
    async with (
        living(tmp_path, admission=QueueAdmission.BUILTIN, start_timeout=3.0) as life,
        queue(life.kube, "small", capability={GPU: "16"}),
    ):
        await life.create("big", of_queue("small", 16))  # on nodes of 8

        async def explained() -> bool:
            return f"Insufficient {GPU}" in await why(life, "big")

        await eventually(explained, what="the words of Volcano")
        await life.create("next", of_queue("small", 8))
        await life.until("next", "Running")
        left = await life.hyperjobs.now("default/big", jobs_of)
        assert not any(entry.get("admitted") for entry in jobs_of(left))
        assert jobs_of(left)[0]["excludedClusters"]
