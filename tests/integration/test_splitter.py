"""Automatic splits over HTTP: by an external splitter, and behind our own queues."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import HYPERJOBS, VCJOBS
from tests.support.controller import clusters, eventually, running_controller
from tests.support.controlplane import ControlPlane
from tests.support.splitters import PROGRAM

GPU = "nvidia.com/gpu"
GATES = frozenset({"ExternalSplitter"})


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
