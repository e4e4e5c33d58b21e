"""ServiceExports of sub-jobs, created and deleted by name: their CRD may not be installed.

A ServiceExport of that name that another client created serves as well, and is never deleted.
"""

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import mapping, string
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import AlreadyExists, NotFound
from hyperjob_core.kube.resources import SERVICE_EXPORTS
from hyperjob_engine.model.parse import controller_of


class Exports:
    """Writes ServiceExports."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def create(self, export: Object) -> None:
        """Create a ServiceExport if none of its name exists.

        Raises AlreadyExists while the ServiceExport of a deleted HyperJob of this name exists.
        """
        try:
            await self._kube.create(SERVICE_EXPORTS, export)
        except AlreadyExists:
            found = await self._find(export)
            if found is None or _passes(found, export):
                raise
        except NotFound as error:
            text = (
                f"{error.message} (is the kind {SERVICE_EXPORTS.kind} of {SERVICE_EXPORTS.group}"
                " installed? plugin svc with --export=false does without)"
            )
            raise NotFound({**error.status, "message": text}, error.request) from error

    async def delete(self, export: Object) -> None:
        """Delete the ServiceExport of a deleted sub-job, unless another client created it."""
        found = await self._find(export)
        if found is None or _controller(found) != _controller(export):
            return
        metadata = found["metadata"]
        try:
            await self._kube.delete(
                SERVICE_EXPORTS,
                metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                propagation="Background",
            )
        except NotFound:
            return

    async def _find(self, export: Object) -> Object | None:
        metadata = export["metadata"]
        try:
            return await self._kube.get(
                SERVICE_EXPORTS, metadata["name"], namespace=metadata["namespace"]
            )
        except NotFound:
            return None


def _passes(found: Object, export: Object) -> bool:
    """Return whether an existing ServiceExport is being deleted, or has a deleted owner."""
    if mapping(found.get("metadata")).get("deletionTimestamp") is not None:
        return True
    holder = _controller(found)
    return bool(holder) and holder != _controller(export)


def _controller(export: Object) -> str:
    return string(controller_of(mapping(export.get("metadata"))).get("uid"))
