"""Pods larger than every node of their cluster: said, and not for ever at a cost to their queue."""

from pathlib import Path

import pytest

from hyperjob_core.api.choices import MemberAccess
from hyperjob_engine.model.observed import QueueAdmission
from tests.integration.test_lifecycle_members import Object, group, jobs_of, living, phase_of
from tests.support.controller import queue
from tests.support.sandbox import GPU

CAUSE = f"Insufficient {GPU}"
pytestmark = [pytest.mark.scenario, pytest.mark.asyncio]


def of_queue(name: str, gpus: int) -> Object:
    """Give a group of one pod with so many GPUs, in a queue."""
    made = group("trainer")
    made["templateSpec"]["queue"] = name
    container = made["templateSpec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {GPU: gpus}, "requests": {GPU: gpus}}
    return made


async def test_a_gang_for_which_volcano_finds_no_nodes_is_told_and_gives_its_quota_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The status has Volcano's words before the sub-job is given back.
    monkeypatch.setattr("hyperjob_controller.write.STEP_SECONDS", 0.5)
    async with (
        living(
            tmp_path,
            admission=QueueAdmission.BUILTIN,
            members=MemberAccess.PODS,  # the nodes of the clusters are not known
            unschedulable_timeout=3.0,
        ) as life,
        queue(life.kube, "small", capability={GPU: "16"}),
    ):
        await life.create("big", of_queue("small", 16))  # on nodes of 8
        told = await life.hyperjobs.until("default/big", lambda obj: CAUSE in message_of(obj))
        assert message_of(told).startswith("Volcano on "), "the cause comes first"
        assert phase_of(told) == "Starting"
        await life.create("next", of_queue("small", 8))
        await life.until("next", "Running")
        left = await life.hyperjobs.now("default/big", jobs_of)
        assert not any(entry.get("admitted") for entry in jobs_of(left))
        assert jobs_of(left)[0]["excludedClusters"]


def message_of(obj: Object) -> str:
    return "".join(each.get("message", "") for each in jobs_of(obj))
