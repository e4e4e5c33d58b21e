"""The webhook with a kubeconfig: it warns of what it sees around a HyperJob, and never waits."""

from typing import Any

import orjson
import pytest

from hyperjob_core.api.field import make_status
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.errors import ConfigError, Forbidden
from hyperjob_core.kube.resources import CLUSTERS, CONFIG_MAPS, QUEUES, Resource
from hyperjob_rules.validation.context import Cluster, Context
from hyperjob_rules.validation.create import validate_create
from hyperjob_webhook.review import AdmissionRequest, decode
from hyperjob_webhook.surroundings import MOST_BYTES, watched
from tests.support.controller import clusters, eventually
from tests.support.controlplane import ControlPlane

Object = dict[str, Any]


def hyperjob(queue: str, *names: str) -> Object:
    pod = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    template = {"queue": queue, "tasks": [{"name": "worker", "replicas": 1, "template": pod}]}
    group = {"name": "trainer", "clusterNames": [*names], "templateSpec": template}
    return {"metadata": {"name": "hj"}, "spec": {"replicatedJobs": [group]}}


async def test_what_is_missing_or_not_ready_is_warned_of_as_soon_as_it_is_known(
    control_plane: ControlPlane, kube: Kube
) -> None:
    shut = {
        **QUEUES.head,
        "metadata": {"name": "shut-around"},
        "spec": {"weight": 1},
    }
    async with (
        clusters(kube, around=8),
        watched(str(control_plane.kubeconfig)) as around,
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


def needing(**volumes: Object) -> AdmissionRequest:
    """Ask for admission of a HyperJob whose pods need the sources of volumes."""
    asked = hyperjob("default")
    spec = asked["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["template"]["spec"]
    spec["volumes"] = [{"name": name, **source} for name, source in volumes.items()]
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "operation": "CREATE",
            "namespace": "default",
            "kind": {"group": "training.volcano.sh", "version": "v1alpha1", "kind": "HyperJob"},
            "userInfo": {"username": "someone"},
            "object": asked,
        },
    }
    return decode(orjson.dumps(review))


async def test_objects_that_pods_need_and_that_are_missing_are_warned_of(
    control_plane: ControlPlane, kube: Kube
) -> None:
    there = {
        **CONFIG_MAPS.head,
        "metadata": {"name": "settings-there", "namespace": "default"},
    }
    await kube.create(CONFIG_MAPS, there)
    request = needing(
        here={"configMap": {"name": "settings-there"}},
        gone={"configMap": {"name": "settings-gone"}},
        maybe={"configMap": {"name": "settings-maybe", "optional": True}},
        keys={"secret": {"secretName": "keys-gone"}},
        data={"persistentVolumeClaim": {"claimName": "data-gone"}},
    )
    try:
        async with watched(str(control_plane.kubeconfig)) as around:
            warnings = await around.missing(request, request.object)
            assert await around.missing(request._replace(size=MOST_BYTES + 1), request.object) == ()
    finally:
        await kube.delete(CONFIG_MAPS, "settings-there", namespace="default")
    at = "spec.replicatedJobs[0].templateSpec.tasks[0].template.spec.volumes"
    there_is_no = "in the namespace now; the pods wait until there is"
    hint = '; did you mean "settings-there"?'
    claim = f"{at}[4].persistentVolumeClaim.claimName: there is no PersistentVolumeClaim"
    assert sorted(warnings) == [
        f'{at}[1].configMap.name: there is no ConfigMap "settings-gone" {there_is_no}{hint}',
        f'{at}[3].secret.secretName: there is no Secret "keys-gone" {there_is_no}',
        f'{claim} "data-gone" {there_is_no}',
    ]


async def test_what_the_role_does_not_let_it_read_gives_no_warning(
    control_plane: ControlPlane,
) -> None:
    request = needing(keys={"secret": {"secretName": "keys-gone"}})

    class Refusing:
        async def raw(self, method: str, path: str, *, accept: str) -> bytes:
            assert accept.startswith("application/json;as=PartialObjectMetadata")
            raise Forbidden(make_status(403, f"{method} {path}"))

        async def get(self, resource: Resource, name: str, **_: object) -> Object:
            raise Forbidden(make_status(403, f"GET {resource.plural} {name}"))

    async with watched(str(control_plane.kubeconfig)) as around:
        around.kube = Refusing()  # type: ignore[assignment]
        assert await around.missing(request, request.object) == ()


async def test_a_kubeconfig_that_cannot_be_read_is_told(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        async with watched(str(tmp_path / "nowhere")):
            pass
