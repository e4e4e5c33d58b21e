"""What people do by hand to what the controller made, and names that two want."""

from typing import Any

import pytest

from hyperjob_core.api.names import binding_name
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    VCJOBS,
    Resource,
)
from tests.integration.test_controller import hyperjob, ours, phase_is, report
from tests.support.controller import clusters, eventually, running_controller, settled
from tests.support.controlplane import ControlPlane
from tests.support.queues import due_in

Object = dict[str, Any]
LABEL = "volcano.sh/hyperjob-name"


async def bind(kube: Kube, job: Object) -> None:
    """Make the binding of a vcjob as Karmada does."""
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    reference = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": name}
    owner = {**reference, "uid": job["metadata"]["uid"], "controller": True}
    document = {
        **RESOURCE_BINDINGS.head,
        "metadata": {
            "name": binding_name(name),
            "namespace": namespace,
            "ownerReferences": [owner],
        },
        "spec": {"resource": {**reference, "namespace": namespace}},
    }
    await kube.create(RESOURCE_BINDINGS, document)


@pytest.mark.parametrize("resource", [VCJOBS, PROPAGATION_POLICIES], ids=lambda each: each.plural)
async def test_a_label_that_somebody_takes_away_comes_back_and_nothing_is_made_twice(
    control_plane: ControlPlane, kube: Kube, namespace: str, resource: Resource
) -> None:
    async with (
        clusters(kube, one=8),
        running_controller(control_plane.kubeconfig, namespace) as manager,
    ):
        await kube.create(HYPERJOBS, hyperjob(namespace, replicas=1))
        await phase_is(kube, namespace, "Starting")
        await bind(kube, await kube.get(VCJOBS, "hj-trainer-0", namespace=namespace))
        await report(kube, namespace, "hj-trainer-0", "Running", running=4)
        await phase_is(kube, namespace, "Running")
        bare = {"metadata": {"labels": None}}
        old = await kube.patch(
            resource, "hj-trainer-0", bare, kind=PatchType.MERGE, namespace=namespace
        )
        assert "labels" not in old["metadata"]

        async def labelled() -> Object | None:
            found = await kube.get(resource, "hj-trainer-0", namespace=namespace)
            return found if found["metadata"].get("labels", {}).get(LABEL) == "hj" else None

        new = await eventually(labelled, what="the label")
        assert new["metadata"]["uid"] == old["metadata"]["uid"]
        await phase_is(kube, namespace, "Running")
        await settled(manager, kube, namespace)


@pytest.mark.parametrize(
    "told",
    [{"state": {"phase": "Failed"}, "jobsReady": "0/9"}, None],
    ids=["changed", "wiped"],
)
async def test_a_status_that_somebody_writes_is_told_right_again_in_one_write(
    control_plane: ControlPlane, kube: Kube, namespace: str, told: Object | None
) -> None:
    async with (
        clusters(kube, one=8),
        running_controller(control_plane.kubeconfig, namespace) as manager,
    ):
        await kube.create(HYPERJOBS, hyperjob(namespace, replicas=1))
        await phase_is(kube, namespace, "Starting")
        await report(kube, namespace, "hj-trainer-0", "Running", running=4)
        right = await phase_is(kube, namespace, "Running")
        await settled(manager, kube, namespace)
        before = control_plane.writes()
        body = {"status": told}
        await kube.patch(
            HYPERJOBS,
            "hj",
            body,
            kind=PatchType.MERGE,
            namespace=namespace,
            subresource="status",
        )
        status = await phase_is(kube, namespace, "Running")
        assert status["jobs"] == right["jobs"]
        await settled(manager, kube, namespace)
        assert ours(control_plane.writes() - before) == {"PATCH hyperjobs status": 2}
        due = due_in(manager.queue, f"{namespace}/hj")
        assert due is None, "all of the status is stored, so it is not written again"
