"""The controller when something it needs is missing, goes away, or stops."""

import asyncio
import contextlib
import json
import logging
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperjob_controller import manager as manager_module
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import CRDS, HYPERJOBS, PROPAGATION_POLICIES, VCJOBS, Resource
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_sandbox.apiserver.server import ApiServer
from tests.integration.test_controller import hyperjob, phase_is
from tests.support.controller import clusters, eventually
from tests.support.controlplane import ControlPlane
from tests.support.embedded import crd_files
from tests.support.processes import ran

Object = dict[str, Any]
TIME_LIMIT = 30.0
DEFINITIONS: list[Object] = [yaml.safe_load(path.read_text()) for path in crd_files()]


@contextlib.asynccontextmanager
async def controller(kube: Kube) -> AsyncIterator[Manager]:
    options = Options(queue_admission=QueueAdmission.NONE, leader_elect=False)
    manager = Manager(kube, options)
    task = asyncio.create_task(manager.run())
    try:
        yield manager
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_missing_crd_is_waited_for_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager_module, "_REPORT_SECONDS", 0.2)
    caplog.set_level(logging.WARNING)
    late = [item for item in DEFINITIONS if item["spec"]["names"]["kind"] == "HyperJob"]
    early = [item for item in DEFINITIONS if item not in late]
    async with (
        ApiServer(crds=early) as server,
        Kube.connect(kubeconfig=server.kubeconfig(tmp_path / "kubeconfig")) as kube,
        clusters(kube, one=100),
        controller(kube) as manager,
    ):

        async def told() -> bool:
            return any(
                getattr(record, "resource", "") == "hyperjobs.training.volcano.sh"
                and "cannot be listed" in record.getMessage()
                for record in caplog.records
            )

        await eventually(told, what="a line about the missing CRD")
        assert manager.ready() == "waiting for hyperjobs.training.volcano.sh"
        assert not manager.working.is_set()
        for definition in late:
            await kube.create(CRDS, definition)
        async with asyncio.timeout(TIME_LIMIT):
            await manager.working.wait()
        assert manager.ready() is None
        await kube.create(HYPERJOBS, hyperjob("default"))
        await phase_is(kube, "default", "Starting")


async def test_an_api_server_that_goes_away_and_comes_back_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def is_missed() -> bool:
        return any("Cannot list or watch" in record.getMessage() for record in caplog.records)

    async with (
        ApiServer(crds=DEFINITIONS) as server,
        Kube.connect(kubeconfig=server.kubeconfig(tmp_path / "kubeconfig")) as kube,
        clusters(kube, one=1000),
        controller(kube) as manager,
    ):
        async with asyncio.timeout(TIME_LIMIT):
            await manager.working.wait()
        await asyncio.gather(
            *(
                kube.create(HYPERJOBS, hyperjob("default", f"hj{i}", replicas=8, gpus=2))
                for i in range(8)
            )
        )
        await server.stop_listening()
        await eventually(is_missed, what="an informer that cannot reach the API server")
        await server.start_listening()
        for index in range(8):
            await phase_is(kube, "default", "Starting", f"hj{index}")
        for resource in (VCJOBS, PROPAGATION_POLICIES):  # a create that failed is tried again

            async def all_exist(resource: Resource = resource) -> bool:
                return len((await kube.list(resource)).items) == 64

            await eventually(all_exist, what=f"64 {resource.plural}")


def test_a_taken_port_is_said(control_plane: ControlPlane) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = ran(
            *(sys.executable, "-m", "hyperjob_controller"),
            f"--kubeconfig={control_plane.kubeconfig}",
            f"--metrics-bind-address={address}",
            "--health-probe-bind-address=0",
            timeout=TIME_LIMIT,
        )
    assert done.returncode == 1
    (line,) = [json.loads(text) for text in done.stderr.splitlines() if '"error"' in text]
    assert line["error"] == (
        f"cannot listen on {address}: address already in use;"
        " choose another address with --metrics-bind-address"
    )
    assert "Traceback" not in done.stderr
