"""Read the clusters and queues of a plan from a live control plane or from a clusters file."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hyperjob.cli.kubectl.access import Access
from hyperjob.cli.kubectl.output import remark
from hyperjob.client.plan.reading import admitting, read_world
from hyperjob.client.plan.world import World
from hyperjob_controller.options import Options
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import CLUSTERS, QUEUES
from hyperjob_engine.members.facts import hypernode_fact, node_fact, pod_fact
from hyperjob_engine.members.fold import view_of
from hyperjob_engine.model.members import MemberView

if TYPE_CHECKING:
    from hyperjob.cli.embedded import SandboxConfig

_BUILT_IN = ("default", "root")


def from_file(path: Path, *, namespace: str | None) -> World:
    """Return the idle clusters of a clusters file; FailureError when it cannot be read.

    The file says whether Volcano Global or the built-in queues admit.
    """
    from hyperjob.cli.embedded import clusters_file, idle_clusters

    config = clusters_file(path)
    admission = admitting(volcano_global=config.volcano_global.enabled)
    specs: dict[str, Object] = {name: {} for name in _BUILT_IN}
    specs |= {queue.name: queue.model_dump(exclude_none=True) for queue in config.queues}
    queues: list[Object] = [
        {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}}
        for name, spec in specs.items()
    ]
    return World(
        now=datetime.now(UTC),
        objects={CLUSTERS: idle_clusters(config), QUEUES: queues},
        views=_views(config),
        options=Options(queue_admission=admission),
        namespace=namespace or "default",
    )


def _views(config: "SandboxConfig") -> dict[str, MemberView]:
    """Return the nodes of each cluster of a file, with the pods of other workloads."""
    from hyperjob.cli.embedded import hypernodes_of, nodes_of, others_of

    now = datetime.now(UTC)
    return {
        each.name: view_of(
            map(pod_fact, others_of(each)),
            map(node_fact, nodes_of(each)),
            map(hypernode_fact, hypernodes_of(each)),
            as_of=now,
        )
        for each in config.clusters
    }


async def from_control_plane(access: Access, *, hyperjobs: Sequence[Object]) -> World:
    """Read a live control plane; raises ConfigError, and KubeError when Clusters cannot be read."""
    async with access.connect() as kube:
        return await read_world(
            kube,
            namespace=access.home(kube),
            hyperjobs=hyperjobs,
            left_out=remark,
        )
