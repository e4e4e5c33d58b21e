"""Read the clusters and queues of a plan from a live control plane or from a clusters file."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hyperjob.cli.kubectl.access import Access
from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob.cli.kubectl.output import remark
from hyperjob.cli.plan.nodes import with_node_sizes
from hyperjob.client.plan.reading import admitting, read_world
from hyperjob.client.plan.world import World
from hyperjob_controller.options import Options
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import CLUSTERS, QUEUES

if TYPE_CHECKING:
    from hyperjob.cli.embedded import SandboxConfig

_BUILT_IN = ("default", "root")


def from_file(path: Path, *, namespace: str | None) -> World:
    """Return the idle clusters of a clusters file; FailureError when it cannot be read.

    The file says whether Volcano Global or the built-in queues admit.
    """
    config = _load(path)
    admission = admitting(volcano_global=config.volcano_global.enabled)
    specs: dict[str, Object] = {name: {} for name in _BUILT_IN}
    specs |= {queue.name: queue.model_dump(exclude_none=True) for queue in config.queues}
    queues: list[Object] = [
        {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}}
        for name, spec in specs.items()
    ]
    return World(
        now=datetime.now(UTC),
        objects={CLUSTERS: _idle(config), QUEUES: queues},
        options=Options(queue_admission=admission),
        namespace=namespace or "default",
    )


def clusters_of(path: Path) -> list[Object]:
    """Return the Clusters of a clusters file, idle; FailureError when it cannot be read."""
    return _idle(_load(path))


def _load(path: Path) -> "SandboxConfig":
    from hyperjob.cli.embedded import SandboxConfigError, load

    try:
        return load(path)
    except SandboxConfigError as error:
        raise FailureError(str(error), code=Code.USAGE) from None


def _idle(config: "SandboxConfig") -> list[Object]:
    from hyperjob.cli.embedded import idle_clusters

    return [
        with_node_sizes(raw, [(group.allocatable, group.count) for group in cluster.nodes])
        for raw, cluster in zip(idle_clusters(config), config.clusters, strict=True)
    ]


async def from_control_plane(access: Access, *, hyperjobs: Sequence[Object]) -> World:
    """Read a live control plane; raises ConfigError, and KubeError when Clusters cannot be read."""
    async with access.connect() as kube:
        return await read_world(
            kube,
            namespace=access.home(kube),
            hyperjobs=hyperjobs,
            left_out=remark,
        )
