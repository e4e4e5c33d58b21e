"""Karmada's way into its members: `clusters/NAME/proxy/…` answers what the member answers.

The aggregated API server of a real Karmada serves it; it hands requests on and decides nothing.
"""

from collections.abc import Callable

from hyperjob.kube.resources import CLUSTERS
from hyperjob_sandbox.apiserver import ApiServer
from hyperjob_sandbox.apiserver.transport.call import Call, Reply, Stream

SUBRESOURCE = (CLUSTERS.group, CLUSTERS.plural, "proxy")


class ClusterProxy:
    """Hands requests on to members; `member` gives one by name, None where there is none."""

    def __init__(self, member: Callable[[str], ApiServer | None]) -> None:
        self._member = member

    async def __call__(self, call: Call) -> Reply | Stream:
        """Answer as the member does; 404 for a cluster that never joined, 503 for a lost one."""
        server = self._member(call.info.name)
        if server is None:
            raise call.not_found()
        return await server.relay(call)
