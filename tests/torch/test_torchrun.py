"""Real torchrun processes, with the environment that plugin pytorch gave to their pods.

Two sub-jobs in two clusters; each pod is a torchrun on this machine. What is emulated is what
Volcano (index labels), the kubelet (fields and references) and the DNS (names of pods) do.
"""

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controller.model.planned import CreateChild
from controller.plan import plan
from tests.support.podenv import Pod, pods_of
from tests.unit.controller.builders import UID, cluster, group, hyperjob, observed, task, template

Object = dict[str, Any]
SCRIPT = Path(__file__).with_name("all_reduce.py")
TORCHRUN = Path(sys.executable).with_name("torchrun")
LOOPBACK = "127.0.0.1"
TIME_LIMIT = 300

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(2 * TIME_LIMIT)]


def free_port() -> int:
    with socket.socket() as one:
        one.bind((LOOPBACK, 0))
        return int(one.getsockname()[1])


def sub_jobs(spec: Object, *, port: int, room: int, attempt: int = 0) -> list[Object]:
    """Plan a HyperJob of two such sub-jobs, and return their vcjobs as they are stored.

    Each of the two clusters has `room` accelerators: enough for one sub-job.
    """
    records = [
        {"name": f"hj-t-{index}", "replicatedJob": "t", "index": index, "attempt": attempt}
        for index in range(2)
    ]
    raw = hyperjob(
        group("t", replicas=2, templateSpec=spec),
        plugins={"env": [], "pytorch": [f"--port={port}", f"--timeout={TIME_LIMIT}"]},
        status={"jobs": [{**each, "phase": "Restarting"} for each in records]} if attempt else {},
    )
    members = cluster("east", room), cluster("west", room)
    jobs = []
    for action in plan(observed(raw, clusters=members)).actions:
        assert isinstance(action, CreateChild)
        assert action.job is not None
        job = action.job
        jobs.append({**job, "metadata": {**job["metadata"], "uid": f"uid-{action.name}"}})
    return jobs


def names_of(jobs: list[Object]) -> set[str]:
    """Return the host names that the DNS of the clusters answers for: all pods, near and far."""
    found = set()
    for job, member in zip(jobs, ("east", "west"), strict=True):
        service = job["metadata"]["name"]
        for pod in pods_of(job):
            found.add(f"{pod.name}.{service}")
            found.add(f"{pod.name}.{member}.{service}.default.svc.clusterset.local")
    return found


def resolved(pod: Pod, names: set[str]) -> dict[str, str]:
    """Return a pod's environment with the one host name in it looked up."""
    host, _, port = pod.env["PET_RDZV_ENDPOINT"].partition(":")
    assert host in names
    return {**pod.env, "PET_RDZV_ENDPOINT": f"{LOOPBACK}:{port}"}


@contextlib.asynccontextmanager
async def torchrun(env: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run what the user's container would: torchrun without any option."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR")
        if name in os.environ
    }
    process = await asyncio.create_subprocess_exec(
        TORCHRUN,
        SCRIPT,
        env={**kept, **env, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def run(jobs: list[Object]) -> list[Object]:
    """Run every pod of every sub-job at once, and return what their processes told."""
    names = names_of(jobs)
    pods = [pod for job in jobs for pod in pods_of(job, address=LOOPBACK)]
    async with contextlib.AsyncExitStack() as stack:
        running = [await stack.enter_async_context(torchrun(resolved(pod, names))) for pod in pods]
        async with asyncio.timeout(TIME_LIMIT):
            ended = await asyncio.gather(*(process.communicate() for process in running))
    for process, (_, errors) in zip(running, ended, strict=True):
        assert process.returncode == 0, errors.decode()[-4000:]
    return [json.loads(line) for output, _ in ended for line in output.decode().splitlines()]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(template(task("worker", replicas=2)), id="one task, whose first pod leads"),
        pytest.param(template(task("master"), task("worker")), id="a master and a worker"),
        pytest.param(template(task("node", gpus=2)), id="two processes in each pod"),
    ],
)
async def test_the_processes_of_both_clusters_are_one_world(spec: Object) -> None:
    told = await run(sub_jobs(spec, port=free_port(), room=2))
    assert sorted(each["rank"] for each in told) == [0, 1, 2, 3]
    assert {(each["world"], each["sum"]) for each in told} == {(4, 0b1111)}
    assert {(each["job"], each["cluster"]) for each in told} == {
        ("hj-t-0", "east"),
        ("hj-t-1", "west"),
    }
    assert {each["run"] for each in told} == {f"hj-{UID}-0"}


async def test_a_restart_of_all_meets_in_a_world_of_its_own() -> None:
    told = await run(sub_jobs(template(task("node")), port=free_port(), room=1, attempt=2))
    assert {(each["world"], each["sum"]) for each in told} == {(2, 0b11)}
    assert {each["run"] for each in told} == {f"hj-{UID}-2"}
