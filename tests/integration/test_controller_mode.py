"""Volcano Global comes and goes beside a controller that runs: it follows, nothing is lost."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from hyperjob_controller.manager import Manager
from hyperjob_controller.tuning import Tuning
from hyperjob_core.api.names import AFFINITY_GATED, AFFINITY_HELD
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import (
    EVENTS,
    HYPERJOBS,
    MUTATING_WEBHOOKS,
    PROPAGATION_POLICIES,
    VCJOBS,
)
from hyperjob_engine.model.observed import QueueAdmission
from tests.integration.test_controller_queues import hyperjob, until_jobs
from tests.support.controller import clusters, eventually, queue, running_controller
from tests.support.controlplane import ControlPlane
from tests.support.counts import value

Object = dict[str, Any]
NAME = "volcano-global-of-the-mode-test"


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[Kube]:
    async with Kube.connect(kubeconfig=control_plane.kubeconfig, user_agent="test") as client:
        yield client


def volcano_globals_webhook() -> Object:
    """Make a configuration that names Volcano Global's path, and that no request ever matches."""
    webhook = {
        "name": "resourcebindings.volcano.sh",
        "clientConfig": {"url": "https://127.0.0.1:1/resourcebindings/mutate"},
        "rules": [
            {
                "apiGroups": ["work.karmada.io"],
                "apiVersions": ["v1alpha2"],
                "resources": ["resourcebindings"],
                "operations": ["CREATE"],
            }
        ],
        "namespaceSelector": {"matchLabels": {"no-namespace": "has-this"}},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": MUTATING_WEBHOOKS.api_version,
        "kind": MUTATING_WEBHOOKS.kind,
        "metadata": {"name": NAME},
        "webhooks": [webhook],
    }


async def until_mode(manager: Manager, mode: QueueAdmission) -> None:
    async def look() -> bool:
        return manager.mode.current is mode

    await eventually(look, what=f"queue admission {mode}")
    assert value(manager.scrape, "hyperjob_queue_admission", mode=str(mode)) == 1


async def affinity(kube: Kube, namespace: str, name: str) -> str:
    policy = await kube.get(PROPAGATION_POLICIES, name, namespace=namespace)
    return str(policy["spec"]["placement"]["clusterAffinities"][0]["affinityName"])


async def test_the_mode_follows_volcano_global_and_what_runs_is_left_alone(
    control_plane: ControlPlane, kube: Kube, namespace: str
) -> None:
    async with (
        queue(kube, namespace),
        clusters(kube, **{f"{namespace}-a": 64}),
        running_controller(
            control_plane.kubeconfig,
            namespace,
            admission=None,
            leader_elect=True,
            tuning=Tuning(lease_namespace=namespace),
        ) as manager,
    ):
        assert manager.mode.current is QueueAdmission.BUILTIN
        await kube.create(HYPERJOBS, hyperjob(namespace, "first"))
        await until_jobs(kube, namespace, "first")
        assert await affinity(kube, namespace, "first-t-0") == AFFINITY_HELD
        first = await kube.get(VCJOBS, "first-t-0", namespace=namespace)

        await kube.create(MUTATING_WEBHOOKS, volcano_globals_webhook())
        try:
            await until_mode(manager, QueueAdmission.VOLCANO_GLOBAL)
            await kube.create(HYPERJOBS, hyperjob(namespace, "second"))
            await until_jobs(kube, namespace, "first", "second")
            assert await affinity(kube, namespace, "second-t-0") == AFFINITY_GATED
        finally:
            await kube.delete(MUTATING_WEBHOOKS, NAME)
        await until_mode(manager, QueueAdmission.BUILTIN)
        await kube.create(HYPERJOBS, hyperjob(namespace, "third"))
        await until_jobs(kube, namespace, "first", "second", "third")
        assert await affinity(kube, namespace, "third-t-0") == AFFINITY_HELD
        now = await kube.get(VCJOBS, "first-t-0", namespace=namespace)
        assert now["metadata"]["uid"] == first["metadata"]["uid"]

        async def told() -> list[str]:
            found = (await kube.list(EVENTS, namespace=namespace)).items
            return sorted(
                each["note"] for each in found if each["reason"] == "QueueAdmissionChanged"
            )

        async def both() -> bool:
            return len(await told()) == 2

        await eventually(both, what="an Event for each change")
        assert [note.split(":")[0] for note in await told()] == [
            "Queue admission is builtin from now on",
            "Queue admission is volcano-global from now on",
        ]
