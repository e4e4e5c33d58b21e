"""Karmada's way into its members: `clusters/NAME/proxy/…` answers what the member answers."""

from collections.abc import Mapping

from hyperjob_core.kube.resources import CLUSTERS
from hyperjob_sandbox.apiserver.server import ApiServer
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, Stream

SUBRESOURCE = (CLUSTERS.group, CLUSTERS.plural, "proxy")


class ClusterProxy:
    """Hands requests on to members, by their names."""

    def __init__(self, members: Mapping[str, ApiServer]) -> None:
        self._members = members

    async def __call__(self, call: Call) -> Reply | Stream:
        """Answer as the member does; 404 for a cluster that never joined, 503 for a lost one."""
        server = self._members.get(call.info.name)
        if server is None:
            raise call.not_found()
        return await server.relay(call)
