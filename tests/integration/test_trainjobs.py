"""TrainJobs over HTTP: the controller makes HyperJobs of them and writes their status."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import orjson
import pytest

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CRDS,
    HYPERJOBS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    VCJOBS,
    Resource,
)
from hyperjob_webhook.review import AdmissionRequest, decode
from hyperjob_webhook.surroundings import watched
from tests.support.controller import clusters, eventually, running_controller
from tests.support.controlplane import ControlPlane
from tests.support.trainjobs import crds, runtime, trainjob

Object = dict[str, Any]
SOON = timedelta(milliseconds=50)


async def install(kube: Kube) -> None:
    """Create Trainer's CRDs, and wait until they are served."""
    for crd in crds():
        await kube.create(CRDS, crd)
    for resource in (TRAINJOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
        await eventually(lambda each=resource: _is_served(kube, each), what="served TrainJobs")


async def _is_served(kube: Kube, resource: Resource) -> bool:
    try:
        await kube.list(resource)
    except NotFound:
        return False
    return True


async def remove(kube: Kube) -> None:
    for crd in crds():
        await kube.delete(CRDS, crd["metadata"]["name"])
    for resource in (TRAINJOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):

        async def is_gone(each: Resource = resource) -> bool:
            return not await _is_served(kube, each)

        await eventually(is_gone, what="TrainJobs no longer served")


@pytest.fixture
async def trainer(kube: Kube) -> AsyncIterator[None]:
    """Install Trainer's CRDs and a runtime for one test."""
    await install(kube)
    await kube.create(CLUSTER_TRAINING_RUNTIMES, runtime())
    yield
    await remove(kube)


async def get(kube: Kube, resource: Resource, namespace: str, name: str = "tj") -> Object | None:
    try:
        return await kube.get(resource, name, namespace=namespace)
    except NotFound:
        return None


async def has(kube: Kube, resource: Resource, namespace: str) -> Object:
    found: Object = await eventually(
        lambda: get(kube, resource, namespace), what=f"a {resource.kind}"
    )
    return found


async def sub_jobs(kube: Kube, namespace: str, number: int) -> None:
    async def look() -> bool:
        return len((await kube.list(VCJOBS, namespace=namespace)).items) == number

    await eventually(look, what=f"{number} sub-jobs")


async def test_nothing_is_watched_or_logged_before_the_crds_which_may_come_and_go(
    control_plane: ControlPlane,
    kube: Kube,
    namespace: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with running_controller(control_plane.kubeconfig, namespace, trainjobs=SOON):
        for _ in range(2):
            await install(kube)
            await kube.create(CLUSTER_TRAINING_RUNTIMES, runtime())
            await kube.create(TRAINJOBS, trainjob("tj", namespace))
            await has(kube, HYPERJOBS, namespace)
            await remove(kube)
            # A bare API server collects no garbage.
            with contextlib.suppress(NotFound):
                await kube.delete(HYPERJOBS, "tj", namespace=namespace)
    about = [each for each in caplog.records if "trainer.kubeflow.org" in str(vars(each))]
    assert [each.getMessage() for each in about if each.levelno >= logging.ERROR] == []


async def test_the_webhook_reads_the_runtime_and_refuses_by_field(
    control_plane: ControlPlane, kube: Kube, namespace: str, trainer: None
) -> None:
    await kube.create(CLUSTER_TRAINING_RUNTIMES, runtime("flux", policy={"flux": {}}))

    def request(name: str) -> AdmissionRequest:
        given = trainjob("tj", namespace, runtimeRef={"name": name})
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "u",
                "kind": {"group": TRAINJOBS.group, "version": "v1alpha1", "kind": "TrainJob"},
                "operation": "CREATE",
                "namespace": namespace,
                "name": "tj",
                "object": given,
            },
        }
        return decode(orjson.dumps(review))

    async with watched(str(control_plane.kubeconfig)) as around:
        assert (await around.judge(request("torch"))).allowed
        (error,) = (await around.judge(request("flux"))).errors
        assert (error.field, "mlPolicy.flux" in error.detail) == ("spec.runtimeRef", True)
        (missing,) = (await around.judge(request("missing"))).errors
        assert str(missing) == 'spec.runtimeRef: Not found: "missing"'


async def test_the_commands_take_the_name_of_a_trainjob(
    control_plane: ControlPlane, kube: Kube, namespace: str, trainer: None
) -> None:
    async def command(*words: str) -> tuple[int, str]:
        flags = ["--kubeconfig", str(control_plane.kubeconfig), "-n", namespace]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hyperjob", *words, *flags),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode or 0, output.decode()

    async with (
        clusters(kube, one=100),
        running_controller(control_plane.kubeconfig, namespace, trainjobs=SOON),
    ):
        await kube.create(TRAINJOBS, trainjob("tj", namespace))
        await sub_jobs(kube, namespace, 1)
        for words in (["get", "trainjob/tj"], ["tree", "trainjobs/tj"], ["why", "trainjob/tj"]):
            code, text = await command(*words)
            assert "tj" in text
            assert code in (0, 3), text
        assert (await command("suspend", "trainjob/tj"))[0] == 2
        mpi = {"name": "missing"}
        await kube.create(TRAINJOBS, trainjob("waits", namespace, runtimeRef=mpi))
        await kube.create(TRAINJOBS, trainjob("others", namespace, labels={}))

        async def says() -> bool:
            return "spec.runtimeRef names" in (await command("why", "trainjob/waits"))[1]

        await eventually(says, what="the Event about the missing runtime")
        code, text = await command("why", "trainjob/others")
        assert (code, "training.volcano.sh/runs-as=HyperJob" in text) == (3, True)
