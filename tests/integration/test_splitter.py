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
from tests.support.hyperjobs import hyperjob, job_template
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


def split(namespace: str, accelerators: int) -> dict[str, Any]:
    policy = {"mode": "auto", "accelerators": accelerators, "acceleratorType": GPU}
    template = job_template(pods=4, resources={"limits": {GPU: "8"}})
    return hyperjob("hj", template, namespace=namespace, group={"splitPolicy": policy})


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
        await kube.create(HYPERJOBS, split(namespace, 128))

        async def both() -> list[Any]:
            found = (await kube.list(VCJOBS, namespace=namespace)).items
            return found if len(found) == 2 else []

        jobs = await eventually(both, what="two vcjobs")
        sizes = {job["metadata"]["name"]: job["spec"]["tasks"][0]["replicas"] for job in jobs}
        assert sizes == {"hj-trainer-0": 12, "hj-trainer-1": 4}, "the built-in splitter gives 9, 7"
