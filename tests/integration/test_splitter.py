"""Automatic splits over HTTP: by an external splitter, and behind our own queues."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import HYPERJOBS, QUEUES, VCJOBS
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.controller import clusters, eventually, running_controller, settled
from tests.support.controlplane import ControlPlane
from tests.support.splitters import PROGRAM

GPU = "nvidia.com/gpu"
GATES = frozenset({"ExternalSplitter"})


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[Kube]:
    async with Kube.connect(kubeconfig=control_plane.kubeconfig, user_agent="test") as client:
        yield client


@contextlib.asynccontextmanager
async def splitter() -> AsyncIterator[str]:
    """Run the example on a free port; give its URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, PROGRAM, "0", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        yield line.decode().removeprefix("listening on ").strip()
    finally:
        process.terminate()
        await process.wait()


def hyperjob(
    namespace: str, accelerators: int, *, name: str = "hj", queue: str = "default"
) -> dict[str, Any]:
    container = {"name": "main", "image": "i", "resources": {"limits": {GPU: "8"}}}
    tasks = [{"name": "w", "replicas": 4, "template": {"spec": {"containers": [container]}}}]
    split = {"mode": "auto", "accelerators": accelerators, "acceleratorType": GPU}
    group = {
        "name": "trainer",
        "splitPolicy": split,
        "templateSpec": {"queue": queue, "tasks": tasks},
    }
    return {
        "apiVersion": HYPERJOBS.api_version,
        "kind": HYPERJOBS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicatedJobs": [group]},
    }


async def test_what_the_splitter_answers_is_made(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    async with (
        splitter() as url,
        clusters(kube, one=100, two=60),
        running_controller(
            control_plane.kubeconfig, namespace, splitter_url=url, feature_gates=GATES
        ),
    ):
        await kube.create(HYPERJOBS, hyperjob(namespace, 128))

        async def both() -> list[Any]:
            found = (await kube.list(VCJOBS, namespace=namespace)).items
            return found if len(found) == 2 else []

        jobs = await eventually(both, what="two vcjobs")
        sizes = {job["metadata"]["name"]: job["spec"]["tasks"][0]["replicas"] for job in jobs}
        assert sizes == {"hj-trainer-0": 12, "hj-trainer-1": 4}, "the built-in splitter gives 9, 7"


async def test_a_splitter_that_is_away_is_waited_for_and_named(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    async with (
        clusters(kube, one=100, two=60),
        running_controller(
            control_plane.kubeconfig,
            namespace,
            splitter_url="http://127.0.0.1:1/",
            feature_gates=GATES,
        ),
    ):
        await kube.create(HYPERJOBS, hyperjob(namespace, 128))

        async def told() -> str:
            status = (await kube.get(HYPERJOBS, "hj", namespace=namespace)).get("status", {})
            message: str = status.get("state", {}).get("message", "")
            return message if "asks again at" in message else ""

        assert "cannot be reached" in await eventually(told, what="the reason")
        assert (await kube.list(VCJOBS, namespace=namespace)).items == []


async def test_our_own_queues_admit_a_split_as_one_and_make_the_next_one_wait(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    queue = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": namespace},
        "spec": {"weight": 1},
    }
    await kube.create(QUEUES, queue)
    async with (
        clusters(kube, one=100, two=60),
        running_controller(
            control_plane.kubeconfig, namespace, admission=QueueAdmission.BUILTIN
        ) as manager,
    ):
        for name in ("hj", "next"):
            await kube.create(HYPERJOBS, hyperjob(namespace, 128, name=name, queue=namespace))
            await settled(manager, kube, namespace)
        found = (await kube.list(VCJOBS, namespace=namespace)).items
        sizes = {job["metadata"]["name"]: job["spec"]["tasks"][0]["replicas"] for job in found}
        assert sizes == {"hj-trainer-0": 9, "hj-trainer-1": 7}
        waiting = (await kube.get(HYPERJOBS, "next", namespace=namespace))["status"]["state"]
        assert waiting["phase"] in ("Pending", "Queued")
        assert GPU in waiting["message"]
    await kube.delete(QUEUES, namespace)
