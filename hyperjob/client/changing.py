"""Write a change to a HyperJob, or to an object of its sub-jobs."""

from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import HYPERJOBS, Resource

FIELD_MANAGER: Final = "kubectl-hyperjob"


async def patch(
    kube: Kube, namespace: str, name: str, body: Object, *, resource: Resource = HYPERJOBS
) -> Object:
    """Send a JSON merge patch; return the object as the API server stored it."""
    return await kube.patch(
        resource,
        name,
        body,
        kind=PatchType.MERGE,
        namespace=namespace,
        field_manager=FIELD_MANAGER,
    )
