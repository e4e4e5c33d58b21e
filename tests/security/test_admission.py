"""What mallory changes of a HyperJob that is being deleted."""

import pytest

from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import HYPERJOBS
from tests.support.webhookprocess import registered_webhook

pytestmark = pytest.mark.scenario


@pytest.fixture(scope="module")
def webhook(control_plane, tmp_path_factory):
    with registered_webhook(
        control_plane.kubeconfig, tmp_path_factory.mktemp("webhook")
    ) as process:
        yield process


async def test_what_is_being_deleted_keeps_its_spec_and_may_lose_its_finalizers(
    people, webhook, namespace
):
    task = {"name": "t", "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    metadata = {"name": "going", "namespace": namespace, "finalizers": ["example.com/wait"]}
    made = {
        "apiVersion": HYPERJOBS.api_version,
        "kind": HYPERJOBS.kind,
        "metadata": metadata,
        "spec": {"replicatedJobs": [{"name": "a", "templateSpec": {"tasks": [task]}}]},
    }
    await people.mallory.create(HYPERJOBS, made)
    await people.mallory.delete(HYPERJOBS, "going", namespace=namespace)
    grown = [{"op": "add", "path": "/spec/replicatedJobs/0/replicas", "value": 4000}]
    with pytest.raises(KubeError, match="while the HyperJob is being deleted"):
        await people.mallory.patch(
            HYPERJOBS, "going", grown, namespace=namespace, kind=PatchType.JSON
        )
    freed = [{"op": "remove", "path": "/metadata/finalizers"}]
    await people.mallory.patch(HYPERJOBS, "going", freed, namespace=namespace, kind=PatchType.JSON)
