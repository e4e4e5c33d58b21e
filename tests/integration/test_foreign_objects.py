"""Objects of other owners under the names of a HyperJob's objects: nothing of theirs changes."""

from typing import Any

import pytest

from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    SERVICE_EXPORTS,
    VCJOBS,
    Resource,
)
from tests.integration.test_controller import hyperjob, phase_is
from tests.support.controller import clusters, eventually, running_controller, settled
from tests.support.controlplane import ControlPlane

Object = dict[str, Any]
NAME = "hj-trainer-0"
STRANGER = {"apiVersion": "batch/v1", "kind": "Job", "name": NAME, "uid": "theirs"}
PINNED = {"clusterAffinity": {"clusterNames": ["one"]}}
SELECTOR = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "other"}

TAKEN: dict[str, tuple[Resource, str, Object, str, str]] = {
    "a vcjob": (
        VCJOBS,
        NAME,
        {"spec": hyperjob("")["spec"]["replicatedJobs"][0]["templateSpec"]},
        "Pending",
        f"Job {NAME} exists and does not belong to this HyperJob; delete it, or give the",
    ),
    "a PropagationPolicy": (
        PROPAGATION_POLICIES,
        NAME,
        {
            "spec": {
                "resourceSelectors": [SELECTOR],
                "placement": PINNED,
                "suspension": {"dispatching": True},
            }
        },
        "Pending",
        f"PropagationPolicy {NAME} exists and does not belong to this HyperJob; delete it, or",
    ),
    "a ResourceBinding": (
        RESOURCE_BINDINGS,
        f"{NAME}-job",
        {"spec": {"resource": STRANGER, "suspension": {"dispatching": True}}},
        "Pending",
        f"ResourceBinding {NAME}-job belongs to batch/v1 Job {NAME}, and Karmada would use it for",
    ),
    "a ServiceExport": (SERVICE_EXPORTS, NAME, {}, "Starting", ""),
}


@pytest.mark.parametrize("case", TAKEN)
async def test_an_object_of_another_owner_stays_as_it_is_and_the_status_names_it(
    control_plane: ControlPlane, kube: Kube, namespace: str, case: str
) -> None:
    """Through all that a HyperJob does with its objects: create, suspend, resume, delete."""
    resource, name, content, phase, message = TAKEN[case]
    metadata = {"name": name, "namespace": namespace}
    head = {**resource.head, "metadata": metadata}
    theirs = await kube.create(resource, {**head, **content})
    mine = hyperjob(namespace, replicas=1)
    (group,) = mine["spec"]["replicatedJobs"]
    group["templateSpec"]["plugins"] = {"svc": []}
    async with (
        clusters(kube, one=8),
        running_controller(control_plane.kubeconfig, namespace) as manager,
    ):
        await kube.create(HYPERJOBS, mine)
        status = await phase_is(kube, namespace, phase)
        assert message in status["state"]["message"]
        for suspend, then in ((True, "Suspended"), (False, phase)):
            body = {"spec": {"suspend": suspend}}
            await kube.patch(HYPERJOBS, "hj", body, kind=PatchType.MERGE, namespace=namespace)
            await phase_is(kube, namespace, then)
        await settled(manager, kube, namespace)
        await kube.delete(HYPERJOBS, "hj", namespace=namespace)

        async def is_gone() -> bool:
            return manager.caches.hyperjob(f"{namespace}/hj") is None

        await eventually(is_gone, what="no HyperJob")
        await settled(manager, kube, namespace)
    assert await kube.get(resource, name, namespace=namespace) == theirs
