"""What a kubelet does, whatever it runs pods with.

`simulated` lets pods run for their time and end as configured; `hyperjob_sandbox.processes` runs
their containers as processes of this machine.
"""

from collections.abc import Callable
from typing import Protocol

from hyperjob_sandbox.apiserver.transport.call import Call, Reply, Stream
from hyperjob_sandbox.member.watching import MemberCaches


class Kubelet(Protocol):
    """Every kubelet of one member cluster.

    A pod that is bound to a node is started once and its status written as it changes: phase,
    conditions and the state of each container. A container that ends is started again as the pod's
    restartPolicy says, with a back-off. A pod that is being deleted is ended, and removed from the
    API server when nothing of it runs any more. A pod without a node, or of another node's name, is
    never touched.
    """

    async def run(self) -> None:
        """Do all this until cancelled; the member cluster runs it."""

    async def answer(self, call: Call) -> Reply | Stream:
        """Answer a subresource of a pod that only its kubelet can: log, exec, attach, portforward.

        Raises ApiError where it cannot.
        """

    async def stop(self) -> None:
        """End what runs, without a grace period: the member cluster ends."""


KubeletFactory = Callable[[MemberCaches], Kubelet]
"""Makes the kubelets of a member cluster, before its informers have run."""
