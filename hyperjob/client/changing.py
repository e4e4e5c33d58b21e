"""Write a change to a HyperJob."""

from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube, PatchType
from hyperjob_core.kube.resources import HYPERJOBS

FIELD_MANAGER: Final = "kubectl-hyperjob"


async def patch(kube: Kube, namespace: str, name: str, body: Object) -> Object:
    """Send a JSON merge patch; return the HyperJob as the API server stored it."""
    return await kube.patch(
        HYPERJOBS,
        name,
        body,
        kind=PatchType.MERGE,
        namespace=namespace,
        field_manager=FIELD_MANAGER,
    )
