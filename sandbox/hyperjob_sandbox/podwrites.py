"""The two writes of a kubelet: the status of a pod, and its removal when nothing of it runs."""

from hyperjob.api.meta import Object
from hyperjob.kube.client import Kube, PatchType
from hyperjob.kube.errors import NotFound
from hyperjob.kube.resources import PODS


async def write_status(kube: Kube, pod: Object, status: Object) -> bool:
    """Merge fields into the status of this very pod; return False where it is gone."""
    meta: Object = pod["metadata"]
    try:
        await kube.patch(
            PODS,
            meta["name"],
            {"metadata": {"uid": meta["uid"]}, "status": status},
            kind=PatchType.MERGE,
            namespace=meta["namespace"],
            subresource="status",
        )
    except NotFound:
        return False
    return True


async def remove(kube: Kube, pod: Object) -> None:
    """Delete a pod without a grace period, which ends its deletion."""
    meta: Object = pod["metadata"]
    try:
        await kube.raw(
            "DELETE",
            PODS.path(meta["namespace"], meta["name"]),
            params={"gracePeriodSeconds": "0"},
        )
    except NotFound:
        return
