"""The simulated kubelets of a member: `python -m e2e.karmada.kubelet CLUSTER KUBECONFIG`."""

import asyncio
import sys
from pathlib import Path

from hyperjob_core.kube.client import Kube
from hyperjob_sandbox.clusters import load
from hyperjob_sandbox.member.caches import MemberCaches
from hyperjob_sandbox.member.kubelet import SimulatedKubelet

CLUSTERS = Path(__file__).with_name("clusters.yaml")


async def run(cluster: str, kubeconfig: Path) -> None:
    """Run the pods of a member until cancelled."""
    async with Kube.connect(kubeconfig=kubeconfig, user_agent="kubelet") as kube:
        caches = MemberCaches(kube)
        kubelet = SimulatedKubelet(cluster, load(CLUSTERS), caches)
        async with asyncio.TaskGroup() as group:
            group.create_task(caches.run())
            group.create_task(kubelet.run())


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], Path(sys.argv[2])))
