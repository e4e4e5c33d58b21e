"""What an operator reads of a running controller: its metrics and the page about one HyperJob."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_core.telemetry.endpoints import serve
from hyperjob_core.telemetry.health import Checks
from tests.support.controller import (
    clusters,
    eventually,
    running_controller,
    set_cluster,
    settled,
)
from tests.support.controlplane import ControlPlane
from tests.support.counts import Counts

Object = dict[str, Any]
GPU = "nvidia.com/gpu"


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[Kube]:
    async with Kube.connect(kubeconfig=control_plane.kubeconfig, user_agent="test") as client:
        yield client


def hyperjob(namespace: str) -> Object:
    container = {"name": "main", "image": "i", "resources": {"limits": {GPU: "4"}}}
    tasks = [{"name": "worker", "replicas": 1, "template": {"spec": {"containers": [container]}}}]
    group = {"name": "trainer", "replicas": 2, "templateSpec": {"tasks": tasks}}
    return {
        "apiVersion": HYPERJOBS.api_version,
        "kind": HYPERJOBS.kind,
        "metadata": {"name": "hj", "namespace": namespace},
        "spec": {"replicatedJobs": [group]},
    }


async def test_metrics_and_the_debug_page_follow_a_hyperjob_that_waits_and_starts(
    control_plane: ControlPlane,
    kube: Kube,
    namespace: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "hyperjob_controller.write")
    value = Counts()
    async with (
        clusters(kube, small=3),
        running_controller(control_plane.kubeconfig, namespace) as manager,
        serve(
            healthz=Checks("healthz"),
            readyz=Checks("readyz"),
            health_address="0",
            metrics_address="0",
            computed=(manager.scrape,),
        ),
    ):

        async def in_phase(phase: str) -> bool:
            return value("hyperjob_hyperjobs", phase=phase) == 1

        async def none_left() -> bool:
            return value("hyperjob_hyperjobs", phase="Starting") == 0

        await kube.create(HYPERJOBS, hyperjob(namespace))
        await eventually(lambda: in_phase("Pending"), what="a HyperJob that waits, in the metrics")
        await settled(manager, kube, namespace)
        assert (value("hyperjob_placement_attempts_total", result="no_room") or 0) >= 1
        assert value("hyperjob_placement_attempts_total", result="placed") == 0
        assert not value("hyperjob_queue_wait_seconds_count", queue="default")
        assert value("hyperjob_accelerators_free", cluster="small", type=GPU) == 3

        await set_cluster(kube, "small", 16)
        await eventually(lambda: in_phase("Starting"), what="a HyperJob that starts")
        await settled(manager, kube, namespace)
        assert value("hyperjob_hyperjobs", phase="Pending") == 0
        assert value("hyperjob_placement_attempts_total", result="placed") == 1
        assert value("hyperjob_queue_wait_seconds_count", queue="default") == 1
        assert value("hyperjob_accelerators_reserved", cluster="small", type=GPU) == 8
        assert value("hyperjob_accelerators_free", cluster="small", type=GPU) == 8
        assert value("hyperjob_jobs", phase="Placed") == 2

        changes = [record for record in caplog.records if record.msg == "HyperJob changed"]
        assert {"namespace": namespace, "name": "hj"} in [vars(one)["hyperjob"] for one in changes]
        assert [vars(one)["reason"] for one in changes if vars(one)["reason"] == "Starting"]

        await kube.delete(HYPERJOBS, "hj", namespace=namespace)
        await eventually(none_left, what="no HyperJob in the metrics")
