"""The rights of `hyperjob install --with trainjobs` decide whether TrainJobs become HyperJobs."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    HYPERJOBS,
    TRAINJOBS,
)
from tests.integration.test_trainjobs import get, install
from tests.support.controller import eventually, running_controller
from tests.support.controlplane import ControlPlane
from tests.support.controlplane import control_plane as start_control_plane
from tests.support.roles import controller_account, install_rights
from tests.support.trainjobs import runtime, trainjob


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run an API server on which Roles decide."""
    with start_control_plane(tmp_path_factory.mktemp("roles"), rbac=True) as plane:
        yield plane


async def test_without_the_rights_one_line_names_them_and_with_them_trainjobs_become_hyperjobs(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def said() -> list[str]:
        return [each.getMessage() for each in caplog.records if "may not list" in each.getMessage()]

    async with Kube.connect(kubeconfig=control_plane.kubeconfig, user_agent="test") as kube:
        await install(kube)
        await kube.create(CLUSTER_TRAINING_RUNTIMES, runtime())
        await kube.create(TRAINJOBS, trainjob("tj", namespace))
        account = controller_account(control_plane, namespace, tmp_path)
        often = timedelta(milliseconds=50)
        async with running_controller(account, namespace, trainjobs=often):

            async def named() -> bool:
                return bool(said())

            await eventually(named, what="a line that names the rights")
            assert await get(kube, HYPERJOBS, namespace) is None
            install_rights(control_plane, namespace, trainjobs=True)
            await eventually(
                lambda: get(kube, HYPERJOBS, namespace), what="the HyperJob of the TrainJob"
            )
    assert len(said()) == 1
    assert "hyperjob install --with trainjobs" in said()[0]
    failed = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert [each.getMessage() for each in failed if "trainer" in str(vars(each))] == []
