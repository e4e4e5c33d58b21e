"""The webhook with a kubeconfig: it warns of what it sees around a HyperJob, and never waits."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from hyperjob.kube.client import Kube, PatchType
from hyperjob.kube.errors import ConfigError
from hyperjob.kube.resources import CLUSTERS, QUEUES
from hyperjob.telemetry.metrics import Metrics
from tests.support.controller import clusters, eventually
from tests.support.controlplane import ControlPlane
from webhook.surroundings import watched
from webhook.validation import Context, validate_create
from webhook.validation.context import Cluster

Object = dict[str, Any]


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[Kube]:
    async with Kube.connect(kubeconfig=control_plane.kubeconfig, user_agent="test") as client:
        yield client


def hyperjob(queue: str, *names: str) -> Object:
    pod = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    template = {"queue": queue, "tasks": [{"name": "worker", "replicas": 1, "template": pod}]}
    group = {"name": "trainer", "clusterNames": [*names], "templateSpec": template}
    return {"metadata": {"name": "hj"}, "spec": {"replicatedJobs": [group]}}


async def test_what_is_missing_or_not_ready_is_warned_of_as_soon_as_it_is_known(
    control_plane: ControlPlane, kube: Kube
) -> None:
    shut = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": "shut-around"},
        "spec": {"weight": 1},
    }
    async with (
        clusters(kube, around=8),
        watched(str(control_plane.kubeconfig), metrics=Metrics()) as around,
    ):
        context = around.context
        await kube.create(QUEUES, shut)
        try:
            await kube.patch(
                QUEUES,
                "shut-around",
                {"status": {"state": "Closed"}},
                kind=PatchType.MERGE,
                subresource="status",
            )

            def closed(known: Context) -> bool:
                queue = (known.queues or {}).get("shut-around")
                return queue is not None and queue.state == "Closed"

            async def seen() -> bool:
                known = context()
                everything = known.priority_classes is not None
                return everything and closed(known) and "around" in (known.clusters or {})

            # Until the last of the three lists is complete each context is made anew.
            await eventually(seen, what="a cluster, a closed queue and the priority classes")
            assert context() is context(), "made anew only after a change"
            assert (context().clusters or {})["around"] == Cluster(ready=True)
            outcome = validate_create(hyperjob("shut-around", "around", "arund"), context=context())
            assert not outcome.errors
            told = " ".join(outcome.warnings)
            assert "shut-around" in told
            assert "arund" in told
            assert 'did you mean "around"' in told
        finally:
            await kube.delete(QUEUES, "shut-around")
        await kube.delete(CLUSTERS, "around")

        async def forgotten() -> bool:
            known = context()
            return "around" not in (known.clusters or {}) and not closed(known)

        await eventually(forgotten, what="no cluster and no queue")


async def test_a_kubeconfig_that_cannot_be_read_is_told(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        async with watched(str(tmp_path / "nowhere"), metrics=Metrics()):
            pass
